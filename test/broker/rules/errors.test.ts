/**
 * Proofs of the server role, sections 1.5, 2 and 4.13: how the broker in memory writes data, and what it does with data that is malformed.
 *
 * Every vector of a client's packets is in `broker-vectors.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import { durable, type RawClient, type World, world } from '../raw-client.js'
import { bytesOf, endOf, heard, hexOf, packetOf, propertiesOf, say, textOf } from './wire.js'

async function joined(options: Parameters<typeof world>[0] = {}): Promise<World & { client: RawClient }> {
  const all = world(options)
  const client = await all.join('a')
  heard(client)
  return { ...all, client }
}

/** What follows the packet on a fresh connection: the code of the DISCONNECT, with the end. */
async function refusal(packet: string): Promise<string | undefined> {
  const { client, broker } = await joined()
  const [last, ...more] = await say(client, packet)
  expect([last?.slice(0, 2), more, client.ended !== undefined, broker.accepted.length]).toEqual(['e0', [], true, 0])
  return last?.slice(6, 8)
}

/** The same for a CONNECT: the code of its CONNACK. */
async function connackOf(...parts: string[]): Promise<string | undefined> {
  const { dial, broker } = world()
  const client = dial()
  const [connack, ...more] = await say(client, packetOf('10', textOf('MQTT'), ...parts))
  expect([connack?.slice(0, 5), more, client.ended !== undefined, broker.sessions.size]).toEqual(['20 03', [], true, 0])
  return connack?.slice(9, 11)
}

describe('UTF-8', () => {
  it.each([
    ['a surrogate', 'ed a0 80'],
    ['a pair of surrogates', 'ed a0 bd ed b8 80'],
    ['an overlong form', 'c0 80'],
    ['a long overlong form', 'e0 80 af'],
    ['more than U+10FFFF', 'f5 80 80 80'],
    ['a byte that is none', 'ff'],
    ['a lone continuation', '80'],
    ['a cut-off character', 'e2 82'],
    ['U+0000', '61 00 62'],
  ])('%s is malformed wherever a string stands: 0x81 and the end [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-1.5.7-1]', async (_what, bytes) => {
    const bad = `00 0${bytes.split(' ').length} ${bytes}`
    const publish = (properties: string) => packetOf('30', textOf('t'), propertiesOf(properties))
    expect(await refusal(packetOf('30', bad, '00'))).toBe('81')
    expect(await refusal(publish(`08 ${bad}`))).toBe('81')
    expect(await refusal(publish(`03 ${bad}`))).toBe('81')
    expect(await refusal(publish(`26 ${bad} 00 00`))).toBe('81')
    expect(await refusal(publish(`26 00 00 ${bad}`))).toBe('81')
    expect(await refusal(packetOf('82', '00 01 00', bad, '00'))).toBe('81')
    expect(await refusal(packetOf('a2', '00 01 00', bad))).toBe('81')
    expect(await refusal(packetOf('40', '00 01 00', propertiesOf(`1f ${bad}`)))).toBe('81')
    expect(await refusal(packetOf('e0', '00', propertiesOf(`1f ${bad}`)))).toBe('81')
    expect(await connackOf('05 02 00 00 00', bad)).toBe('81')
    expect(await connackOf('05 02 00 00', propertiesOf(`26 ${bad} 00 00`), textOf('a'))).toBe('81')
    expect(await connackOf('05 82 00 00 00', textOf('a'), bad)).toBe('81')
    expect(await connackOf('05 06 00 00 00', textOf('a'), '00', bad, '00 00')).toBe('81')
  })

  it('the broker itself writes none of that: its API refuses it, and what it says is UTF-8 [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-1.5.7-1]', async () => {
    const { broker, client } = await joined()
    for (const text of ['a\ud800b', 'a\u0000b']) {
      expect(() => broker.publish({ topic: text })).toThrow(/topic/)
      expect(() => broker.publish({ topic: 't', properties: { contentType: text } })).toThrow(/contentType/)
      expect(() => broker.publish({ topic: 't', properties: { userProperties: [[text, '']] } })).toThrow(/userProperties/)
      expect(() => broker.publish({ topic: 't', properties: { userProperties: [['', text]] } })).toThrow(/userProperties/)
      expect(() => broker.disconnect('a', 0x98, { reasonString: text })).toThrow(/reasonString/)
    }
    expect(await say(client, 'c0 00')).toEqual(['d0 00'])
    broker.disconnect('a', 0x98, { reasonString: 'é\u{1f600}' })
    await client.send()
    expect(endOf(client).last).toBe('e0 0b 98 09 1f 00 06 c3 a9 f0 9f 98 80')
  })
})

describe('integers and lengths', () => {
  it('Remaining Length is as short as it can be [MQTT-1.5.5-1]', async () => {
    const { client, broker } = await joined()
    await say(client, packetOf('82', '00 01 00', textOf('t'), '00'))
    const lengths: [number, string][] = [
      [127, '7f'],
      [128, '80 01'],
      [16_383, 'ff 7f'],
      [16_384, '80 80 01'],
      [1_000_000, 'c0 84 3d'],
    ]
    for (const [length, bytes] of lengths) {
      // The bytes are looked at without formatting all of them.
      broker.publish({ topic: 't', payload: new Uint8Array(length - 4) })
      await client.send()
      const got = client.bytes.splice(0)
      const header = 1 + bytes.split(' ').length
      expect([hexOf(got.slice(0, header + 4)), got.length]).toEqual([`30 ${bytes} 00 01 74 00`, header + length])
    }
  })

  it.each([
    [1, '01'],
    [127, '7f'],
    [128, '80 01'],
    [16_383, 'ff 7f'],
    [16_384, '80 80 01'],
    [2_097_151, 'ff ff 7f'],
    [2_097_152, '80 80 80 01'],
    [268_435_455, 'ff ff ff 7f'],
  ])('the Subscription Identifier %i is written as %s, and the Property Length is as short [MQTT-1.5.5-1]', async (_value, bytes) => {
    const { client } = await joined()
    const property = `0b ${bytes}`
    await say(client, packetOf('82', '00 01', propertiesOf(property), textOf('t'), '00'))
    expect(await say(client, packetOf('30', textOf('t'), '00'))).toEqual([packetOf('30', textOf('t'), propertiesOf(property))])
    const pair = `26 00 01 61 00 7a ${'62 '.repeat(122)}`
    const size = 128 + bytesOf(property).length
    expect(await say(client, packetOf('30', textOf('t'), '80 01', pair))).toEqual([
      packetOf('30', textOf('t'), hexOf([(size & 127) | 128, size >> 7]), pair, property),
    ])
  })

  it('one that is longer than it has to be is malformed [MQTT-1.5.5-1]', async () => {
    expect(await refusal('c0 80 00')).toBe('81')
    expect(await refusal('30 85 00 00 01 74 00 78')).toBe('81')
    expect(await refusal(packetOf('30', textOf('t'), '80 00'))).toBe('81')
    expect(await refusal('30 ff ff ff ff 01')).toBe('81')
  })

  it('an empty property set has its length byte in every packet of the broker that has properties [MQTT-2.2.2-1]', async () => {
    const { client, broker, dial } = await joined({ authenticate: ({ clientId }) => clientId === 'a' })
    expect(await say(dial(), packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('b')))).toEqual(['20 03 00 87 00'])
    expect(await say(client, packetOf('82', '00 01 00', textOf('t'), '01'), packetOf('a2', '00 02 00', textOf('u')))).toEqual([
      '90 04 00 01 00 01',
      'b0 04 00 02 00 11',
    ])
    for (const qos of [0, 1] as const) broker.publish({ topic: 't', qos })
    await client.send()
    expect(heard(client)).toEqual(['30 04 00 01 74 00', '32 06 00 01 74 00 01 00'])
  })

  it('the same packets without it are malformed [MQTT-2.2.2-1]', async () => {
    expect(await refusal(packetOf('30', textOf('t')))).toBe('81')
    expect(await refusal(packetOf('32', textOf('t'), '00 01'))).toBe('81')
    expect(await refusal('82 02 00 01')).toBe('81')
    expect(await refusal('a2 02 00 01')).toBe('81')
    expect(await connackOf('05 02 00 00')).toBe('81')
  })
})

describe('the reserved flags', () => {
  const good = [
    '62 02 00 01',
    packetOf('82', '00 01 00', textOf('t'), '00'),
    packetOf('a2', '00 01 00', textOf('t')),
    '40 02 00 01',
    '50 02 00 01',
    '70 02 00 01',
    'c0 00',
    'e0 00',
    'f0 00',
  ]

  it.each(good)('each wrong one of %s is malformed: 0x81 and the end [MQTT-2.1.3-1] [MQTT-4.13.1-1]', async (packet) => {
    for (let flags = 0; flags < 16; flags++) {
      const first = `${packet[0]}${flags.toString(16)}`
      if (first !== packet.slice(0, 2)) expect([first, await refusal(`${first}${packet.slice(2)}`)]).toEqual([first, '81'])
    }
  })

  it('each wrong one of CONNECT ends the connection, with CONNACK 0x81 at the most [MQTT-2.1.3-1]', async () => {
    for (let flags = 1; flags < 16; flags++) {
      const { dial, broker } = world()
      const client = dial()
      const answers = await say(client, packetOf(`1${flags.toString(16)}`, textOf('MQTT'), '05 02 00 00 00', textOf('a')))
      expect([answers.filter((answer) => answer !== '20 03 00 81 00'), client.ended !== undefined, broker.sessions.size]).toEqual([[], true, 0])
    }
  })

  it('those of the broker are as they have to be, in every packet that it has [MQTT-2.1.3-1]', async () => {
    const all = world({ auth: { m: { start: () => ({ reasonCode: 0x18 }), continue: () => ({}) } } })
    const client = all.dial()
    const firsts = new Set<string>()
    const note = (packets: string[]) => {
      for (const packet of packets) firsts.add(packet.slice(0, 2))
    }
    note(await say(client, packetOf('10', textOf('MQTT'), '05 02 00 00', propertiesOf('15', textOf('m')), textOf('a'))))
    note(await say(client, packetOf('f0', '18', propertiesOf('15', textOf('m')))))
    note(await say(client, packetOf('82', '00 01 00', textOf('t'), '02'), packetOf('a2', '00 02 00', textOf('u')), 'c0 00'))
    for (const qos of [0, 1, 2] as const) all.broker.publish({ topic: 't', qos })
    await client.send()
    note(heard(client))
    note(await say(client, '50 02 00 02', packetOf('32', textOf('u'), '00 03 00'), packetOf('34', textOf('u'), '00 04 00'), '62 02 00 04', 'c1 00'))
    expect([...firsts].sort()).toEqual(['20', '30', '32', '34', '40', '50', '62', '70', '90', 'b0', 'd0', 'e0', 'f0'])
  })
})

describe('handling errors', () => {
  it.each([
    ['a malformed packet', 'c1 00', '81'],
    ['a protocol error', packetOf('82', '00 01 00', textOf('$share/g/t'), '04'), '82'],
    ['a packet of the other side', '20 03 00 00 00', '82'],
    ['type 0', '00 00', '81'],
    ['a packet that is too large', '30 ff ff ff 7f', '95'],
    ['an alias that is not allowed', packetOf('30', textOf('t'), propertiesOf('23 00 63')), '94'],
  ])('%s ends that connection, and no other [MQTT-4.13.1-1] [MQTT-4.13.2-1]', async (_what, packet, code) => {
    const { client, join, broker } = await joined()
    const other = await join('b')
    await other.subscribe('t')
    heard(other)
    // What came before is handled, what comes behind is not.
    const publish = (payload: string) => packetOf('30', textOf('t'), '00', payload)
    const answers = await say(client, publish('31'), packet, publish('32'), 'c0 00')
    expect(answers).toEqual([expect.stringMatching(new RegExp(`^e0 .. ${code}`))])
    expect(client.ended).toBeDefined()
    expect(await say(other, 'c0 00')).toEqual(['30 05 00 01 74 00 31', 'd0 00'])
    expect([...broker.clients.keys()]).toEqual(['b'])
  })

  it('the end comes also where the packet with the code cannot be sent [MQTT-4.13.2-1]', async () => {
    const tiny = world().dial()
    await tiny.send({ type: 'connect', clientId: 'a', properties: { maximumPacketSize: 4 } })
    expect([heard(tiny), tiny.ended !== undefined]).toEqual([[], true])
    // A hook swallows CONNACK and DISCONNECT.
    const { dial, clock } = world({
      authenticate: ({ clientId }) => clientId !== 'refused',
      intercept: (direction, packet) => (direction === 'out' && (packet.type === 'connack' || packet.type === 'disconnect') ? false : undefined),
    })
    for (const clientId of ['refused', 'accepted']) {
      const client = dial()
      await client.send({ type: 'connect', clientId, ...durable })
      if (clientId === 'accepted') await client.sendBytes([0xc1, 0])
      await clock.settle()
      expect([clientId, heard(client), client.ended !== undefined]).toEqual([clientId, [], true])
    }
  })
})
