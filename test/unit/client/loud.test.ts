/** Faults of the program are loud; what data and the network cause is silenced, and reported where nobody listens. */
import { describe, expect, it } from 'vitest'
import type { MqttError } from '../../../src/errors.js'
import { publish } from './incoming.js'
import { logger, Unheard } from './reporting.js'
import { unhandledIn } from './unhandled.js'

const up = (options?: ConstructorParameters<typeof Unheard>[0]): Promise<Unheard> => new Unheard(options).connect()
/** Calls as a program without types makes them. */
type Loose = Record<'publish' | 'unsubscribe' | 'request' | 'reconnect' | 'subscribe' | 'disconnect', (...given: unknown[]) => Promise<unknown>>

describe('the program is at fault', () => {
  it.each<[string, (client: Loose) => unknown, RegExp]>([
    ['a callback of publish', (client) => client.publish('a', 'x', () => undefined), /await the promise/],
    ['a callback behind its options', (client) => client.publish('a', 'x', {}, () => undefined), /await the promise/],
    ['a number as its topic', (client) => client.publish(7, 'x'), /topic must be a string, not number/],
    ['a number as its payload', (client) => client.publish('a', 7), /String\(\) it/],
    ['an unknown option', (client) => client.publish('a', 'x', { retained: true }), /did you mean retain\?/],
    ['an option of another type', (client) => client.publish('a', 'x', { ttl: '5' }), /ttl must be/],
    ['an unknown property', (client) => client.publish('a', 'x', { properties: { contenttype: 'a' } }), /contenttype/],
    ['a property of another type', (client) => client.publish('a', 'x', { properties: { contentType: 5 } }), /contentType/],
    ['such a property of a queued publish', (client) => client.publish('a', 'x', { qos: 1, properties: { contentType: 5 } }), /contentType/],
    ['a callback of unsubscribe', (client) => client.unsubscribe('a', () => undefined), /await the promise/],
    ['a number as a filter', (client) => client.unsubscribe(7), /must be a string/],
    ['a callback of request', (client) => client.request('a', 'x', () => undefined), /await the promise/],
    ['text for reconnect', (client) => client.reconnect('now'), /options must be an object/],
    ['a callback of subscribe', (client) => client.subscribe('a', () => undefined), /listen\(filters, handler\)/],
    ['a callback of disconnect', (client) => client.disconnect(() => undefined), /await the promise/],
  ])('%s is a rejection that is not silenced, and no report', async (_name, call, text) => {
    const world = await up()
    const seen = await unhandledIn(() => void call(world.client as unknown as Loose))
    expect(seen).toHaveLength(1)
    expect(String((seen[0] as Error).message)).toMatch(text)
    await world.settle()
    expect(world.said).toEqual([])
  })

  it('through hooks, too', async () => {
    const world = await up()
    world.client.use({ publish: (call, next) => next(call) })
    const seen = await unhandledIn(() => void world.client.publish('a', 'x', (() => undefined) as never))
    expect(seen).toMatchObject([{ code: 'ERR_INVALID_OPTION' }])
  })

  it('post() takes no options', async () => {
    const world = await up()
    expect(() => (world.client.post as (...given: unknown[]) => unknown)('a', 'x', { qos: 1 })).toThrow(/publish\(\) does/)
  })
})

/** What data may cause, and the code of what is said. */
const byData: readonly [string, (world: Unheard) => Promise<unknown>, string][] = [
  ['a topic with a wildcard', ({ client }) => client.publish('a/#', 'x'), 'ERR_INVALID_TOPIC'],
  ['a topic that is empty', ({ client }) => client.publish('', 'x', { qos: 1 }), 'ERR_INVALID_TOPIC'],
  ['a property that is no text', ({ client }) => client.publish('a', 'x', { properties: { contentType: '\ud800' } }), 'ERR_INVALID_OPTION'],
  ['a number out of range', ({ client }) => client.publish('a', 'x', { ttl: -1 }), 'ERR_INVALID_OPTION'],
  ['a size', ({ client }) => client.publish('a', 'x'.repeat(200)), 'ERR_PACKET_TOO_LARGE'],
  ['a topic of a request', ({ client }) => client.request('a/#', 'x'), 'ERR_INVALID_TOPIC'],
  ['a refusal', ({ client }) => client.publish('refused', 'x', { qos: 1 }), 'ERR_PUBLISH_REFUSED'],
]

describe('data are at fault', () => {
  const world = async (options?: ConstructorParameters<typeof Unheard>[0]): Promise<Unheard> => {
    const made = new Unheard(options)
    const { answer } = made
    made.answer = (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { maximumPacketSize: 100 } }
      if (packet.type === 'publish' && packet.topic === 'refused')
        return { type: 'puback', packetId: packet.packetId as number, reasonCode: 0x87, properties: {} }
      return answer(packet)
    }
    return made.connect()
  }

  it.each(byData)('%s: silent, a drop, and a report', async (_name, call, code) => {
    const made = await world()
    const seen = await unhandledIn(async () => {
      void call(made)
      await made.settle()
    })
    expect(seen).toEqual([])
    expect(made.said).toEqual([expect.stringContaining(`MQWIRE_PUBLISH_REFUSED mqwire unheard: publish to`) as string])
    expect(made.said[0]).toContain(code)
  })

  it.each(byData)('%s: a listener of drop silences the report', async (_name, call) => {
    const made = await world()
    const drops: unknown[] = []
    made.client.on('drop', (event) => void drops.push(event))
    call(made).catch(() => undefined)
    await made.settle()
    expect([drops.length, made.said]).toEqual([1, []])
  })

  it('a logger has a line with the cause instead; null has nothing', async () => {
    const lines: string[] = []
    const logged = await world({ logger: logger(lines) })
    void logged.client.publish('a/#', 'x')
    await logged.settle()
    expect(logged.said).toEqual([])
    expect(lines).toEqual([expect.stringMatching(/^warn mqwire unheard: publish to "a\/#" failed: ERR_INVALID_TOPIC: .*wildcard/) as string])
    const deaf = await world({ logger: null })
    void deaf.client.publish('a/#', 'x')
    await deaf.settle()
    expect(deaf.said).toEqual([])
  })

  it('many of one turn are one report with their count; a second has one report, and the last of it the count of those between', async () => {
    const made = await world()
    for (let count = 0; count < 200; count++) void made.client.publish(`a/${count}/#`, 'x')
    await made.settle()
    expect(made.said).toEqual([expect.stringMatching(/"a\/0\/#".*\(and 199 more\)$/) as string])
    for (let count = 0; count < 5; count++) {
      void made.client.publish(`b/${count}/#`, 'x')
      await made.clock.advance(100)
    }
    expect(made.said).toHaveLength(1)
    await made.clock.advance(1000)
    expect(made.said.slice(1)).toEqual([expect.stringMatching(/"b\/4\/#".*\(and 4 more\)$/) as string])
    await made.clock.advance(10_000)
    expect(made.said).toHaveLength(2)
  })

  it('a client that was not connected, and one that has ended: why, and the way out', async () => {
    const idle = new Unheard()
    void idle.client.publish('a', 'x')
    await idle.settle()
    expect(idle.said).toEqual([expect.stringMatching(/ERR_NOT_CONNECTED: not connected: await client\.connect\(\) first/) as string])
    const ended = await world()
    const ending = ended.client.disconnect()
    await ended.settle()
    await ending
    void ended.client.publish('a', 'x')
    expect(ended.said).toEqual([expect.stringMatching(/ERR_CLOSED: closed: disconnect\(\) was called; to start again, make a new Client/) as string])
  })

  it('what the program gives up with destroy() is no report', async () => {
    const made = await world()
    made.answer = () => undefined
    void made.client.publish('a', 'x', { qos: 1 })
    await made.settle()
    made.client.destroy()
    await made.settle()
    expect(made.said).toEqual([])
  })
})

describe('a handler that throws', () => {
  const failing = (): never => {
    throw new TypeError('no such column')
  }

  it.each([0, 1] as const)('at QoS %s is reported with its cause and stack, at each attempt', async (qos) => {
    const world = await up()
    void world.client.listen('a', failing, { qos })
    await world.settle()
    world.peer.send(publish('a', 'x', qos === 0 ? undefined : 1))
    await world.settle()
    expect(world.said).toEqual([
      expect.stringMatching(/^MQWIRE_HANDLER_FAILED mqwire unheard: handler failed: a.*TypeError: no such column/) as string,
    ])
    expect(world.details[0]).toContain('loud.test.ts')
    await world.clock.advance(60_000)
    // Six calls, some of them within a second.
    expect(world.said.length).toBeGreaterThan(qos === 0 ? 0 : 3)
  })

  it('is called six times in all at QoS 1, then the message is refused', async () => {
    const world = await up()
    let calls = 0
    void world.client.listen(
      'a',
      () => {
        calls += 1
        failing()
      },
      { qos: 1 },
    )
    await world.settle()
    world.peer.send(publish('a', 'x', 1))
    await world.clock.advance(60_000)
    expect(calls).toBe(6)
    expect(world.peer.last('puback')).toMatchObject({ reasonCode: 0x80 })
  })

  it('a listener of error, and a logger, silence it; the line of the log has the cause', async () => {
    const heard = await up()
    const errors: MqttError[] = []
    heard.client.on('error', ({ error }) => void errors.push(error))
    const lines: string[] = []
    const logged = await up({ logger: logger(lines) })
    for (const world of [heard, logged]) {
      void world.client.listen('a', failing)
      await world.settle()
      world.peer.send(publish('a', 'x'))
      await world.settle()
      expect(world.said).toEqual([])
    }
    expect(errors).toMatchObject([{ code: 'ERR_HANDLER_FAILED', cause: new TypeError('no such column') }])
    expect(lines).toEqual(['error mqwire unheard: handler failed: a: TypeError: no such column'])
  })

  it('while the client ends is reported, too', async () => {
    const world = await up()
    let fail: () => void = () => undefined
    void world.client.listen('a', () => new Promise((_resolve, reject) => (fail = () => reject(new TypeError('no such column')))))
    await world.settle()
    world.peer.send(publish('a', 'x'))
    await world.settle()
    void world.client.disconnect()
    fail()
    await world.settle()
    expect(world.said).toEqual([expect.stringContaining('no such column') as string])
  })

  it.each<[string, (world: Unheard) => unknown]>([
    ['a listener', ({ client }) => client.on('drop', failing)],
    ['onError', ({ client }) => client.listen('a', failing, { onError: () => failing() })],
    ['onDrop', ({ client }) => client.subscription('a', { buffer: 1, overflow: 'drop-newest', onDrop: failing })],
    ['a deliver hook', ({ client }) => [client.use({ deliver: failing }), client.listen('a', () => undefined)]],
    ['order', ({ client }) => client.listen('a', () => undefined, { concurrency: 2, order: failing })],
    ['a responder', ({ client }) => client.respond('a', failing)],
  ])('%s is reported as well', async (_name, prepare) => {
    const world = await up()
    prepare(world)
    await world.settle()
    for (let count = 0; count < 5; count++)
      world.peer.send(publish('a', 'x', undefined, { properties: { responseTopic: 'r', correlationData: Uint8Array.of(1) } }))
    await world.settle()
    void world.client.publish('#', 'x')
    await world.settle()
    expect(world.said).toContainEqual(expect.stringMatching(/MQWIRE_HANDLER_FAILED .*no such column/) as string)
  })
})

describe('a client that ends', () => {
  const takenOver = { type: 'disconnect', reasonCode: 0x8e, properties: {} } as const

  it('because of another one of its name says so, where nobody hears of it', async () => {
    const world = await up()
    void world.client.listen('a', () => undefined)
    await world.settle()
    world.peer.send(takenOver)
    await world.settle()
    expect(world.said).toEqual([expect.stringMatching(/MQWIRE_NOT_CONNECTED .*the client has ended: ERR_SESSION_TAKEN_OVER: .*clientId/) as string])
    await expect(world.client.subscribe('a')).rejects.toMatchObject({
      code: 'ERR_CLOSED',
      message: expect.stringContaining('another client has this clientId') as string,
      cause: { code: 'ERR_SESSION_TAKEN_OVER' },
    })
  })

  it.each<[string, (world: Unheard) => unknown]>([
    ['a listener', ({ client }) => client.on('disconnect', () => undefined)],
    ['closed', ({ client }) => client.closed],
    [
      'a loop',
      ({ client }) =>
        client
          .subscription('a')
          .next()
          .catch(() => undefined),
    ],
  ])('%s silences that', async (_name, hear) => {
    const world = await up()
    hear(world)
    await world.settle()
    world.peer.send(takenOver)
    await world.settle()
    expect(world.said).toEqual([])
  })
})
