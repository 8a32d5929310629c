/**
 * Packet identifiers, acknowledgements and the three qualities of service of the broker in memory, as sender and as receiver; and the limits that
 * CONNECT and CONNACK announce (2.2.1, 3.1.2.11, 3.3.4 to 3.7, 4.3, 4.6, 4.9).
 */
import { describe, expect, it } from 'vitest'
import type { PacketInput } from '../../src/wire/index.js'
import {
  hexOf,
  hexOfCode,
  joined,
  packetOf,
  type RawClient,
  staying,
  textOf,
  world,
} from './raw-client.js'
import { play, scenes } from './scenes.js'

const publish = (first: string, packetId: string, payload = '', topic = 't'): string =>
  packetOf(first, textOf(topic), packetId, '00', payload)

describe('the broker as sender', () => {
  scenes({
    'QoS 0 has no identifier and is sent once [MQTT-2.2.1-2] [MQTT-4.3.1-1]':
      'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P:t=x; a< P:t=x; a!; a> C:a~; a< K:1',
    'QoS 1 is open until its PUBACK, and QoS 2 until PUBREC, then until PUBCOMP [MQTT-4.3.2-2] [MQTT-4.3.3-2] [MQTT-4.3.2-3] [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5]':
      'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P1:t=1 P1:t=2 P2:t=3; a< P1:1:t=1 P1:2:t=2 P2:3:t=3; a> PA:1; a!; a> C:a~; a< K:1 P1+:2:t=2 P2+:3:t=3; ' +
      'a> PA:2 PR:3; a< PL:3; a!; a> C:a~; a< K:1 PL:3; a> PC:3; a!; a> C:a~; a< K:1',
    'messages in order, and acknowledgements by their identifiers [MQTT-2.2.1-5]':
      'a* t:0; a> P:t=1 P:t=2 P1:3:t=3 P1:1:t=4 P2:2:t=5 P2:9:t=6; a< P:t=1 P:t=2 P:t=3 PA:3 P:t=4 PA:1 P:t=5 PR:2 P:t=6 PR:9; a> PL:2 PL:9; a< PC:2 PC:9',
    'nothing is repeated on one connection':
      'a* t:2; > P1:t=1 P2:t=2; a< P1:1:t=1 P2:2:t=2; +3600000; a_',
  })
  scenes(
    {
      'a foreign acknowledgement changes nothing [MQTT-2.2.1-5] [MQTT-4.3.2-3]':
        'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P1:t=1 P2:t=2; a< P1:1:t=1 P2:2:t=2; a> PA:7 PC:1 PC:2 PA:2; a_; a> PR:9 PR:1; a< PL:9:92 PL:1:92; a!; ' +
        'a> C:a~; a< K:1 P1+:1:t=1 P2+:2:t=2',
      'a PUBREC of 0x80 or more is not answered, and its identifier and place are free again [MQTT-4.3.3-4] [MQTT-4.9.0-2] [MQTT-4.4.0-2]':
        'a> C:a~%1 S:1:t:2; a< K:0 SA:1:2; > P2:t=1 P2:t=2; a< P2:1:t=1; a> PR:1:80; a< P2:2:t=2; a!; a> C:a~; a< K:1 P2+:2:t=2',
      '0x10 is for servers to say [MQTT-4.3.3-4]':
        'a* t:2; > P2:t=1; a< P2:1:t=1; a> PR:1:10; a.82',
      'PUBREL says 0x92 for an identifier that is not known, else 0x00 [MQTT-3.6.2-1]':
        'a* t:2; > P2:t=1; a< P2:1:t=1; a> PR:1 PR:1 PR:9; a< PL:1 PL:1 PL:9:92',
      'PUBREL begins with 62, also when it is sent again [MQTT-3.6.1-1]':
        'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P2:t=1; a< P2:1:t=1; a> hex:50020001; a< PL:1; a!; a> C:a~; a< K:1 PL:1',
    },
    [5],
  )

  it('packet identifiers go round and leave out those in use, whether PUBLISH or PUBREL is open [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1]', async () => {
    const { client, broker } = await joined()
    await client.subscribe('t')
    for (const qos of [1, 2, 2] as const) broker.publish({ topic: 't', qos })
    await client.send({ type: 'pubrec', packetId: 2 })
    for (let i = 4; i <= 65_535; i++) {
      broker.publish({ topic: 't', qos: 1 })
      if (i % 500 !== 0 && i !== 65_535) continue
      const came = (await client.send()).flatMap((packet) =>
        packet.type === 'publish' ? [packet.packetId ?? 0] : [],
      )
      if (i === 65_535) expect(came.at(-1)).toBe(65_535)
      await client.send(...came.map((packetId) => ({ type: 'puback' as const, packetId })))
    }
    broker.publish({ topic: 't', qos: 1 })
    expect(await client.send()).toMatchObject([{ packetId: 4 }])
  })
})

describe('the broker as receiver', () => {
  scenes({
    'QoS 1: PUBACK, after which the same identifier is a new message, with DUP or without [MQTT-4.3.2-4] [MQTT-4.3.2-5]':
      'b* t:0; a> P1:4660:t=1; a< PA:4660; a> P1+:4660:t=2 P1:4660:t=3; a< PA:4660 PA:4660; b< P:t=1 P:t=2 P:t=3',
    'QoS 2: until PUBREL a repeat is answered by PUBREC and not delivered, on this connection and the next [MQTT-4.3.3-8] [MQTT-4.3.3-10]':
      'b* t:0; a> C:a~ P2:258:t=x; a< K:0 PR:258; b< P:t=x; a> P2:258:t=x P2+:258:t=x; a< PR:258 PR:258; a!; ' +
      'a> C:a~ P2+:258:t=x P2:258:t=x; a< K:1 PR:258 PR:258; b_; a> PL:258; a< PC:258; b_',
    'PUBREL is answered by PUBCOMP with its identifier, known or not, and after that it is free [MQTT-4.3.3-11] [MQTT-4.3.3-12] [MQTT-3.7.2-1]':
      'a* t:0; a> P2:7:t=1; a< P:t=1 PR:7; a> PL:8 PL:7 PL:7; a< PC:8:92 PC:7 PC:7:92; a> P2:7:t=2; a< P:t=2 PR:7; a> PL:7; a< PC:7',
    'PUBREL for nothing is answered [MQTT-4.3.3-11]': 'a> PL:5; a< PC:5:92',
  })
  scenes(
    {
      'the handshake is finished though the message has expired [MQTT-4.3.3-13]':
        'a> C:a~ PE1,2:5:t=x; a< K:0 PR:5:n; +2000; a> PE1,2+:5:t=x; a< PR:5:n; a!; +2000; a> C:a~ PL:5; a< K:1 PC:5',
      'PUBREL 0x92 is answered as any [MQTT-3.6.2-1] [MQTT-3.7.2-1]':
        'a> P2:5:t=x; a< PR:5:n; a> PL:6:92 PL:5:92; a< PC:6:92 PC:5',
    },
    [5],
  )

  scenes(
    {
      'cannot refuse: QoS 1 under an identifier in use is taken':
        'b* t:0; a> P2:1:t=1 P1:1:t=2; a< PR:1 PA:1; b< P:t=1 P:t=2',
    },
    [4],
  )

  it('after a PUBREC of 0x80 or more the identifier is free [MQTT-4.3.3-9]', async () => {
    let verdict = 0x97
    const { client, broker } = await joined({ authorizePublish: () => verdict })
    for (verdict of [0x97, 0x87, 0x80])
      expect(await client.say(publish('34', '00 06'))).toEqual([
        `50 03 00 06 ${hexOfCode(verdict)}`,
      ])
    verdict = 0
    expect(broker.accepted).toEqual([])
    expect(await client.say(publish('34', '00 06', '79'), '62 02 00 06')).toEqual([
      '50 03 00 06 10',
      '70 02 00 06',
    ])
    expect(broker.accepted).toHaveLength(1)
  })

  it('what it has open is in the view of the session', async () => {
    const { broker } = await play(
      'a> C:a~ P2:3:t=x; a< K:0 PR:3:n; a!; a> C:a~ P2+:3:t=x; a< K:1 PR:3:n',
    )
    expect([
      broker.sessions.get('a')?.unreleased,
      broker.accepted.length,
      broker.violations,
    ]).toEqual([[3], 1, []])
  })
})

describe('reason codes of acknowledgements', () => {
  scenes(
    {
      '0x10 where there is no subscriber, else 0x00; 0x91 for an identifier in use, 0x97 without room, 0x90 for too many levels [MQTT-3.4.2-1] [MQTT-3.5.2-1]':
        'a> P1:1:t=x P2:2:t=x; a< PA:1:n PR:2:n; a> P1:2:t=x P2:2:other=x; a< PA:2:91 PR:2:91; a> PX1:3:t=x PX2:4:t=x; a< PA:3:97 PR:4:97; ' +
        'a> P1:5:a/b/c=x P2:6:a/b/c=x; a< PA:5:90 PR:6:90; b* t:0; a> P1:7:t=x P2:8:t=x; a< PA:7 PR:8; b< P:t=x P:t=x',
    },
    [5],
    { maxRetained: 0, maxTopicLevels: 2 },
  )
})

describe('Receive Maximum', () => {
  scenes(
    {
      'so many QoS 1 and 2 messages are open; PUBREC keeps the place, PUBCOMP, PUBACK and refusals free it [MQTT-3.3.4-9] [MQTT-4.9.0-1] [MQTT-4.9.0-2]':
        'a> C:a%2 S:1:t:2; a< K:0 SA:1:2; > P1:t=1 P2:t=2 P1:t=3 P2:t=4 P1:t=5 P2:t=6; a< P1:1:t=1 P2:2:t=2; a> PA:1; a< P1:3:t=3; ' +
        'a> PR:2; a< PL:2; a> PC:2; a< P2:4:t=4; a> PR:4:80; a< P1:5:t=5; a> PA:3:80; a< P2:6:t=6',
      'acknowledgements of nothing never lift the quota above its start [MQTT-4.9.0-2]':
        'a> C:a%1 S:1:t:1; a< K:0 SA:1:1; a> PA:1 PA:9 PC:1 PR:2:80; > P1:t=1 P1:t=2 P1:t=3; a< P1:1:t=1; a> PA:1 PA:1 PA:7; a< P1:2:t=2',
      'what is sent again counts, PUBREL too, and the quota starts again with each connection [MQTT-4.9.0-1] [MQTT-4.9.0-2]':
        'a> C:a~%3 S:1:t:2; a< K:0 SA:1:2; > P2:t=1 P2:t=2 P2:t=3 P2:t=4 P2:t=5; a< P2:1:t=1 P2:2:t=2 P2:3:t=3; a> PR:1; a< PL:1; a!; ' +
        'a> C:a~%2; a< K:1 PL:1 P2+:2:t=2; a> PC:1; a< P2+:3:t=3; a> PR:2:80; a< P2:4:t=4',
      'with no quota left only PUBLISH of QoS 1 and 2 waits: all else is handled and answered [MQTT-3.3.4-10] [MQTT-4.9.0-3]':
        'a> C:a%1 S:1:#:2; a< K:0 SA:1:2; > P2:t=1 P1:t=2; a< P2:1:t=1; a> Q P1:5:$o=x P2:6:$o=x PL:6 S:7:u:0 U:8:u; ' +
        'a< R PA:5:n PR:6:n PC:6 SA:7:0 UA:8:0; > P:z=0; a< P:z=0; a> PR:1; a< PL:1; a> PC:1; a< P1:2:t=2',
    },
    [5],
  )
  scenes(
    {
      'of the broker starts again with each connection [MQTT-4.9.0-1]':
        'a> C:a~ P2:1:t=x; a< K:0 PR:1:n; a!; a> C:a~ P2:2:t=x; a< K:1 PR:2:n',
    },
    [5],
    {
      receiveMaximum: 1,
    },
  )
  scenes(
    {
      'of the broker: a refusal because the identifier is in use frees no place':
        'a> P2:1:t=1 P1:1:t=2; a< PR:1:n PA:1:91; a> P1:2:t=3; a.93',
    },
    [5],
    {
      receiveMaximum: 1,
    },
  )
  scenes(
    {
      'of the broker: an acknowledgement that is late keeps its place taken':
        'a> P1:1:t=x; a_; +100; a< PA:1:n; a> P1:2:t=x; a< PA:2:n',
    },
    [5],
    {
      receiveMaximum: 1,
      faults: [{ packet: 'puback', direction: 'out', nth: 1, action: 'delay', delay: 100 }],
    },
  )

  it('of the broker: one more is 0x93, and not taken [MQTT-3.3.4-7]', async () => {
    const scene =
      'a> P2:1:t=1 P2:2:t=2; a< PR:1:n PR:2:n; a> PL:1 P1:3:t=3 P2:4:t=4; a< PC:1 PA:3:n PR:4:n; a> P1:5:t=5; a.93'
    const { broker } = await play(scene, 5, { receiveMaximum: 2 })
    expect(broker.accepted).toHaveLength(4)
    expect(broker.violations).toMatchObject([
      { clientId: 'a', packet: 'publish', reasonCode: 0x93 },
    ])
  })

  it('without the property up to 65,535 are open [MQTT-4.9.0-1]', async () => {
    const { broker, dial } = world({ maxQueuedMessages: 100_000, maxQueuedBytes: 1e9 })
    const client = dial(5, { highWaterMark: 1e9 })
    await client.connect()
    await client.subscribe('#')
    for (let i = 0; i < 65_540; i++) broker.publish({ topic: 't', qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 65_535, queued: 5 })
  })
})

describe('Maximum Packet Size', () => {
  /** The payload of a message on `t` whose PUBLISH at QoS 1 has so many bytes. */
  const of = (size: number): string => 'x'.repeat(size - 8)

  scenes(
    {
      'a packet of the limit comes, one byte more never does, not even later, and takes no place [MQTT-3.1.2-24] [MQTT-3.1.2-25]':
        `a> C:a~^64%1 S:1:t:2; a< K:0 SA:1:2; > P1:t=${of(65)} P1:t=${of(64)}; a< P1:2:t=${of(64)}; a> PA:2; ` +
        `> P2:t=${of(65)} P1:t=small; a< P1:4:t=small; a!; a> C:a~; a< K:1 P1+:4:t=small`,
      'what waited or was sent on a connection with room is dropped on one without [MQTT-3.1.2-24] [MQTT-3.1.2-25]': `a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P1:t=${of(100)}; a< P1:1:t=${of(100)}; a!; > P2:t=${of(100)} P1:t=small; a> C:a~^64%1; a< K:1 P1:3:t=small`,
      'nor is a retained message or a will larger [MQTT-3.1.2-24]': `> PX:t=${of(100)} PX:u=small; a> C:a^64 S:1:#:0; a< K:0 SA:1:0 PX:u=small; b> C:b!w=${of(70)}; b< K:0; b!; > P:v=y; a< P:v=y`,
    },
    [5],
  )

  it('what is too large is counted, with its properties and identifiers [MQTT-3.1.2-24]', async () => {
    const { client, broker } = await joined({}, { properties: { maximumPacketSize: 64 } })
    await client.subscribe({ filter: '#', qos: 1 }, 1, 268_435_455)
    for (const size of [50, 40])
      broker.publish({ topic: 'p', properties: { userProperties: [['n', 'v'.repeat(size)]] } })
    for (const size of [52, 51]) broker.publish({ topic: 'p', payload: 'x'.repeat(size), qos: 1 })
    await client.send()
    expect(client.publishes.map(({ payload }) => payload.length)).toEqual([0, 51])
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 1, oversized: 2, queued: 0 })
  })

  it('of the broker: larger is 0x95 [MQTT-3.2.2-15]', async () => {
    const { client } = await joined({ maximumPacketSize: 100 })
    expect(await client.say(packetOf('30', textOf('t'), '00', '78'.repeat(94)))).toEqual([])
    expect(await client.refusal(packetOf('30', textOf('t'), '00', '78'.repeat(95)))).toBe('95')
  })
})

describe('Topic Alias Maximum of the client', () => {
  scenes(
    {
      'no alias is above it, each stands for its topic, and the rest have none [MQTT-3.1.2-26] [MQTT-3.3.2-11]':
        'a> C:a$2 S:1:#:0; a< K:0 SA:1:0; > P:x=1 P:x=2 P:y=3 P:z=4 P:x=5 P:y=6 P:z=7; a< PT1:x=1 PT1:=2 PT2:y=3 P:z=4 PT1:=5 PT2:=6 P:z=7',
      'where it is absent or 0 there is none [MQTT-3.1.2-27]':
        'a> C:a S:1:#:0; a< K:0 SA:1:0; b> C:b$0 S:1:#:0; b< K:0 SA:1:0; > P:t=x P:t=y; a< P:t=x P:t=y; b< P:t=x P:t=y',
      'they die with the connection: the first use of the next one has the topic [MQTT-3.3.2-7]':
        'a> C:a~$5 S:1:#:0; a< K:0 SA:1:0; > P:t=x P:t=y; a< PT1:t=x PT1:=y; a!; a> C:a~$5; a< K:1; > P:t=z; a< PT1:t=z',
    },
    [5],
  )
  it('0 is never sent, though 65,535 are allowed [MQTT-3.3.2-8]', async () => {
    const { client, broker } = await joined(
      {},
      {
        properties: { topicAliasMaximum: 65_535 },
      },
    )
    await client.subscribe('#')
    for (let i = 0; i < 300; i++) broker.publish({ topic: `t/${i}` })
    await client.send()
    expect(client.publishes.map(({ properties }) => properties.topicAlias)).toEqual(
      Array.from({ length: 300 }, (_none, at) => at + 1),
    )
  })
})

describe('Maximum QoS and Retain Available', () => {
  scenes(
    {
      'publishing more is 0x9B, subscriptions are granted less [MQTT-3.2.2-10] [MQTT-3.2.2-11]':
        'a> S:1:t:2; a< SA:1:1; a> P2:1:t=x; a.9b',
    },
    [5],
    { maximumQoS: 1 },
  )
  scenes({ 'RETAIN is 0x9A [MQTT-3.2.2-14]': 'b* t:0; a> PX:t=x; a.9a; b_' }, [5], {
    retainAvailable: false,
  })
  scenes(
    { 'on 3.1.1 the flag is passed over': 'b* t:0; a> PX:t=x; b< P:t=x; c> S:1:t:0; c< SA:1:0' },
    [4],
    { retainAvailable: false },
  )
})

describe('order', () => {
  const numbers = Array.from({ length: 300 }, (_none, at) => at)
  const twoBytes = (number: number): string => hexOf([number >> 8, number & 255])

  const byQos = (client: RawClient): number[][] =>
    [0, 1, 2].map((qos) =>
      client.publishes
        .filter((packet) => packet.qos === qos)
        .map(({ payload }) => ((payload[0] ?? 0) << 8) + (payload[1] ?? 0)),
    )

  it('messages of one publisher, topic and QoS arrive in their order: live, behind a quota, after waiting [MQTT-4.6.0-5] [MQTT-4.6.0-6]', async () => {
    const { join, broker } = world({ queueQoS0: true, maxQueuedMessages: 10_000 })
    const [sender, live, away] = [
      await join('sender'),
      await join('live'),
      await join('away', staying()),
    ]
    const slow = await join('slow', { properties: { receiveMaximum: 3 } })
    for (const client of [live, away, slow]) await client.subscribe({ filter: 'any/+', qos: 2 })
    await away.cut()
    for (const number of numbers) {
      const body = (id: string) => [textOf('any/name'), id, '00', twoBytes(number)]
      await sender.say(
        packetOf('30', ...body('')),
        packetOf('32', ...body('00 01')),
        packetOf('34', ...body('00 02')),
        '62 02 00 02',
      )
    }
    await live.send()
    for (let news = slow.take(); news.length > 0; ) {
      const answers = news.flatMap((packet): PacketInput[] => {
        if (packet.type === 'pubrel') return [{ type: 'pubcomp', packetId: packet.packetId }]
        if (packet.type !== 'publish' || packet.packetId === undefined) return []
        return [{ type: packet.qos === 1 ? 'puback' : 'pubrec', packetId: packet.packetId }]
      })
      news = answers.length === 0 ? [] : await slow.send(...answers)
    }
    for (const client of [live, slow, await join('away', staying())])
      expect(byQos(client)).toEqual([numbers, numbers, numbers])
    expect(broker.violations).toEqual([])
  })

  scenes({
    'three hundred packets in one write': `a> ${numbers.map((at) => `P1:${at + 1}:m=${at}`).join(' ')}; a< ${numbers.map((at) => `PA:${at + 1}:n`).join(' ')}`,
    'half a packet and the end: nothing of it': 'b* #:0; a> hex:3010000174; a!; b_',
  })
})
