/**
 * Proofs of the server role, section 3.2: what CONNACK says, when it comes, and what it is not.
 */
import { describe, expect, it } from 'vitest'
import type { BrokerAuthMethod, MemoryBrokerOptions } from '../../../src/testing/index.js'
import type { Properties } from '../../../src/wire/index.js'
import { type ConnectSettings, durable, type RawClient, world } from '../raw-client.js'
import { endOf, heard, heardWhole, hexOfCode, packetOf, say, someCodes, textOf } from './wire.js'

/** First byte, flags and reason code of a CONNACK. */
function headOf(packet: string | undefined): string {
  const [first, , flags, code] = packet?.split(' ') ?? []
  return `${first} ${flags} ${code}`
}

/** Connects; gives all packets that came, as hex. */
async function connected(client: RawClient, settings: ConnectSettings = {}, hear = heard): Promise<string[]> {
  await client.send({ type: 'connect', clientId: 'a', ...settings })
  return hear(client)
}

/** Asks for the data `two` and `three`, step by step. */
const steps: BrokerAuthMethod = {
  start: () => ({ reasonCode: 0x18 }),
  continue(data) {
    if (data?.[0] === 0) throw new Error('wrong')
    return { reasonCode: data?.[0] === 2 ? 0x18 : 0 }
  },
}

const more = (step: number): string => packetOf('f0', '18 08 15', textOf('m'), '16 00 01', step.toString(16).padStart(2, '0'))

describe('the place of CONNACK', () => {
  it('it is first, also where messages and PUBREL wait in the session [MQTT-3.2.0-1]', async () => {
    const { join, dial, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    broker.publish({ topic: 't', payload: '1', qos: 2 })
    await client.send({ type: 'pubrec', packetId: 1 })
    await client.cut()
    broker.publish({ topic: 't', payload: '2', qos: 1 })
    const packets = await connected(dial(), durable)
    expect(packets.map((packet) => packet.slice(0, 2))).toEqual(['20', '62', '32'])
  })

  it('nothing but AUTH comes before it, though the client asked for more [MQTT-3.2.0-1]', async () => {
    const decide: ((verdict: boolean) => void)[] = []
    const { dial, clock, broker } = world({ authenticate: () => new Promise<boolean>((resolve) => decide.push(resolve)), auth: { m: steps } })
    const [plain, enhanced] = [dial(), dial()]
    await plain.send({ type: 'connect', clientId: 'plain' })
    expect(await say(plain, 'c0 00', packetOf('32', textOf('t'), '00 01 00'), packetOf('82', '00 02 00', textOf('#'), '00'))).toEqual([])
    await enhanced.send({ type: 'connect', clientId: 'enhanced', properties: { authenticationMethod: 'm' } })
    broker.publish({ topic: 't' })
    for (const allow of decide) allow(true)
    await clock.settle()
    expect(heard(plain).map((packet) => packet.slice(0, 2))).toEqual(['20', 'd0', '40', '90'])
    expect(heard(enhanced).map((packet) => packet.slice(0, 2))).toEqual(['f0'])
    expect((await say(enhanced, more(2))).map((packet) => packet.slice(0, 2))).toEqual(['f0'])
    expect((await say(enhanced, more(3))).map((packet) => packet.slice(0, 2))).toEqual(['20'])
  })

  it('there is one, however long the connection lasts and whatever is authenticated again [MQTT-3.2.0-2]', async () => {
    const { dial, clock } = world({ auth: { m: steps } })
    const client = dial()
    await connected(client, { properties: { authenticationMethod: 'm' } })
    const seen = [...(await say(client, more(3)))]
    for (let round = 0; round < 3; round++) {
      seen.push(
        ...(await say(client, packetOf('f0', '19 04 15', textOf('m')), 'c0 00')),
        ...(await say(client, more(2))),
        ...(await say(client, more(3))),
      )
      await clock.advance(1_000_000)
    }
    seen.push(...(await say(client, packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a')))))
    expect(seen.filter((packet) => packet.startsWith('20'))).toHaveLength(1)
    expect(seen.filter((packet) => packet.startsWith('f0 ')).map((packet) => packet.split(' ')[2])).toEqual([
      '18',
      '18',
      '00',
      '18',
      '18',
      '00',
      '18',
      '18',
      '00',
    ])
  })
})

describe('Session Present', () => {
  it('only bit 0 of its byte is ever set [MQTT-3.2.2-1]', async () => {
    const { dial } = world({ authenticate: ({ username }) => username === undefined })
    const flags = new Set<string | undefined>()
    for (const settings of [durable, durable, { ...durable, username: 'u' }, { cleanStart: true }, { will: { topic: '' } }]) {
      const client = dial()
      flags.add(
        ('will' in settings
          ? await say(client, packetOf('10', textOf('MQTT'), '05 01 00 00 00', textOf('a')))
          : await connected(client, settings))[0]?.split(' ')[2],
      )
    }
    expect([...flags]).toEqual(['00', '01'])
  })

  it('Clean Start 1 is answered by 0x00 and Session Present 0, whatever was stored [MQTT-3.2.2-2]', async () => {
    const { join, dial } = world()
    await (await join('a', durable)).subscribe('t')
    expect((await connected(dial(), { cleanStart: true })).map(headOf)).toEqual(['20 00 00'])
  })

  it('Clean Start 0 tells whether there was a session [MQTT-3.2.2-3] [MQTT-3.1.2-6]', async () => {
    const { dial, clock } = world()
    const client = dial()
    expect((await connected(client, durable)).map(headOf)).toEqual(['20 00 00'])
    await client.cut()
    const again = dial()
    expect((await connected(again, durable)).map(headOf)).toEqual(['20 01 00'])
    await again.cut()
    await clock.advance(3_600_000)
    const late = dial()
    expect((await connected(late, durable)).map(headOf)).toEqual(['20 00 00'])
    // The new session works.
    expect((await late.subscribe('t')).map(({ type }) => type)).toEqual(['suback'])
  })

  it('a refusal says 0 although there is a session, and leaves that alone [MQTT-3.2.2-6]', async () => {
    const { join, dial, broker } = world({ authenticate: ({ username }) => username === undefined })
    await (await join('a', durable)).subscribe('t')
    expect(await connected(dial(), { ...durable, username: 'u' })).toEqual(['20 03 00 87 00'])
    expect(broker.sessions.get('a')).toMatchObject({ connected: true, subscriptions: [{ filter: 't' }] })
    expect((await connected(dial(), durable)).map(headOf)).toEqual(['20 01 00'])
  })
})

describe('reason codes', () => {
  const allowed = '00 80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f'.split(' ')

  it('whatever a hook decides, the code is one of CONNACK’s own, and 0x80 or more is followed by the end [MQTT-3.2.2-8] [MQTT-3.2.2-7] [MQTT-4.13.2-1]', async () => {
    let verdict = 0
    const { dial } = world({ authenticate: () => verdict })
    for (verdict of someCodes) {
      const client = dial()
      const [connack, ...others] = await connected(client)
      const code = connack?.split(' ')[3] ?? 'none'
      expect(allowed).toContain(code)
      expect([others, client.ended !== undefined]).toEqual([[], code !== '00'])
      const wanted = hexOfCode(verdict)
      expect(code).toBe(verdict < 0x80 ? '00' : allowed.includes(wanted) ? wanted : '80')
    }
  })

  it('nor does an authentication method make it say another [MQTT-3.2.2-8]', async () => {
    let reasonCode = 0
    const { dial } = world({
      auth: {
        m: {
          start: () => ({ reasonCode }),
          continue: () => ({}),
        },
      },
    })
    for (reasonCode of someCodes.filter((each) => each >= 0x80)) {
      const client = dial()
      expect(allowed).toContain((await connected(client, { properties: { authenticationMethod: 'm' } }))[0]?.split(' ')[3])
      expect(client.ended).toBeDefined()
    }
  })
})

describe('what the server cannot do', () => {
  it.each([
    [0, '24 00'],
    [1, '24 01'],
    [2, undefined],
  ] as const)('Maximum QoS %i is announced, and 2 is not [MQTT-3.2.2-9]', async (maximumQoS, property) => {
    const [connack] = await connected(world({ maximumQoS, topicAliasMaximum: 0 }).dial())
    expect(connack).toBe(property === undefined ? '20 08 00 00 05 27 00 10 00 00' : `20 0a 00 00 07 ${property} 27 00 10 00 00`)
  })

  it('SUBSCRIBE may ask for any QoS all the same [MQTT-3.2.2-10]', async () => {
    for (const maximumQoS of [0, 1] as const) {
      const { join } = world({ maximumQoS })
      const client = await join('a')
      heard(client)
      const filters = ['00', '01', '02'].map((qos) => `${textOf(`t/${qos}`)} ${qos}`)
      expect(await say(client, packetOf('82', '00 01 00', ...filters))).toEqual([`90 06 00 01 00 00 ${maximumQoS === 0 ? '00 00' : '01 01'}`])
      expect(client.ended).toBeUndefined()
    }
  })

  const wills: [string, MemoryBrokerOptions, ConnectSettings['will'], string][] = [
    ['QoS 1 above 0', { maximumQoS: 0 }, { topic: 'w', qos: 1 }, '9b'],
    ['QoS 2 above 1', { maximumQoS: 1 }, { topic: 'w', qos: 2 }, '9b'],
    ['RETAIN without retained messages', { retainAvailable: false }, { topic: 'w', retain: true }, '9a'],
  ]

  it.each(wills)('a will with %s is refused, and the connection closed [MQTT-3.2.2-12] [MQTT-3.2.2-13]', async (_what, options, will, code) => {
    const { dial, broker } = world(options)
    const client = dial()
    expect(await connected(client, { will })).toEqual([`20 03 00 ${code} 00`])
    await client.cut()
    expect([client.ended !== undefined, broker.sessions.size, broker.accepted.length]).toEqual([true, 0, 0])
  })

  it('a will within the limit is taken [MQTT-3.2.2-12] [MQTT-3.2.2-13]', async () => {
    const { dial } = world({ maximumQoS: 1, retainAvailable: false })
    expect((await connected(dial(), { will: { topic: 'w', qos: 1 } })).map(headOf)).toEqual(['20 00 00'])
  })
})

describe('properties', () => {
  it('three hundred empty identifiers get as many others, none of them known [MQTT-3.2.2-16]', async () => {
    const { join, dial, broker } = world()
    await join('auto-7', durable)
    await join('auto-200', durable)
    const assigned = new Set<string | undefined>()
    for (let i = 0; i < 300; i++) {
      const connack = await dial().connect({ clientId: '', properties: { sessionExpiryInterval: 3600 } })
      assigned.add(connack.type === 'connack' ? connack.properties.assignedClientIdentifier : undefined)
    }
    expect([assigned.size, assigned.has(undefined), assigned.has('auto-7'), assigned.has('auto-200')]).toEqual([300, false, false, false])
    expect(broker.sessions.size).toBe(302)
  })

  const explained = { reasonCode: 0x87, properties: { reasonString: 'no', userProperties: [['a', 'b']] as [string, string][] } }

  /** The refusal with all that explains it: 3 + 5 + 7 bytes, and 2 of the header. */
  const whole = '20 0f 00 87 0c 1f 00 02 6e 6f 26 00 01 61 00 01 62'

  it.each([
    [17, whole],
    [16, '20 03 00 87 00'],
    [10, '20 03 00 87 00'],
    [5, '20 03 00 87 00'],
  ])(
    'Reason String and User Properties are left out where they do not fit: %i bytes [MQTT-3.2.2-19] [MQTT-3.2.2-20]',
    async (maximumPacketSize, connack) => {
      const client = world({ authenticate: () => explained }).dial()
      expect(await connected(client, { properties: { maximumPacketSize } }, heardWhole)).toEqual([connack])
      expect(client.ended).toBeDefined()
    },
  )

  const long = 'x'.repeat(20)
  const alone: [string, Properties][] = [
    ['Reason String', { reasonString: long }],
    ['User Properties', { userProperties: [['a', long]] }],
  ]

  it.each(alone)('%s alone: left out where it does not fit, said where it does [MQTT-3.2.2-19] [MQTT-3.2.2-20]', async (_what, properties) => {
    const { dial } = world({ authenticate: () => ({ reasonCode: 0x87, properties }) })
    expect(await connected(dial(), { properties: { maximumPacketSize: 20 } }, heardWhole)).toEqual(['20 03 00 87 00'])
    expect((await connected(dial(), {}, heardWhole))[0]?.length).toBeGreaterThan(60)
  })

  it('without Server Keep Alive the client’s own value is in force, with it the server’s [MQTT-3.2.2-22]', async () => {
    for (const [serverKeepAlive, seconds] of [
      [undefined, 2],
      [4, 4],
    ] as const) {
      const { dial, clock } = world({ serverKeepAlive, topicAliasMaximum: 0 })
      const client = dial()
      const [connack] = await connected(client, { keepAlive: 2 })
      expect(connack).toBe(serverKeepAlive === undefined ? '20 08 00 00 05 27 00 10 00 00' : '20 0b 00 00 08 27 00 10 00 00 13 00 04')
      await clock.advance(seconds * 1500 - 1)
      expect(client.ended).toBeUndefined()
      await clock.advance(1)
      expect(endOf(client)).toEqual({ last: expect.stringMatching(/^e0 .. 8d/), closed: true })
    }
  })
})
