/** Sections 3.8, 3.10, 4.7 and 4.8, by the bytes of a client. What each filter matches: `test/unit/wire/topics.test.ts`. */
import { describe, expect, it } from 'vitest'
import { dialled, opened, packet, publish, quiet, refusal, text, u16, unsuback } from './bytes.js'

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
