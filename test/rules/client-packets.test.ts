/**
 * Chapters 1 and 2, sections 3.4 to 3.11, 4.7 and 4.8, by the bytes of a client: strings, headers, identifiers, lengths, reason codes, requests.
 * What each filter matches: `test/unit/wire/topics.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../src/client/client.js'
import type { ClientOptions, PublishProperties } from '../../src/client/options/index.js'
import { toy } from '../unit/client/toy-auth.js'
import {
  block,
  connack,
  dialled,
  field,
  firsts,
  fresh,
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
  u16,
  u32,
  unsuback,
} from './bytes.js'

type Call = (client: BaseClient, bad: string) => unknown
type Setting = (bad: string) => ClientOptions
const pair = (bad: string) => ({ userProperties: [[bad, 'v']] as [string, string][] })
const value = (bad: string) => ({ userProperties: [['k', bad]] as [string, string][] })
const publishing =
  (properties: (bad: string) => PublishProperties): Call =>
  (client, bad) =>
    client.publish('t', 'x', { properties: properties(bad) })
const leaving =
  (properties: (bad: string) => PublishProperties): Setting =>
  (bad) => ({ will: { topic: 'w', properties: properties(bad) } })

/** Every string that the API takes, one call for each. */
const calls: [string, Call][] = [
  ['topic [MQTT-3.3.2-1]', (client, bad) => client.publish(bad, 'x')],
  ['topic of post()', (client, bad) => client.post(bad, 'x')],
  ['filter [MQTT-3.8.3-1]', (client, bad) => client.subscribe(bad)],
  ['filter of unsubscribe() [MQTT-3.10.3-1]', (client, bad) => client.unsubscribe(bad)],
  ['content type [MQTT-3.3.2-19]', publishing((contentType) => ({ contentType }))],
  ['response topic [MQTT-3.3.2-13]', publishing((responseTopic) => ({ responseTopic }))],
  ['name of a user property', publishing(pair)],
  ['value of a user property', publishing(value)],
  ['SUBSCRIBE', (client, bad) => client.subscribe('t', { properties: value(bad) })],
  ['UNSUBSCRIBE', (client, bad) => client.unsubscribe('t', { properties: pair(bad) })],
  ['reason string', (client, reasonString) => client.disconnect({ reasonString })],
  ['user property of DISCONNECT', (client, bad) => client.disconnect(value(bad))],
]

const settings: [string, Setting][] = [
  ['client id [MQTT-3.1.3-4]', (clientId) => ({ clientId })],
  ['user name [MQTT-3.1.3-12]', (username) => ({ username })],
  ['user property of CONNECT', pair],
  ['will topic [MQTT-3.1.3-11]', (topic) => ({ will: { topic } })],
  ['content type of the will', leaving((contentType) => ({ contentType }))],
  ['response topic of the will', leaving((responseTopic) => ({ responseTopic }))],
  ['user property of the will', leaving(value)],
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

  it('[MQTT-1.5.7-1] each half of a pair is a string of its own', async () => {
    const wire = await opened()
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

describe('strings of the server', () => {
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
    const flagged = '10 30 32 34 40 50 62 70 82 a2 c0 e0 f0'
    expect([...new Set(seen)].sort().join(' ')).toBe(flagged)
  })
})

describe('packet identifiers', () => {
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
})

// No limit of the server, and the least that holds an acknowledgement with its code.
it.each([undefined, 5])(
  '[MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3] [MQTT-3.6.2-1] [MQTT-3.6.2-2] [MQTT-3.6.2-3] [MQTT-3.7.2-2] [MQTT-3.7.2-3] [MQTT-4.3.3-4] acknowledgements have neither Reason String nor User Properties under a maximum of %s',
  async (size) => {
    const wire = await opened()
    const reader = wire.client.subscription('a', { qos: 2, ack: 'manual' })
    await wire.sent()
    await wire.give(suback(1, 2))
    wire.publish(2, 'x')
    await wire.give(pubrec(2))
    const limit = size === undefined ? '' : `27${u32(size)}`
    expect(await wire.again(connack(`2900${limit}`, 1))).toEqual([pubrel(2)])
    await wire.give(publish(0x32, 'a', 1, 'x'), publish(0x34, 'a', 2, 'y'))
    const extras = [0x83, { reasonString: 'long', userProperties: [['k', 'v']] }, 'a reason']
    for (let message = reader.read(); message !== undefined; message = reader.read())
      Reflect.apply(message.ack, message, extras)
    expect(await wire.sent()).toEqual([puback(1, 0x83), pubrec(2, 0x83)])
    // What the server explains is not repeated.
    const why = block(`1f${text('a reason that is long')}`, `26${text('k')}${text('v')}`)
    const explained = (first: number, id: number, code = '00') => packet(first, u16(id), code, why)
    expect(await wire.answers(explained(0x50, 2, '10'), explained(0x50, 77, '10'))).toEqual([
      pubrel(2),
      pubrel(77, 0x92),
    ])
    await wire.give(publish(0x34, 'a', 3, 'x'))
    reader.read()?.ack()
    expect(await wire.answers(explained(0x62, 3), explained(0x62, 4))).toEqual([
      pubrec(3),
      pubcomp(3),
      pubcomp(4, 0x92),
    ])
  },
)

/** Refused by everything that takes filters; nothing is sent. */
async function isNoFilter(filter: string): Promise<void> {
  const wire = await opened()
  for (const call of [
    () => wire.client.subscribe([{ filter: 'good' }, { filter }]),
    () => wire.client.subscription(filter).ready,
    () => wire.client.listen(filter, () => undefined),
    () => wire.client.unsubscribe(['good', filter]),
  ])
    expect((await refusal(call)).code, filter).toMatch(/^ERR_INVALID_(TOPIC|OPTION)$/)
  expect(await wire.sent()).toEqual([])
}

/** Refused as a topic by everything that publishes; nothing is sent. */
async function isNoTopic(topic: string): Promise<void> {
  const wire = await opened()
  for (const qos of [0, 1, 2] as const)
    expect((await refusal(() => wire.client.publish(topic, 'x', { qos }))).code).toBe(
      'ERR_INVALID_TOPIC',
    )
  expect((await refusal(() => wire.client.post(topic, 'x'))).code).toBe('ERR_INVALID_TOPIC')
  expect((await refusal(() => dialled({ will: { topic } }))).code).toBe('ERR_INVALID_OPTION')
  expect(await wire.sent()).toEqual([])
}

describe('requests', () => {
  it('[MQTT-3.8.1-1] [MQTT-3.8.3-1] [MQTT-3.8.3-2] [MQTT-3.8.3-5] SUBSCRIBE: flags 0010, identifier, properties, and each filter as a string with its options', async () => {
    const wire = await opened()
    quiet(
      wire.client.subscribe([
        { filter: 'ä/+' },
        { filter: 'b', qos: 1, noLocal: true },
        { filter: 'c', qos: 2, retainAsPublished: true, retainHandling: 1 },
        { filter: '#', qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 },
      ]),
    )
    const filters = ['0004c3a42f2b', '00', text('b'), '05', text('c'), '1a', text('#'), '2e']
    expect(await wire.sent()).toEqual([packet(0x82, u16(1), '00', ...filters)])
  })

  it('[MQTT-3.10.1-1] [MQTT-3.10.3-1] [MQTT-3.10.3-2] UNSUBSCRIBE: the same without options; resolves on UNSUBACK', async () => {
    const wire = await opened()
    const done = quiet(wire.client.unsubscribe(['ä/+', '#', '$share/g/a']))
    expect(await wire.sent()).toEqual([
      packet(0xa2, u16(1), '00', '0004c3a42f2b', text('#'), text('$share/g/a')),
    ])
    expect((await wire.world.outcome(done)).state).toBe('pending')
    await wire.give(unsuback(1, 0, 0x11, 0))
    expect((await done).map(({ reasonCode }) => reasonCode)).toEqual([0, 0x11, 0])
  })

  it.each([[[]], [undefined], [null], [5], [[{}]], [{ qos: 1 }]])(
    '[MQTT-3.8.3-2] [MQTT-3.10.3-2] %j is no filter: refused, nothing is sent',
    async (filters) => {
      const wire = await opened()
      for (const call of ['subscribe', 'unsubscribe'] as const) {
        const error = await refusal(() => wire.client[call](filters as never))
        expect([error.code, error.outcome]).toEqual([
          expect.stringMatching(/^ERR_INVALID_/),
          'not-sent',
        ])
      }
      expect(await wire.sent()).toEqual([])
    },
  )

  it('[MQTT-3.8.3-4] No Local on a shared filter is refused, nothing is sent; beside one it is taken', async () => {
    const wire = await opened()
    const filter = '$share/g/#'
    for (const call of [
      () => wire.client.subscribe(filter, { noLocal: true }),
      () => wire.client.subscribe(['plain', { filter, noLocal: true }]),
      () => wire.client.subscription(filter, { noLocal: true }).ready,
    ])
      expect(await refusal(call)).toMatchObject({ code: 'ERR_INVALID_OPTION', outcome: 'not-sent' })
    expect(await wire.sent()).toEqual([])
    quiet(wire.client.subscribe([filter, { filter: 'plain', noLocal: true }], { qos: 1 }))
    expect(await wire.sent()).toEqual([
      packet(0x82, u16(1), '00', text(filter), '01', text('plain'), '05'),
    ])
  })
})

describe('filters and topics', () => {
  // Which are none: `test/unit/wire/strict-strings.test.ts`.
  it.each(['', 'a#', '+a', 'a\0', '$share//a', '$share/+/a'])(
    '[MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.7.3-2] [MQTT-4.8.2-1] [MQTT-4.8.2-2] %j is neither a filter nor a topic: refused, and nothing is sent',
    async (wrong) => {
      await isNoFilter(wrong)
      if (!wrong.startsWith('$')) await isNoTopic(wrong)
    },
  )

  it.each([
    ['one byte each', 'x'.repeat(65_535), 'x'.repeat(65_536)],
    ['four bytes each', `${'😀'.repeat(16_383)}xyz`, '😀'.repeat(16_384)],
  ])(
    '[MQTT-4.7.3-3] 65,535 bytes of UTF-8 go both ways, characters of %s; one more is refused',
    async (_name, longest, tooLong) => {
      const wire = await opened()
      const reader = await wire.subscribed(longest)
      wire.client.post(longest, 'x')
      expect(await wire.sent()).toEqual([publish(0x30, longest, 0, 'x')])
      await wire.give(publish(0x30, longest, 0, 'y'))
      const message = reader.read()
      expect([message?.topic === longest, message?.text()]).toEqual([true, 'y'])
      await isNoFilter(tooLong)
      await isNoTopic(tooLong)
    },
  )
})
