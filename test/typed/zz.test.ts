import { expect, it } from 'vitest'
import * as mq from '../../src/typed/index.js'
import { brokerOf, clientOn, until } from './rig.js'

const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms))
async function two(options = {}) {
  const broker = brokerOf()
  return [await clientOn(broker, options), await clientOn(broker), broker] as const
}
const slow = (ms: (v: unknown) => number): mq.StandardSchema<number> => ({
  '~standard': {
    version: 1,
    vendor: 't',
    validate: async (v) => {
      await sleep(ms(v))
      return typeof v === 'number' ? { value: v } : { issues: [{ message: 'no' }] }
    },
  },
})

it('latest with an async schema keeps order, also with concurrency, and with deletes', async () => {
  const [a, b] = await two()
  const ch = mq.channel('l/{id}', mq.json(slow((v) => ((v as number) % 2 ? 20 : 1))), { qos: 1, retain: true, subscribe: {} })
  await using latest = ch.on(a).latest()
  await latest.ready
  for (let n = 0; n < 6; n++) b.publish('l/x', String(n), { qos: 1, retain: true })
  b.publish('l/y', '1', { qos: 1, retain: true })
  b.publish('l/y', '', { qos: 1, retain: true })
  b.publish('l/z', '1', { qos: 1, retain: true })
  await until(() => latest.has('l/z'))
  await sleep(60)
  expect([...latest.keys()]).toEqual(['l/x', 'l/z'])
  expect(latest.get('l/x')?.value).toBe(5)
})
it('latest: an invalid value leaves the old one', async () => {
  const [a, b] = await two()
  const ch = mq.channel('l/{id}', mq.number(), { qos: 1, retain: true })
  await using latest = ch.on(a).latest()
  await latest.ready
  await b.publish('l/x', '1', { qos: 1, retain: true })
  await b.publish('l/x', 'q', { qos: 1, retain: true })
  await b.publish('l/w', '2', { qos: 1, retain: true })
  await until(() => latest.has('l/w'))
  expect([latest.get('l/x')?.value, latest.invalid]).toEqual([1, 1])
})
it('latest: limit with reconnects, quickly one after the other', async () => {
  const [a, b, broker] = await two()
  const ch = mq.channel('l/{id}', mq.number(), { qos: 1, retain: true })
  for (let n = 0; n < 10; n++) await b.publish(`l/${n}`, String(n), { qos: 1, retain: true })
  await using latest = ch.on(a).latest({}, { limit: 5 })
  await latest.ready
  await until(() => latest.size === 5)
  for (let k = 0; k < 5; k++) {
    await a.reconnect({ force: true })
  }
  await until(() => [...latest.values()].every(({ stale }) => !stale))
  expect(latest.size).toBe(5)
  await b.publish('l/3', '33', { qos: 1, retain: true })
  await until(() => latest.get('l/3')?.value === 33)
  void broker
})
it('latest: two of one channel; one ends, the other goes on', async () => {
  const [a, b] = await two()
  const ch = mq.channel('l/{id}', mq.number(), { qos: 1, retain: true })
  await b.publish('l/1', '1', { qos: 1, retain: true })
  const one = ch.on(a).latest(),
    other = ch.on(a).latest()
  await Promise.all([one.ready, other.ready])
  await until(() => one.size === 1 && other.size === 1)
  await one.unsubscribe()
  await b.publish('l/1', '2', { qos: 1, retain: true })
  await until(() => other.get('l/1')?.value === 2)
  expect(one.get('l/1')?.value).toBe(1)
  await a.reconnect({ force: true })
  await until(() => other.get('l/1')?.stale === false)
  await other.unsubscribe()
})
it('latest: ended in the turn it was made', async () => {
  const [a] = await two()
  const ch = mq.channel('l/{id}', mq.number())
  const one = ch.on(a).latest()
  const done = one.unsubscribe()
  await done
  const ready = await Promise.race([
    one.ready.then(
      () => 'ready',
      (e) => e.code,
    ),
    sleep(500).then(() => 'hangs'),
  ])
  console.log('ready after unsubscribe', ready)
  for await (const _ of one.changes()) throw new Error('no')
})
it('latest: a retained one of before a delete that happened offline', async () => {
  const [a, b] = await two()
  const ch = mq.channel('l/{id}', mq.number(), { qos: 1, retain: true })
  await b.publish('l/1', '1', { qos: 1, retain: true })
  await using one = ch.on(a).latest()
  await one.ready
  await until(() => one.size === 1)
  const p = a.reconnect({ force: true })
  await b.publish('l/1', '', { qos: 1, retain: true })
  await p
  await sleep(50)
  console.log(
    'after offline delete',
    [...one.values()].map(({ value, stale }) => [value, stale]),
  )
})
it('latest: expire', async () => {
  const [a, b] = await two()
  const ch = mq.channel('l/{id}', mq.number(), { qos: 1 })
  await using one = ch.on(a).latest({}, { expire: 50 })
  await one.ready
  const changes: unknown[] = []
  const reading = (async () => {
    for await (const { topic, entry } of one.changes()) changes.push([topic, entry?.value])
  })()
  await b.publish('l/1', '1')
  await until(() => changes.length === 2)
  await b.publish('l/1', '2')
  await until(() => changes.length === 4)
  expect(changes).toEqual([
    ['l/1', 1],
    ['l/1', undefined],
    ['l/1', 2],
    ['l/1', undefined],
  ])
  await one.unsubscribe()
  await reading
})
it('generators: throws are told to somebody at the server', async () => {
  const lines: string[] = []
  const [a, b] = await two({ logger: { error: (l: string) => void lines.push(l), warn: (l: string) => void lines.push(l) } })
  const op = mq.operation('op', mq.number(), mq.number())
  await op.on(a).serve(async function* ({ value }) {
    yield value
    throw new TypeError('a bug')
  })
  const got: unknown[] = []
  try {
    for await (const x of op.on(b).stream(1)) got.push(x)
  } catch (e) {
    got.push((e as { code: string }).code, (e as { reasonName: string }).reasonName)
  }
  console.log(got, 'log', lines)
  await op
    .on(b)
    .call(1)
    .catch((e) => console.log('call', e.code))
  console.log('log', lines)
})
it('generators: a plain handler that throws', async () => {
  const lines: string[] = []
  const [a, b] = await two({ logger: { error: (l: string) => void lines.push(l), warn: (l: string) => void lines.push(l) } })
  const op = mq.operation('op', mq.number(), mq.number())
  await op.on(a).serve(() => {
    throw new TypeError('a bug')
  })
  await op
    .on(b)
    .call(1)
    .catch((e) => console.log('call', e.code))
  console.log('plain log', lines)
})
it('generators: invalid answers', async () => {
  const [a, b] = await two()
  const op = mq.operation('op', mq.number(), mq.number())
  let ended = 0
  await op.on(a).serve(async function* ({ value }) {
    try {
      yield value
      yield Number.NaN
      yield 3
    } finally {
      ended++
    }
  })
  const got: unknown[] = []
  try {
    for await (const x of op.on(b).stream(1)) got.push(x)
  } catch (e) {
    got.push((e as { code: string }).code, (e as { reasonName: string }).reasonName)
  }
  console.log(got, ended)
})
it('generators: break, return, throw in the middle; several next() in one turn', async () => {
  const [a, b] = await two()
  const op = mq.operation('op', mq.number(), mq.number())
  let ended = 0,
    made = 0
  await op.on(a).serve(async function* ({ value }) {
    made++
    try {
      for (let n = 0; ; n++) {
        yield value + n
        await sleep(1)
      }
    } finally {
      ended++
    }
  })
  const bound = op.on(b)
  for await (const x of bound.stream(1)) if (x === 5) break
  const it2 = bound.stream(1)
  expect((await Promise.all([it2.next(), it2.next(), it2.next()])).map(({ value }) => value)).toEqual([1, 2, 3])
  const pending = it2.next()
  await it2.return?.()
  await pending
  const it3 = bound.stream(1)
  await it3.next()
  await expect(it3.throw?.(new Error('x'))).rejects.toThrow('x')
  const it4 = bound.stream(1)
  const first = it4.next()
  await it4.return?.()
  console.log(await first)
  const ac = new AbortController()
  const it5 = bound.stream(1, { signal: ac.signal })
  await it5.next()
  ac.abort()
  await it5.next().catch((e) => console.log(e.code))
  await until(() => ended === made, `ended ${ended} of ${made}`)
})
it('throw in listen with async handlers', async () => {
  const [a, b] = await two()
  const ch = mq.channel('t', mq.number(), { qos: 1 })
  const got: number[] = []
  const h = await ch.on(a).listen(
    async ({ value }) => {
      await sleep(1)
      got.push(value)
    },
    { onInvalid: 'throw' },
  )
  for (const p of ['1', '2', 'x', '3']) b.publish('t', p, { qos: 1 }).catch(() => 0)
  await expect(h.done).rejects.toMatchObject({ code: 'ERR_INVALID_PAYLOAD' })
  expect(got).toEqual([1, 2])
  const again = await ch.on(a).listen(({ value }) => void got.push(value))
  await sleep(50)
  console.log('throw listen', got)
  await again.unsubscribe()
})
it('throw in listen, concurrency', async () => {
  const [a, b] = await two()
  const ch = mq.channel('t', mq.json(slow(() => 3)), { qos: 1 })
  const got: number[] = []
  const h = await ch.on(a).listen(
    async ({ value }) => {
      await sleep(1)
      got.push(value)
    },
    { onInvalid: 'throw', concurrency: 4 } as never,
  )
  for (const p of ['1', '2', '"x"', '"y"', '3', '4']) b.publish('t', p, { qos: 1 }).catch(() => 0)
  await expect(h.done).rejects.toMatchObject({ code: 'ERR_INVALID_PAYLOAD' })
  console.log(got, h.invalid)
})
