/** Sections 3.8, 3.10, 4.7 and 4.8, by the bytes of a client: SUBSCRIBE, UNSUBSCRIBE, topic names and topic filters, shared subscriptions. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/client/api/index.js'
import {
  dialled,
  field,
  goodbye,
  opened,
  packet,
  publish,
  quiet,
  raw,
  refusal,
  suback,
  text,
  u16,
  unsuback,
} from './bytes.js'

/** Refused by subscribe() and unsubscribe(); nothing is sent. */
async function isNoFilter(filter: string): Promise<void> {
  const wire = await opened()
  for (const call of [
    () => wire.client.subscribe(filter),
    () => wire.client.subscribe([{ filter: 'good' }, { filter }]),
    () => wire.client.subscription(filter).ready,
    () => wire.client.listen(filter, () => undefined),
    () => wire.client.unsubscribe(filter),
    () => wire.client.unsubscribe(['good', filter]),
  ]) {
    expect((await refusal(call)).code).toMatch(/^ERR_INVALID_(TOPIC|OPTION)$/)
  }
  expect(await wire.sent()).toEqual([])
}

/** The topics of all messages that wait. */
function read(reader: Subscription): string[] {
  const seen: string[] = []
  for (let message = reader.read(); message !== undefined; message = reader.read())
    seen.push(message.topic)
  return seen
}

/** Sent as given, in both packets; which of the topics reach its reader. */
async function matching(filter: string, topics: readonly string[]): Promise<string[]> {
  const wire = await opened()
  const subscribing = quiet(wire.client.subscribe(filter))
  expect(await wire.sent()).toEqual([packet(0x82, u16(1), '00', text(filter), '00')])
  await wire.give(suback(1, 0), ...topics.map((topic) => publish(0x30, topic, 0, 'x')))
  const seen = read(await subscribing)
  quiet(wire.client.unsubscribe(filter))
  expect(await wire.sent()).toEqual([packet(0xa2, u16(2), '00', text(filter))])
  return seen
}

describe('SUBSCRIBE', () => {
  it('[MQTT-3.8.1-1] [MQTT-3.8.3-1] [MQTT-3.8.3-2] flags 0010, identifier, properties, and each filter as a string with its options', async () => {
    const wire = await opened()
    quiet(
      wire.client.subscribe([
        { filter: 'ä/+', qos: 0 },
        { filter: 'b', qos: 1, noLocal: true },
        { filter: 'c', qos: 2, retainAsPublished: true, retainHandling: 1 },
        { filter: '#', qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 },
      ]),
    )
    expect(await wire.sent()).toEqual([
      packet(
        0x82,
        u16(1),
        '00',
        '0004c3a42f2b',
        '00',
        text('b'),
        '05',
        text('c'),
        '1a',
        text('#'),
        '2e',
      ),
    ])
  })

  it.each([[[]], [''], [undefined], [null], [5], [[{}]], [{ qos: 1 }]])(
    '[MQTT-3.8.3-2] [MQTT-3.10.3-2] %j is no filter: refused, nothing is sent',
    async (filters) => {
      const wire = await opened()
      expect((await refusal(() => wire.client.subscribe(filters as string))).code).toMatch(
        /^ERR_INVALID_/,
      )
      expect((await refusal(() => wire.client.unsubscribe(filters as string))).code).toMatch(
        /^ERR_INVALID_/,
      )
      expect(await wire.sent()).toEqual([])
    },
  )

  it.each(['$share/g/a', '$share/g/#'])(
    '[MQTT-3.8.3-4] No Local on %s is refused, nothing is sent; without it the filter is sent',
    async (filter) => {
      const wire = await opened()
      for (const call of [
        () => wire.client.subscribe(filter, { noLocal: true }),
        () => wire.client.subscribe({ filter, noLocal: true }),
        () => wire.client.subscribe(['plain', { filter, noLocal: true }]),
        () => wire.client.subscription(filter, { noLocal: true }).ready,
      ]) {
        expect((await refusal(call)).code).toMatch(/^ERR_INVALID_/)
      }
      expect(await wire.sent()).toEqual([])
      quiet(wire.client.subscribe([filter, { filter: 'plain', noLocal: true }], { qos: 1 }))
      expect(await wire.sent()).toEqual([
        packet(0x82, u16(1), '00', text(filter), '01', text('plain'), '05'),
      ])
    },
  )
})

describe('UNSUBSCRIBE', () => {
  it('[MQTT-3.10.1-1] [MQTT-3.10.3-1] [MQTT-3.10.3-2] flags 0010, identifier, properties, and each filter as a string', async () => {
    const wire = await opened()
    const done = quiet(wire.client.unsubscribe(['ä/+', '#', '$share/g/a']))
    expect(await wire.sent()).toEqual([
      packet(0xa2, u16(1), '00', '0004c3a42f2b', text('#'), text('$share/g/a')),
    ])
    await wire.give(unsuback(1, 0, 0x11, 0))
    expect((await done).map(({ reasonCode }) => reasonCode)).toEqual([0, 0x11, 0])
  })

  it('[MQTT-3.10.1-1] [MQTT-3.10.3-2] of a subscription that ends: the same, with the filters that nobody reads any more', async () => {
    const wire = await opened()
    const reader = await wire.subscribed('a/#')
    quiet(reader.unsubscribe())
    expect(await wire.sent()).toEqual([packet(0xa2, u16(2), '00', text('a/#'))])
  })
})

const topics = ['a', 'a/', 'a/b', 'a/b/c', '/', '/a', 'b', 'b/a', 'a/x/b', 'ab']

describe('wildcards', () => {
  it.each(['a#', 'a/#/b', '##', '#/a', '#/', '/#a', '+#', 'a/b#', '#+'])(
    '[MQTT-4.7.1-1] "%s" is no filter',
    isNoFilter,
  )

  it.each([
    ['#', topics],
    ['a/#', ['a', 'a/', 'a/b', 'a/b/c', 'a/x/b']],
    ['/#', ['/', '/a']],
    ['a/b/#', ['a/b', 'a/b/c']],
    ['+/#', topics],
  ])(
    '[MQTT-4.7.1-1] "%s" is sent, and takes what lies below, the level above included',
    async (filter, expected) => {
      expect(await matching(filter, topics)).toEqual(expected)
    },
  )

  it.each(['a+', '+a', 'a/b+/c', '++', '+/a+', 'a/+b', '/a+/'])(
    '[MQTT-4.7.1-2] "%s" is no filter',
    isNoFilter,
  )

  it.each([
    ['+', ['a', 'b', 'ab']],
    ['+/+', ['a/', 'a/b', '/', '/a', 'b/a']],
    ['/+', ['/', '/a']],
    ['a/+', ['a/', 'a/b']],
    ['a/+/b', ['a/x/b']],
    ['+/b/+', ['a/b/c']],
    ['+/a', ['/a', 'b/a']],
  ])(
    '[MQTT-4.7.1-2] "%s" is sent, and takes one level where it stands',
    async (filter, expected) => {
      expect(await matching(filter, topics)).toEqual(expected)
    },
  )
})

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

/** What the server sends ends the connection with this code, and nobody reads anything of it. */
async function ends(bytes: string, reasonCode: number): Promise<void> {
  const wire = await opened()
  const reader = await wire.subscribed('#')
  expect([await wire.answers(bytes), wire.ended]).toEqual([[goodbye(reasonCode)], true])
  expect(reader.size).toBe(0)
}

describe('names and filters', () => {
  it('[MQTT-4.7.3-1] have a character at least: none is refused, nothing is sent', async () => {
    await isNoFilter('')
    await isNoTopic('')
  })

  it('[MQTT-4.7.3-1] an empty topic without an alias from the server: DISCONNECT 0x82, the end', async () => {
    for (const first of [0x30, 0x31]) await ends(publish(first, '', 0, 'x'), 0x82)
    for (const first of [0x32, 0x34]) await ends(publish(first, '', 1, 'x'), 0x82)
  })

  it('[MQTT-4.7.3-1] one character is enough', async () => {
    for (const name of ['/', ' ', '+', '#'])
      expect(await matching(name, ['/', ' '])).toContain(
        name === '+' ? ' ' : name === '#' ? '/' : name,
      )
  })

  it.each(['\0', 'a\0', 'a/\0/b'])(
    '[MQTT-4.7.3-2] have no U+0000: %j is refused, nothing is sent',
    async (name) => {
      await isNoFilter(name)
      await isNoTopic(name)
      await ends(packet(0x30, field(raw(name)), '00'), 0x81)
    },
  )

  it.each([
    ['one byte each', 'x'.repeat(65_535), 'x'.repeat(65_536)],
    ['two bytes each', `${'ä'.repeat(32_767)}x`, 'ä'.repeat(32_768)],
    ['four bytes each', `${'😀'.repeat(16_383)}xyz`, '😀'.repeat(16_384)],
  ])(
    '[MQTT-4.7.3-3] have at most 65,535 bytes of UTF-8, characters of %s: as many go both ways, one more is refused',
    async (_name, longest, tooLong) => {
      expect(Buffer.byteLength(longest)).toBe(65_535)
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

describe('shared subscriptions', () => {
  it.each(['$share//a', '$share//', '$share/'])('[MQTT-4.8.2-1] "%s" has no ShareName', isNoFilter)

  it.each([
    '$share/g',
    '$share/g/',
    '$share/+/a',
    '$share/#/a',
    '$share/g#/a',
    '$share/g+/a',
    '$share/#',
    '$share/g/a#',
    '$share/g/+a',
  ])('[MQTT-4.8.2-2] "%s" is no shared filter', isNoFilter)

  it.each([
    ['$share/g/a', ['a']],
    ['$share/gruppe 1/a/+', ['a/', 'a/b']],
    ['$share/g//a', ['/a']],
    ['$share/g//', ['/']],
    ['$share/g/#', topics],
  ])(
    '[MQTT-4.8.2-1] [MQTT-4.8.2-2] "%s" is sent as it is; behind the ShareName stands the filter',
    async (filter, expected) => {
      const wire = await opened()
      const subscribing = quiet(wire.client.subscribe(filter, { qos: 1 }))
      expect(await wire.sent()).toEqual([packet(0x82, u16(1), '00', text(filter), '01')])
      await wire.give(suback(1, 1), ...topics.map((topic) => publish(0x30, topic, 0, 'x')))
      expect(read(await subscribing)).toEqual(expected)
    },
  )
})
