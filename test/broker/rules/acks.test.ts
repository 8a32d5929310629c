/**
 * Proofs of the server role, sections 3.4 to 3.7: PUBACK, PUBREC, PUBREL and PUBCOMP of the broker in memory, and those it is sent.
 */
import { describe, expect, it } from 'vitest'
import type { Properties, ServerPacket } from '../../../src/wire/index.js'
import { type RawClient, world } from '../raw-client.js'
import { endOf, heard, hexOfCode, packetOf, say, someCodes, textOf } from './wire.js'

const publish = (first: string, packetId: string): string => packetOf(first, textOf('t'), packetId, '00')

/** A client with a QoS 2 message of the broker under identifier 1 that it has, or has not, received. */
async function inQoS2(received: boolean): Promise<[RawClient, ReturnType<typeof world>]> {
  const all = world()
  const client = await all.join('a')
  await client.subscribe('t')
  all.broker.publish({ topic: 't', qos: 2 })
  await client.send()
  if (received) await client.send({ type: 'pubrec', packetId: 1 })
  heard(client)
  return [client, all]
}

describe('packet identifiers', () => {
  it('every acknowledgement repeats that of its PUBLISH, both ways [MQTT-2.2.1-5]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe({ filter: 'down', qos: 2 })
    heard(client)
    expect(await say(client, publish('32', '12 34'), publish('34', 'ab cd'), publish('32', 'ff ff'))).toEqual([
      '40 03 12 34 10',
      '50 03 ab cd 10',
      '40 03 ff ff 10',
    ])
    expect(await say(client, '62 02 ab cd')).toEqual(['70 02 ab cd'])
    for (let i = 0; i < 3; i++) broker.publish({ topic: 'down', qos: 2 })
    await client.send()
    heard(client)
    expect(await say(client, '50 02 00 01', '50 02 00 02', '50 02 00 03')).toEqual(['62 02 00 01', '62 02 00 02', '62 02 00 03'])
    await say(client, '70 02 00 02')
    expect(broker.sessions.get('a')?.inflight).toBe(2)
  })

  it('one that is foreign, or 0, changes nothing [MQTT-2.2.1-5] [MQTT-4.3.2-3]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe('t')
    broker.publish({ topic: 't', qos: 1 })
    await client.send()
    heard(client)
    expect(await say(client, '40 02 00 02', '50 02 00 01')).toEqual(['62 03 00 01 92'])
    expect(broker.sessions.get('a')?.inflight).toBe(1)
    await say(client, '40 02 00 00')
    expect([broker.violations.at(-1)?.reasonCode, client.ended !== undefined]).toEqual([0x82, true])
  })
})

describe('reason codes that the broker says', () => {
  const publishCodes = '00 10 80 83 87 90 91 97 99'.split(' ')

  it('whatever a hook decides, PUBACK and PUBREC have one of their own [MQTT-3.4.2-1] [MQTT-3.5.2-1]', async () => {
    let verdict = 0
    const { join, broker } = world({ authorizePublish: () => verdict })
    const client = await join('a')
    heard(client)
    for (verdict of someCodes) {
      const wanted = verdict < 0x80 ? '10' : publishCodes.includes(hexOfCode(verdict)) ? hexOfCode(verdict) : '80'
      expect([verdict, await say(client, publish('32', '00 01'))]).toEqual([verdict, [`40 03 00 01 ${wanted}`]])
      expect(await say(client, publish('34', '00 02'))).toEqual([`50 03 00 02 ${wanted}`])
      if (verdict < 0x80) await say(client, '62 02 00 02')
    }
    expect([broker.accepted.length, broker.violations]).toEqual([22, []])
  })

  it('0x00 where somebody has subscribed, 0x10 where nobody has, 0x91 for an identifier in use, 0x97 without room, 0x90 for a topic of too many levels [MQTT-3.4.2-1] [MQTT-3.5.2-1]', async () => {
    const { join } = world({ maxRetained: 0, maxTopicLevels: 2 })
    const [client, other] = [await join('a'), await join('b')]
    heard(client)
    expect(await say(client, publish('32', '00 01'), publish('34', '00 02'))).toEqual(['40 03 00 01 10', '50 03 00 02 10'])
    expect(await say(client, publish('32', '00 02'), packetOf('34', textOf('other'), '00 02 00'))).toEqual(['40 03 00 02 91', '50 03 00 02 91'])
    expect(await say(client, packetOf('33', textOf('t'), '00 03 00 78'), packetOf('35', textOf('t'), '00 04 00 78'))).toEqual([
      '40 03 00 03 97',
      '50 03 00 04 97',
    ])
    expect(await say(client, packetOf('32', textOf('a/b/c'), '00 05 00'), packetOf('34', textOf('a/b/c'), '00 06 00'))).toEqual([
      '40 03 00 05 90',
      '50 03 00 06 90',
    ])
    await other.subscribe({ filter: 't', qos: 0 })
    expect(await say(client, publish('32', '00 07'), publish('34', '00 08'))).toEqual(['40 02 00 07', '50 02 00 08'])
  })

  it('PUBREL and PUBCOMP: 0x92 for an identifier that is not known, else 0x00 [MQTT-3.6.2-1] [MQTT-3.7.2-1]', async () => {
    const [client] = await inQoS2(false)
    expect(await say(client, '50 02 00 01', '50 02 00 01', '50 02 00 09')).toEqual(['62 02 00 01', '62 02 00 01', '62 03 00 09 92'])
    await say(client, publish('34', '00 05'))
    heard(client)
    expect(await say(client, '62 02 00 05', '62 02 00 05', '62 03 00 06 92')).toEqual(['70 02 00 05', '70 03 00 05 92', '70 03 00 06 92'])
  })
})

describe('reason codes that the broker is told', () => {
  const tables: [string, string, string[], boolean][] = [
    ['PUBACK', '40', ['00', '80', '83', '87', '90', '91', '97', '99'], false],
    ['PUBREC', '50', ['00', '80', '83', '87', '90', '91', '97', '99'], false],
    ['PUBREL', '62', ['00', '92'], false],
    ['PUBCOMP', '70', ['00', '92'], true],
  ]

  it.each(tables)(
    '%s has its table, and any other code ends the connection [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1]',
    async (_what, first, allowed, received) => {
      // 0x10 is the server's.
      for (const code of someCodes.filter((each) => each !== 0x10)) {
        const [client, { broker }] = await inQoS2(received)
        await say(client, `${first} 03 00 01 ${hexOfCode(code)}`)
        const closed = client.ended !== undefined
        expect([hexOfCode(code), closed]).toEqual([hexOfCode(code), !allowed.includes(hexOfCode(code))])
        if (closed) expect([0x81, 0x82]).toContain(broker.violations.at(-1)?.reasonCode)
      }
    },
  )

  it.each(['60', '61', '63', '64', '66', '6a', '6f'])(
    'PUBREL that begins with %s is malformed, and releases nothing [MQTT-3.6.1-1]',
    async (first) => {
      const { join, broker } = world()
      const client = await join('a', { properties: { sessionExpiryInterval: 60 } })
      await say(client, publish('34', '00 05'))
      const answers = await say(client, `${first} 02 00 05`)
      expect([answers.length, answers[0]?.slice(0, 2), answers[0]?.slice(6, 8), client.ended !== undefined]).toEqual([1, 'e0', '81', true])
      expect(broker.sessions.get('a')?.unreleased).toEqual([5])
    },
  )

  it('the broker’s own PUBREL begins with 62, also when it is sent again [MQTT-3.6.1-1]', async () => {
    const { join, broker } = world()
    const client = await join('a', { properties: { sessionExpiryInterval: 60 } })
    await client.subscribe('t')
    broker.publish({ topic: 't', qos: 2 })
    await client.send()
    heard(client)
    expect(await say(client, '50 02 00 01')).toEqual(['62 02 00 01'])
    await client.cut()
    expect(heard(await join('a', { cleanStart: false }))[1]).toBe('62 02 00 01')
  })
})

describe('what explains is left out where it does not fit', () => {
  const reason: Properties = { reasonString: 'why it is so' }
  const user: Properties = { userProperties: [['name', 'value']] }
  const kinds: readonly string[] = ['puback', 'pubrec', 'pubrel', 'pubcomp']

  /** A client of which the four acknowledgements are provoked; what they say comes from a hook. */
  async function provoke(properties: Properties, maximumPacketSize?: number): Promise<string[]> {
    const { join, broker } = world({
      intercept: (direction, packet) =>
        direction === 'out' && kinds.includes(packet.type) ? ({ ...packet, properties } as ServerPacket) : undefined,
    })
    const client = await join('a', { properties: maximumPacketSize === undefined ? {} : { maximumPacketSize } })
    await client.subscribe({ filter: 'd', qos: 2 })
    heard(client)
    broker.publish({ topic: 'd', qos: 2 })
    const answers = await say(client, publish('32', '00 01'), publish('34', '00 02'), '62 02 00 02', '50 02 00 01')
    expect(endOf(client).closed).toBe(false)
    return answers.filter((packet) => !packet.startsWith('34'))
  }

  it.each([reason, user, { ...reason, ...user }])(
    '%j of PUBACK, PUBREC, PUBCOMP and PUBREL, to a client that takes 15 bytes [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3] [MQTT-3.6.2-2] [MQTT-3.6.2-3] [MQTT-3.7.2-2] [MQTT-3.7.2-3]',
    async (properties) => {
      expect(await provoke(properties, 15)).toEqual(['40 03 00 01 10', '50 03 00 02 10', '70 02 00 02', '62 02 00 01'])
      // To one without a limit all is said.
      const id = 'reasonString' in properties ? '1f' : '26'
      const whole = await provoke(properties)
      expect(whole.map((packet) => packet.slice(0, 2))).toEqual(['40', '50', '70', '62'])
      expect(whole.every((packet) => packet.split(' ')[6] === id)).toBe(true)
    },
  )
})
