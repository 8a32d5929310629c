/**
 * Proofs of the server role, section 4.8.2: shared subscriptions of the broker in memory.
 */
import { describe, expect, it } from 'vitest'
import { durable, type RawClient, type World, world } from '../raw-client.js'
import { heard, packetOf, say, textOf } from './wire.js'

const subscribe = (filter: string, options = '02'): string => packetOf('82', '00 01 00', textOf(filter), options)

/** Two members of one group on `t`; the first is the next in turn. */
async function members(first = '02', second = '02', seconds = 3600): Promise<World & { one: RawClient; two: RawClient }> {
  const all = world()
  const join = (clientId: string) => all.join(clientId, { cleanStart: false, properties: { sessionExpiryInterval: seconds } })
  const [one, two] = [await join('one'), await join('two')]
  await say(one, subscribe('$share/g/t', first))
  await say(two, subscribe('$share/g/t', second))
  return { ...all, one, two }
}

describe('the filter', () => {
  it.each(['$share//a', '$share/', '$share', '$share/g', '$share/g/', '$share/+/a', '$share/#/a', '$share/g#/a', '$share/g+/a', '$share/+g/a'])(
    '%s is refused: a share has a name without wildcards, and a filter [MQTT-4.8.2-1] [MQTT-4.8.2-2]',
    async (filter) => {
      for (const packet of [subscribe(filter), packetOf('a2', '00 01 00', textOf(filter))]) {
        const { broker, join } = world()
        const client = await join('a', durable)
        heard(client)
        const [answer] = await say(client, packet)
        // A plain `$share` is the filter of a topic of that name.
        if (filter === '$share') expect(answer).toMatch(/^(?:90 04 00 01 00 02|b0 04 00 01 00 11)$/)
        else {
          expect(answer).toMatch(/^e0 .. 8[12f]/)
          expect([client.ended !== undefined, broker.sessions.get('a')?.subscriptions]).toEqual([true, []])
        }
      }
    },
  )

  it.each([
    ['$share/g/a', 'a'],
    ['$share/g/+', 'a'],
    ['$share/g/#', 'a/b'],
    ['$share/g//a', '/a'],
    ['$share/g/$x/#', '$x/y'],
    ['$share/a b/é', 'é'],
    ['$share/$share/$share/a', '$share/a'],
  ])('%s is a share, and gets %s [MQTT-4.8.2-1] [MQTT-4.8.2-2]', async (filter, topic) => {
    const client = await world().join('a')
    heard(client)
    expect(await say(client, subscribe(filter, '00'))).toEqual(['90 04 00 01 00 00'])
    const publish = packetOf('30', textOf(topic), '00')
    expect(await say(client, publish, packetOf('30', textOf(`${topic}no`), '00'))).toEqual(
      filter.endsWith('+') || filter.endsWith('#') ? [publish, expect.any(String)] : [publish],
    )
  })

  it('the whole of it is what UNSUBSCRIBE names: group and filter [MQTT-3.10.4-1] [MQTT-4.8.2-1]', async () => {
    const { one, two, broker } = await members('00', '00')
    expect(await say(one, packetOf('a2', '00 02 00', textOf('t'), textOf('$share/h/t'), textOf('$share/g/t')))).toEqual(['b0 06 00 02 00 11 11 00'])
    for (let i = 0; i < 2; i++) broker.publish({ topic: 't' })
    await one.send()
    expect([heard(one), heard(two).filter((packet) => packet.startsWith('30')).length]).toEqual([[], 2])
  })
})

describe('deliveries', () => {
  it('each member gets no more than its own granted QoS [MQTT-4.8.2-3]', async () => {
    for (const [first, second] of [
      ['00', '02'],
      ['01', '00'],
      ['02', '01'],
    ] as const) {
      const { one, two, broker } = await members(first, second)
      heard(one)
      heard(two)
      for (const qos of [2, 2, 1, 1, 0, 0] as const) broker.publish({ topic: 't', qos })
      await one.send()
      const qosOf = (packets: string[]) => packets.map((packet) => (Number.parseInt(packet.slice(0, 2), 16) >> 1) & 3)
      expect([qosOf(heard(one)), qosOf(heard(two))]).toEqual([first, second].map((granted) => [2, 1, 0].map((qos) => Math.min(qos, Number(granted)))))
    }
  })

  it('QoS 2 that was begun is finished with the member on its return, by PUBLISH or by PUBREL, and with nobody else [MQTT-4.8.2-4]', async () => {
    for (const received of [false, true]) {
      const { one, two, broker, join, clock } = await members()
      heard(two)
      broker.publish({ topic: 't', payload: 'x', qos: 2 })
      await one.send()
      if (received) await say(one, '50 02 00 01')
      await one.cut()
      await clock.advance(3_599_000)
      expect(heard(two)).toEqual([])
      const again = await join('one', durable)
      expect(heard(again).slice(1)).toEqual([received ? '62 02 00 01' : '3c 07 00 01 74 00 01 00 78'])
      await say(again, ...(received ? [] : ['50 02 00 01']), '70 02 00 01')
      expect([heard(two), broker.sessions.get('one')?.inflight]).toEqual([[], 0])
    }
  })

  it('nobody else gets it when that member’s session ends before, by time or by Clean Start [MQTT-4.8.2-5]', async () => {
    for (const [cleanly, received] of [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ]) {
      const { one, two, broker, join, clock } = await members()
      heard(two)
      broker.publish({ topic: 't', payload: 'x', qos: 2 })
      await one.send()
      if (received) await say(one, '50 02 00 01')
      await one.cut()
      if (cleanly) await join('one', { cleanStart: true })
      else await clock.advance(3_600_000)
      broker.publish({ topic: 't', payload: 'y', qos: 0 })
      await two.send()
      expect(heard(two)).toEqual(['30 05 00 01 74 00 79'])
    }
  })

  it.each([
    ['PUBACK', 1, '40'],
    ['PUBREC', 2, '50'],
  ] as const)('a %s of 0x80 or more is the end of the message: no other member gets it [MQTT-4.8.2-6]', async (_what, qos, first) => {
    for (const code of ['80', '87', '97']) {
      const { one, two, broker, join } = await members()
      heard(two)
      broker.publish({ topic: 't', qos })
      await one.send()
      await say(one, `${first} 03 00 01 ${code}`)
      await one.send({ type: 'disconnect', properties: { sessionExpiryInterval: 0 } })
      await two.send()
      expect([heard(two), heard(await join('one', durable)).length]).toEqual([[], 1])
    }
  })
})
