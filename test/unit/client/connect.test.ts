/** CONNECT byte by byte, how long connecting may take, and CONNACK: refusals, and what the server assigns and allows. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { accepting, agreeable, connected, failure, pairOn, World } from './harness.js'
import { unhandledIn } from './unhandled.js'

const field = (value: string | readonly number[]): number[] => {
  const bytes = typeof value === 'string' ? [...Buffer.from(value)] : [...value]
  return [bytes.length >> 8, bytes.length & 0xff, ...bytes]
}
// Session Expiry Interval 300, Maximum Packet Size 1 MiB, Topic Alias Maximum 10; Receive Maximum is that of the standard.
const defaults = [0x0a, 0x11, 0, 0, 1, 0x2c, 0x27, 1, 0, 0, 0]
/** CONNECT behind its fixed header. */
const packet = (flags: number, ...fields: (string | readonly number[])[]): number[] => [
  ...[...field('MQTT'), 5, flags, 0, 30, ...defaults],
  ...fields.flatMap(field),
]

it.each([
  ['without options', { clientId: 'a' }, packet(0x02, 'a')],
  ['without a client id: an empty one is sent', {}, packet(0x02, '')],
  [
    'values that are the default of the standard are not sent',
    {
      ...{ clientId: 'a', sessionExpiryInterval: 0, receiveMaximum: 65_535, topicAliasMaximum: 0 },
      ...{ keepAlive: false, requestProblemInformation: true },
    },
    [...field('MQTT'), 5, 0x02, 0, 0, 5, 0x27, 1, 0, 0, 0, ...field('a')],
  ],
] as [string, ClientOptions, number[]][])('byte by byte: %s', async (_title, options, expected) => {
  const { bytes } = (await connected(options)).peer
  expect(bytes).toEqual([0x10, expected.length, ...expected])
})

it('limits of ours are in CONNECT', async () => {
  const userProperties: [string, string][] = [
    ['a', '1'],
    ['a', '2'],
    ['', ''],
  ]
  const numbers = { receiveMaximum: 7, maximumPacketSize: 4096, topicAliasMaximum: 3 }
  const limits = { ...numbers, sessionExpiryInterval: 4_294_967_295, userProperties }
  const wishes = { requestResponseInformation: true, requestProblemInformation: false }
  const world = await connected({ ...limits, ...wishes, keepAlive: 65_535 })
  expect(world.peer.last('connect')).toMatchObject({
    keepAlive: 65_535,
    properties: { ...limits, requestResponseInformation: 1, requestProblemInformation: 0 },
  })
})

it('a password of bytes is read once', async () => {
  const password = Uint8Array.of(0, 255, 128)
  const world = new World({ password })
  password.fill(9)
  await world.up(accepting())
  expect([...(world.peer.last('connect').password ?? [])]).toEqual([0, 255, 128])
})

it('gives up without CONNACK, at the deadline and not before', async () => {
  const world = new World({ connectTimeout: 3000 })
  const connecting = failure(world.client.connect())
  await world.clock.advance(2999)
  expect(world.client.state).toBe('connecting')
  await world.clock.advance(1)
  expect(await connecting).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT', fault: 'remote' })
  expect(world.peer.ended).toBeDefined()
  expect(world.client.state).toBe('closed')
  expect(world.peer.received.map(({ type }) => type)).toEqual(['connect'])
  expect(world.clock.pending).toBe(0)
})

it('connectTimeout bounds a dial that never opens; a stream that opens too late is destroyed', async () => {
  let signal: AbortSignal | undefined
  let open: () => void = () => undefined
  const world = new World({}, {}, 1, (_index, make, given) => {
    signal = given
    return new Promise((resolve) => {
      open = () => resolve(make())
    })
  })
  const connecting = failure(world.client.connect())
  await world.clock.advance(9_999)
  expect(world.client.state).toBe('connecting')
  await world.clock.advance(1)
  expect(await connecting).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
  expect(signal?.aborted).toBe(true)
  open()
  await world.settle()
  expect(world.peer.ended).toBeDefined()
  expect([world.peer.bytes, world.clock.pending]).toEqual([[], 0])
})

it.each([
  ['nothing', undefined],
  ['a transport that cannot be destroyed', { destroy: () => Promise.reject(new Error('stuck')) }],
])('a dial that was given up may end with %s: no rejection is unhandled', async (_what, late) => {
  let open: (late: unknown) => void = () => undefined
  const world = new World({}, {}, 1, () => new Promise((resolve) => (open = resolve as never)))
  const connecting = failure(world.client.connect())
  await world.settle()
  world.client.destroy()
  expect(await connecting).toMatchObject({ code: 'ERR_CLOSED' })
  expect(await unhandledIn(() => open(late))).toEqual([])
})

it('credentialsTimeout, 30 s by default, bounds credentials() that never answer', async () => {
  let signal: AbortSignal | undefined
  const world = new World({
    credentials: (context) => {
      signal = context.signal
      return new Promise(() => undefined)
    },
  })
  const connecting = failure(world.client.connect())
  await world.clock.advance(29_999)
  expect(signal?.aborted).toBe(false)
  await world.clock.advance(1)
  expect(await connecting).toMatchObject({
    code: 'ERR_CONNECT_TIMEOUT',
    message: expect.stringContaining('credentialsTimeout'),
  })
  expect([signal?.aborted, world.peers, world.clock.pending]).toEqual([true, [], 0])
})

it('a CONNACK that drips does not move the deadline', async () => {
  const world = new World()
  const connecting = failure(world.client.connect())
  await world.settle()
  for (const byte of [0x20, 0x03, 0x00, 0x00]) {
    await world.sendBytes([byte])
    await world.clock.advance(2400)
  }
  expect(world.client.state).toBe('connecting')
  await world.clock.advance(400)
  expect(await connecting).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
})

it.each(['end', 'cut'] as const)('the stream ends before CONNACK: %s', async (how) => {
  const world = new World()
  const connecting = failure(world.client.connect())
  await world.settle()
  world.peer[how]()
  await world.settle()
  expect(await connecting).toMatchObject({ code: 'ERR_CONNECT_FAILED', fault: 'remote' })
  expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECT_FAILED' })
  expect(world.seen('connect')).toEqual([])
  expect(world.seen('disconnect')).toEqual([])
  expect(world.clock.pending).toBe(0)
})

it('a hundred rounds of connect and close leave nothing behind', async () => {
  const { signal } = new AbortController()
  let listening = 0
  for (const [name, step] of [
    ['addEventListener', 1],
    ['removeEventListener', -1],
  ] as const) {
    const original = signal[name]
    signal[name] = (...parameters: Parameters<typeof original>) => {
      listening += step
      original.apply(signal, parameters)
    }
  }
  for (let round = 0; round < 100; round++) {
    const world = new World()
    world.answer = agreeable
    await Promise.all([world.client.connect({ signal }), world.settle()])
    await Promise.all([world.client.publish('a', 'b', { qos: 1, signal }), world.settle()])
    await Promise.all([world.client.disconnect({ signal }), world.settle()])
    expect([world.peer.ended, world.clock.pending]).toEqual([{ cause: undefined }, 0])
  }
  expect(listening).toBeLessThanOrEqual(0)
})

/** Connects, and answers CONNECT with these bytes. */
async function answeredWith(hex: string, options = {}): Promise<{ world: World; error: unknown }> {
  const world = new World(options)
  const outcome = world.client.connect().then(
    () => undefined,
    (error: unknown) => error,
  )
  await world.settle()
  await world.sendBytes(hex)
  return { world, error: await outcome }
}

/** The attempt failed with this code, nothing was sent but CONNECT (and a DISCONNECT with the reason), and all is closed. */
function expectRejected(
  { world, error }: { world: World; error: unknown },
  code = 'ERR_PROTOCOL_ERROR',
  reasonCode: number | undefined = 0x82,
): void {
  expect(MqttError.is(error)).toBe(true)
  expect(error).toMatchObject({ code, reasonCode, fault: 'remote' })
  const [first, ...rest] = world.peer.received
  expect(first?.type).toBe('connect')
  for (const packet of rest) expect(packet).toMatchObject({ type: 'disconnect', reasonCode })
  expect(world.peer.ended).toBeDefined()
  expect([world.seen('connect'), world.seen('disconnect')]).toEqual([[], []])
  expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
}

const hexOf = (byte: number): string => byte.toString(16).padStart(2, '0')

/** What a server may not offer. */
const flags = [
  'retain',
  'wildcardSubscription',
  'subscriptionIdentifier',
  'sharedSubscription',
].map((name) => `${name}Available`)
/** Options of a client that may have a session. */
const declared = { clientId: 'a', cleanStart: false }

describe('refusals', () => {
  it.each([0x80, 0x87, 0x9c])('%i: code, name, reason [MQTT-3.2.2-7]', async (reasonCode) => {
    const { world, error } = await answeredWith(
      `20 0b 00 ${hexOf(reasonCode)} 08 1f 00 05 77 68 79 20 3f`,
    )
    expectRejected({ world, error }, 'ERR_CONNECT_REFUSED', reasonCode)
    const reasonName = expect.stringMatching(/^[A-Z]/)
    expect(error).toMatchObject({ outcome: 'refused', reasonString: 'why ?', reasonName })
    expect(world.peer.received).toHaveLength(1)
    expect(world.seen('connecterror')).toMatchObject([
      { error: { reasonCode }, attempt: 1, endpoint: 'memory://peer-0' },
    ])
    expect(await world.client.closed).toBe(error)
  })

  it.each([
    ['mqtt://h:1', 'TLS (mqtts://h:1), or another port?'],
    ['ws://h:1/a', 'TLS (wss://h:1), or another port?'],
    ['mqtts://h:1', 'a client certificate, or another port?'],
    ['wss://h:1/a', 'a client certificate, or another port?'],
  ])('a server at %s that closes before CONNACK: what the port may be', async (url, hint) => {
    const clock = new VirtualClock()
    const dialler = () => async () => {
      const [near, far] = pairOn(clock)
      const peer = new ScriptedPeer(far, 5, () => void peer.end())
      return near
    }
    const client = new BaseClient({ ...virtualPlatform(clock), dialler }, url, { reconnect: false })
    const refused = failure(client.connect())
    await clock.settle()
    const message = `closed before CONNACK: ${hint}`
    expect(await refused).toMatchObject({ code: 'ERR_CONNECT_FAILED', message, fault: 'remote' })
  })
})

describe('what the server assigns and allows', () => {
  it.each([0, 1])('Session Present %i is welcome to a declared session', async (flag) => {
    const { world, error } = await answeredWith(`20 03 0${flag} 00 00`, declared)
    expect(error).toBeUndefined()
    expect(world.seen('connect')).toMatchObject([{ sessionPresent: flag === 1 }])
  })

  it('what the server does not offer is refused without a byte, and the link stays', async () => {
    const limits = { receiveMaximum: 1, maximumQoS: 0, maximumPacketSize: 64 }
    const missing = Object.fromEntries(flags.map((name) => [name, 0]))
    const world = await connected({}, accepting({ ...limits, ...missing }))
    const { client } = world
    const sent = world.peer.bytes.length
    const refused: [string, Promise<unknown>][] = [
      ['ERR_QOS_UNSUPPORTED', client.publish('a', 'b', { qos: 1 })],
      ['ERR_RETAIN_UNSUPPORTED', client.publish('a', 'b', { retain: true })],
      ['ERR_PACKET_TOO_LARGE', client.publish('a', new Uint8Array(60))],
      ['ERR_WILDCARD_SUBS_UNSUPPORTED', client.subscribe('a/#')],
      ['ERR_SHARED_SUBS_UNSUPPORTED', client.subscribe('$share/g/a')],
      [
        'ERR_SUBSCRIPTION_IDS_UNSUPPORTED',
        client.subscribe('a', { properties: { subscriptionIdentifier: 5 } }),
      ],
    ]
    const errors = Promise.all(refused.map(([, promise]) => failure(promise)))
    await world.settle()
    expect(await errors).toMatchObject(
      refused.map(([code]) => ({ code, outcome: 'not-sent', fault: 'local' })),
    )
    await world.settle()
    expect([world.peer.bytes.length, client.state]).toEqual([sent, 'connected'])
    expect(client.post('a', 'fits')).toBe(true)
    await world.settle()
    expect(world.peer.last('publish')).toMatchObject({ topic: 'a', qos: 0 })
  })
})

describe('packets that are not due', () => {
  // Every other packet: session/handshake.test.ts, and the corpus.
  it('PUBLISH before CONNACK: nothing is delivered [MQTT-3.2.0-1]', async () => {
    const world = new World()
    const subscription = world.client.subscription('#')
    const error = failure(world.client.connect())
    await world.settle()
    await world.sendBytes('30 04 00 01 61 00')
    expectRejected({ world, error: await error }, 'ERR_UNEXPECTED_PACKET')
    expect(subscription.size).toBe(0)
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_UNEXPECTED_PACKET' })
  })

  it.each([
    ['a server DISCONNECT', 'e0 02 8b 00', 'ERR_SERVER_DISCONNECT', 0x8b],
    ['a second CONNACK', '20 03 00 00 00', 'ERR_PROTOCOL_ERROR', 0x82],
    ['bad bytes', '00 00', 'ERR_MALFORMED_PACKET', 0x81],
  ])('CONNACK and %s in one read: closed', async (_name, hex, code, reasonCode) => {
    const { world } = await answeredWith(`20 03 00 00 00 ${hex}`)
    expect(await world.client.closed).toMatchObject({ code, reasonCode })
    expect(world.peer.ended).toBeDefined()
    expect(world.seen('disconnect')).toHaveLength(world.seen('connect').length)
    expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
  })

  it('a good packet behind CONNACK in one read is delivered', async () => {
    const world = new World(declared)
    const subscription = world.client.subscription('a')
    const connecting = world.client.connect()
    await world.settle()
    await world.sendBytes('20 03 01 00 00', '30 05 00 01 61 00 62')
    await connecting
    expect(subscription.read()?.text()).toBe('b')
  })
})
