/** Chapters 1 and 2, by the bytes of a client: strings, pairs, variable byte integers, the fixed header, packet identifiers, property lengths. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client/api/index.js'
import type { BaseClient } from '../../src/client/client.js'
import { toy } from '../unit/client/toy-auth.js'
import {
  block,
  connack,
  dialled,
  field,
  firsts,
  fresh,
  goodbye,
  opened,
  packet,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  quiet,
  refusal,
  suback,
  text,
  u8,
  u16,
  type Wire,
} from './bytes.js'

/** Every string that the API takes, one call for each. */
const calls: [string, (client: BaseClient, bad: string) => unknown][] = [
  ['topic [MQTT-3.3.2-1]', (client, bad) => client.publish(bad, 'x')],
  ['topic of post()', (client, bad) => client.post(bad, 'x')],
  ['filter [MQTT-3.8.3-1]', (client, bad) => client.subscribe(bad)],
  ['filter of unsubscribe() [MQTT-3.10.3-1]', (client, bad) => client.unsubscribe(bad)],
  [
    'content type [MQTT-3.3.2-19]',
    (client, bad) => client.publish('t', 'x', { properties: { contentType: bad } }),
  ],
  [
    'response topic [MQTT-3.3.2-13]',
    (client, bad) => client.publish('t', 'x', { properties: { responseTopic: bad } }),
  ],
  [
    'name of a user property',
    (client, bad) => client.publish('t', 'x', { properties: { userProperties: [[bad, 'v']] } }),
  ],
  [
    'value of a user property',
    (client, bad) => client.publish('t', 'x', { properties: { userProperties: [['k', bad]] } }),
  ],
  [
    'user property of SUBSCRIBE',
    (client, bad) => client.subscribe('t', { properties: { userProperties: [['k', bad]] } }),
  ],
  [
    'user property of UNSUBSCRIBE',
    (client, bad) => client.unsubscribe('t', { properties: { userProperties: [[bad, 'v']] } }),
  ],
  ['reason string', (client, bad) => client.disconnect({ reasonString: bad })],
  [
    'user property of DISCONNECT',
    (client, bad) => client.disconnect({ userProperties: [['k', bad]] }),
  ],
]

const settings: [string, (bad: string) => ClientOptions][] = [
  ['client id [MQTT-3.1.3-4]', (bad) => ({ clientId: bad })],
  ['user name [MQTT-3.1.3-12]', (bad) => ({ username: bad })],
  ['user property of CONNECT', (bad) => ({ userProperties: [[bad, 'v']] })],
  ['will topic [MQTT-3.1.3-11]', (bad) => ({ will: { topic: bad } })],
  [
    'content type of the will',
    (bad) => ({ will: { topic: 'w', properties: { contentType: bad } } }),
  ],
  [
    'response topic of the will',
    (bad) => ({ will: { topic: 'w', properties: { responseTopic: bad } } }),
  ],
  [
    'user property of the will',
    (bad) => ({ will: { topic: 'w', properties: { userProperties: [['k', bad]] } } }),
  ],
]

/** Lone surrogates, and U+0000. */
const illText = ['\ud800', 'a\udfff', '\udc00\ud800', 'x\ud83d', '\0', 'a\0b']

async function isRefused(
  call: (client: BaseClient, bad: string) => unknown,
  bad: string,
): Promise<void> {
  const wire = await opened()
  const { code } = await refusal(() => call(wire.client, bad))
  expect(['ERR_INVALID_OPTION', 'ERR_INVALID_TOPIC']).toContain(code)
  await wire.advance(1000)
  expect(wire.take()).toEqual([])
  expect(wire.client.state).toBe('connected')
}

describe('strings that the application gives', () => {
  it.each(calls)(
    '[MQTT-1.5.4-1] [MQTT-1.5.4-2] ill-formed %s: refused, and nothing is sent',
    async (_what, call) => {
      for (const bad of illText) await isRefused(call, bad)
    },
  )

  it.each(settings)(
    '[MQTT-1.5.4-1] [MQTT-1.5.4-2] ill-formed %s: refused before anything is dialled',
    async (_what, options) => {
      for (const bad of illText)
        expect(await refusal(() => dialled(options(bad)))).toMatchObject({
          code: expect.stringMatching(/^ERR_INVALID/),
        })
      const wire = await dialled(options('gut\ud83d\ude00'))
      expect(wire.take().join()).toContain('677574f09f9880')
    },
  )

  it('[MQTT-1.5.7-1] each half of a pair is a string of its own: what is ill-formed is refused, what is not goes out as it is', async () => {
    const wire = await opened()
    for (const bad of illText) {
      for (const pair of [
        [bad, 'v'],
        ['k', bad],
      ] as [string, string][]) {
        expect(
          await refusal(() =>
            wire.client.publish('t', 'x', { properties: { userProperties: [pair] } }),
          ),
        ).toMatchObject({
          code: 'ERR_INVALID_OPTION',
        })
      }
    }
    await wire.publish(0, 'x', {
      properties: {
        userProperties: [
          ['', '😀'],
          ['ß', ''],
        ],
      },
    })
    expect(await wire.sent()).toEqual([
      publish(0x30, 't', 0, 'x', `26${text('')}${text('😀')}26${text('ß')}${text('')}`),
    ])
  })
})

/** What UTF-8 does not allow (Unicode 15, table 3-7), and U+0000 apart. */
const illFormed =
  '80 bf c080 c1bf c3 c328 e08080 e282 eda080 edbfbf eda081edb080 f0808080 f09f98 f4908080 f5808080 f888808080 fe ff 61ff62'.split(
    ' ',
  )

/** Where a connected client meets strings of the server; the request that it answers is made before. */
const places: [string, (bad: string) => string][] = [
  ['topic [MQTT-3.3.2-1]', (bad) => packet(0x30, bad, '00', '78')],
  ['content type [MQTT-3.3.2-19]', (bad) => packet(0x30, text('t'), block('03', bad))],
  ['response topic [MQTT-3.3.2-13]', (bad) => packet(0x30, text('t'), block('08', bad))],
  ['name of a user property', (bad) => packet(0x30, text('t'), block('26', bad, text('v')))],
  ['value of a user property', (bad) => packet(0x30, text('t'), block('26', text('k'), bad))],
  ['reason string of PUBACK', (bad) => packet(0x40, u16(1), '00', block('1f', bad))],
  ['reason string of SUBACK', (bad) => packet(0x90, u16(2), block('1f', bad), '00')],
  [
    'value of a user property of SUBACK',
    (bad) => packet(0x90, u16(2), block('26', text('k'), bad), '00'),
  ],
  [
    'name of a user property of PUBACK',
    (bad) => packet(0x40, u16(1), '00', block('26', bad, text('v'))),
  ],
  ['reason string of UNSUBACK', (bad) => packet(0xb0, u16(3), block('1f', bad), '00')],
  ['reason string of DISCONNECT', (bad) => packet(0xe0, '80', block('1f', bad))],
]

/** A client with a publish, a subscription and an unsubscription on their way, identifiers 1, 2 and 3. */
async function busy(): Promise<{ wire: Wire; seen: string[] }> {
  const wire = await opened()
  wire.publish(1, 'x')
  quiet(wire.client.subscribe('s'))
  quiet(wire.client.unsubscribe('u'))
  const seen: string[] = []
  const reader = await wire.subscribed('#')
  ;(async () => {
    for await (const message of reader) seen.push(message.topic)
  })().catch(() => undefined)
  return { wire, seen }
}

async function closes(bytes: string, reasonCode = 0x81): Promise<void> {
  const { wire, seen } = await busy()
  expect([await wire.answers(bytes), wire.ended]).toEqual([[goodbye(reasonCode)], true])
  expect(seen).toEqual([])
}

describe('strings of the server', () => {
  it.each(places)(
    '[MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-1.5.7-1] ill-formed %s: DISCONNECT 0x81, the end; a good one is fine',
    async (_what, make) => {
      for (const bad of [...illFormed, '00', '610062']) await closes(make(field(bad)))
      const { wire } = await busy()
      expect(await wire.answers(make(text('ä\u0001€😀\uffff\u{10ffff}')))).toEqual([])
    },
  )

  it('[MQTT-1.5.4-1] before CONNACK is believed: no DISCONNECT, the end', async () => {
    for (const bad of illFormed) {
      const wire = await dialled()
      wire.take()
      expect([await wire.answers(connack(`1f${field(bad)}`)), wire.ended]).toEqual([[], true])
    }
  })

  it('[MQTT-1.5.4-3] EF BB BF is U+FEFF, also in front: kept in topics, filters, properties and payloads', async () => {
    const wire = await opened()
    const plain = await wire.subscribed('a')
    const marked = wire.client.subscribe('\ufeffa')
    expect(await wire.sent()).toEqual([packet(0x82, u16(2), '00', field('efbbbf61'), '00')])
    await wire.give(suback(2, 0))
    await wire.give(
      packet(
        0x30,
        field('efbbbf61'),
        block('03', field('efbbbf'), '26', field('efbbbf6b'), field('76efbbbf')),
        'efbbbf78',
      ),
    )
    const message = (await marked).read()
    expect([message?.topic, message?.topic.length, message?.text()]).toEqual([
      '\ufeffa',
      2,
      '\ufeffx',
    ])
    expect(message?.properties).toMatchObject({
      contentType: '\ufeff',
      userProperties: [['\ufeffk', 'v\ufeff']],
    })
    expect(plain.size).toBe(0)
    wire.client.post('\ufeffa', '\ufeff')
    expect(await wire.sent()).toEqual([packet(0x30, field('efbbbf61'), '00', 'efbbbf')])
  })
})

describe('variable byte integers [MQTT-1.5.5-1]', () => {
  it.each([
    [127, '7f'],
    [128, '8001'],
    [16_383, 'ff7f'],
    [16_384, '808001'],
    [2_097_151, 'ffff7f'],
    [2_097_152, '80808001'],
  ])('[MQTT-1.5.5-1] Remaining Length %i is %s', async (length, written) => {
    const wire = await opened()
    const payload = new Uint8Array(length - 4).fill(0x78)
    quiet(wire.client.publish('t', payload))
    const [sent = ''] = await wire.sent()
    expect(sent.slice(0, 2 + written.length + 8)).toBe(`30${written}${text('t')}00`)
    expect(sent.length / 2).toBe(1 + written.length / 2 + length)
  })

  it.each([
    [1, '01'],
    [127, '7f'],
    [128, '8001'],
    [16_383, 'ff7f'],
    [16_384, '808001'],
    [2_097_151, 'ffff7f'],
    [2_097_152, '80808001'],
    [268_435_455, 'ffffff7f'],
  ])('[MQTT-1.5.5-1] Subscription Identifier %i is %s', async (subscriptionIdentifier, written) => {
    const wire = await opened({}, connack(''))
    quiet(wire.client.subscribe('a', { properties: { subscriptionIdentifier } }))
    expect(await wire.sent()).toEqual([
      packet(0x82, u16(1), block(`0b${written}`), text('a'), '00'),
    ])
  })

  it.each([
    [127, '7f'],
    [128, '8001'],
    [16_383, 'ff7f'],
    [16_384, '808001'],
  ])('[MQTT-1.5.5-1] Property Length %i is %s', async (length, written) => {
    const wire = await opened()
    const value = 'v'.repeat(length - 5)
    wire.publish(0, 'x', { properties: { userProperties: [['', value]] } })
    expect(await wire.sent()).toEqual([
      packet(0x30, text('t'), written, `26${text('')}${text(value)}`, '78'),
    ])
  })
})

describe('the fixed header', () => {
  it('[MQTT-2.1.3-1] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.10.1-1] [MQTT-3.14.1-1] [MQTT-3.15.1-1] each packet of a client has the flags of its type', async () => {
    const method = `15${text('toy')}`
    const wire = await dialled({ auth: toy().auth, keepAlive: 1 })
    await wire.give(packet(0xf0, '18', block(method)), connack(`2900${method}`))
    wire.publish(0, 'x')
    wire.publish(1, 'x')
    wire.publish(2, 'x')
    quiet(wire.client.subscribe('s'))
    quiet(wire.client.unsubscribe('u'))
    await wire.give(pubrec(2), publish(0x32, 'a', 1, 'x'), publish(0x34, 'a', 2, 'x'), pubrel(2))
    quiet(wire.client.reauthenticate())
    await wire.advance(1000)
    quiet(wire.client.disconnect({ timeout: 0 }))
    await wire.settle()
    const seen = firsts(wire.take())
    expect([...new Set(seen)].sort()).toEqual([
      '10',
      '30',
      '32',
      '34',
      '40',
      '50',
      '62',
      '70',
      '82',
      'a2',
      'c0',
      'e0',
      'f0',
    ])
  })

  const bodies: [string, number, string[]][] = [
    ['PUBACK', 0x40, [u16(1)]],
    ['PUBREC', 0x50, [u16(2)]],
    ['PUBREL [MQTT-3.6.1-1]', 0x62, [u16(9)]],
    ['PUBCOMP', 0x70, [u16(3)]],
    ['SUBACK', 0x90, [u16(4), '00', '00']],
    ['UNSUBACK', 0xb0, [u16(5), '00', '00']],
    ['PINGRESP', 0xd0, []],
    ['DISCONNECT [MQTT-3.14.1-1]', 0xe0, []],
    ['AUTH [MQTT-3.15.1-1]', 0xf0, ['18', block(`15${text('toy')}`)]],
  ]

  /** A client for which each of these packets is the right one at this moment. */
  async function ready(): Promise<Wire> {
    const method = `15${text('toy')}`
    const wire = await opened({ auth: toy().auth }, connack(`2900${method}`))
    wire.publish(1, 'x')
    wire.publish(2, 'x')
    wire.publish(2, 'x')
    quiet(wire.client.subscribe('s'))
    quiet(wire.client.unsubscribe('u'))
    await wire.give(pubrec(3), publish(0x34, 'a', 9, 'x'))
    quiet(wire.client.reauthenticate())
    await wire.sent()
    return wire
  }

  it.each(bodies)(
    '[MQTT-2.1.3-1] %s of the server with any other flags: DISCONNECT 0x81, the end; with the right ones none of it',
    async (_name, first, body) => {
      for (let flags = 0; flags < 16; flags++) {
        const wire = await ready()
        const wrong = (first & 0xf0) | flags
        await wire.give(packet(wrong, ...body))
        if (wrong === first) expect(wire.take()).not.toContain(goodbye(0x81))
        else {
          expect(wire.take(), u8(wrong)).toEqual([goodbye(0x81)])
          expect(wire.ended).toBe(true)
        }
      }
    },
  )

  it('[MQTT-2.1.3-1] [MQTT-3.15.1-1] before the connection is there CONNACK or AUTH with any flags: the end, without a word', async () => {
    for (let flags = 1; flags < 16; flags++) {
      for (const bytes of [
        packet(0x20 | flags, '000000'),
        packet(0xf0 | flags, '18', block(`15${text('toy')}`)),
      ]) {
        const wire = await dialled({ auth: toy().auth })
        wire.take()
        expect([await wire.answers(bytes), wire.ended]).toEqual([[], true])
      }
    }
  })
})

describe('packet identifiers', () => {
  it('[MQTT-2.2.1-2] [MQTT-4.3.1-1] a QoS 0 PUBLISH has none: behind the topic stands the Property Length', async () => {
    const wire = await opened()
    wire.publish(0, 'x')
    wire.publish(0, 'x', { retain: true })
    wire.client.post('t', 'y')
    expect(await wire.sent()).toEqual([
      `3005${text('t')}0078`,
      `3105${text('t')}0078`,
      `3005${text('t')}0079`,
    ])
  })

  it('[MQTT-2.2.1-3] [MQTT-4.3.2-1] [MQTT-4.3.3-1] what waits for its answers has identifiers of its own, none of them 0, whatever the kind', async () => {
    const wire = await opened()
    for (let round = 0; round < 20; round++) {
      wire.publish(1, 'x')
      quiet(wire.client.subscribe(`s${round}`))
      wire.publish(2, 'x')
      quiet(wire.client.unsubscribe(`u${round}`))
      await wire.settle()
    }
    const identifiers = wire
      .take()
      .map((bytes) => (bytes.startsWith('3') ? bytes.slice(10, 14) : bytes.slice(4, 8)))
    expect(identifiers).toHaveLength(80)
    expect(new Set(identifiers).size).toBe(80)
    expect(identifiers).not.toContain('0000')
  })

  it('[MQTT-2.2.1-3] [MQTT-4.3.2-1] [MQTT-4.3.3-1] come round behind 65,535: not to 0, nor to one whose answer has not come', async () => {
    const wire = await opened()
    // 1 and 2 stay open: a publish, and a QoS 2 exchange that was released.
    wire.publish(1, 'x')
    wire.publish(2, 'x')
    await wire.answers(pubrec(2))
    for (let next = 3; next <= 65_535; ) {
      const count = Math.min(4000, 65_536 - next)
      for (let index = 0; index < count; index++) wire.publish(1, 'x')
      await wire.settle()
      await wire.give(...Array.from({ length: count }, (_, index) => puback(next + index)))
      next += count
    }
    expect(wire.take().at(-1)).toBe(publish(0x32, 't', 65_535, 'x'))
    wire.publish(1, 'x')
    quiet(wire.client.subscribe('s'))
    expect(await wire.sent()).toEqual([
      publish(0x32, 't', 3, 'x'),
      packet(0x82, u16(4), '00', text('s'), '00'),
    ])
    await wire.give(puback(1), pubcomp(2))
  })

  it('[MQTT-2.2.1-5] PUBACK, PUBREC, PUBREL and PUBCOMP repeat that of their PUBLISH', async () => {
    const wire = await opened()
    expect(
      await wire.answers(publish(0x32, 'a', 0x1234, 'x'), publish(0x34, 'a', 0xabcd, 'x')),
    ).toEqual(['40021234', '5002abcd'])
    expect(await wire.answers('6202abcd')).toEqual(['7002abcd'])
    const done = ['one', 'two', 'three'].map((payload) => wire.publish(2, payload))
    await wire.sent()
    expect(await wire.answers(pubrec(2), pubrec(3), pubrec(1))).toEqual([
      '62020002',
      '62020003',
      '62020001',
    ])
    await wire.give(pubcomp(2), pubcomp(3), pubcomp(1))
    expect((await Promise.all(done)).map(({ packetId }) => packetId)).toEqual([1, 2, 3])
  })
})

describe('Property Length', () => {
  it('[MQTT-2.2.2-1] is there where there are no properties: CONNECT and its will, PUBLISH, SUBSCRIBE, UNSUBSCRIBE', async () => {
    const wire = await dialled({
      receiveMaximum: 65_535,
      sessionExpiryInterval: 0,
      topicAliasMaximum: 0,
      will: { topic: 'w', payload: 'p' },
    })
    // Maximum Packet Size is always said.
    expect(wire.take()).toEqual([
      packet(
        0x10,
        text('MQTT'),
        '05',
        '06',
        '0000',
        block('2701000000'),
        text(''),
        '00',
        text('w'),
        text('p'),
      ),
    ])
    await wire.give(fresh)
    wire.publish(1, 'x')
    quiet(wire.client.subscribe('s'))
    quiet(wire.client.unsubscribe('u'))
    expect(await wire.sent()).toEqual([
      `3207${text('t')}00010078`,
      `8207000200${text('s')}00`,
      `a206000300${text('u')}`,
    ])
  })

  it.each([
    ['PUBLISH at QoS 0', packet(0x30, text('t'))],
    ['PUBLISH at QoS 1', packet(0x32, text('t'), u16(1))],
    ['SUBACK', packet(0x90, u16(2), '01')],
    ['UNSUBACK', packet(0xb0, u16(3))],
  ])('[MQTT-2.2.2-1] is missed in %s: DISCONNECT 0x81, the end', async (_name, bytes) => {
    await closes(bytes)
  })

  it('[MQTT-2.2.2-1] is missed in CONNACK: the end', async () => {
    const wire = await dialled()
    wire.take()
    expect([await wire.answers('20020000'), wire.ended]).toEqual([[], true])
  })
})
