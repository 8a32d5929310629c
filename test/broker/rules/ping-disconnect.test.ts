/**
 * Proofs of the server role, sections 3.12 to 3.14: PINGRESP, and DISCONNECT in both directions.
 *
 * What DISCONNECT does to a will is in `broker-will.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import type { MemoryBrokerOptions } from '../../../src/testing/index.js'
import type { Properties } from '../../../src/wire/index.js'
import { type ConnectSettings, durable, type World, world } from '../raw-client.js'
import { endOf, heard, hexOfCode, packetOf, propertiesOf, say, someCodes, textOf } from './wire.js'

it('every PINGREQ is answered by a PINGRESP [MQTT-3.12.4-1]', async () => {
  const client = await world().join('a')
  heard(client)
  expect(await say(client, 'c0 00 c0 00 c0 00')).toEqual(['d0 00', 'd0 00', 'd0 00'])
})

const connect = packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a'))

describe('no DISCONNECT before a successful CONNACK', () => {
  const enhanced: ConnectSettings = { properties: { authenticationMethod: 'm' } }
  const auth = { m: { start: () => ({ reasonCode: 0x18 }), continue: () => Promise.reject(new Error('wrong')) } }
  const never = { authenticate: () => new Promise<boolean>(() => undefined) }
  const more = packetOf('f0', '18 04 15', textOf('m'))

  const ways: [string, MemoryBrokerOptions, ConnectSettings | undefined, (all: World) => string[] | Promise<void> | void][] = [
    ['a refusal', { authenticate: () => false }, {}, () => []],
    ['silence', { connectTimeout: 10 }, undefined, ({ clock }) => clock.advance(10)],
    ['another packet first', {}, undefined, () => ['c0 00']],
    ['bytes that are no packet', {}, undefined, () => ['00 00']],
    ['a malformed CONNECT', {}, undefined, () => [connect.replace('05 02', '05 03')]],
    ['a malformed packet behind CONNECT', never, {}, () => ['c1 00']],
    ['a packet too large behind CONNECT', { ...never, maximumPacketSize: 200 }, {}, () => ['30 ff 7f']],
    ['more than it waits for', { ...never, maxBacklog: 10 }, {}, () => [packetOf('30', textOf('topic topic'), '00')]],
    ['a second CONNECT', never, {}, () => [connect]],
    ['an unknown method', {}, enhanced, () => []],
    ['a failed exchange', { auth }, enhanced, () => [more]],
    ['another method in the exchange', { auth }, enhanced, () => [packetOf('f0', '18 04 15', textOf('n'))]],
    ['AUTH of the wrong kind in the exchange', { auth }, enhanced, () => [more.replace('f0 06 18', 'f0 06 19')]],
    ['a PUBLISH in the exchange', { auth }, enhanced, () => [packetOf('30', textOf('t'), '00')]],
    ['a malformed packet in the exchange', { auth }, enhanced, () => ['f1 00']],
    ['the end of the broker', never, {}, ({ broker }) => broker.close()],
    ['a client that cannot take the CONNACK', {}, { properties: { maximumPacketSize: 4 } }, () => []],
  ]

  it.each(ways)('none after %s [MQTT-3.14.0-1]', async (_what, options, settings, go) => {
    const all = world(options)
    const client = all.dial()
    if (settings !== undefined) await client.send({ type: 'connect', clientId: 'a', ...settings })
    await say(client, ...((await go(all)) ?? []))
    const kinds = client.received.map(({ type }) => type)
    expect(kinds).not.toContain('disconnect')
    expect(client.received.every((packet) => packet.type === 'auth' || (packet.type === 'connack' && packet.reasonCode >= 0x80))).toBe(true)
    expect(client.ended).toBeDefined()
  })

  it('nor when a hook that sees CONNACK sends the client away [MQTT-3.14.0-1]', async () => {
    const { dial, broker } = world({
      intercept(direction, packet) {
        if (direction === 'out' && packet.type === 'connack') broker.disconnect('a')
        return undefined
      },
    })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a' })
    expect([client.received, client.ended !== undefined]).toEqual([[], true])
  })

  it('nor while CONNACK is late [MQTT-3.14.0-1]', async () => {
    const { dial, broker, clock } = world({ faults: [{ packet: 'connack', direction: 'out', nth: 1, action: 'delay', delay: 100 }] })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a' })
    broker.disconnect('a')
    await clock.advance(1000)
    expect(client.received.map(({ type }) => type)).not.toContain('disconnect')
    expect(client.ended).toBeDefined()
  })
})

const clientCodes = '00 04 80 81 82 83 90 93 94 95 96 97 98 99'.split(' ')
const serverCodes = '00 80 81 82 83 87 89 8b 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2'.split(' ')

describe('DISCONNECT of the client', () => {
  it.each(['e1', 'e2', 'e4', 'e8', 'ef'])(
    'that begins with %s is answered by DISCONNECT 0x81, and the will is published [MQTT-3.14.1-1]',
    async (first) => {
      const { join, broker } = world()
      const client = await join('a', { will: { topic: 'w' } })
      heard(client)
      const [last, ...more] = await say(client, `${first} 00`)
      expect([last?.slice(0, 2), last?.slice(6, 8), more, client.ended !== undefined]).toEqual(['e0', '81', [], true])
      expect(broker.accepted).toMatchObject([{ topic: 'w', will: true }])
    },
  )

  it('has the codes of a client: any other is an error [MQTT-3.14.2-1]', async () => {
    for (const code of someCodes) {
      const { join, broker } = world()
      const client = await join('a')
      heard(client)
      const answers = await say(client, `e0 01 ${hexOfCode(code)}`)
      expect(client.ended).toBeDefined()
      if (clientCodes.includes(hexOfCode(code))) expect([hexOfCode(code), answers, broker.violations]).toEqual([hexOfCode(code), [], []])
      else
        expect([hexOfCode(code), answers[0]?.slice(0, 2), answers[0]?.slice(6, 8)]).toEqual([hexOfCode(code), 'e0', expect.stringMatching(/^8[12]$/)])
    }
  })
})

describe('DISCONNECT of the broker', () => {
  it('has the codes of a server, whatever a test asks for; 0x8C is none of them [MQTT-3.14.2-1]', async () => {
    const seen = new Set<string | undefined>()
    for (const code of someCodes) {
      const { join, broker } = world()
      const client = await join('a')
      heard(client)
      try {
        broker.disconnect('a', code)
      } catch (error) {
        expect(error).toBeInstanceOf(MqttError)
        expect(serverCodes).not.toContain(hexOfCode(code))
        continue
      }
      await client.send()
      const packet = heard(client)[0]
      expect(serverCodes).toContain(packet === 'e0 00' ? '00' : packet?.split(' ')[2])
      if (serverCodes.includes(hexOfCode(code))) seen.add(packet === 'e0 00' ? '00' : packet?.split(' ')[2])
    }
    expect([...seen]).toEqual(serverCodes)
    // A method that refuses an authentication again may ask for any code too.
    for (const reasonCode of someCodes.filter((code) => code >= 0x80)) {
      const { join } = world({
        auth: { m: { start: (_data, { reauthentication }) => (reauthentication ? { reasonCode } : {}), continue: () => ({}) } },
      })
      const client = await join('a', { properties: { authenticationMethod: 'm' } })
      heard(client)
      const [packet, ...more] = await say(client, packetOf('f0', '19', propertiesOf(`15 ${textOf('m')}`)))
      const code = hexOfCode(reasonCode)
      expect([code, packet?.slice(0, 2), packet?.slice(6, 8), more]).toEqual([code, 'e0', serverCodes.includes(code) ? code : '82', []])
    }
  })

  it('never has a Session Expiry Interval: an administrator cannot give it one [MQTT-3.14.2-2]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    heard(client)
    expect(() => broker.disconnect('a', 0x98, { sessionExpiryInterval: 5 })).toThrow(MqttError)
    await client.send()
    expect([heard(client), client.ended]).toEqual([[], undefined])
  })

  it('nor does any that a broken rule, a takeover, silence or the end of the broker brings about [MQTT-3.14.2-2] [MQTT-3.14.2-1]', async () => {
    const ends: ((client: Awaited<ReturnType<World['join']>>, all: World) => unknown)[] = [
      (client) => say(client, 'c1 00'),
      (client) => say(client, '30 05 00 01 74 00'.replace('05', '01')),
      (client) => say(client, packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a'))),
      (_client, { join }) => join('a', durable),
      (_client, { clock }) => clock.advance(60_000),
      (_client, { broker }) => broker.disconnect('a'),
      (_client, { broker }) => broker.close(),
    ]
    for (const end of ends) {
      const all = world()
      const client = await all.join('a', { ...durable, keepAlive: 2 })
      await end(client, all)
      await all.clock.settle()
      const last = client.received.at(-1)
      expect(last?.type).toBe('disconnect')
      if (last?.type !== 'disconnect') continue
      expect(serverCodes).toContain(hexOfCode(last.reasonCode))
      expect(last.properties).not.toHaveProperty('sessionExpiryInterval')
    }
  })

  const explained: Properties[] = [{ reasonString: 'why it is so' }, { userProperties: [['name', 'value']] }]

  it.each(explained)('%j is left out where it does not fit [MQTT-3.14.2-3] [MQTT-3.14.2-4]', async (properties) => {
    const { join, broker } = world({ topicAliasMaximum: 0 })
    const last = async (maximumPacketSize: number) => {
      const client = await join('a', { properties: { maximumPacketSize } })
      broker.disconnect('a', 0x98, properties)
      await client.send()
      return endOf(client)
    }
    const whole = await last(1000)
    const size = whole.last?.split(' ').length ?? 0
    expect(size).toBeGreaterThan(16)
    expect(await last(size)).toEqual(whole)
    expect(await last(size - 1)).toEqual({ last: 'e0 01 98', closed: true })
    expect(await last(11)).toEqual({ last: 'e0 01 98', closed: true })
  })

  it('nothing follows it, though answers and messages are due in the same moment [MQTT-3.14.4-1]', async () => {
    const { join, broker, clock } = world()
    const [client, sender] = [await join('a', durable), await join('b')]
    await client.subscribe('#')
    heard(client)
    for (let i = 0; i < 10; i++) sender.transport.write(Uint8Array.from([0x30, 4, 0, 1, 0x74, 0]))
    client.transport.write(Uint8Array.from([0xc0, 0, 0xc1, 0, 0xc0, 0, 0x32, 6, 0, 1, 0x74, 0, 9, 0]))
    for (let i = 0; i < 10; i++) broker.publish({ topic: 't', qos: 1 })
    await clock.settle()
    for (let i = 0; i < 10; i++) broker.publish({ topic: 't', qos: 1 })
    await clock.advance(100_000)
    const firsts = heard(client).map((packet) => packet.slice(0, 2))
    expect(firsts.indexOf('e0')).toBe(firsts.length - 1)
    expect(firsts.filter((first) => first === 'd0')).toHaveLength(1)
    // What was not sent waits for the next connection.
    expect(broker.sessions.get('a')?.queued).toBe(10)
    expect(broker.accepted.some(({ clientId }) => clientId === 'a')).toBe(false)
  })

  it('the connection is closed behind it, and cut when the client keeps its side open [MQTT-3.14.4-2] [MQTT-4.13.2-1]', async () => {
    const { broker, clock } = world()
    const { memoryPair } = await import('../../../src/testing/index.js')
    const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
    const seen: string[] = []
    // A transport whose other side never answers the end of the stream.
    broker.accept({
      open: (sink) => far.open({ ...bound(sink), closed: () => undefined }),
      write: (bytes) => far.write(bytes),
      close: () => void seen.push(`close ${clock.now()}`),
      destroy: () => void seen.push(`destroy ${clock.now()}`),
    })
    near.open({ buffer: () => new Uint8Array(99), read: () => undefined, chunk: () => undefined, drain: () => undefined, closed: () => undefined })
    near.write(Uint8Array.from([0x10, 14, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 0, 0, 0, 1, 0x61]))
    await clock.advance(10)
    broker.disconnect('a')
    expect(seen).toEqual(['close 10'])
    await clock.advance(60_000)
    expect(seen).toEqual(['close 10', 'destroy 5010'])
  })
})

/** A sink whose methods can be spread. */
function bound(sink: import('../../../src/transport/transport.js').Sink): import('../../../src/transport/transport.js').Sink {
  return {
    buffer: () => sink.buffer(),
    read: (length) => sink.read(length),
    chunk: (bytes) => sink.chunk(bytes),
    drain: () => sink.drain(),
    closed: (cause) => sink.closed(cause),
  }
}
