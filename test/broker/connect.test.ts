/** CONNECT and CONNACK of the broker in memory, takeover, keep alive, PINGREQ (sections 3.1, 3.2, 3.12), and the hook `authenticate`. */
import { describe, expect, it } from 'vitest'
import type { BrokerAuthMethod, MemoryBrokerOptions, Verdict } from '../../src/testing/index.js'
import {
  bytes,
  bytesOf,
  type ConnectSettings,
  durable,
  hexOf,
  hexOfCode,
  joined,
  packetOf,
  type RawClient,
  staying,
  textOf,
  world,
} from './raw-client.js'
import { scenes } from './scenes.js'

/** CONNECT by its parts, for names and levels that an encoder would not write. */
function connectOf({
  name = '00 04 4d 51 54 54',
  level = '05',
  flags = '02',
  properties = '00',
  clientId = 'a',
} = {}): string {
  return packetOf('10', name, level, flags, '00 00', properties, textOf(clientId))
}

const welcome = '20 0b 00 00 08 27 00 10 00 00 22 00 0a'
const never = { authenticate: () => new Promise<boolean>(() => undefined) }

function pending(options: MemoryBrokerOptions = {}) {
  const decide: ((verdict: boolean) => void)[] = []
  return {
    ...world({
      ...options,
      authenticate: () => new Promise<boolean>((resolve) => decide.push(resolve)),
    }),
    decide,
  }
}

/** Asks for the data `two` and `three`, step by step. */
const steps: BrokerAuthMethod = {
  start: () => ({ reasonCode: 0x18 }),
  continue: (data) => ({ reasonCode: data?.[0] === 2 ? 0x18 : 0 }),
}

const more = (step: number): string =>
  packetOf('f0', '18 08 15', textOf('m'), '16 00 01', hexOfCode(step))
const firstsOf = (packets: readonly string[]): string[] =>
  packets.map((packet) => packet.slice(0, 2))

/** First byte, flags and reason code of a CONNACK. */
async function headOf(client: RawClient, settings: ConnectSettings = {}): Promise<string> {
  await client.connect(settings)
  return client.heard()[0]?.replace(/^(..) .. (..) (..).*/, '$1 $2 $3') ?? ''
}

describe('CONNECT and CONNACK', () => {
  scenes({
    'one answer, what follows in the same write behind it [MQTT-3.1.4-5]':
      'a> C:a S:1:t:0 P:t=x Q; a< K:0 SA:1:0 P:t=x R',
    'another packet first ends the stream [MQTT-3.1.0-1]': 'a> raw P:t=x; a.',
    'a second CONNECT ends the stream, and nothing of it is done [MQTT-3.1.0-2]':
      'a> Q; a< R; a> C:b; a.82; b> C:b*; b< K:0',
    'a packet that only servers send ends the stream': 'a> C:a; a< K:0; a> K:0; a.82',
    'every PINGREQ is answered by a PINGRESP [MQTT-3.12.4-1]':
      'a> C:a Q Q; a< K:0 R R; a> Q; a< R; a> Q; a< R',
    'an empty client identifier with a clean session is replaced [MQTT-3.1.3-6]':
      'a> C:; a< K:0; b> C: Q; b< K:0 R; a> Q; a< R',
  })

  const none = { topicAliasMaximum: 0 }
  const asking = (requestResponseInformation: 0 | 1) => ({
    properties: { requestResponseInformation },
  })
  it.each<[string, MemoryBrokerOptions, ConnectSettings, string]>([
    ['the limits', { maximumPacketSize: 4096 }, {}, '0b 00 00 08 27 00 00 10 00 22 00 0a'],
    ['no Topic Alias Maximum of 0', none, {}, '08 00 00 05 27 00 10 00 00'],
    [
      'Server Keep Alive where it is set [MQTT-3.2.2-22]',
      { ...none, serverKeepAlive: 4 },
      { keepAlive: 2 },
      '0b 00 00 08 27 00 10 00 00 13 00 04',
    ],
    [
      'Maximum QoS 0 [MQTT-3.2.2-9]',
      { ...none, maximumQoS: 0 },
      {},
      '0a 00 00 07 24 00 27 00 10 00 00',
    ],
    [
      'Response Information where it was asked for [MQTT-3.1.2-28]',
      { ...none, responseInformation: 'r' },
      asking(1),
      '0c 00 00 09 27 00 10 00 00 1a 00 01 72',
    ],
    [
      'none where it was not [MQTT-3.1.2-28]',
      { ...none, responseInformation: 'r' },
      asking(0),
      '08 00 00 05 27 00 10 00 00',
    ],
  ])('CONNACK byte by byte: %s [MQTT-3.2.2-1]', async (_what, options, settings, bytes) => {
    const { join } = world(options)
    expect((await join('a', settings)).heard()).toEqual([`20 ${bytes}`])
    expect((await join('b', {}, 4)).heard()).toEqual(['20 02 00 00'])
  })

  it('announces what differs from the defaults, and only that', async () => {
    const numbers = { receiveMaximum: 9, maximumQoS: 1, serverKeepAlive: 77 } as const
    const flags = [
      'retain',
      'wildcardSubscription',
      'subscriptionIdentifier',
      'sharedSubscription',
    ] as const
    const available = (value: unknown) =>
      Object.fromEntries(flags.map((flag) => [`${flag}Available`, value]))
    const { dial } = world({
      ...numbers,
      ...available(false),
      topicAliasMaximum: 0,
      maximumSessionExpiry: 60,
      responseInformation: 'replies',
    })
    const limits = {
      sessionExpiryInterval: 60,
      maximumPacketSize: 1_048_576,
      responseInformation: 'replies',
    }
    expect(
      await dial().connect({
        properties: { sessionExpiryInterval: 100, requestResponseInformation: 1 },
      }),
    ).toEqual({
      type: 'connack',
      sessionPresent: false,
      reasonCode: 0,
      properties: { ...numbers, ...available(0), ...limits },
    })
  })

  it('waits for CONNECT only so long', async () => {
    const { dial, clock } = world({ connectTimeout: 500 })
    const client = dial()
    await clock.advance(499)
    expect(client.gone).toBe(false)
    await clock.advance(1)
    expect(client.gone).toBe(true)
  })

  const rooms = { maxSessions: 1, maxConnections: 3 }
  for (const [version, code] of [
    [5, '97'],
    [4, '3'],
  ] as const) {
    const scene = `a> C:a~; a< K:0; b> C:b; b< K:${code}; b.; e> C:a~; e< K:1; a.8e; b> raw; c> raw; d> raw; d.`
    scenes(
      { 'there is room for a number of sessions, and of connections': scene },
      [version],
      rooms,
    )
  }

  it('nothing but AUTH comes before CONNACK, though the client asked for more [MQTT-3.2.0-1]', async () => {
    const { dial, clock, broker, decide } = pending({ auth: { m: steps } })
    const [plain, enhanced] = [dial(), dial()]
    await plain.send({ type: 'connect', clientId: 'plain' })
    expect(
      await plain.say(
        'c0 00',
        packetOf('32', textOf('t'), '00 01 00'),
        packetOf('82', '00 02 00', textOf('#'), '00'),
      ),
    ).toEqual([])
    await enhanced.send({
      type: 'connect',
      clientId: 'enhanced',
      properties: { authenticationMethod: 'm' },
    })
    broker.publish({ topic: 't' })
    for (const allow of decide) allow(true)
    await clock.settle()
    expect(firstsOf(plain.heard())).toEqual(['20', 'd0', '40', '90'])
    expect(firstsOf(enhanced.heard())).toEqual(['f0'])
    expect(firstsOf(await enhanced.say(more(2)))).toEqual(['f0'])
    expect(firstsOf(await enhanced.say(more(3)))).toEqual(['20'])
  })
})

it('a CONNECT of another version: the answer has the form of the version that was asked for [MQTT-3.1.2-2]', async () => {
  const only4 = world({ protocolVersions: [4] }).dial()
  expect([await only4.say(connectOf()), only4.gone]).toEqual([['20 03 00 84 00'], true])
  expect(
    await world({ protocolVersions: [5] })
      .dial(4)
      .connect(),
  ).toMatchObject({ reasonCode: 1 })
  const { dial, broker } = world()
  // MQIsdp, level 3.
  expect(await dial(4).say(packetOf('10', textOf('MQIsdp'), '03 02 00 00', textOf('a')))).toEqual([
    '20 02 00 01',
  ])
  const future = dial()
  await future.sendBytes(bytesOf(connectOf({ level: '06' })))
  expect(future.heardWhole()).toEqual([
    `20 22 00 84 1f 1f ${textOf('unsupported protocol version')}`,
  ])
  // 3.1.1 has no code for a reserved flag, and what is no CONNECT at all is not answered.
  const [old, http] = [dial(4), dial()]
  expect([
    await old.say(packetOf('10', textOf('MQTT'), '04 03 00 00', textOf('a'))),
    old.gone,
  ]).toEqual([[], true])
  expect([await http.say(hexOf(bytes('GET / HTTP/1.1\r\n\r\n'))), http.gone]).toEqual([[], true])
  expect(broker.violations).toHaveLength(4)
  expect(await dial(4).say(packetOf('10', textOf('MQTT'), '04 00 00 00', '00 00'))).toEqual([
    '20 02 00 02',
  ])
})

it('a CONNECT that is none: is noted with its rule and its code [MQTT-3.1.0-1] [MQTT-3.1.0-2]', async () => {
  const { dial, join, broker } = world()
  await dial().say('c0 00')
  await (await join('a')).say(connectOf({ clientId: 'b' }))
  expect(broker.violations.map(({ text, reasonCode }) => [text, reasonCode])).toEqual([
    ['the first packet is no CONNECT [MQTT-3.1.0-1]', 0x82],
    ['a second CONNECT [MQTT-3.1.0-2]', 0x82],
  ])
  const early = world(never).dial()
  expect([await early.say(connectOf(), connectOf()), early.gone]).toEqual([[], true])
})

describe('client identifiers', () => {
  const characters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'

  it('1 to 23 bytes of digits and letters are taken, all 62 of them [MQTT-3.1.3-5]', async () => {
    const { dial, broker } = world()
    const all = [
      ...characters,
      characters.slice(0, 23),
      characters.slice(23, 46),
      characters.slice(39),
    ]
    for (const clientId of all) expect(await dial().say(connectOf({ clientId }))).toEqual([welcome])
    expect(broker.clients.size).toBe(65)
  })

  it('three hundred empty ones get as many others, none of them known, on either version [MQTT-3.1.3-6] [MQTT-3.2.2-16]', async () => {
    const { join, dial, broker } = world()
    for (const known of ['auto-7', 'auto-200']) await join(known, durable)
    const assigned = new Set<string | undefined>()
    for (let i = 0; i < 300; i++) {
      const { properties } = await dial().connect({
        clientId: '',
        properties: { sessionExpiryInterval: 3600 },
      })
      assigned.add(properties.assignedClientIdentifier)
    }
    expect([
      assigned.size,
      assigned.has(undefined),
      assigned.has('auto-7'),
      assigned.has('auto-200'),
    ]).toEqual([300, false, false, false])
    expect(await dial(4).connect({ clientId: '' })).toMatchObject({ reasonCode: 0, properties: {} })
    expect([broker.sessions.size, broker.clients.size]).toEqual([303, 303])
  })

  it('an assigned one is the key of the session from then on [MQTT-3.1.3-7]', async () => {
    const { dial, broker } = world()
    const client = dial()
    const { assignedClientIdentifier: clientId = '' } = (
      await client.connect({ ...staying(60), clientId: '', cleanStart: true })
    ).properties
    await client.subscribe('t')
    await client.cut()
    expect(broker.publish({ topic: 't', payload: 'kept', qos: 1 })).toBe(true)
    const again = dial()
    expect(await again.connect({ clientId, ...durable })).toMatchObject({
      sessionPresent: true,
      reasonCode: 0,
    })
    expect(again.takeMessages()).toEqual(['t kept'])
  })
})

it('Session Present: a refusal says 0 although there is a session, and leaves that alone [MQTT-3.2.2-6]', async () => {
  const { join, dial, broker } = world({ authenticate: ({ username }) => username === undefined })
  await (await join('a', durable)).subscribe('t')
  expect(await headOf(dial(), { ...durable, username: 'u' })).toBe('20 00 87')
  expect(broker.sessions.get('a')).toMatchObject({
    connected: true,
    subscriptions: [{ filter: 't' }],
  })
  expect(await headOf(dial(), durable)).toBe('20 01 00')
})

describe('refusals', () => {
  const failing = () => {
    throw new Error('broken')
  }
  const will = { topic: 'w', qos: 1, retain: true } as const
  const refusals: [
    string,
    MemoryBrokerOptions & { authenticate?: () => Verdict },
    string,
    ConnectSettings['will']?,
  ][] = [
    ['a client identifier [MQTT-3.1.3-8]', { authenticate: () => 0x85 }, '85'],
    ['a wrong password', { authenticate: () => 0x86 }, '86'],
    ['no permission', { authenticate: () => false }, '87'],
    ['a banned client', { authenticate: () => 0x8a }, '8a'],
    ['a hook that fails', { authenticate: failing }, '80'],
    ['a will of QoS 1 above 0 [MQTT-3.2.2-12]', { maximumQoS: 0 }, '9b'],
    ['a will of QoS 2 above 1 [MQTT-3.2.2-12]', { maximumQoS: 1 }, '9b', { topic: 'w', qos: 2 }],
    ['a retained will without retained messages [MQTT-3.2.2-13]', { retainAvailable: false }, '9a'],
    ['no room', { maxSessions: 0 }, '97'],
  ]

  it.each(refusals)(
    '%s: CONNACK, the end, and nothing is left [MQTT-3.1.4-2] [MQTT-3.2.2-7]',
    async (_what, options, code, other) => {
      const { dial, broker } = world(options)
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a', ...durable, will: other ?? will })
      expect([client.heard(), client.gone]).toEqual([[`20 03 00 ${code} 00`], true])
      await client.cut()
      expect([broker.sessions.size, broker.clients.size, broker.accepted.length]).toEqual([0, 0, 0])
    },
  )

  it('a will within the limit is taken [MQTT-3.2.2-12] [MQTT-3.2.2-13]', async () => {
    const { dial } = world({ maximumQoS: 1, retainAvailable: false })
    expect(await headOf(dial(), { will: { topic: 'w', qos: 1 } })).toBe('20 00 00')
  })

  it('what follows a refused CONNECT in the same write is not handled, nor while the verdict is awaited [MQTT-3.1.4-6]', async () => {
    const { dial, join, broker } = world({ authenticate: ({ clientId }) => clientId === 'watcher' })
    const watcher = await join('watcher')
    await watcher.subscribe('#')
    watcher.heard()
    const [publish, subscribe] = [
      packetOf('33', textOf('t'), '00 01 00 78'),
      packetOf('82', '00 02 00', textOf('t'), '00'),
    ]
    expect(await dial().say(connectOf(), publish, subscribe, 'c0 00')).toEqual(['20 03 00 87 00'])
    expect([watcher.heard(), broker.accepted, broker.retained.size]).toEqual([[], [], 0])
    const late = pending()
    const [one, two] = [late.dial(), late.dial()]
    expect([
      await one.say(connectOf(), publish),
      await two.say(connectOf({ clientId: 'b' }), publish),
    ]).toEqual([[], []])
    late.decide[0]?.(true)
    late.decide[1]?.(false)
    await late.clock.settle()
    expect([firstsOf(one.heard()), two.heard()]).toEqual([['20', '40'], ['20 03 00 87 00']])
    expect([late.broker.accepted.map(({ clientId }) => clientId), two.gone]).toEqual([['a'], true])
  })

  it('a verdict comes too late for a client that is gone', async () => {
    for (const verdict of [true, false]) {
      const { dial, broker, clock, decide } = pending()
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a', ...durable })
      await client.cut()
      decide[0]?.(verdict)
      await clock.settle()
      expect([broker.sessions.size, broker.clients.size]).toEqual([0, 0])
    }
  })

  it('what waits for a verdict is bounded', async () => {
    const client = world({ ...never, maxBacklog: 1000 }).dial()
    await client.send({ type: 'connect', clientId: 'a' })
    await client.publish('t', 'x'.repeat(900))
    expect(client.gone).toBe(false)
    expect(await client.publish('t', 'x'.repeat(900))).toMatchObject([
      { type: 'connack', reasonCode: 0x97 },
    ])
    expect(client.gone).toBe(true)
    const busy = world(never).dial()
    await busy.send({ type: 'connect', clientId: 'a' })
    await busy.send(...Array.from({ length: 1000 }, () => ({ type: 'pingreq' as const })))
    expect(busy.gone).toBe(false)
    expect(await busy.send({ type: 'pingreq' })).toMatchObject([
      { type: 'connack', reasonCode: 0x97 },
    ])
  })

  it('say why, also where Request Problem Information is 0; 3.1.1 cannot', async () => {
    const moved = {
      reasonCode: 0x9c,
      properties: { serverReference: 'other', reasonString: 'moved' },
    }
    const verdicts = { no: false, banned: 0x8a, moved } as const
    const { dial } = world({
      authenticate: ({ clientId }) => verdicts[clientId as keyof typeof verdicts],
      maximumQoS: 0,
    })
    const refusal = (settings: ConnectSettings, version?: 4 | 5) =>
      dial(version).connect({ clientId: 'no', ...settings })
    const unauthorized = { reasonCode: 0x87, properties: { reasonString: 'Not authorized' } }
    expect(await refusal({})).toMatchObject(unauthorized)
    expect(await refusal({ properties: { requestProblemInformation: 0 } })).toMatchObject(
      unauthorized,
    )
    expect(await refusal({ clientId: 'banned' })).toMatchObject({
      properties: { reasonString: 'Banned' },
    })
    expect(await refusal({ clientId: 'moved' })).toMatchObject(moved)
    const reasonString = expect.stringMatching(/QoS/)
    expect(await refusal({ will: { topic: 't', qos: 1 } })).toMatchObject({
      reasonCode: 0x9b,
      properties: { reasonString },
    })
    expect(await refusal({}, 4)).toMatchObject({ reasonCode: 5, properties: {} })
  })
})

describe('takeover', () => {
  scenes({
    'the older connection hears 0x8E and is closed, the newer has the session [MQTT-3.1.4-3] [MQTT-3.1.4-4]':
      'a> C:a~ S:1:t:0; a< K:0 SA:1:0; b> C:a~ P:t=x Q; b< K:1 P:t=x R; a.8e',
    'Clean Start 1 of the newer one drops the session [MQTT-3.1.4-4]':
      'a> C:a~ S:1:t:0; a< K:0 SA:1:0; b> C:a P:t=x Q; b< K:0 R; a.8e',
    'a session without expiry ends with the older connection':
      'a> C:a S:1:t:0; a< K:0 SA:1:0; b> C:a* P:t=x Q; b< K:0 R; a.8e',
  })
})

describe('keep alive [MQTT-3.1.2-22]', () => {
  scenes({
    'silence for one and a half intervals ends the connection as a lost network does, a PINGREQ counts [MQTT-3.1.2-22] [MQTT-3.12.4-1]':
      'w* w:0; p> C:p&2; p< K:0; a> C:a&2!w=x; a< K:0; +2000; p> Q; p< R; +999; a_; w_; +1; a.8d; w< P:w=x; +1999; p_; +1; p.8d',
    'any packet counts': 'a> C:a&2; a< K:0; +2999; a> P:t=x; +2999; a> P:t=x; +2999; a_; +1; a.8d',
    '0 is off': 'a> C:a; a< K:0; +10000000; a> Q; a< R',
  })
  scenes(
    { 'what the server decides holds [MQTT-3.2.2-22]': 'a> C:a&100; a< K:0; +2999; a_; +1; a.8d' },
    [5],
    { serverKeepAlive: 2 },
  )
  scenes(
    {
      'the own value holds, as there is no other':
        'a> C:a&100; a< K:0; +149999; a> Q; +149999; a< R; +1; a.',
    },
    [4],
    { serverKeepAlive: 2 },
  )

  it('a packet that goes on coming in counts, one that stands still does not; the end is noted', async () => {
    const { client, clock, broker } = await joined({}, { keepAlive: 10 })
    // PUBLISH of 10,000 bytes, and a quarter of it each 14 s.
    const packet = [0x30, 0x91, 0x4e, 0, 1, 0x74, 0, ...new Array<number>(9997).fill(0x2e)]
    for (let at = 0; at < 7500; at += 2500) {
      await client.sendBytes(packet.slice(at, at + 2500))
      await clock.advance(14_000)
    }
    expect(client.gone).toBe(false)
    await clock.advance(1000)
    expect(client.goodbye).toBe(0x8d)
    expect(broker.violations).toMatchObject([{ clientId: 'a', reasonCode: 0x8d, time: 43_000 }])
  })
})

it.each([0, 1] as const)(
  'SUBSCRIBE may ask for any QoS all the same: %i [MQTT-3.2.2-10]',
  async (maximumQoS) => {
    const { client } = await joined({ maximumQoS })
    const filters = ['00', '01', '02'].map((qos) => `${textOf(`t/${qos}`)} ${qos}`)
    expect(await client.say(packetOf('82', '00 01 00', ...filters))).toEqual([
      `90 06 00 01 00 00 0${maximumQoS} 0${maximumQoS}`,
    ])
    expect(client.gone).toBe(false)
  },
)
