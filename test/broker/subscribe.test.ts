/** SUBSCRIBE, UNSUBSCRIBE and shares of the broker in memory (sections 3.8 to 3.11 and 4.8.2); retained messages, however many, at readers that read slowly or come back in the middle. */
import { describe, expect, it } from 'vitest'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import { encode, type PacketInput, type ServerPacket } from '../../src/wire/index.js'
import {
  durable,
  hexOfCode,
  joined,
  packetOf,
  type RawClient,
  text,
  textOf,
  type World,
  world,
} from './raw-client.js'
import { scenes } from './scenes.js'

const subscribe = (packetId: string, ...filters: [filter: string, options: string][]): string =>
  packetOf(
    '82',
    packetId,
    '00',
    ...filters.map(([filter, options]) => `${textOf(filter)} ${options}`),
  )

const refusing = {
  authorizeSubscribe: (_client: unknown, { filter }: { filter: string }) =>
    filter === 'forbidden' ? false : filter === 'odd' ? 0x83 : true,
}

describe('SUBSCRIBE and UNSUBSCRIBE', () => {
  scenes({
    'several filters are answered in order [MQTT-3.8.4-1] [MQTT-3.8.4-6] [MQTT-3.9.3-1] [MQTT-3.8.4-5]':
      'a> C:a S:9:a:0,b:1,c:2; a< K:0 SA:9:0,1,2',
    'identifiers are repeated [MQTT-3.8.4-2] [MQTT-2.2.1-6]':
      'a> S:1:a:0 S:256:b:0 S:65535:c:0 U:65534:d; a< SA:1:0 SA:256:0 SA:65535:0 UA:65534:11',
    'a filter that is subscribed again has the new QoS [MQTT-3.8.4-3]':
      'a> S:1:t:0 S:2:t:1 P1:3:t=x; a< SA:1:0 SA:2:1 P1:1:t=x PA:3; a> U:4:t,t; a< UA:4:0,11',
    'UNSUBSCRIBE ends a subscription [MQTT-3.10.4-1]':
      'a> S:1:t/+:0 U:2:t/a,t/+ P:t/a=x Q; a< SA:1:0 UA:2:11,0 R',
    'each UNSUBSCRIBE has one UNSUBACK, also where nothing was subscribed [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-2.2.1-6]':
      'a> S:1:t:0 U:9:u U:65535:t U:256:t; a< SA:1:0 UA:9:11 UA:65535:0 UA:256:11',
    'several filters are taken away like one each, with codes in their order [MQTT-3.10.4-6] [MQTT-3.11.3-1] [MQTT-3.11.3-2]':
      'a> S:1:a:0,b:0,c:0 U:5:a,u,b,a; a< SA:1:0,0,0 UA:5:0,11,0,11; a> P:a=1 P:b=2 P:c=3; a< P:c=3',
    'what was sent before UNSUBSCRIBE comes, what is sent after does not, and messages at hand come again [MQTT-3.10.4-2]':
      'a> C:a~ S:1:t:1 P1:1:t=x U:2:t P1:3:t=y; a< K:0 SA:1:1 P1:1:t=x PA:1 UA:2:0 PA:3:n; a!; > P1:t=z; a> C:a~; a< K:1 P1+:1:t=x',
    'deliveries that have begun are carried through, on this connection and the next [MQTT-3.10.4-3]':
      'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P1:t=1 P2:t=2 P2:t=3 P2:t=4; a< P1:1:t=1 P2:2:t=2 P2:3:t=3 P2:4:t=4; a> PR:2; a< PL:2; ' +
      'a> U:9:t; a< UA:9:0; a> PR:3; a< PL:3; a> PC:3; a!; a> C:a~; a< K:1 PL:2 P1+:1:t=1 P2+:4:t=4; ' +
      'a> PC:2 PA:1 PR:4 PC:4; a< PL:4; a!; a> C:a~; a< K:1',
    'a message comes at the lower of published and granted QoS [MQTT-3.8.4-8]':
      'a* z:0,o:1,t:2; > P2:z=2 P1:z=1 P:z=0 P2:o=2 P1:o=1 P:o=0 P2:t=2 P1:t=1 P:t=0; ' +
      'a< P:z=2 P:z=1 P:z=0 P1:1:o=2 P1:2:o=1 P:o=0 P2:3:t=2 P1:4:t=1 P:t=0',
    'overlapping filters bring one copy, at the highest QoS [MQTT-3.3.4-2]':
      'a> S:1:t:0,#:1 P1:2:t=x Q; a< SA:1:0,1 P1:1:t=x PA:2 R',
  })

  scenes(
    {
      'No Local: one’s own do not come back, live or retained, by the client identifier; others’ do [MQTT-3.8.3-3]':
        'a* t:0n,back:0; b* t:0n,back:0; a> PX:t=a P:back=b; a< P:back=b; b< P:t=a P:back=b; a> C:a; a.82; a> S:1:t:0n; a< SA:1:0; ' +
        'b> S:2:t:0n; b< SA:2:0 PX:t=a',
      'No Local alone': 'a> S:1:t:0n P:t=x Q; a< SA:1:0 R; b> P:t=y; a< P:t=y',
      'all identifiers of the filters that match come with the one copy [MQTT-3.3.4-3] [MQTT-3.3.4-4]':
        'a> S5:1:t/#:0 S300:2:t/+:2 S:3:t/a:1 S7:4:u:2; a< SA:1:0 SA:2:2 SA:3:1 SA:4:2; > P2:t/a=x; a< P@5,300/2:1:t/a=x',
      'a new SUBSCRIBE replaces the identifier [MQTT-3.8.4-3]':
        'a> S9:1:t:0 S10:2:t:0 P:t=x S:3:t:0 P:t=y; a< SA:1:0 SA:2:0 P@10/:t=x SA:3:0 P:t=y',
      'copies that are sent apart have the identifier of their own subscription [MQTT-3.3.4-5] [MQTT-3.3.4-3]':
        'a> S1:1:$share/g/t:0 S2:2:$share/h/+:0 S3:3:t:0; a< SA:1:0 SA:2:0 SA:3:0; > P:t=x; a< P@3/:t=x P@2/:t=x P@1/:t=x',
      'Retain As Published keeps RETAIN, its absence clears it [MQTT-3.3.1-12] [MQTT-3.3.1-13]':
        'a* a:0r,b:0; > PX:a=x P:a=y PX:b=x P:b=y; a< PX:a=x P:a=y P:b=x P:b=y',
      'none comes for an identifier in use, and nothing is done [MQTT-3.11.3-2]':
        'a> S:1:t:0,u:0 P2:5:v=x S:5:w:0 U:5:t,u; a< SA:1:0,0 PR:5:n SA:5:91 UA:5:91,91; > P:t=x P:w=y; a< P:t=x',
    },
    [5],
  )

  scenes(
    {
      'the answers of a hook stand in the order of the filters [MQTT-3.9.3-1] [MQTT-3.8.4-6]':
        'a> S:9:a:1,forbidden:1,b/#:2,odd:0,c:0 S:2:odd:1; a< SA:9:1,87,2,83,0 SA:2:83',
    },
    [5],
    refusing,
  )
  scenes({ 'by 0x80': 'a> S:9:a:1,forbidden:1,b/#:2,odd:0; a< SA:9:1,80,2,80' }, [4], refusing)
  scenes(
    {
      'a code grants no more than was asked for and is possible, or says that there is no subscription [MQTT-3.8.4-7]':
        'a> S:1:zero:0,one:1,two:2,forbidden:2; a< SA:1:0,1,1,87; > PX2:zero=x PX2:one=x PX2:two=x PX2:forbidden=x; ' +
        'a< P:zero=x P1:1:one=x P1:2:two=x; a> S:2:forbidden:2; a< SA:2:87',
    },
    [5],
    { ...refusing, maximumQoS: 1 },
  )
  scenes({
    'UNSUBSCRIBE takes away the filter that is the same to the character, and no other [MQTT-3.10.4-1]':
      'a> S:1:a/#:0,é:0 U:2:a/+,A/#,a,a/,#,e\u0301,/a/#; a< SA:1:0,0 UA:2:11,11,11,11,11,11,11; > P:a/b=x P:é=x; a< P:a/b=x P:é=x',
  })
  scenes(
    {
      'as many filters as there is room for, with as many levels':
        'a> S:1:a/b/c:0,a:0,b:0; a< SA:1:8f,0,97',
    },
    [5],
    { maxSubscriptions: 1, maxTopicLevels: 2 },
  )

  it('no live message is lost while a subscription is replaced, and what is retained comes each time [MQTT-3.8.4-4]', async () => {
    const { client, join } = await joined()
    const sender = await join('sender')
    await sender.say(packetOf('31', textOf('kept'), '00 78'))
    await client.say(subscribe('00 01', ['+', '21']))
    for (let i = 0; i < 50; i++) {
      sender.transport.write(Uint8Array.from([0x32, 8, 0, 1, 0x74, 1, i, 0, 0, i]))
      const came = await client.say(subscribe('00 01', ['+', '01']))
      expect(
        came.filter((packet) => packet.startsWith('32')).map((packet) => packet.slice(-5)),
      ).toEqual([`00 ${hexOfCode(i)}`])
      expect(came.filter((packet) => packet.startsWith('31'))).toEqual([
        '31 08 00 04 6b 65 70 74 00 78',
      ])
    }
  })
})

describe('what is not available', () => {
  for (const [option, words, code] of [
    ['wildcardSubscriptionAvailable', 'S:1:a/+:0', 'a2'],
    ['sharedSubscriptionAvailable', 'S:1:$share/g/a:0', '9e'],
    ['subscriptionIdentifierAvailable', 'S4:1:a:0', 'a1'],
  ]) {
    const scene = `a> S:1:fine:0; a< SA:1:0; a> ${words}; a.${code}`
    scenes({ [`ends a 5.0 connection: ${option}`]: scene }, [5], { [`${option}`]: false })
  }

  const none = { wildcardSubscriptionAvailable: false, sharedSubscriptionAvailable: false }
  scenes(
    {
      'is refused by filter, as it was not announced':
        'a> S:1:a:0,a/+:0,$share/g/a:0; a< SA:1:0,80,80',
    },
    [4],
    none,
  )
})

describe('shared subscriptions', () => {
  scenes(
    {
      'members take turns, others get theirs too [MQTT-4.8.2-3]':
        'a* $share/g/t/#:1; b* $share/g/t/#:0; d* t/#:0; > P2:t/x=1 P:t/x=2 P:t/x=3 P:t/x=4; ' +
        'a< P1:1:t/x=1 P:t/x=3; b< P:t/x=2 P:t/x=4; d< P:t/x=1 P:t/x=2 P:t/x=3 P:t/x=4',
      'each member gets no more than its own granted QoS [MQTT-4.8.2-3]':
        'a* $share/g/t:0; b* $share/g/t:2; > P2:t=1 P2:t=2 P1:t=3 P1:t=4; a< P:t=1 P:t=3; b< P2:1:t=2 P1:2:t=4',
      'groups are apart, and a member of two gets two copies':
        'a> S1:1:$share/one/t:0 S2:2:$share/two/t:0; a< SA:1:0 SA:2:0; > P:t=x; a< P@1/:t=x P@2/:t=x',
      'members that are there are preferred; without one QoS 1 waits in a session':
        'a> C:a~ S:1:$share/g/t:1; a< K:0 SA:1:1; b* $share/g/t:1; a!; > P1:t=1 P1:t=2; b< P1:1:t=1 P1:2:t=2; b> PA:1 PA:2; b!; ' +
        '> P1:t=3; a> C:a~; a< K:1 P1:1:t=3',
      'what a session that ends had not sent, and QoS 1 without PUBACK, goes to another; QoS 2 that was sent does not [MQTT-4.8.2-5]':
        'a> C:a~5%2 S:1:$share/g/t:2; a< K:0 SA:1:2; > P1:t=1 P2:t=2 P2:t=3; a< P1:1:t=1 P2:2:t=2; a!; b* $share/g/t:2; ' +
        '+4999; b_; +1; b< P1:1:t=1 P2:2:t=3',
      'QoS 2 that was begun is finished with the member on its return, by PUBLISH [MQTT-4.8.2-4]':
        'a> C:a~ S:1:$share/g/t:2; a< K:0 SA:1:2; b* $share/g/t:2; > P2:t=x; a< P2:1:t=x; a!; +599000; b_; a> C:a~; a< K:1 P2+:1:t=x; ' +
        'a> PR:1 PC:1; a< PL:1; b_; a!; a> C:a~; a< K:1',
      'or by PUBREL [MQTT-4.8.2-4]':
        'a> C:a~ S:1:$share/g/t:2; a< K:0 SA:1:2; b* $share/g/t:2; > P2:t=x; a< P2:1:t=x; a> PR:1; a< PL:1; a!; +599000; a> C:a~; a< K:1 PL:1; ' +
        'a> PC:1; b_',
      'no other gets it when that session ends before, by time, before PUBREC or after, or by Clean Start [MQTT-4.8.2-5]':
        'b* $share/g/t:2; a> C:a~5 S:1:$share/g/t:2; a< K:0 SA:1:2; > P:t=0 P2:t=x; b< P:t=0; a< P2:1:t=x; a!; +5000; ' +
        'c> C:c~5 S:1:$share/g/t:2; c< K:0 SA:1:2; > P:t=1 P2:t=y; b< P:t=1; c< P2:1:t=y; c> PR:1; c< PL:1; c!; +5000; ' +
        'd> C:d~ S:1:$share/g/t:2; d< K:0 SA:1:2; > P:t=2 P2:t=z; b< P:t=2; d< P2:1:t=z; d!; d> C:d; d< K:0; > P:t=3; b< P:t=3',
      'no retained message comes for it, and none is left of a group without members':
        '> PX:t=x; a> S:1:$share/g/+:2; a< SA:1:2; a> U:2:$share/g/+; a< UA:2:0; b> P1:1:t=x; b< PA:1:n',
      '$share alone is the filter of a topic of that name':
        'a> S:1:$share:1 P:$share=x; a< SA:1:1 P:$share=x',
      'the whole of it is what UNSUBSCRIBE names: group and filter [MQTT-3.10.4-1] [MQTT-4.8.2-1]':
        'a* $share/g/t:0; b* $share/g/t:0; a> U:2:t,$share/h/t,$share/g/t; a< UA:2:11,11,0; > P:t=1 P:t=2; b< P:t=1 P:t=2',
    },
    [5],
  )

  it.each([
    ['PUBACK', 1, '40'],
    ['PUBREC', 2, '50'],
  ] as const)(
    'a %s of 0x80 or more is the end of the message: no other member gets it [MQTT-4.8.2-6]',
    async (_what, qos, first) => {
      for (const code of ['80', '87', '97']) {
        const { join, broker } = world()
        const [one, two] = [await join('one', durable), await join('two', durable)]
        for (const each of [one, two]) await each.say(subscribe('00 01', ['$share/g/t', '02']))
        broker.publish({ topic: 't', qos })
        await one.send()
        await one.say(`${first} 03 00 01 ${code}`)
        await one.send({ type: 'disconnect', properties: { sessionExpiryInterval: 0 } })
        await two.send()
        expect([two.heard(), (await join('one', durable)).heard().length]).toEqual([[], 1])
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
    const { client } = await joined()
    expect(await client.say(subscribe('00 01', [filter, '00']))).toEqual(['90 04 00 01 00 00'])
    const publish = (name: string) => packetOf('30', textOf(name), '00')
    const matchesMore = /[+#]$/.test(filter)
    expect(await client.say(publish(topic), publish(`${topic}no`))).toEqual(
      matchesMore ? [publish(topic), publish(`${topic}no`)] : [publish(topic)],
    )
  })
})

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
