/** All retained messages of the broker in memory arrive, however many, at readers that read slowly or come back in the middle. */
import { describe, expect, it } from 'vitest'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import { encode, type PacketInput, type ServerPacket } from '../../src/wire/index.js'
import { type RawClient, text, type World, world } from './raw-client.js'
import { scenes } from './scenes.js'

const topics = (client: RawClient): string[] => client.publishes.map(({ topic }) => topic)

/** A broker with so many retained messages, on topics `r/0`, `r/1` and so on. */
function stocked(count: number, size: number, options: MemoryBrokerOptions = {}): World {
  const made = world(options)
  for (let i = 0; i < count; i++)
    made.broker.publish({
      topic: `r/${i}`,
      payload: new Uint8Array(size).fill(i),
      retain: true,
      qos: 2,
    })
  return made
}

const wanted = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `r/${index}`)

const answered = new WeakMap<RawClient, number>()

function answerTo(packet: ServerPacket): PacketInput | undefined {
  if (packet.type === 'pubrel') return { type: 'pubcomp', packetId: packet.packetId }
  if (packet.type !== 'publish' || packet.packetId === undefined) return undefined
  return { type: packet.qos === 1 ? 'puback' : 'pubrec', packetId: packet.packetId }
}

/** Answers what came and comes until nothing comes any more, at most `batch` packets at a time; gives the most publishes that were open. */
async function readAll(client: RawClient, batch = Infinity): Promise<number> {
  let most = 0
  for (let from = answered.get(client) ?? 0; from < client.received.length; ) {
    const open = client.received.slice(from)
    most = Math.max(
      most,
      open.filter((packet) => packet.type === 'publish' && packet.qos > 0).length,
    )
    const now = open.slice(0, batch)
    from += now.length
    answered.set(client, from)
    await client.send(...now.flatMap((packet) => answerTo(packet) ?? []))
  }
  return most
}

describe('retained messages arrive whole [MQTT-3.3.1-9]', () => {
  scenes(
    {
      'for each filter of each SUBSCRIBE, with its own QoS and identifier':
        '> PX2:r/1=x; a> S7:1:r/#:1 S8:2:+/1:2,r/#:2; a< SA:1:1 PX@7/1:1:r/1=x SA:2:2,2 PX@8/2:2:r/1=x PX@8/2:3:r/1=x',
      'but those of a filter that was unsubscribed do not [MQTT-3.10.4-2]':
        '> PX1:a=x PX1:b=x; a> C:a%1 S:1:#:1 U:2:#; a< K:0 SA:1:1 PX1:1:a=x UA:2:0; a> PA:1; a_',
      'also what the session has not got yet when it is resumed in the middle':
        '> PX1:a=x PX1:b=x PX1:c=x PX1:d=x; a> C:a~%2 S:1:#:1; a< K:0 SA:1:1 PX1:1:a=x PX1:2:b=x; a> PA:1; a< PX1:3:c=x; a!; ' +
        'a> C:a~%2; a< K:1 PX1+:2:b=x PX1+:3:c=x; a> PA:2 PA:3; a< PX1:4:d=x',
    },
    [5],
  )
  scenes(
    {
      'though each is larger than a session may hold':
        '> PX1:a=xxxxx PX1:b=xxxxx; a> S:1:#:1; a< SA:1:1 PX1:1:a=xxxxx; a> PA:1; a< PX1:2:b=xxxxx',
    },
    [5],
    { maxQueuedBytes: 3, maxQueuedMessages: 0 },
  )

  it('60 of 500 kB at QoS 1, with no more of them open than a session may hold', async () => {
    const { join, broker } = stocked(60, 500_000)
    const client = await join('a')
    client.keepsBytes = false
    await client.subscribe({ filter: 'r/#', qos: 1 })
    expect(await readAll(client, 5)).toBeLessThanOrEqual(33)
    expect(topics(client)).toEqual(wanted(60))
    expect(broker.sessions.get('a')?.dropped).toBe(0)
  })

  it('to slow readers, of whom the broker holds nothing', async () => {
    const { dial, broker, clock } = stocked(500, 5000, { maxBacklog: 200_000 })
    const backward = { highWaterMark: 10_000, latency: 50 }
    const slow = [dial(5, { backward }), dial(4, { backward: { ...backward, split: 999 } })]
    for (const [index, client] of slow.entries()) {
      client.keepsBytes = false
      client.transport.write(
        encode({ type: 'connect', clientId: `slow ${index}`, protocolVersion: client.version }),
      )
      await clock.advance(200)
      await client.subscribe({ filter: 'r/#', qos: index })
      await clock.advance(100)
      expect(broker.sessions.get(`slow ${index}`)?.queued).toBe(0)
    }
    for (let i = 0; i < 1000; i++) {
      await clock.advance(100)
      for (const client of slow) await readAll(client)
    }
    for (const client of slow) expect(topics(client)).toEqual(wanted(500))
    for (const session of broker.sessions.values())
      expect(session).toMatchObject({ dropped: 0, queued: 0 })
  })
})

describe('retained messages that change on their way', () => {
  it('are replaced by the new ones, and those that were cleared or expired do not come', async () => {
    const { join, broker, clock } = stocked(60, 10)
    broker.publish({
      topic: 'r/brief',
      payload: 'x',
      retain: true,
      properties: { messageExpiryInterval: 5 },
    })
    const client = await join('a', { properties: { receiveMaximum: 10 } })
    await client.subscribe({ filter: 'r/#', qos: 1 })
    for (let i = 20; i < 30; i++)
      broker.publish({ topic: `r/${i}`, payload: 'new', retain: true, qos: 1 })
    for (let i = 40; i < 50; i++) broker.publish({ topic: `r/${i}`, payload: '', retain: true })
    broker.publish({ topic: 'r/added', payload: 'new', retain: true, qos: 1 })
    await clock.advance(6000)
    await readAll(client)
    const values = (topic: string) =>
      client.publishes
        .filter((packet) => packet.topic === topic)
        .map(
          ({ retain, payload }) =>
            `${retain ? 'kept' : 'live'} ${payload.length === 10 ? 'old' : text(payload)}`,
        )
    for (let i = 0; i < 60; i++) {
      const expected =
        i >= 20 && i < 30 ? ['live new'] : i >= 40 && i < 50 ? ['live '] : ['kept old']
      expect([i, values(`r/${i}`)]).toEqual([i, expected])
    }
    expect([values('r/added'), values('r/brief')]).toEqual([['live new'], []])
  })

  it('do not hold up other messages, and come before later ones of their topic [MQTT-4.6.0-5]', async () => {
    const { join, broker } = stocked(30, 10)
    const client = await join('a', { properties: { receiveMaximum: 1 } })
    await client.subscribe({ filter: '#', qos: 1 })
    for (const topic of ['r/25', 'other', 'r/27', 'r/25'])
      broker.publish({ topic, payload: 'live', qos: 1 })
    await readAll(client)
    const of = (topic: string) =>
      client.publishes
        .filter((packet) => packet.topic === topic)
        .map(({ retain }) => (retain ? 'kept' : 'live'))
    expect(of('r/25')).toEqual(['kept', 'live', 'live'])
    expect([of('r/27'), of('other')]).toEqual([['kept', 'live'], ['live']])
    expect(topics(client).indexOf('other')).toBeLessThan(12)
    expect(new Set(topics(client))).toEqual(new Set([...wanted(30), 'other']))
    expect(topics(client)).toHaveLength(34)
  })

  it('a client that subscribes again and again without reading makes the broker hold nothing', async () => {
    const { join, broker } = stocked(20, 1000, { maxSubscriptions: 3 })
    const client = await join('a', { properties: { receiveMaximum: 1 } })
    for (let i = 1; i <= 30; i++)
      await client.subscribe({ filter: i % 2 === 0 ? 'r/#' : '#', qos: 1 }, i)
    await readAll(client)
    expect(client.publishes.length).toBeGreaterThanOrEqual(60)
    expect(client.publishes.length).toBeLessThanOrEqual(80)
    expect(new Set(topics(client).slice(-20))).toEqual(new Set(wanted(20)))
    expect(broker.sessions.get('a')).toMatchObject({ dropped: 0 })
  })

  it('what a hook thinks about may be replaced meanwhile', async () => {
    const waiting: (() => void)[] = []
    const { join, broker, clock } = world({
      authorizeDelivery: () => new Promise<boolean>((resolve) => waiting.push(() => resolve(true))),
    })
    for (const topic of ['1', '2']) broker.publish({ topic, payload: 'old', retain: true })
    const client = await join('a')
    await client.subscribe('#')
    broker.publish({ topic: '1', payload: 'new', retain: true })
    for (let i = 0; i < 5; i++) {
      waiting.shift()?.()
      await clock.settle()
    }
    expect(client.takeMessages().sort()).toEqual(['1 new', '2 old'])
  })
})
