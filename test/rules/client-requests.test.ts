/** Sections 3.8, 3.10, 4.7 and 4.8, by the bytes of a client. What each filter matches: `test/unit/wire/topics.test.ts`. */
import { describe, expect, it } from 'vitest'
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

/** These bytes of the server end the connection with this code, and nothing of them is delivered. */
async function ends(bytes: string, reasonCode: number): Promise<void> {
  const wire = await opened()
  const reader = await wire.subscribed('#')
  expect([await wire.answers(bytes), wire.ended]).toEqual([[goodbye(reasonCode)], true])
  expect(reader.size).toBe(0)
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
  it.each([
    ['[MQTT-4.7.1-1]', 'a# a/#/b #/a #/ /#a +# a/b#'],
    ['[MQTT-4.7.1-2]', 'a+ +a a/b+/c ++ +/a+ /a+/'],
    ['[MQTT-4.7.3-1]', ''],
    ['[MQTT-4.7.3-2]', 'a\0 a/\0/b'],
    ['[MQTT-4.8.2-1]', '$share//a $share// $share/'],
    ['[MQTT-4.8.2-2]', '$share/g $share/g/ $share/+/a $share/#/a $share/g+/a $share/g/a#'],
  ])('%s are refused, and nothing is sent: %j', async (_id, filters) => {
    for (const filter of filters.split(' ')) await isNoFilter(filter)
  })

  const topics = ['a', 'a/', 'a/b', 'a/b/c', '/', '/a', 'b', 'b/a', ' ', 'ab']
  it.each([
    ['[MQTT-4.7.1-1]', 'a/#', ['a', 'a/', 'a/b', 'a/b/c']],
    ['[MQTT-4.7.1-2]', '+/a', ['/a', 'b/a']],
    ['[MQTT-4.7.3-1]', ' ', [' ']],
    ['[MQTT-4.8.2-1] [MQTT-4.8.2-2]', '$share/gruppe 1/a/+', ['a/', 'a/b']],
    ['[MQTT-4.8.2-1] [MQTT-4.8.2-2]', '$share/g//', ['/']],
  ])('%s "%s" is sent as it is, and takes what it matches', async (_id, filter, expected) => {
    const wire = await opened()
    const subscribing = quiet(wire.client.subscribe(filter))
    expect(await wire.sent()).toEqual([packet(0x82, u16(1), '00', text(filter), '00')])
    await wire.give(suback(1, 0), ...topics.map((topic) => publish(0x30, topic, 0, 'x')))
    const reader = await subscribing
    expect(expected.map(() => reader.read()?.topic)).toEqual(expected)
    expect(reader.size).toBe(0)
    quiet(wire.client.unsubscribe(filter))
    expect(await wire.sent()).toEqual([packet(0xa2, u16(2), '00', text(filter))])
  })

  it('[MQTT-4.7.3-1] no topic is empty: refused, and from the server without an alias DISCONNECT 0x82, the end', async () => {
    await isNoTopic('')
    for (const first of [0x30, 0x31]) await ends(publish(first, '', 0, 'x'), 0x82)
    for (const first of [0x32, 0x34]) await ends(publish(first, '', 1, 'x'), 0x82)
  })

  it('[MQTT-4.7.3-2] none has U+0000: refused, and from the server DISCONNECT 0x81, the end', async () => {
    await isNoTopic('a/\0/b')
    await ends(packet(0x30, field(raw('a/\0/b')), '00'), 0x81)
  })

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
