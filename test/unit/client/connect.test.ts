/** CONNECT byte by byte, and how long connecting may take. */
import { expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'

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
const [jörg, punctuation] = ['jörg; "€" 𝄞', 'p:@/?#ü']
const login = { username: jörg, password: punctuation }
const bytes = Uint8Array.of(0, 255, 128)

it('connects and says goodbye [MQTT-3.1.0-1] [MQTT-3.1.0-2]', async () => {
  const world = await connected({ clientId: 'a' }, agreeable)
  expect(world.client.state).toBe('connected')
  const sent = world.peer.bytes.length
  await Promise.all([world.client.disconnect(), world.settle()])
  expect(world.peer.received.map(({ type }) => type)).toEqual(['connect', 'disconnect'])
  // The end of its session.
  expect(world.peer.bytes.slice(sent)).toEqual([0xe0, 7, 0, 5, 0x11, 0, 0, 0, 0])
  expect(world.peer.ended).toEqual({ cause: undefined })
  expect(world.client.state).toBe('closed')
  expect(world.clock.pending).toBe(0)
  expect(await world.client.closed).toBeUndefined()
})

it.each([
  ['without options', { clientId: 'a' }, packet(0x02, 'a')],
  ['without a client id: an empty one is sent', {}, packet(0x02, '')],
  [
    'punctuation, and beyond ASCII',
    { clientId: 'a', ...login },
    packet(0xc2, 'a', jörg, punctuation),
  ],
  ['an empty password', { clientId: 'a', username: 'u', password: '' }, packet(0xc2, 'a', 'u', '')],
  ['a password without user name', { clientId: 'a', password: 'p' }, packet(0x42, 'a', 'p')],
  ['a password of bytes', { clientId: 'a', password: bytes }, packet(0x42, 'a', [...bytes])],
  ['a will that is left out', { clientId: 'a', will: undefined }, packet(0x02, 'a')],
  [
    'values that are the default of the standard are not sent',
    {
      ...{ clientId: 'a', sessionExpiryInterval: 0, receiveMaximum: 65_535, topicAliasMaximum: 0 },
      ...{ keepAlive: false, requestProblemInformation: true },
    },
    [...field('MQTT'), 5, 0x02, 0, 0, 5, 0x27, 1, 0, 0, 0, ...field('a')],
  ],
] as [string, ClientOptions, number[]][])(
  'the CONNECT of a client, byte by byte: %s',
  async (_title, options, expected) => {
    const { bytes } = (await connected(options)).peer
    expect(bytes).toEqual([0x10, expected.length, ...expected])
  },
)

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
  world.answer = accepting()
  await Promise.all([world.client.connect(), world.settle()])
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
