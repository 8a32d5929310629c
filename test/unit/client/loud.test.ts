/** Faults of the program are loud; what data and the network cause is silenced, and reported where nobody listens. */
import { describe, expect, it } from 'vitest'
import type { MqttError } from '../../../src/errors.js'
import { tracing } from '../../../src/tracing/index.js'
import { channel, text } from '../../../src/typed/index.js'
import type { Properties } from '../../../src/wire/packets.js'
import { publish, quiet } from './incoming.js'
import { logger, Unheard } from './reporting.js'
import { settled } from './steps.js'
import { unhandledIn } from './unhandled.js'

type Options = ConstructorParameters<typeof Unheard>[0]
const up = (options?: Options): Promise<Unheard> => new Unheard(options).connect()
/** Calls as a program without types makes them. */
type Loose = Record<
  'publish' | 'unsubscribe' | 'request' | 'reconnect' | 'subscribe' | 'disconnect',
  (...given: unknown[]) => Promise<unknown>
>
const callback = (): void => undefined
const like = (pattern: RegExp): string => expect.stringMatching(pattern) as string

/** Lets these messages come in. */
async function send(world: Unheard, packet: ReturnType<typeof publish>, count = 1): Promise<void> {
  for (let sent = 0; sent < count; sent++) world.peer.send(packet)
  await world.settle()
}

describe('the program is at fault', () => {
  const properties = { contentType: 5 }
  it.each<[string, keyof Loose, unknown[], RegExp]>([
    ['a callback of publish', 'publish', ['a', 'x', callback], /await the promise/],
    ['a callback behind its options', 'publish', ['a', 'x', {}, callback], /await the promise/],
    ['a number as its topic', 'publish', [7, 'x'], /topic must be a string, not number/],
    ['a number as its payload', 'publish', ['a', 7], /String\(\) it/],
    ['an unknown option', 'publish', ['a', 'x', { retained: true }], /did you mean retain\?/],
    ['an option of another type', 'publish', ['a', 'x', { ttl: '5' }], /ttl must be/],
    [
      'an unknown property',
      'publish',
      ['a', 'x', { properties: { contenttype: 'a' } }],
      /contenttype/,
    ],
    ['a property of another type', 'publish', ['a', 'x', { properties }], /contentType/],
    ['such a property at QoS 1', 'publish', ['a', 'x', { qos: 1, properties }], /contentType/],
    ['a callback of unsubscribe', 'unsubscribe', ['a', callback], /await the promise/],
    ['a number as a filter', 'unsubscribe', [7], /must be a string/],
    ['a callback of request', 'request', ['a', 'x', callback], /await the promise/],
    ['text for reconnect', 'reconnect', ['now'], /options must be an object/],
    ['a callback of subscribe', 'subscribe', ['a', callback], /listen\(filters, handler\)/],
    ['a callback of disconnect', 'disconnect', [callback], /await the promise/],
  ])('%s is a rejection that is not silenced, and no report', async (_name, call, given, text) => {
    const world = await up()
    const client = world.client as unknown as Loose
    const seen = await unhandledIn(() => void client[call](...given))
    expect(seen).toMatchObject([{ message: like(text) }])
    await world.settle()
    expect(world.said).toEqual([])
  })

  it('through hooks, too', async () => {
    const world = await up()
    world.client.use({ publish: (call, next) => next(call) })
    const seen = await unhandledIn(() => void world.client.publish('a', 'x', callback as never))
    expect(seen).toMatchObject([{ code: 'ERR_INVALID_OPTION' }])
  })

  it('post() takes no options', async () => {
    const world = await up()
    expect(() =>
      (world.client.post as (...given: unknown[]) => unknown)('a', 'x', { qos: 1 }),
    ).toThrow(/publish\(\) does/)
  })
})

/** What data may cause, and the code of what is said. */
const byData: readonly [string, (world: Unheard) => Promise<unknown>, string][] = [
  ['a topic with a wildcard', ({ client }) => client.publish('a/#', 'x'), 'ERR_INVALID_TOPIC'],
  [
    'a topic that is empty',
    ({ client }) => client.publish('', 'x', { qos: 1 }),
    'ERR_INVALID_TOPIC',
  ],
  [
    'a property that is no text',
    ({ client }) => client.publish('a', 'x', { properties: { contentType: '\ud800' } }),
    'ERR_INVALID_OPTION',
  ],
  [
    'a number out of range',
    ({ client }) => client.publish('a', 'x', { ttl: -1 }),
    'ERR_INVALID_OPTION',
  ],
  ['a size', ({ client }) => client.publish('a', 'x'.repeat(200)), 'ERR_PACKET_TOO_LARGE'],
  ['a topic of a request', ({ client }) => client.request('a/#', 'x'), 'ERR_INVALID_TOPIC'],
  ['a refusal', ({ client }) => client.publish('refused', 'x', { qos: 1 }), 'ERR_PUBLISH_REFUSED'],
]

describe('data are at fault', () => {
  const limited = async (options?: Options): Promise<Unheard> => {
    const made = new Unheard(options)
    const { answer } = made
    const properties: Properties = { maximumPacketSize: 100 }
    made.answer = (packet) => {
      if (packet.type === 'connect')
        return { type: 'connack', sessionPresent: false, reasonCode: 0, properties }
      if (packet.type !== 'publish' || packet.topic !== 'refused') return answer(packet)
      return { type: 'puback', packetId: packet.packetId as number, reasonCode: 0x87 }
    }
    return made.connect()
  }

  it.each(byData)('%s: a drop, and a report unless that is heard', async (_name, call, code) => {
    const world = await limited()
    const seen = await unhandledIn(async () => {
      void call(world)
      await world.settle()
    })
    expect(seen).toEqual([])
    expect(world.said).toEqual([
      like(new RegExp(`MQWIRE_PUBLISH_REFUSED mqwire unheard: publish to.*${code}`)),
    ])
    const heard = await limited()
    let drops = 0
    heard.client.on('drop', () => void drops++)
    quiet(call(heard))
    await heard.settle()
    expect([drops, heard.said]).toEqual([1, []])
  })

  it('a logger has a line with the cause instead; null has nothing', async () => {
    const lines: string[] = []
    for (const given of [logger(lines), null]) {
      const world = await limited({ logger: given })
      void world.client.publish('a/#', 'x')
      await world.settle()
      expect(world.said).toEqual([])
    }
    expect(lines).toEqual([
      like(/^warn mqwire unheard: publish to "a\/#" failed: ERR_INVALID_TOPIC: .*wildcard/),
    ])
  })

  it('many of one turn are one report with their count; a second has one report, and the last of it the count of those between', async () => {
    const world = await limited()
    for (let count = 0; count < 200; count++) void world.client.publish(`a/${count}/#`, 'x')
    await world.settle()
    expect(world.said).toEqual([like(/"a\/0\/#".*\(and 199 more\)$/)])
    for (let count = 0; count < 5; count++) {
      void world.client.publish(`b/${count}/#`, 'x')
      await world.clock.advance(100)
    }
    expect(world.said).toHaveLength(1)
    await world.clock.advance(1000)
    expect(world.said.slice(1)).toEqual([like(/"b\/4\/#".*\(and 4 more\)$/)])
    await world.clock.advance(10_000)
    expect(world.said).toHaveLength(2)
  })

  it('a client that was not connected, and one that has ended: why, and the way out', async () => {
    const idle = new Unheard()
    void idle.client.publish('a', 'x')
    await idle.settle()
    expect(idle.said).toEqual([
      like(/ERR_NOT_CONNECTED: not connected: await client\.connect\(\) first/),
    ])
    const ended = await limited()
    await settled(ended, ended.client.disconnect())
    void ended.client.publish('a', 'x')
    expect(ended.said).toEqual([
      like(/ERR_CLOSED: closed: disconnect\(\) was called; to start again, make a new Client/),
    ])
  })

  it('what the program gives up with destroy() is no report', async () => {
    const world = await limited()
    world.answer = () => undefined
    void world.client.publish('a', 'x', { qos: 1 })
    await world.settle()
    world.client.destroy()
    await world.settle()
    expect(world.said).toEqual([])
  })
})

describe('a handler that throws', () => {
  let calls = 0
  const failing = (): never => {
    calls += 1
    throw new TypeError('no such column')
  }

  it.each([0, 1] as const)('at QoS %s is reported with its cause, each time', async (qos) => {
    const world = await up()
    calls = 0
    void world.client.listen('a', failing, { qos })
    await world.settle()
    await send(world, publish('a', 'x', qos || undefined))
    expect(world.said).toEqual([
      like(/^MQWIRE_HANDLER_FAILED mqwire unheard: handler failed: a.*TypeError: no such column/),
    ])
    expect(world.details[0]).toContain('loud.test.ts')
    await world.clock.advance(60_000)
    // Six calls at QoS 1, some of them within a second; then the message is refused.
    expect([calls, world.said.length > 3]).toEqual(qos === 0 ? [1, false] : [6, true])
    if (qos === 1) expect(world.peer.last('puback')).toMatchObject({ reasonCode: 0x80 })
  })

  it('a listener of error, and a logger, silence it; the line of the log has the cause', async () => {
    const heard = await up()
    const errors: MqttError[] = []
    heard.client.on('error', ({ error }) => void errors.push(error))
    const lines: string[] = []
    for (const world of [heard, await up({ logger: logger(lines) })]) {
      void world.client.listen('a', failing)
      await world.settle()
      await send(world, publish('a', 'x'))
      expect(world.said).toEqual([])
    }
    expect(errors).toMatchObject([
      { code: 'ERR_HANDLER_FAILED', cause: new TypeError('no such column') },
    ])
    expect(lines).toEqual(['error mqwire unheard: handler failed: a: TypeError: no such column'])
  })

  it('while the client ends is reported, too', async () => {
    const world = await up()
    let fail: () => void = () => undefined
    void world.client.listen(
      'a',
      () =>
        new Promise((_resolve, reject) => (fail = () => reject(new TypeError('no such column')))),
    )
    await world.settle()
    await send(world, publish('a', 'x'))
    void world.client.disconnect()
    fail()
    await world.settle()
    expect(world.said).toEqual([like(/no such column/)])
  })

  it.each<[string, (world: Unheard) => unknown]>([
    ['a listener', ({ client }) => client.on('drop', failing)],
    ['onError', ({ client }) => client.listen('a', failing, { onError: () => failing() })],
    [
      'onDrop',
      ({ client }) =>
        client.subscription('a', { buffer: 1, overflow: 'drop-newest', onDrop: failing }),
    ],
    [
      'a deliver hook',
      ({ client }) => [client.use({ deliver: failing }), client.listen('a', callback)],
    ],
    ['order', ({ client }) => client.listen('a', callback, { concurrency: 2, order: failing })],
    ['a responder', ({ client }) => client.respond('a', failing)],
  ])('%s is reported as well', async (_name, prepare) => {
    const world = await up()
    prepare(world)
    await world.settle()
    const properties: Properties = { responseTopic: 'r', correlationData: Uint8Array.of(1) }
    await send(world, publish('a', 'x', undefined, { properties }), 5)
    void world.client.publish('#', 'x')
    await world.settle()
    expect(world.said).toContainEqual(like(/MQWIRE_HANDLER_FAILED .*no such column/))
  })
})

describe('a client that ends because of another one of its name', () => {
  const takenOver = { type: 'disconnect', reasonCode: 0x8e } as const

  it.each<[string, (world: Unheard) => unknown, boolean]>([
    ['a handler', ({ client }) => client.listen('a', callback), true],
    [
      'a request that is over',
      ({ client }) => {
        const over = new AbortController()
        quiet(client.request('a', 'x', { signal: over.signal }))
        over.abort()
      },
      true,
    ],
    ['a request', ({ client }) => quiet(client.request('a', 'x')), false],
    [
      'a loop over values that are kept',
      ({ client }) => quiet(channel('a/{id}', text()).on(client).latest().changes().next()),
      false,
    ],
    ['spans', ({ client }) => tracing(client), true],
    ['values that are kept', ({ client }) => channel('a/{id}', text()).on(client).latest(), true],
    ['a listener', ({ client }) => client.on('disconnect', callback), false],
    ['closed', ({ client }) => client.closed, false],
    ['a loop', ({ client }) => quiet(client.subscription('a').next()), false],
  ])('reports that where nobody hears of it: %s', async (_name, hear, reports) => {
    const world = await up()
    void hear(world)
    await world.settle()
    world.peer.send(takenOver)
    await world.settle()
    const said = like(
      /MQWIRE_NOT_CONNECTED .*the client has ended: ERR_SESSION_TAKEN_OVER: .*clientId/,
    )
    expect(world.said).toEqual(reports ? [said] : [])
    await expect(world.client.subscribe('a')).rejects.toMatchObject({
      code: 'ERR_CLOSED',
      message: expect.stringContaining('another client has this clientId') as string,
      cause: { code: 'ERR_SESSION_TAKEN_OVER' },
    })
  })
})
