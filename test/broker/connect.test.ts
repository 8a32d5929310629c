/**
 * The broker in memory: CONNECT, CONNACK, takeover, keep-alive, DISCONNECT.
 */
import { describe, expect, it } from 'vitest'
import { bytes, type ConnectSettings, durable, type RawClient, world } from './raw-client.js'

const hex = (client: RawClient): string => client.bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')

describe('CONNECT and CONNACK', () => {
  it('CONNACK byte by byte: 5.0 with its limits, 3.1.1 with two bytes [MQTT-3.1.4-5] [MQTT-3.2.2-1]', async () => {
    const { join } = world({ maximumPacketSize: 4096, topicAliasMaximum: 3 })
    expect(hex(await join('a'))).toBe('20 0b 00 00 08 27 00 00 10 00 22 00 03')
    expect(hex(await join('b', {}, 4))).toBe('20 02 00 00')
  })

  it('announces what differs from the defaults, and only that', async () => {
    const { dial } = world({
      receiveMaximum: 9,
      maximumQoS: 1,
      retainAvailable: false,
      wildcardSubscriptionAvailable: false,
      subscriptionIdentifierAvailable: false,
      sharedSubscriptionAvailable: false,
      serverKeepAlive: 77,
      topicAliasMaximum: 0,
      maximumSessionExpiry: 60,
      responseInformation: 'replies',
    })
    const properties = { sessionExpiryInterval: 100, requestResponseInformation: 1 }
    expect(await dial().connect({ properties })).toEqual({
      type: 'connack',
      sessionPresent: false,
      reasonCode: 0,
      properties: {
        sessionExpiryInterval: 60,
        receiveMaximum: 9,
        maximumQoS: 0 + 1,
        retainAvailable: 0,
        maximumPacketSize: 1_048_576,
        wildcardSubscriptionAvailable: 0,
        subscriptionIdentifierAvailable: 0,
        sharedSubscriptionAvailable: 0,
        serverKeepAlive: 77,
        responseInformation: 'replies',
      },
    })
    // [MQTT-3.1.2-28]
    expect((await dial().connect({ clientId: 'b' })) as object).not.toHaveProperty('properties.responseInformation')
  })

  it('assigns an identifier that nobody has [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16]', async () => {
    const { join, dial, broker } = world()
    await join('auto-1')
    expect(await dial().connect({ clientId: '' })).toMatchObject({ properties: { assignedClientIdentifier: 'auto-2' } })
    expect(await dial(4).connect({ clientId: '' })).toMatchObject({ reasonCode: 0, properties: {} })
    expect([...broker.clients.keys()]).toEqual(['auto-1', 'auto-2', 'auto-3'])
  })

  it('wants CONNECT first, and once [MQTT-3.1.0-1] [MQTT-3.1.0-2]', async () => {
    const { dial, join, broker } = world()
    const early = dial()
    expect(await early.send({ type: 'pingreq' })).toEqual([])
    expect(early.ended).toBeDefined()
    const twice = await join('a')
    await twice.send({ type: 'connect', clientId: 'a' })
    expect(twice.goodbye).toBe(0x82)
    expect(twice.ended).toBeDefined()
    expect(broker.violations.map(({ text, reasonCode }) => [text, reasonCode])).toEqual([
      ['the first packet is no CONNECT [MQTT-3.1.0-1]', 0x82],
      ['a second CONNECT [MQTT-3.1.0-2]', 0x82],
    ])
  })

  it('waits for CONNECT only so long', async () => {
    const { dial, clock } = world({ connectTimeout: 500 })
    const client = dial()
    await clock.advance(499)
    expect(client.ended).toBeUndefined()
    await clock.advance(1)
    expect(client.ended).toBeDefined()
  })

  it('says in the form of the version why it refuses one [MQTT-3.1.2-2] [MQTT-3.1.2-1]', async () => {
    const only5 = world({ protocolVersions: [5] })
    expect(await only5.dial(4).connect()).toMatchObject({ reasonCode: 1 })
    const only4 = world({ protocolVersions: [4] })
    expect(await only4.dial(5).connect()).toMatchObject({ reasonCode: 0x84 })
    const { dial } = world()
    // MQIsdp, level 3; then MQTT, level 6.
    const old = dial(4)
    await old.sendBytes([0x10, 0x0f, 0, 6, 0x4d, 0x51, 0x49, 0x73, 0x64, 0x70, 3, 2, 0, 0, 0, 1, 0x61])
    expect(hex(old)).toBe('20 02 00 01')
    const future = dial()
    await future.sendBytes([0x10, 0x0d, 0, 4, 0x4d, 0x51, 0x54, 0x54, 6, 2, 0, 0, 0, 0, 1, 0x61])
    const reason = 'unsupported protocol version'
    expect(hex(future)).toBe(`20 22 00 84 1f 1f 00 1c ${[...bytes(reason)].map((byte) => byte.toString(16)).join(' ')}`)
    expect(future.ended).toBeDefined()
  })

  it('answers a malformed CONNECT by 0x81, and nothing at all what is no CONNECT [MQTT-3.1.2-3] [MQTT-3.1.4-1]', async () => {
    const { dial, broker } = world()
    const reserved = dial()
    await reserved.sendBytes([0x10, 0x0e, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 3, 0, 0, 0, 0, 1, 0x61])
    expect(hex(reserved)).toMatch(/^20 1b 00 81 18 1f 00 15 72 65 73 65 72 76 65 64 /)
    // 3.1.1 has no code for that.
    const old = dial(4)
    await old.sendBytes([0x10, 0x0d, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 3, 0, 0, 0, 1, 0x61])
    expect([old.bytes, old.ended !== undefined]).toEqual([[], true])
    const http = dial()
    await http.sendBytes(bytes('GET / HTTP/1.1\r\n\r\n'))
    expect([http.bytes, http.ended !== undefined]).toEqual([[], true])
    expect(broker.violations).toHaveLength(3)
  })

  it('3.1.1: an empty identifier without a clean session is return code 2', async () => {
    const client = world().dial(4)
    await client.sendBytes([0x10, 0x0c, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 0, 0, 0, 0, 0])
    expect(hex(client)).toBe('20 02 00 02')
  })

  it('takes what came right behind CONNECT', async () => {
    const { dial } = world()
    const packets = await dial().send({ type: 'connect', clientId: 'a' }, { type: 'pingreq' })
    expect(packets.map(({ type }) => type)).toEqual(['connack', 'pingresp'])
  })

  it('has room for a number of sessions, and of connections', async () => {
    const { join, dial } = world({ maxSessions: 1, maxConnections: 3 })
    await join('a', durable)
    expect(await dial().connect({ clientId: 'b' })).toMatchObject({ reasonCode: 0x97 })
    expect(await dial(4).connect({ clientId: 'b' })).toMatchObject({ reasonCode: 3 })
    expect(await dial().connect({ clientId: 'a', ...durable })).toMatchObject({ reasonCode: 0, sessionPresent: true })
    dial()
    dial()
    const fourth = dial()
    await fourth.send()
    expect(fourth.ended).toBeDefined()
  })
})

describe('keep alive [MQTT-3.1.2-22]', () => {
  it('ends the connection after one and a half times the interval, not before', async () => {
    const { join, clock, broker } = world()
    const client = await join('a', { keepAlive: 10 })
    await clock.advance(14_000)
    expect(await client.send({ type: 'pingreq' })).toEqual([{ type: 'pingresp' }]) // [MQTT-3.12.4-1]
    await clock.advance(14_999)
    expect(client.ended).toBeUndefined()
    await clock.advance(1)
    expect(client.goodbye).toBe(0x8d)
    expect(broker.violations).toMatchObject([{ clientId: 'a', reasonCode: 0x8d, time: 29_000 }])
  })

  it('is no matter of a client in the middle of a packet that goes on coming in; one that stands still is silent', async () => {
    const { join, clock } = world()
    const client = await join('a', { keepAlive: 10 })
    // PUBLISH of 10,000 bytes, and a quarter of it each 14 s.
    const packet = [0x30, 0x91, 0x4e, 0, 1, 0x74, 0, ...new Array<number>(9997).fill(0x2e)]
    for (let at = 0; at < 7500; at += 2500) {
      await client.sendBytes(packet.slice(at, at + 2500))
      await clock.advance(14_000)
    }
    expect(client.ended).toBeUndefined()
    await clock.advance(1000)
    expect(client.goodbye).toBe(0x8d)
  })

  it('is off at 0, and the server may decide otherwise [MQTT-3.2.2-22]', async () => {
    const { join, clock } = world()
    const client = await join('a')
    await clock.advance(10_000_000)
    expect(client.ended).toBeUndefined()
    const strict = world({ serverKeepAlive: 2 })
    const other = await strict.join('a', { keepAlive: 100 })
    await strict.clock.advance(3000)
    expect(other.goodbye).toBe(0x8d)
    // 3.1.1 cannot be told.
    const untold = await strict.join('b', { keepAlive: 100 }, 4)
    await strict.clock.advance(149_000)
    expect(untold.ended).toBeUndefined()
    await strict.clock.advance(1000)
    expect(untold.ended).toBeDefined()
  })
})

describe('authenticate', () => {
  it('refuses by false, by code with properties, by a throw; 3.1.1 in its own codes', async () => {
    const verdicts: Record<string, () => never | boolean | { reasonCode: number; properties: object }> = {
      no: () => false,
      moved: () => ({ reasonCode: 0x9d, properties: { serverReference: 'other:1883' } }),
      broken: () => {
        throw new Error('no')
      },
      yes: () => true,
    }
    const { dial } = world({ authenticate: ({ username = 'yes' }) => verdicts[username]?.() ?? false })
    expect(await dial().connect({ username: 'no' })).toMatchObject({ reasonCode: 0x87 })
    expect(await dial(4).connect({ username: 'no' })).toMatchObject({ reasonCode: 5 })
    expect(await dial().connect({ username: 'moved' })).toMatchObject({ reasonCode: 0x9d, properties: { serverReference: 'other:1883' } })
    const broken = dial()
    expect(await broken.connect({ username: 'broken' })).toMatchObject({ reasonCode: 0x80 })
    expect(broken.ended).toBeDefined() // [MQTT-3.2.2-7]
    expect(await dial().connect({ username: 'yes' })).toMatchObject({ reasonCode: 0 })
  })

  it('may take its time: what comes meanwhile waits, and is dropped by a refusal [MQTT-3.1.4-6]', async () => {
    const decide: ((verdict: boolean) => void)[] = []
    const { dial, broker, clock } = world({ authenticate: () => new Promise<boolean>((resolve) => decide.push(resolve)) })
    const one = dial()
    const two = dial()
    for (const client of [one, two]) {
      expect(
        await client.send({ type: 'connect', clientId: client === one ? 'one' : 'two' }, { type: 'publish', topic: 't', qos: 1, packetId: 1 }),
      ).toEqual([])
    }
    decide[0]?.(true)
    decide[1]?.(false)
    await clock.settle()
    expect(one.take().map(({ type }) => type)).toEqual(['connack', 'puback'])
    expect(two.take()).toMatchObject([{ type: 'connack', reasonCode: 0x87 }])
    expect(broker.accepted.map(({ clientId }) => clientId)).toEqual(['one'])
  })

  it('comes too late for a client that is gone', async () => {
    for (const verdict of [true, false]) {
      let decide = (_verdict: boolean): void => undefined
      const { dial, broker, clock } = world({ authenticate: () => new Promise<boolean>((resolve) => (decide = resolve)) })
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a', ...durable })
      await client.cut()
      decide(verdict)
      await clock.settle()
      expect([broker.sessions.size, broker.clients.size]).toEqual([0, 0])
    }
  })

  it('a refusal says why, unless the Reason String does not fit [MQTT-3.2.2-19]; Request Problem Information 0 does not forbid it', async () => {
    const given = { reasonCode: 0x9c, properties: { serverReference: 'other', reasonString: 'moved' } }
    const verdicts = { no: false, banned: 0x8a, moved: given } as const
    const { dial } = world({ authenticate: ({ clientId }) => verdicts[clientId as keyof typeof verdicts], auth: {}, maximumQoS: 0 })
    const refusal = (properties: ConnectSettings, version?: 4 | 5) => dial(version).connect({ clientId: 'no', ...properties })
    expect(await refusal({})).toMatchObject({ reasonCode: 0x87, properties: { reasonString: 'Not authorized' } })
    expect(await refusal({ properties: { requestProblemInformation: 0 } })).toMatchObject({ properties: { reasonString: 'Not authorized' } })
    expect(await refusal({ properties: { maximumPacketSize: 10 } })).toMatchObject({ reasonCode: 0x87, properties: {} })
    expect(await refusal({ clientId: 'banned' })).toMatchObject({ properties: { reasonString: 'Banned' } })
    expect(await refusal({ clientId: 'moved' })).toMatchObject(given)
    expect(await refusal({ will: { topic: 't', qos: 1 } })).toMatchObject({
      reasonCode: 0x9b,
      properties: { reasonString: expect.stringMatching(/QoS/) },
    })
    expect(await refusal({}, 4)).toMatchObject({ reasonCode: 5, properties: {} })
  })

  it('what waits for it is bounded', async () => {
    const { dial } = world({ authenticate: () => new Promise<boolean>(() => undefined), maxBacklog: 1000 })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a' })
    await client.publish('t', 'x'.repeat(900))
    expect(client.ended).toBeUndefined()
    expect(await client.publish('t', 'x'.repeat(900))).toMatchObject([{ type: 'connack', reasonCode: 0x97 }])
    expect(client.ended).toBeDefined()
    const busy = world({ authenticate: () => new Promise<boolean>(() => undefined) }).dial()
    await busy.send({ type: 'connect', clientId: 'a' })
    await busy.send(...Array.from({ length: 1000 }, () => ({ type: 'pingreq' as const })))
    expect(busy.ended).toBeUndefined()
    expect(await busy.send({ type: 'pingreq' })).toMatchObject([{ type: 'connack', reasonCode: 0x97 }])
  })

  it('is told what accept was told', async () => {
    const seen: unknown[] = []
    const { broker, clock } = world({ authenticate: (_connect, context) => seen.push(context) > 0 })
    const { memoryPair } = await import('../../src/testing/index.js')
    const { RawClient: Client } = await import('./raw-client.js')
    const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
    broker.accept(far, 'listener 1')
    await new Client(clock, near, 5).connect()
    expect(seen).toEqual([{ remote: 'listener 1' }])
  })
})
