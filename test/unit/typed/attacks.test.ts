/** Small programs as users write them, where they are hasty: several calls in one turn, loops that are left, generators that fail, schemas that take their time. */
import { expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { brokerOf, clientOn, coded, pair, schemaOf } from './rig.js'

/** A schema of numbers that answers later: odd ones much later. */
const late = schemaOf<number>(async (value) => {
  await pause(Number(value) % 2 === 1 ? 15 : 1)
  return typeof value === 'number' ? { value } : { issues: [{ message: 'no number' }] }
})

/** Numbers from this one, without end; `over` is called when the generator ends. */
async function* from(first: number, over: () => void): AsyncGenerator<number> {
  try {
    for (let n = first; ; n++) {
      yield n
      await pause(1)
    }
  } finally {
    over()
  }
}

it('a generator that fails is a line of the log of its server', async () => {
  const lines: string[] = []
  const { client: server, other: caller } = await pair({
    logger: { error: (line: string) => void lines.push(line) },
  })
  const failing = mq.operation('failing', mq.number(), mq.number())
  await failing.on(server).serve(async function* ({ value }) {
    yield value
    if (value === 1) throw new TypeError('a bug of ours')
    yield Number.NaN
  })
  for (const value of [1, 2]) {
    const stream = failing.on(caller).stream(value)
    await stream.next()
    await expect(stream.next()).rejects.toEqual(
      coded('ERR_REMOTE', { reasonName: 'ERR_HANDLER_FAILED' }),
    )
  }
  expect(lines).toEqual([
    expect.stringContaining('failing: TypeError: a bug of ours'),
    expect.stringContaining('failing: MqttError: invalid payload'),
  ])
})

it('what a generator says on purpose, and a client that ends, are no lines of the log', async () => {
  const lines: string[] = []
  const { client: server, other: caller } = await pair({
    logger: { error: (line: string) => void lines.push(line) },
  })
  const numbers = mq.operation('numbers', mq.number(), mq.number())
  let isOver = false
  await numbers.on(server).serve(async function* ({ value }) {
    yield value
    if (value === 1) throw new MqttError('ERR_REMOTE', 'no such number', { reasonName: 'none' })
    yield* from(value, () => {
      isOver = true
    })
  })
  const failing = numbers.on(caller).stream(1)
  expect((await failing.next()).value).toBe(1)
  await expect(failing.next()).rejects.toEqual(
    coded('ERR_REMOTE', { reasonName: 'none', message: 'no such number' }),
  )
  const going = numbers.on(caller).stream(2)
  for (let n = 0; n < 2; n++) await going.next()
  await server.disconnect()
  await eventually(() => isOver)
  expect(lines).toEqual([])
})

it('latest values keep the order of messages whose schema takes its time, those that delete too', async () => {
  const { client, other } = await pair()
  await using latest = await mq.channel('l/{id}', mq.json(late), { qos: 1 }).on(client).latest()
    .ready
  const sent = [
    ...Array.from({ length: 6 }, (_, n) => ['l/x', String(n)]),
    ['l/y', '1'],
    ['l/y', ''],
    ['l/z', '1'],
  ] as const
  for (const [topic, payload] of sent)
    other.publish(topic as string, payload as string, { qos: 1 }).catch(() => undefined)
  await eventually(() => latest.has('l/z'))
  expect([...latest].map(([topic, { value }]) => `${topic} ${value}`)).toEqual(['l/x 5', 'l/z 1'])
})

it('latest values that end in the turn in which they began say so', async () => {
  const client = await clientOn(brokerOf())
  const latest = mq.channel('l/{id}', mq.number()).on(client).latest()
  await latest.unsubscribe()
  await expect(latest.ready).rejects.toEqual(coded('ERR_ABORTED'))
  for await (const _ of latest.changes()) expect.unreachable()
  await mq.channel('l/{id}', mq.number()).on(client).latest().ready
})

it('streams that are left in every way end their generators', async () => {
  const { server, caller } = await pair()
  const counting = mq.operation('counting', mq.number(), mq.number())
  let [began, ended] = [0, 0]
  await counting.on(server).serve(async function* ({ value }) {
    began += 1
    yield* from(value, () => void ended++)
  })
  const bound = counting.on(caller)
  for await (const value of bound.stream(1)) if (value === 40) break
  const several = bound.stream(1)
  expect(
    (await Promise.all([several.next(), several.next(), several.next()])).map(({ value }) => value),
  ).toEqual([1, 2, 3])
  const waiting = several.next()
  await several.return?.()
  await waiting
  const thrown = bound.stream(1)
  await thrown.next()
  await expect(thrown.throw?.(new Error('enough'))).rejects.toThrow('enough')
  const hasty = bound.stream(1)
  const first = hasty.next()
  await hasty.return?.()
  expect(await first).toMatchObject({ done: true })
  const abort = new AbortController()
  const aborted = bound.stream(1, { signal: abort.signal })
  await aborted.next()
  abort.abort()
  await expect(aborted.next()).rejects.toEqual(coded('ERR_ABORTED'))
  await eventually(() => began >= 4 && ended === began, 'the end of each')
})

it('on 3.1.1 there are no operations: each call says so', async () => {
  const client = await clientOn(brokerOf(), { protocolVersion: 4 })
  const bound = mq.operation('op', mq.number(), mq.number()).on(client)
  for (const given of [bound.call(1), bound.serve(() => 1), bound.stream(1).next()])
    await expect(given).rejects.toEqual(
      coded('ERR_UNSUPPORTED_OPTION', { option: 'protocolVersion' }),
    )
})
