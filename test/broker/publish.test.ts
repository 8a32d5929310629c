/** What the broker in memory takes as a PUBLISH, what it makes of it and who gets it: topics, filters, retained messages, properties (3.3, 4.7). */
import { describe, expect, it } from 'vitest'
import {
  bytes,
  durable,
  hexOf,
  joined,
  packetOf,
  propertiesOf,
  type RawClient,
  textOf,
  type World,
} from './raw-client.js'
import { play, scenes } from './scenes.js'

/** PUBLISH on `t` by its first byte; at QoS 1 and 2 with the identifier 1. */
function publish(first: string, payload = '78', properties = '00', topic = textOf('t')): string {
  return packetOf(
    first,
    topic,
    (Number.parseInt(first, 16) & 6) > 0 ? '00 01' : '',
    properties,
    payload,
  )
}

/** SUBSCRIBE to `t`, or another, by its options. */
const subscribe = (options: string, topic = textOf('t')): string =>
  packetOf('82', '00 01 00', topic, options)

async function pair(): Promise<World & { sender: RawClient; taker: RawClient }> {
  const { client: sender, ...all } = await joined()
  const taker = await all.join('taker')
  taker.heard()
  return { ...all, sender, taker }
}

describe('QoS and who gets a message', () => {
  scenes({
    'QoS 0 to oneself, and to no other [MQTT-3.3.4-1] [MQTT-4.3.1-1]':
      'b> Q; b< R; a* t:0; a> P:t=x Q; a< P:t=x R; b_',
    'QoS 0 to another [MQTT-4.5.0-1]': 'b* t/+:2; a> P:t/1=x; b< P:t/1=x',
    'QoS 1 is acknowledged with its identifier, by 0x10 without subscribers [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT-2.2.1-5]':
      'a> P1:7:t=x; a< PA:7:n; a* t:2; a> P1:8:t=y; a< P1:1:t=y PA:8',
    'QoS 2 goes in four steps [MQTT-3.3.4-1]': 'a> P2:7:t=x; a< PR:7:n; a> PL:7; a< PC:7',
    'DUP of the publisher stays with the publisher [MQTT-3.3.1-3]':
      'b* t:2; a> P1+:1:t=x P2+:2:t=y; a< PA:1 PR:2; b< P1:1:t=x P2:2:t=y',
    'an empty payload is a message': 'a* t:0; a> P:t=; a< P:t=',
  })
  scenes(
    {
      'a copy of QoS 0 never has DUP, also when it waited in a session, and is sent once [MQTT-3.3.1-2] [MQTT-4.3.1-1]':
        'a> C:a~ S:1:t:0; a< K:0 SA:1:0; a!; > P:t=0 PX1:t=1 P2:t=2; a> C:a~; a< K:1 P:t=0 P:t=1 P:t=2; a!; a> C:a~; a< K:1',
    },
    [5, 4],
    { queueQoS0: true },
  )

  it('a message is forwarded whole, and noted', async () => {
    const { sender, taker, broker } = await pair()
    await taker.subscribe('t/+')
    expect(await sender.publish('t/1', 'hi')).toEqual([])
    const plain = {
      dup: false,
      qos: 0,
      retain: false,
      topic: 't/1',
      packetId: undefined,
      properties: {},
      payload: Uint8Array.of(104, 105),
    }
    expect(taker.take()).toEqual([{ type: 'publish', ...plain }])
    expect(broker.accepted).toMatchObject([
      { clientId: 'a', topic: 't/1', qos: 0, packetId: undefined, dup: false, will: false },
    ])
    expect(broker.violations).toEqual([])
  })
})

describe('retained messages', () => {
  scenes({
    'the newest one is kept, for those who come later [MQTT-3.3.1-5] [MQTT-3.3.1-8]':
      'a> P:t=0 PX:t=1 PX:t=2 P:t=3 P:t=; b> S:1:#:0; b< SA:1:0 PX:t=2; c> S:1:u:0; c< SA:1:0',
    'an empty one reaches those who are there, clears the topic and is not kept [MQTT-3.3.1-6] [MQTT-3.3.1-7]':
      'b* #:0; a> PX:t=1 PX:t= PX1:1:u= PX2:2:v=; a< PA:1 PR:2; b< P:t=1 P:t= P:u= P:v=; c> S:1:#:0; c< SA:1:0',
    'several come for a wildcard':
      'a> PX:a/1=1 PX:a/2=2 PX:b=3; b> S:1:a/+:0 Q; b< SA:1:0 PX:a/1=1 PX:a/2=2 R',
    'at SUBSCRIBE again, again [MQTT-3.3.1-9]':
      'a> PX:t=x S:1:t:0 S:2:t:0; a< SA:1:0 PX:t=x SA:2:0 PX:t=x',
    'at the lower QoS': 'a> PX2:3:t=x S:1:t:0 S:2:t:1; a< PR:3:n SA:1:0 PX:t=x SA:2:1 PX1:1:t=x',
    '$ topics do not come for #': 'a> PX:$a=x PX:b=y; b> S:1:#:0; b< SA:1:0 PX:b=y',
  })
  scenes(
    {
      'Retain Handling 0: every time [MQTT-3.3.1-9]':
        '> PX:t=x; a> S:1:t:0h0 S:2:t:0h0; a< SA:1:0 PX:t=x SA:2:0 PX:t=x; > P:t=y; a< P:t=y',
      'Retain Handling 1: when there was no subscription, per filter [MQTT-3.3.1-10]':
        '> PX:t=x; a> S:1:t:0h1 S:2:t:0h1 S:3:+:0h1 U:4:t S:5:t:0h1; a< SA:1:0 PX:t=x SA:2:0 SA:3:0 PX:t=x UA:4:0 SA:5:0 PX:t=x; > P:t=y; a< P:t=y',
      'Retain Handling 2: never [MQTT-3.3.1-11]':
        '> PX:t=x; a> S:1:t:0h2 S:2:t:0h2; a< SA:1:0 SA:2:0; > P:t=y; a< P:t=y',
      'at QoS 0 do not wait for the window':
        '> PX1:a=x PX:b=x PX:c=x; a> C:a%1 S:1:#:1; a< K:0 SA:1:1 PX1:1:a=x PX:b=x PX:c=x',
      'that wait for the window take turns with messages of a topic whose own has gone':
        '> PX1:a=x PX1:b=x; a> C:a%1 S:1:#:2; a< K:0 SA:1:2 PX1:1:a=x; > P1:a=y; a> PA:1; a< P1:2:a=y; a> PA:2; a< PX1:3:b=x',
      'take turns with messages of a topic at another QoS':
        '> PX1:a=x PX1:c=x; a> C:a%1 S:1:#:2; a< K:0 SA:1:2 PX1:1:a=x; > P2:c=y; a> PA:1; a< P2:2:c=y; a> PR:2:80; a< PX1:3:c=x',
      'come before messages of their topic at their QoS [MQTT-4.6.0-5]':
        '> PX1:a=x PX1:c=x; a> C:a%1 S:1:#:2; a< K:0 SA:1:2 PX1:1:a=x; > P1:c=y; a> PA:1; a< PX1:2:c=x; a> PA:2; a< P1:3:c=y',
      'expire, and count down [MQTT-3.3.2-5] [MQTT-3.3.2-6]':
        '> PXE10,:t=x; +3000; a> S:1:t:0; a< SA:1:0 PXE7,:t=x; +6900; a> S:1:t:0; a< SA:1:0 PXE1,:t=x; +100; a> S:1:t:0; a< SA:1:0',
      'that expire at once are for those who are there':
        'a* t:0; > PXE0,:t=x; a< PE0,:t=x; b> S:1:t:0; b< SA:1:0',
    },
    [5],
  )
  scenes(
    {
      'an empty one for a topic that has none is taken where there is no room for more':
        'a> PX:t=x PX1:1:u=x PX1:2:u=; a< PA:1:97 PA:2:n; b> S:1:#:0; b< SA:1:0 PX:t=x',
    },
    [5],
    { maxRetained: 1 },
  )
  scenes(
    {
      'are bounded in number and bytes: 0x97; what is replaced or cleared makes room':
        'a> PX1:1:1=x PX1:2:2=x PX1:3:3=x PX1:4:2=xx; a< PA:1:n PA:2:n PA:3:97 PA:4:n; ' +
        `a> PX1:1:2=${'x'.repeat(1000)} PX1:2:2=${'x'.repeat(600)} PX1:3:2=${'y'.repeat(600)}; a< PA:1:97 PA:2:n PA:3:n; ` +
        'a> PX1:1:1= PX1:2:3=x; a< PA:1:n PA:2:n; b> S:1:1:0,3:0; b< SA:1:0,0 PX:3=x',
    },
    [5],
    { maxRetained: 2, maxRetainedBytes: 1000 },
  )
})

describe('Message Expiry', () => {
  scenes(
    {
      'what waited too long is dropped, in a session, behind a window and retained; the rest counts down [MQTT-3.3.2-5] [MQTT-3.3.2-6]':
        'a> C:a~ S:1:t:1; a< K:0 SA:1:1; b> C:b%1 S:1:t:1; b< K:0 SA:1:1; a!; +7000; > P1:t=0 PXE5,1:t=1 PE60,1:t=2; b< P1:1:t=0; +12300; ' +
        'b> PA:1; b< PE48,1:2:t=2; a> C:a~; a< K:1 P1:1:t=0 PE48,1:2:t=2; c> S:1:t:0; c< SA:1:0',
      'nor is what was sent once forgotten [MQTT-4.3.3-7]':
        'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > PE1,2:t=1 PE1,2:t=2; a< PE1,2:1:t=1 PE1,2:2:t=2; a> PR:1; a< PL:1; a!; +2000; ' +
        'a> C:a~; a< K:1 PL:1 PE0,2+:2:t=2; a> PC:1 PR:2; a< PL:2',
    },
    [5],
  )

  it('what expired is counted', async () => {
    const scene =
      'a> C:a~ S:1:t:1; a< K:0 SA:1:1; a!; > PE5,1:t=x PXE0,:u=x; +5000; a> C:a~; a< K:1'
    const { broker } = await play(scene)
    expect(broker.sessions.get('a')).toMatchObject({ expired: 1, queued: 0 })
    expect(broker.retained.size).toBe(0)
  })
})

it.each([
  ['#', ['a', 'a/b', '/', '/a'], ['$a', '$a/b']],
  ['a', ['a'], ['A', 'a/', '/a', 'b']],
  ['A', ['A'], ['a']],
  ['a/b/', ['a/b/'], ['a/b']],
  ['a//b', ['a//b'], ['a/b']],
  ['/', ['/'], ['a', '//']],
  ['a/#', ['a', 'a/', 'a/b', 'a/b/c'], ['b', 'ab', '/a', 'A']],
  ['/#', ['/', '/a', '/a/b'], ['a', 'a/b']],
  ['+', ['a', 'é', 'A'], ['a/b', '/a', 'a/', '/', '$a']],
  ['+/+', ['a/b', '/', 'a/', '/a'], ['a', 'a/b/c', '$a/b']],
  ['/+', ['/a', '/'], ['a', 'a/b', '/a/b']],
  ['a/+', ['a/', 'a/b'], ['a', 'a/b/c', 'b/a']],
  ['a/+/b', ['a/x/b', 'a//b'], ['a/b', 'a/x/y/b', 'a/x/b/']],
  ['+/a/#', ['x/a', 'x/a/b', '/a'], ['a', 'x/b', '$x/a']],
  ['$x/#', ['$x', '$x/a'], ['x', 'x/a', '$X/a']],
  ['$x/+', ['$x/a'], ['$x', 'x/a']],
])(
  '%s matches %j, and not %j, live and retained [MQTT-3.3.2-3] [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.2-1]',
  async (filter, matching, others) => {
    const { client, join } = await joined()
    expect(await client.say(subscribe('00', textOf(filter)))).toEqual(['90 04 00 01 00 00'])
    for (const topic of [...matching, ...others]) {
      const expected = matching.includes(topic) ? [publish('30', '78', '00', textOf(topic))] : []
      expect([topic, await client.say(publish('31', '78', '00', textOf(topic)))]).toEqual([
        topic,
        expected,
      ])
    }
    const late = await join('late')
    await late.subscribe({ filter, qos: 0 })
    expect(late.publishes.map(({ topic }) => topic).sort()).toEqual([...matching].sort())
  },
)

it.each([
  ['é', 'e\u0301'],
  ['\u212b', '\u00c5'],
  ['A', 'a'],
  ['a//b', 'a/b'],
  ['a/b/', 'a/b'],
  ['/a', 'a'],
  ['a ', 'a'],
  [' ', '/'],
  ['\ufeffa', 'a'],
  ['ß', 'ss'],
  ['\u{10ffff}', '\ufffd'],
])(
  'nothing is normalised: %j and %j are two topics [MQTT-4.7.3-4] [MQTT-1.5.4-3] [MQTT-4.7.3-1]',
  async (one, other) => {
    for (const [filter, topic] of [
      [one, other],
      [other, one],
    ] as const) {
      const { client } = await joined()
      await client.say(subscribe('00', textOf(filter)))
      expect(await client.say(publish('30', '78', '00', textOf(topic)))).toEqual([])
      expect(await client.say(publish('30', '78', '00', textOf(filter)))).toEqual([
        publish('30', '78', '00', textOf(filter)),
      ])
    }
  },
)

it('EF BB BF is passed on wherever it stands [MQTT-1.5.4-3]', async () => {
  const { client, broker } = await joined()
  const topic = '00 07 ef bb bf 61 ef bb bf'
  await client.say(subscribe('00', topic), subscribe('00', textOf('a')))
  expect(await client.say(publish('30', '78', '00', topic))).toEqual([`30 0b ${topic} 00 78`])
  expect(broker.accepted[0]?.topic).toBe('\ufeffa\ufeff')
  expect(textOf(broker.sessions.get('a')?.subscriptions[0]?.filter ?? '')).toBe(topic)
})

it.each([
  ['one byte a character', 'x'.repeat(65_535)],
  ['two', `${'é'.repeat(32_767)}x`],
  ['four', `${'\u{1f600}'.repeat(16_383)}xyz`],
])(
  '65,535 bytes of UTF-8 work end to end, as topic and filter, %s [MQTT-4.7.3-3]',
  async (_what, topic) => {
    const { client, broker } = await joined()
    await client.subscribe({ filter: topic, qos: 0 })
    client.heard()
    const packet = Uint8Array.from([0x30, 0x83, 0x80, 0x04, 0xff, 0xff, ...bytes(topic), 0, 0x78])
    await client.sendBytes(packet)
    // Compared as a whole: a difference of that size helps no reader.
    expect([client.heard().join() === hexOf(packet), broker.accepted[0]?.topic === topic]).toEqual([
      true,
      true,
    ])
  },
)

describe('properties on their way through', () => {
  const pairsOf = (...names: string[]) =>
    names.map((name) => `26 ${textOf(name)} ${textOf(name.toUpperCase())}`).join(' ')
  it.each([
    ['Payload Format Indicator 0', '01 00'],
    ['Payload Format Indicator 1', '01 01'],
    ['none', ''],
    ['Response Topic', `08 ${textOf('r/1/ü')}`],
    ['Correlation Data', '09 00 03 00 ff 80'],
    ['empty Correlation Data', '09 00 00'],
    ['User Properties with repeats and empty strings', pairsOf('b', 'a', 'b', '')],
    ['Content Type', `03 ${textOf('application/json; charset=utf-8')}`],
    ['empty Content Type', '03 00 00'],
  ])(
    'unchanged, byte by byte, live, retained and after waiting: %s [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]',
    async (_what, properties) => {
      const { sender, taker, join } = await pair()
      const body = `${textOf('t')} 00 01 ${propertiesOf(properties)} 78`
      const away = await join('away', durable)
      await away.say(subscribe('01'))
      await away.cut()
      await taker.say(subscribe('01'))
      await sender.say(packetOf('33', body))
      expect(taker.heard()).toEqual([packetOf('32', body)])
      expect((await join('away', durable)).heard().slice(1)).toEqual([packetOf('32', body)])
      const late = await join('late')
      late.heard()
      expect((await late.say(subscribe('01')))[1]).toBe(packetOf('33', body))
    },
  )
})

describe('aliases of the client', () => {
  scenes(
    {
      'an alias stands for its topic, and for another that it is given [MQTT-3.3.2-12]':
        'a* #:0; a> PT1:t=1 PT1:=2 PT2:u=3 PT1:v=4 PT1:=5 PT2:=6; a< P:t=1 P:t=2 P:u=3 P:v=4 P:v=5 P:u=6',
      'one above the maximum ends the stream [MQTT-3.3.2-9] [MQTT-3.2.2-17]':
        'a> PT10:t=1; a> PT11:t=1; a.94',
      'one without a topic ends the stream': 'a> PT1:=1; a.82',
      'they end with the connection, though the session goes on [MQTT-3.3.2-7]':
        'w* #:0; a> C:a~ PT1:t=1 PT1:=2; a< K:0; w< P:t=1 P:t=2; a!; a> C:a~; a< K:1; a> PT1:=3; a.82; w_',
    },
    [5],
  )
  scenes({ 'none is allowed at 0 [MQTT-3.2.2-18]': 'a> PT1:t=1; a.94' }, [5], {
    topicAliasMaximum: 0,
  })
})
