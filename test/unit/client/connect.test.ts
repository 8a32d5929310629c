import { expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { connect } from '../../../src/client/node.js'
import { MqttError } from '../../../src/errors.js'
import { freePort } from '../../support/servers.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'

const text = (value: string): number[] => [...Buffer.from(value)]
const field = (value: string | readonly number[]): number[] => {
  const bytes = typeof value === 'string' ? text(value) : [...value]
  return [bytes.length >> 8, bytes.length & 0xff, ...bytes]
}
const prelude = [...field('MQTT'), 5]
// Session Expiry Interval 300, Maximum Packet Size 1 MiB, Topic Alias Maximum 10; Receive Maximum is that of the standard.
const defaults = [0x0a, 0x11, 0, 0, 1, 0x2c, 0x27, 1, 0, 0, 0]

async function connectBytes(options: ClientOptions): Promise<number[]> {
  const world = await connected(options)
  const { bytes } = world.peer
  expect(bytes[0]).toBe(0x10)
  expect(bytes[1]).toBe(bytes.length - 2)
  return bytes.slice(2)
}

it('connects and says goodbye [MQTT-3.1.0-1] [MQTT-3.1.0-2]', async () => {
  const world = await connected({ clientId: 'a' }, agreeable)
  expect(world.client.state).toBe('connected')
  const done = world.client.disconnect()
  await world.settle()
  await done
  expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'disconnect'])
  expect(world.peer.ended).toEqual({ cause: undefined })
  expect(world.client.state).toBe('closed')
  expect(await world.client.closed).toBeUndefined()
  expect(world.clock.pending).toBe(0)
})

it('the CONNECT of a client without options, byte by byte; the end of its session with DISCONNECT', async () => {
  const world = await connected({ clientId: 'a' })
  expect(world.peer.bytes.slice(2)).toEqual([...prelude, 0x02, 0, 30, ...defaults, ...field('a')])
  const sent = world.peer.bytes.length
  world.client.disconnect()
  await world.settle()
  expect(world.peer.bytes.slice(sent)).toEqual([0xe0, 7, 0, 5, 0x11, 0, 0, 0, 0])
})

it('no client id: an empty one is sent', async () => {
  expect(await connectBytes({})).toEqual([...prelude, 0x02, 0, 30, ...defaults, 0, 0])
})

it('limits of ours are in CONNECT', async () => {
  const world = await connected({
    receiveMaximum: 7,
    maximumPacketSize: 4096,
    topicAliasMaximum: 3,
    sessionExpiryInterval: 4_294_967_295,
    requestResponseInformation: true,
    requestProblemInformation: false,
    userProperties: [
      ['a', '1'],
      ['a', '2'],
      ['', ''],
    ],
    keepAlive: 65_535,
  })
  expect(world.peer.last('connect')).toMatchObject({
    keepAlive: 65_535,
    properties: {
      receiveMaximum: 7,
      maximumPacketSize: 4096,
      topicAliasMaximum: 3,
      sessionExpiryInterval: 4_294_967_295,
      requestResponseInformation: 1,
      requestProblemInformation: 0,
      userProperties: [
        ['a', '1'],
        ['a', '2'],
        ['', ''],
      ],
    },
  })
})

it('values that are the default of the standard are not sent', async () => {
  const bytes = await connectBytes({
    clientId: 'a',
    sessionExpiryInterval: 0,
    receiveMaximum: 65_535,
    topicAliasMaximum: 0,
    keepAlive: false,
    requestProblemInformation: true,
  })
  expect(bytes).toEqual([...prelude, 0x02, 0, 0, 5, 0x27, 1, 0, 0, 0, ...field('a')])
})

it('cleanStart false clears the flag [MQTT-3.1.2-4]', async () => {
  const world = await connected({ clientId: 'a', cleanStart: false }, accepting({}, true))
  expect(world.peer.last('connect').cleanStart).toBe(false)
  expect(world.client.negotiated?.sessionPresent).toBe(true)
})

it('user name and password, punctuation and beyond ASCII, exact', async () => {
  const [username, password] = ['jörg; "€" 𝄞', 'p:@/?#ü']
  expect(await connectBytes({ clientId: 'a', username, password })).toEqual([
    ...prelude,
    0xc2,
    0,
    30,
    ...defaults,
    ...field('a'),
    ...field(username),
    ...field(password),
  ])
})

it('a password of bytes is sent as it is, and read once', async () => {
  const password = Uint8Array.of(0, 255, 128)
  const world = new World({ password })
  password.fill(9)
  world.answer = accepting()
  await Promise.all([world.client.connect(), world.settle()])
  expect([...(world.peer.last('connect').password ?? [])]).toEqual([0, 255, 128])
})

it('an empty password is a password', async () => {
  expect(await connectBytes({ clientId: 'a', username: 'u', password: '' })).toEqual([
    ...prelude,
    0xc2,
    0,
    30,
    ...defaults,
    ...field('a'),
    ...field('u'),
    0,
    0,
  ])
})

it('a password without user name is sent', async () => {
  expect(await connectBytes({ clientId: 'a', password: 'p' })).toEqual([...prelude, 0x42, 0, 30, ...defaults, ...field('a'), ...field('p')])
})

it('will with QoS 1 and retain', async () => {
  const will = { topic: 'w/t', payload: 'gone', qos: 1, retain: true } as const
  expect(await connectBytes({ clientId: 'a', will })).toEqual([
    ...prelude,
    0b0010_1110,
    0,
    30,
    ...defaults,
    ...field('a'),
    0,
    ...field('w/t'),
    ...field('gone'),
  ])
})

it('order of the fields: id, will, user name, password [MQTT-3.1.3-1]', async () => {
  const will = { topic: 'w', qos: 2 } as const
  expect(await connectBytes({ clientId: 'a', will, username: 'u', password: 'p' })).toEqual([
    ...prelude,
    0b1101_0110,
    0,
    30,
    ...defaults,
    ...field('a'),
    0,
    ...field('w'),
    0,
    0,
    ...field('u'),
    ...field('p'),
  ])
})

it('properties of the will stand before its topic', async () => {
  const will = {
    topic: 'w',
    payload: Uint8Array.of(1),
    properties: {
      willDelayInterval: 5,
      payloadFormatIndicator: 0,
      messageExpiryInterval: 60,
      contentType: 'c',
      responseTopic: 'r',
      correlationData: Uint8Array.of(7, 8),
      userProperties: [['k', 'v']] as [string, string][],
    },
  }
  const world = await connected({ clientId: 'a', will })
  expect(world.peer.last('connect').will?.properties).toMatchObject({
    ...will.properties,
    correlationData: expect.objectContaining({ length: 2 }) as unknown,
  })
  // The block's length, its delay, ... end in topic and payload.
  expect(world.peer.bytes.slice(-6)).toEqual([...field('w'), ...field([1])])
  expect(world.peer.bytes.join()).toContain([0x18, 0, 0, 0, 5].join())
})

it('a will that is left out leaves no trace', async () => {
  const bytes = await connectBytes({ clientId: 'a', will: undefined })
  expect(bytes[7]).toBe(0x02)
})

it('gives up without CONNACK, at the deadline and not before', async () => {
  const world = new World({ connectTimeout: 3000 })
  const connecting = failure(world.client.connect())
  await world.clock.advance(2999)
  expect(world.client.state).toBe('connecting')
  await world.clock.advance(1)
  expect(await connecting).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT', fault: 'remote' })
  expect(world.client.state).toBe('closed')
  expect(world.peer.ended).toBeDefined()
  expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
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
  expect(world.peer.bytes).toEqual([])
  expect(world.clock.pending).toBe(0)
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
  expect(await connecting).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT', message: expect.stringContaining('credentialsTimeout') as string })
  expect(signal?.aborted).toBe(true)
  expect(world.peers).toHaveLength(0)
  expect(world.clock.pending).toBe(0)
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

it('CONNACK in single bytes', async () => {
  const world = await connected({}, accepting({ serverKeepAlive: 9, reasonString: 'welcome' }), { split: 1 })
  expect(world.client.negotiated).toMatchObject({ keepAlive: 9, reasonString: 'welcome' })
})

it('the stream ends before CONNACK, in order or not', async () => {
  for (const how of ['end', 'cut'] as const) {
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
  }
})

it('what the platform says is the cause', async () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const world = new World({}, {}, 1, () => Promise.reject(cause))
  const error = await world.client.connect().catch((thrown: unknown) => thrown)
  expect(MqttError.is(error)).toBe(true)
  expect(error).toMatchObject({ code: 'ERR_CONNECT_FAILED', fault: 'remote', outcome: 'not-sent' })
  expect((error as MqttError).cause).toBe(cause)
  expect(world.clock.pending).toBe(0)
})

it('a port that nobody listens on', async () => {
  await expect(connect(`mqtt://127.0.0.1:${await freePort()}`)).rejects.toMatchObject({ code: 'ERR_CONNECT_FAILED', cause: { code: 'ECONNREFUSED' } })
})

it('a hundred rounds of connect and close leave nothing behind', async () => {
  const controller = new AbortController()
  let listening = 0
  const { signal } = controller
  const { addEventListener, removeEventListener } = signal
  signal.addEventListener = (...parameters: Parameters<typeof addEventListener>) => {
    listening += 1
    addEventListener.apply(signal, parameters)
  }
  signal.removeEventListener = (...parameters: Parameters<typeof removeEventListener>) => {
    listening -= 1
    removeEventListener.apply(signal, parameters)
  }
  for (let round = 0; round < 100; round++) {
    const world = new World()
    world.answer = agreeable
    await Promise.all([world.client.connect({ signal }), world.settle()])
    await Promise.all([world.client.publish('a', 'b', { qos: 1, signal }), world.settle()])
    await Promise.all([world.client.disconnect({ signal }), world.settle()])
    expect(world.peer.ended).toEqual({ cause: undefined })
    expect(world.clock.pending).toBe(0)
  }
  expect(listening).toBeLessThanOrEqual(0)
})
