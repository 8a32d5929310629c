/**
 * How the broker in memory writes data, what it does with data that is malformed and with clients that break a rule, and DISCONNECT in both directions
 * (1.5, 2, 3.14, 4.13). Every vector of a client's packets is in `vectors.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../src/errors.js'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import type { Sink } from '../../src/transport/transport.js'
import {
  bytesOf,
  type ConnectSettings,
  durable,
  hexOf,
  joined,
  packetOf,
  propertiesOf,
  textOf,
  type World,
  world,
} from './raw-client.js'
import { scenes } from './scenes.js'

const connectOf = (...parts: string[]): string => packetOf('10', textOf('MQTT'), ...parts)
const connect = connectOf('05 02 00 00 00', textOf('a'))

it('UTF-8: the broker itself writes none of that: its API refuses it, and what it says is UTF-8 [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-1.5.7-1]', async () => {
  const { broker, client } = await joined()
  for (const text of ['a\ud800b', 'a\u0000b']) {
    expect(() => broker.publish({ topic: text })).toThrow(/topic/)
    expect(() => broker.publish({ topic: 't', properties: { contentType: text } })).toThrow(
      /contentType/,
    )
    for (const pair of [
      [text, ''],
      ['', text],
    ] as [string, string][]) {
      expect(() => broker.publish({ topic: 't', properties: { userProperties: [pair] } })).toThrow(
        /userProperties/,
      )
    }
    expect(() => broker.disconnect('a', 0x98, { reasonString: text })).toThrow(/reasonString/)
  }
  expect(await client.say('c0 00')).toEqual(['d0 00'])
  broker.disconnect('a', 0x98, { reasonString: 'é\u{1f600}' })
  expect(await client.say()).toEqual(['e0 0b 98 09 1f 00 06 c3 a9 f0 9f 98 80'])
})

it.each([
  [127, '7f'],
  [128, '80 01'],
  [16_383, 'ff 7f'],
  [16_384, '80 80 01'],
  [1_000_000, 'c0 84 3d'],
])('the Remaining Length %i is written as %s [MQTT-1.5.5-1]', async (length, bytes) => {
  const { client, broker } = await joined()
  await client.say(packetOf('82', '00 01 00', textOf('t'), '00'))
  broker.publish({ topic: 't', payload: new Uint8Array(length - 4) })
  await client.send()
  // The bytes are looked at without formatting all of them.
  const header = 1 + bytes.split(' ').length
  expect([hexOf(client.bytes.slice(0, header + 4)), client.bytes.length]).toEqual([
    `30 ${bytes} 00 01 74 00`,
    header + length,
  ])
})

it.each([
  [127, '7f'],
  [128, '80 01'],
  [16_384, '80 80 01'],
  [2_097_152, '80 80 80 01'],
  [268_435_455, 'ff ff ff 7f'],
])(
  'the Subscription Identifier %i is written as %s, and the Property Length is as short [MQTT-1.5.5-1]',
  async (_value, bytes) => {
    const { client } = await joined()
    const property = `0b ${bytes}`
    await client.say(packetOf('82', '00 01', propertiesOf(property), textOf('t'), '00'))
    expect(await client.say(packetOf('30', textOf('t'), '00'))).toEqual([
      packetOf('30', textOf('t'), propertiesOf(property)),
    ])
    const pair = `26 00 01 61 00 7a ${'62 '.repeat(122)}`
    const answer = packetOf('30', textOf('t'), propertiesOf(pair, property))
    expect(await client.say(packetOf('30', textOf('t'), '80 01', pair))).toEqual([answer])
  },
)

it('an empty property set has its length byte in every packet of the broker that has properties [MQTT-2.2.2-1] [MQTT-2.1.3-1]', async () => {
  const { client, broker, dial } = await joined({
    authenticate: ({ clientId }) => clientId === 'a',
  })
  expect(await dial().say(connectOf('05 02 00 00 00', textOf('b')))).toEqual(['20 03 00 87 00'])
  const answers = await client.say(
    packetOf('82', '00 01 00', textOf('t'), '01'),
    packetOf('a2', '00 02 00', textOf('u')),
  )
  for (const qos of [0, 1] as const) broker.publish({ topic: 't', qos })
  const expected = [
    '90 04 00 01 00 01',
    'b0 04 00 02 00 11',
    '30 04 00 01 74 00',
    '32 06 00 01 74 00 01 00',
  ]
  expect([...answers, ...(await client.say())]).toEqual(expected)
})

describe('what ends a connection', () => {
  it.each([
    ['a malformed packet', 'c1 00', '81'],
    ['a packet of the other side', '20 03 00 00 00', '82'],
    ['a packet that is too large', '30 ff ff ff 7f', '95'],
    ['an alias that is not allowed', packetOf('30', textOf('t'), propertiesOf('23 00 63')), '94'],
  ])(
    '%s: that one, with its code and its will, and no other [MQTT-4.13.1-1] [MQTT-4.13.2-1]',
    async (_what, packet, code) => {
      const { client, join, broker } = await joined({}, { will: { topic: 'w' } })
      const other = await join('b')
      await other.subscribe('#')
      other.heard()
      // What came before is handled, what comes behind is not.
      const publish = (payload: string) => packetOf('30', textOf('t'), '00', payload)
      expect(await client.refusal(publish('31'), packet, publish('32'), 'c0 00')).toBe(code)
      expect(await other.say('c0 00')).toEqual([
        '30 05 00 01 74 00 31',
        '30 04 00 01 77 00',
        'd0 00',
      ])
      expect([...broker.clients.keys()]).toEqual(['b'])
      expect(broker.violations).toMatchObject([
        { clientId: 'a', reasonCode: Number.parseInt(code, 16) },
      ])
    },
  )

  it('a second CONNECT of another version: 0x82, as DISCONNECT has no 0x84', async () => {
    expect(await (await joined()).client.refusal(connectOf('06 02 00 00 00', textOf('a')))).toBe(
      '82',
    )
  })

  scenes({
    'good packets before a bad one are handled; 3.1.1 is closed without a word':
      'b* #:0; a> P:t=x hex:c100; a.81; b< P:t=x',
    'nothing is handled after DISCONNECT [MQTT-3.14.4-1]':
      'b* #:0; a> C:a~ S:1:t:1; a< K:0 SA:1:1; a> D P:t=x U:2:t; a.; b_; > P1:t=y; b< P:t=y; a> C:a~; a< K:1 P1:1:t=y',
  })
  const wrong = {
    PUBACK: 'P2:t=x; a< P2:1:t=x; a> PA:1; a.',
    PUBREC: 'P1:t=x; a< P1:1:t=x; a> PR:1; a.',
    PUBCOMP: 'P1:t=x; a< P1:1:t=x; a> PC:1; a.',
    'PUBCOMP before PUBREC': 'P2:t=x; a< P2:1:t=x; a> PC:1; a.',
    'PUBACK after PUBREC': 'P2:t=x; a< P2:1:t=x; a> PR:1; a< PL:1; a> PA:1; a.',
  }
  scenes(
    Object.fromEntries(
      Object.entries(wrong).map(([name, steps]) => [
        `the wrong kind of acknowledgement, ${name}, and settles nothing [3.1.1: MQTT-4.8.0-1]`,
        `a> C:a~ S:1:t:2; a< K:0 SA:1:2; > ${steps}; a> C:a~; a< K:1 ${name.includes('after') ? 'PL:1' : steps.replace(/^P(\d).*/, 'P$1+:1:t=x')}`,
      ]),
    ),
    [4],
  )

  it('the end comes also where the packet with the code cannot be sent [MQTT-4.13.2-1]', async () => {
    for (const maximumPacketSize of [4, 5]) {
      const tiny = world().dial()
      await tiny.send({ type: 'connect', clientId: 'a', properties: { maximumPacketSize } })
      expect([tiny.heard(), tiny.gone]).toEqual([[], true])
    }
    // A hook swallows CONNACK and DISCONNECT.
    const { dial } = world({
      authenticate: ({ clientId }) => clientId !== 'refused',
      intercept: (direction, packet) =>
        direction === 'out' && (packet.type === 'connack' || packet.type === 'disconnect')
          ? false
          : undefined,
    })
    for (const clientId of ['refused', 'accepted']) {
      const client = dial()
      await client.send({ type: 'connect', clientId, ...durable })
      if (clientId === 'accepted') await client.sendBytes([0xc1, 0])
      expect([clientId, await client.say(), client.gone]).toEqual([clientId, [], true])
    }
  })
})

describe('what is noted of a client that breaks a rule', () => {
  const inUse = 'a packet identifier in use [MQTT-2.2.1-3]'
  const newInUse = `a new PUBLISH with ${inUse}`
  const otherQoS = 'for a message of another QoS [MQTT-3.3.4-1]'
  scenes(
    {
      'an identifier in use: 0x91, with nothing taken, also from an earlier connection [MQTT-2.2.1-3]':
        'a> C:a~ P2:1:t=1 P2:1:t=2 P1:1:t=3 S:1:t:2 U:1:t; a< K:0 PR:1:n PR:1:91 PA:1:91 SA:1:91 UA:1:91; ' +
        `= ${newInUse} | ${newInUse} | ${inUse} | ${inUse}; a!; a> C:a~ S:1:t:2 S:2:t:2; a< K:1 SA:1:91 SA:2:2; = ${inUse}`,
      'a repeat without DUP, which is one all the same, and one on the same connection [MQTT-3.3.1-1] [MQTT-4.3.3-10] [MQTT-4.4.0-1]':
        'b* t:0; a> C:a~ P2:1:t=1; a< K:0 PR:1; a> P2+:1:t=1; a< PR:1; = a repeat on the same connection [MQTT-4.4.0-1]; a!; ' +
        'a> C:a~ P2:1:t=1; a< K:1 PR:1; = a repeat without DUP [MQTT-3.3.1-1]; b< P:t=1',
      'acknowledgements that are forged, of the wrong kind, again or out of order [MQTT-2.2.1-5] [MQTT-3.3.4-1] [MQTT-4.3.3-11] [MQTT-4.6.0-2] [MQTT-4.6.0-3]':
        'a* t:2; > P1:t=1 P2:t=2 P1:t=3 P2:t=4 P1:t=5; a< P1:1:t=1 P2:2:t=2 P1:3:t=3 P2:4:t=4 P1:5:t=5; ' +
        `a> PA:77; = puback for an identifier that is not in use [MQTT-2.2.1-5]; a> PA:2; = puback ${otherQoS}; ` +
        `a> PR:1; a< PL:1:92; = pubrec ${otherQoS}; a> PC:2; = PUBCOMP for an identifier that was not released [MQTT-4.3.3-11]; ` +
        'a> PA:3; = puback out of order [MQTT-4.6.0-2]; a> PR:4; a< PL:4; = pubrec out of order [MQTT-4.6.0-3]; ' +
        'a> PA:1 PA:5 PR:2; a< PL:2; =; a> PR:2; a< PL:2; = pubrec again [MQTT-4.4.0-1]; a> PC:4 PC:2; =',
      'PUBREL out of the order of PUBREC [MQTT-4.6.0-4]':
        'a> P2:4:t=x P2:2:t=x P2:9:t=x PL:4 PL:9 PL:2; a< PR:4:n PR:2:n PR:9:n PC:4 PC:9 PC:2; = pubrel out of order [MQTT-4.6.0-4]',
      'an acknowledgement for what was sent on an earlier connection only':
        'a> C:a~ S:1:t:1; a< K:0 SA:1:1; > P1:t=1 P1:t=2; a< P1:1:t=1 P1:2:t=2; a!; a> C:a~%1 PA:2; a< K:1 P1+:1:t=1; ' +
        '= puback for an identifier that is not in use [MQTT-2.2.1-5]; a> PA:1; a< P1+:2:t=2',
    },
    [5],
  )

  it('never names what the client sent', async () => {
    const { client, broker } = await joined()
    await client.publish('canary-topic', 'canary-payload', {
      properties: { topicAlias: 99, userProperties: [['canary', 'canary']] },
    })
    expect(JSON.stringify(broker.violations)).not.toContain('canary')
    expect(broker.violations).toHaveLength(1)
  })
})

describe('no DISCONNECT before a successful CONNACK', () => {
  const enhanced: ConnectSettings = { properties: { authenticationMethod: 'm' } }
  const auth = {
    m: { start: () => ({ reasonCode: 0x18 }), continue: () => Promise.reject(new Error('wrong')) },
  }
  const never = { authenticate: () => new Promise<boolean>(() => undefined) }
  const more = packetOf('f0', '18 04 15', textOf('m'))

  const ways: [
    string,
    MemoryBrokerOptions,
    ConnectSettings | undefined,
    string | ((all: World) => unknown),
  ][] = [
    ['a refusal', { authenticate: () => false }, {}, ''],
    ['silence', { connectTimeout: 10 }, undefined, ({ clock }) => clock.advance(10)],
    ['another packet first', {}, undefined, 'c0 00'],
    ['a malformed packet behind CONNECT', never, {}, 'c1 00'],
    ['a packet too large behind CONNECT', { ...never, maximumPacketSize: 200 }, {}, '30 ff 7f'],
    ['a second CONNECT', never, {}, connect],
    ['an unknown method', {}, enhanced, ''],
    ['a failed exchange', { auth }, enhanced, more],
    ['a malformed packet in the exchange', { auth }, enhanced, 'f1 00'],
    ['the end of the broker', never, {}, ({ broker }) => broker.close()],
    ['a client that cannot take the CONNACK', {}, { properties: { maximumPacketSize: 4 } }, ''],
  ]

  it.each(ways)('none after %s [MQTT-3.14.0-1]', async (_what, options, settings, next) => {
    const all = world(options)
    const client = all.dial()
    if (settings !== undefined) await client.send({ type: 'connect', clientId: 'a', ...settings })
    if (typeof next !== 'string') await next(all)
    await client.say(...(typeof next === 'string' && next !== '' ? [next] : []))
    expect(
      client.received.every(
        (packet) =>
          packet.type === 'auth' || (packet.type === 'connack' && packet.reasonCode >= 0x80),
      ),
    ).toBe(true)
    expect(client.gone).toBe(true)
  })

  it('nor when a hook that sees CONNACK sends the client away, nor while CONNACK is late [MQTT-3.14.0-1]', async () => {
    const seeing = world({
      intercept(direction, packet) {
        if (direction === 'out' && packet.type === 'connack') seeing.broker.disconnect('a')
        return undefined
      },
    })
    const late = world({
      faults: [{ packet: 'connack', direction: 'out', nth: 1, action: 'delay', delay: 100 }],
    })
    for (const { dial, broker, clock } of [seeing, late]) {
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a' })
      broker.disconnect('a')
      await clock.advance(1000)
      expect([client.received.some(({ type }) => type === 'disconnect'), client.gone]).toEqual([
        false,
        true,
      ])
    }
  })
})

it('DISCONNECT: of the broker never has a Session Expiry Interval: an administrator cannot give it one [MQTT-3.14.2-2]', async () => {
  const { client, broker } = await joined()
  expect(() => broker.disconnect('a', 0x98, { sessionExpiryInterval: 5 })).toThrow(MqttError)
  expect([await client.say(), client.gone]).toEqual([[], false])
})

it('DISCONNECT: says why a rule was broken', async () => {
  const { client } = await joined()
  const properties = { reasonString: expect.any(String) }
  const alias = { type: 'publish', topic: 't', properties: { topicAlias: 99 } } as const
  expect(await client.send(alias)).toEqual([{ type: 'disconnect', reasonCode: 0x94, properties }])
})

it('DISCONNECT: carries a Server Reference', async () => {
  const { client, broker } = await joined()
  expect([
    broker.disconnect('a', 0x9c, { serverReference: 'other:1883' }),
    broker.disconnect('unknown'),
  ]).toEqual([true, false])
  expect(await client.send()).toEqual([
    { type: 'disconnect', reasonCode: 0x9c, properties: { serverReference: 'other:1883' } },
  ])
  expect(client.ended).toEqual({ cause: undefined })
})

it('DISCONNECT: nothing follows it, though answers and messages are due in the same moment [MQTT-3.14.4-1]', async () => {
  const { client, join, broker, clock } = await joined({}, durable)
  const sender = await join('b')
  await client.subscribe('#')
  client.heard()
  for (let i = 0; i < 10; i++) sender.transport.write(Uint8Array.from([0x30, 4, 0, 1, 0x74, 0]))
  client.transport.write(Uint8Array.from(bytesOf('c0 00 c1 00 c0 00 32 06 00 01 74 00 09 00')))
  for (let i = 0; i < 10; i++) broker.publish({ topic: 't', qos: 1 })
  await clock.settle()
  for (let i = 0; i < 10; i++) broker.publish({ topic: 't', qos: 1 })
  await clock.advance(100_000)
  const firsts = client.heard().map((packet) => packet.slice(0, 2))
  expect(firsts.indexOf('e0')).toBe(firsts.length - 1)
  expect(firsts.filter((first) => first === 'd0')).toHaveLength(1)
  // What was not sent waits for the next connection.
  expect(broker.sessions.get('a')?.queued).toBe(10)
  expect(broker.accepted.some(({ clientId }) => clientId === 'a')).toBe(false)
})

it('DISCONNECT: the connection is closed behind it, and cut when the client keeps its side open [MQTT-3.14.4-2] [MQTT-4.13.2-1]', async () => {
  const { broker, clock } = world()
  const seen: string[] = []
  let sink: Sink | undefined
  // A transport whose other side never answers the end of the stream.
  broker.accept({
    open: (given) => {
      sink = given
    },
    write: () => true,
    close: () => void seen.push(`close ${clock.now()}`),
    destroy: () => void seen.push(`destroy ${clock.now()}`),
  })
  sink?.chunk(Uint8Array.from(bytesOf(connect)))
  await clock.advance(10)
  broker.disconnect('a')
  expect(seen).toEqual(['close 10'])
  await clock.advance(60_000)
  expect(seen).toEqual(['close 10', 'destroy 5010'])
})
