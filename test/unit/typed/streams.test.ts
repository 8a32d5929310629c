/** Web streams, retained messages and streams of answers while something else goes on: bridges, aborts, connections that are lost, generators that fail. */
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { all, brokerOf, clientOn, coded, outcomeOf, pair } from './rig.js'

describe('a writable stream', () => {
  it('bridges two brokers as it stands; a message is acknowledged once its copy is', async () => {
    const [near, far] = [
      await clientOn(brokerOf(), { receiveMaximum: 3 }),
      await clientOn(brokerOf()),
    ]
    await using there = await far.subscribe('copy/#', { qos: 1 })
    const here = await near.subscribe('source/#', { qos: 1, ack: 'manual' })
    const sink = mq.writableStream<Message>(far, ({ topic }) => topic.replace('source', 'copy'), {
      qos: 1,
    })
    const bridge = here.readable().pipeTo(sink)
    for (let n = 0; n < 20; n++) await near.publish(`source/${n}`, String(n), { qos: 1 })
    for (let n = 0; n < 20; n++) {
      const copy = await there.next({ timeout: 3000 })
      expect([copy?.topic, copy?.text()]).toEqual([`copy/${n}`, String(n)])
      copy?.ack()
    }
    // Its error path.
    await far.disconnect()
    near.publish('source/x', 'x', { qos: 1 }).catch(() => undefined)
    expect(await outcomeOf(bridge)).toEqual(coded('ERR_CLOSED'))
    await eventually(() => here.size === 0)
    expect(near.state).toBe('connected')
  })

  it('of one topic takes messages, and payloads', async () => {
    const client = await clientOn(brokerOf())
    await using there = await client.subscribe('copy')
    await using here = await client.subscribe('source', { qos: 1, ack: 'on-receive' })
    const abort = new AbortController()
    const bridge = here
      .readable()
      .pipeTo(mq.writableStream(client, 'copy'), { signal: abort.signal })
    await client.publish('source', 'a', { qos: 1 })
    expect((await there.next())?.text()).toBe('a')
    abort.abort()
    await expect(bridge).rejects.toThrow()
    await mq.writableStream<Uint8Array>(client, 'copy').getWriter().write(Uint8Array.of(0x62))
    expect((await there.next())?.text()).toBe('b')
  })

  it('an abort waits for no connection', async () => {
    const broker = brokerOf()
    const client = await clientOn(broker, { outbound: { offline: { qos0: 'reject' } } })
    await broker.close()
    await eventually(() => client.state !== 'connected')
    const writer = mq.writableStream(client, 'a').getWriter()
    const written = writer.write('x').catch((error: unknown) => error)
    await pause(10)
    expect(await outcomeOf(writer.abort(new Error('enough')))).toBeUndefined()
    expect(await outcomeOf(written)).toMatchObject({ message: 'enough' })
  })

  it('of a channel refuses a value at its write', async () => {
    const client = await clientOn(brokerOf())
    const writer = mq.channel('n', mq.number()).on(client).writableStream().getWriter()
    writer.closed.catch(() => undefined)
    await writer.write(1)
    await expect(writer.write(Number.NaN)).rejects.toEqual(coded('ERR_INVALID_PAYLOAD'))
  })
})

describe('retained messages', () => {
  it('are all given however slowly they are read; what does not fit is an error', async () => {
    const broker = brokerOf({ maxLog: 100 })
    const client = await clientOn(broker)
    for (let n = 0; n < 3000; n++) await client.publish(`r/${n}`, 'x'.repeat(20), { retain: true })
    const got = new Set<string>()
    for await (const { topic } of mq.retained(client, 'r/#', { quiet: 200 })) {
      if (got.size === 0) await pause(100)
      got.add(topic)
    }
    expect(got.size).toBe(3000)
    const reading = (async () => {
      for await (const _ of mq.retained(client, 'r/#', { quiet: 100, buffer: 10 })) await pause(1)
    })()
    await expect(reading).rejects.toEqual(coded('ERR_DROPPED'))
  })

  it('a connection that is lost is an error: some may be missing', async () => {
    const broker = brokerOf()
    const client = await clientOn(broker)
    await client.publish('r/1', '1', { retain: true, qos: 1 })
    const iterator = mq.retained(client, 'r/#', { quiet: 5000 })
    await iterator.next()
    const next = outcomeOf(iterator.next())
    broker.disconnect?.(client.clientId)
    await client.reconnect({ force: true }).catch(() => undefined)
    expect(await next).toEqual(coded('ERR_CONNECTION_LOST'))
    const abort = new AbortController()
    const aborted = mq.retained(client, 'r/#', { quiet: 5000, signal: abort.signal })
    await aborted.next()
    const last = aborted.next()
    abort.abort()
    expect(await outcomeOf(last)).toEqual(coded('ERR_ABORTED'))
  })
})

it('the end of a stream, and an error, need no credit: they may come while as many answers wait as the caller asked for', async () => {
  const client = await clientOn(brokerOf())
  const counts = mq.operation('counts/{how}', mq.number(), mq.number())
  await client.listen(
    'counts/+',
    async (request) => {
      const { responseTopic, correlationData } = request.properties
      const answer = (text: string, ...userProperties: [string, string][]): Promise<unknown> => {
        const properties = { correlationData, responseTopic: 'control', userProperties }
        return client.publish(responseTopic as string, text, { qos: 1, properties })
      }
      // They arrive at once, before the caller reads.
      for (const seq of [0, 1]) void answer(String(seq), ['seq', String(seq)])
      if (request.topic.endsWith('end')) void answer('', ['seq', '2'], ['end', ''])
      else void answer('no more', ['seq', '2'], ['error', 'EMPTY'])
    },
    { qos: 1 },
  )
  for (const how of ['end', 'error']) {
    const stream = counts.on(client).stream({ how }, 7, { window: 2, timeout: 3000 })
    const got = [(await stream.next()).value as number]
    await pause(30)
    const rest = await outcomeOf(all(stream, got))
    expect([got, rest]).toEqual([
      [0, 1],
      how === 'end' ? [0, 1] : coded('ERR_REMOTE', { reasonName: 'EMPTY' }),
    ])
  }
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
