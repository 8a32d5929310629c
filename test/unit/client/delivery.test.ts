/** Inbound PUBLISH: exchanges at each QoS, violations, topic aliases, floods, and handlers that call back into the client. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Subscription } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { accepting, connected, type World } from './harness.js'
import {
  acks,
  agreed,
  bytesOf,
  goodbyeCode,
  obliging,
  pubacks,
  publish,
  quick,
  read,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'

const pubrel = (packetId: number, reasonCode = 0) =>
  ({ type: 'pubrel', packetId, reasonCode }) as const
const qos1 = (text: string, dup = false) => publish('a', text, 5, { dup })
const qos2 = (text: string, packetId: number, dup = false) =>
  publish('a', text, packetId, { qos: 2, dup })

/** A client with a reader of `#` at QoS 2. */
async function reader(options: ClientOptions = {}): Promise<{ world: World; texts: string[] }> {
  const world = await agreed(options)
  return { world, texts: read(await subscribe(world, '#', { qos: 2 })).texts }
}

/** A client whose subscription to `a` waits for `ack()`. */
async function manual(
  options: ClientOptions = {},
): Promise<{ world: World; subscription: Subscription }> {
  const world = await agreed(options)
  return { world, subscription: await subscribe(world, 'a', { qos: 2, ack: 'manual' }) }
}

describe('exchanges', () => {
  it.each([
    ['QoS 0: nothing sent', [publish('a', 'x')], ''],
    ['[MQTT-3.3.4-1] [MQTT-4.3.2-4] QoS 1: PUBACK', [publish('a', 'x', 0x1234)], '40021234'],
    ['[MQTT-4.3.3-8] [MQTT-4.3.3-11] QoS 2: both', [qos2('x', 5), pubrel(5)], '5002000570020005'],
  ] as [string, PacketInput[], string][])(
    'in their shortest form: %s',
    async (_title, packets, hex) => {
      const { world, texts } = await reader()
      const before = world.peer.bytes.length
      for (const packet of packets) await world.send(packet)
      expect(texts).toEqual(['x'])
      expect(Buffer.from(world.peer.bytes.slice(before)).toString('hex')).toEqual(hex)
    },
  )

  it.each(['62020005', '6203000500', '620400050000', '6203000592', '6208000500041f000178'])(
    'PUBREL of each length: %s',
    async (hex) => {
      const { world } = await reader()
      await world.send(qos2('x', 5))
      await world.sendBytes(hex)
      expect(acks(world)).toEqual(['pubrec 5', 'pubcomp 5'])
    },
  )

  it.each([
    [
      '[MQTT-4.3.3-10] the same QoS 2 message again before PUBREL: PUBREC again, one delivery',
      [qos2('x', 5), qos2('x', 5, true), qos2('x', 5), pubrel(5)],
      ['pubrec 5', 'pubrec 5', 'pubrec 5', 'pubcomp 5'],
      ['x'],
    ],
    [
      'PUBREL repeated: PUBCOMP each time',
      [qos2('x', 5), pubrel(5), pubrel(5), pubrel(5)],
      ['pubrec 5', 'pubcomp 5', 'pubcomp 5 0x92', 'pubcomp 5 0x92'],
      ['x'],
    ],
    ['PUBREL for an identifier never seen: PUBCOMP 0x92', [pubrel(9)], ['pubcomp 9 0x92'], []],
    [
      '[MQTT-4.3.2-5] [MQTT-4.3.3-12] an identifier that is free again is a new message, whatever DUP says',
      [qos1('1'), qos1('2', true), qos2('3', 5), pubrel(5), qos2('4', 5, true)],
      ['puback 5', 'puback 5', 'pubrec 5', 'pubcomp 5', 'pubrec 5'],
      ['1', '2', '3', '4'],
    ],
  ] as [string, PacketInput[], string[], string[]][])(
    '%s',
    async (_title, packets, answers, delivered) => {
      const { world, texts } = await reader()
      for (const packet of packets) await world.send(packet)
      expect([acks(world), texts, world.client.state]).toEqual([answers, delivered, 'connected'])
    },
  )

  it('a repeat while the message is in hand binds to it: one delivery, one PUBREC at the end', async () => {
    const { world, subscription } = await manual()
    await world.send(qos2('x', 5))
    await world.send(qos2('x', 5, true))
    expect([subscription.size, acks(world)]).toEqual([1, []])
    taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(['pubrec 5'])
  })

  it('every property reaches the reader, at each QoS', async () => {
    const { world, subscription } = await manual()
    const userProperties: [string, string][] = [
      ['k', '1'],
      ['k', '2'],
      ['', ''],
    ]
    const correlationData = Uint8Array.of(0, 255)
    const properties = {
      ...{
        payloadFormatIndicator: 1,
        messageExpiryInterval: 60,
        contentType: 'text/plain',
        responseTopic: 'r',
      },
      ...{ correlationData, subscriptionIdentifiers: [7], userProperties },
    }
    for (const qos of [0, 1, 2] as const)
      await world.send(publish('a', String(qos), qos || undefined, { qos, properties }))
    for (const qos of [0, 1, 2]) {
      const message = taken(subscription)
      expect([message.qos, message.text(), message.topic]).toEqual([qos, String(qos), 'a'])
      expect(message.properties).toEqual(properties)
    }
  })

  it('a message without properties has none, and retain, dup and redelivered are as sent', async () => {
    const { world, subscription } = await manual()
    await world.send(
      publish('a', 'x', undefined, { retain: true }),
      publish('a', 'y', 1, { dup: true }),
    )
    const [first, second] = [taken(subscription), taken(subscription)]
    expect(Object.values(first.properties).filter((value) => value !== undefined)).toEqual([])
    expect([first.retain, first.dup, first.redelivered]).toEqual([true, false, false])
    expect([second.retain, second.dup, second.redelivered]).toEqual([false, true, true])
  })

  it('payloads outlive the packets that follow', async () => {
    const world = await connected({}, obliging, { backward: { delivery: 'buffer' } })
    const subscription = await subscribe(world, 'a')
    const send = (text: string, contentType: string) =>
      world.send(publish('a', text, undefined, { properties: { contentType } }))
    await send('first', 'one')
    await send('other', 'two')
    const messages = [taken(subscription), taken(subscription)]
    await send('third', 'six')
    expect(
      messages.map((message) => [message.text(), message.topic, message.properties.contentType]),
    ).toEqual([
      ['first', 'a', 'one'],
      ['other', 'a', 'two'],
    ])
  })
})

describe('violations', () => {
  it.each([
    ['PUBREL before our PUBREC', qos2('x', 5), pubrel(5)],
    ['the same identifier at QoS 1, not yet acknowledged', qos1('x'), qos1('y')],
    ['the same identifier at QoS 1, with DUP', qos1('x'), qos1('y', true)],
    ['an identifier in use at QoS 2, then at QoS 1', qos2('x', 5), qos1('y')],
    ['an identifier in use at QoS 1, then at QoS 2', qos1('x'), qos2('y', 5)],
  ] as [string, PacketInput, PacketInput][])('%s: close(0x82)', async (_title, ...packets) => {
    const { world, subscription } = await manual()
    await world.send(...packets)
    expect([goodbyeCode(world), subscription.size]).toEqual([0x82, 1])
  })

  it('QoS 1 with the identifier of a QoS 2 message whose PUBREL has not come', async () => {
    const { world, texts } = await reader()
    await world.send(qos2('x', 5))
    await world.send(publish('a', 'y', 5))
    expect([goodbyeCode(world), texts]).toEqual([0x82, ['x']])
  })

  const either = [0x81, 0x82]
  it.each([
    ['[MQTT-3.3.1-2] QoS 0 with DUP 1', '3805 0001 61 00 78', either],
    ['[MQTT-3.3.1-4] QoS bits 11', '3607 0001 61 0001 00 78', [0x81]],
    ['QoS 1 with identifier 0', '3207 0001 61 0000 00 78', either],
    ['QoS 2 with identifier 0', '3407 0001 61 0000 00 78', either],
    ['topic empty without alias', '3004 0000 00 78', either],
    ['[MQTT-3.3.2-2] [MQTT-4.7.0-1] topic with +', '3005 0001 2b 00 78', [0x81, 0x82, 0x90]],
    ['[MQTT-3.3.2-2] [MQTT-4.7.0-1] topic with #', '3005 0001 23 00 78', [0x81, 0x82, 0x90]],
    ['[MQTT-4.7.3-2] topic with NUL', '3005 0001 00 00 78', [0x81]],
    ['[MQTT-3.3.2-1] topic with a surrogate', '3007 0003 eda080 00 78', [0x81]],
    ['[MQTT-3.3.2-1] topic with bad UTF-8', '3005 0001 ff 00 78', [0x81]],
    ['[MQTT-3.3.2-14] Response Topic with #', '3009 0001 61 04 08000123 78', [0x81, 0x82, 0x90]],
    ['Subscription Identifier 0', '3007 0001 61 02 0b00 78', [0x82]],
    ['[MQTT-3.6.1-1] PUBREL with flags 0', '60020001', [0x81]],
  ] as const)('%s: closed, nothing delivered', async (_what, hex, codes) => {
    const { world, texts } = await reader()
    await world.sendBytes(hex)
    expect(codes).toContain(goodbyeCode(world))
    expect([texts, world.client.state]).toEqual([[], 'closed'])
  })

  it('[MQTT-3.3.4-9] more than our Receive Maximum is borne with: delivered, acknowledged in order, logged once, counted', async () => {
    const warnings: string[] = []
    const logger = { warn: (text: string) => void warnings.push(text) }
    const world = await agreed({ receiveMaximum: 3, stats: true, logger })
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual', buffer: 2 })
    await world.send(
      ...Array.from({ length: 500 }, (_, index) => publish('a', String(index), index + 1)),
    )
    const { receiveMaximumExceeded } = world.client.stats()
    expect([world.client.state, receiveMaximumExceeded]).toEqual(['connected', 497])
    expect([subscription.size, subscription.dropped]).toEqual([500, 0])
    expect(warnings).toEqual([expect.stringMatching(/Receive Maximum$/)])
    for (let count = 0; count < 500; count++) taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 500))
  })

  it("[MQTT-3.3.4-9] more than our Receive Maximum under 'disconnect': close(0x93)", async () => {
    const { world, subscription } = await manual({
      receiveMaximum: 3,
      receiveMaximumExceeded: 'disconnect',
    })
    expect(world.peer.last('connect').properties.receiveMaximum).toBe(3)
    await world.send(publish('a', '1', 1), qos2('2', 2), publish('a', '3', 3))
    expect(world.client.state).toBe('connected')
    await world.send(publish('a', '4', 4))
    expect([goodbyeCode(world), subscription.size]).toEqual([0x93, 3])
  })

  it('a QoS 2 message counts until its PUBCOMP, a refused one until its PUBREC', async () => {
    const { world, subscription } = await manual({
      receiveMaximum: 1,
      receiveMaximumExceeded: 'disconnect',
    })
    const next = async (id: number, reasonCode?: number): Promise<void> => {
      await world.send(qos2('x', id))
      taken(subscription).ack(reasonCode)
      await world.settle()
    }
    await next(1, 0x83)
    await next(2)
    await world.send(pubrel(2))
    await next(3)
    expect(world.client.state).toBe('connected')
    await world.send(qos2('x', 4))
    expect(goodbyeCode(world)).toBe(0x93)
  })

  it.each([128, 129])('%i user properties on one message', async (count) => {
    const { world, texts } = await reader()
    const userProperties = Array.from({ length: count }, (): [string, string] => ['k', 'v'])
    await world.send(publish('a', 'x', undefined, { properties: { userProperties } }))
    expect([goodbyeCode(world), texts]).toEqual(count === 128 ? [undefined, ['x']] : [0x97, []])
  })

  it('what follows a violation in the same segment is not delivered', async () => {
    const { world, texts } = await reader()
    const bytes = (text: string) => bytesOf([publish('a', text)])
    await world.sendBytes(bytes('good'), '3005 0001 ff 00 78', bytes('late'))
    expect(texts).toEqual(['good'])
  })
})

describe('topic aliases', () => {
  const aliased = (topic: string, topicAlias: number) =>
    publish(topic, 'x', undefined, { properties: { topicAlias } })
  const numbered = (count: number, topic = long) =>
    Array.from({ length: count }, (_, index) => aliased(`${topic}${index}`, index + 1))
  const long = 'x'.repeat(60_000)
  const announced = (world: World) => world.peer.last('connect').properties.topicAliasMaximum

  it.each([
    [
      '[MQTT-3.3.2-10] defined, then used, up to our maximum',
      'one1,three3,1,3',
      'one,three,one,three',
    ],
    ['defined again: the newest wins', 'one1,two1,1', 'one,two,two'],
  ])('%s', async (_title, sent, expected) => {
    const world = await agreed({ topicAliasMaximum: 3 })
    expect(announced(world)).toBe(3)
    const subscription = await subscribe(world, '#')
    await world.send(
      ...sent.split(',').map((text) => aliased(text.slice(0, -1), Number(text.at(-1)))),
    )
    const messages = sent.split(',').map(() => taken(subscription))
    expect(messages.map(({ topic }) => topic).join()).toBe(expected)
    // The alias is no property of the message.
    for (const { properties } of messages) expect('topicAlias' in properties).toBe(false)
  })

  it.each([
    ['[MQTT-3.3.2-8] alias 0', 10, 0],
    ['[MQTT-3.3.2-11] alias above our maximum', 10, 11],
    ['any alias when we announced none', 0, 1],
  ])('%s: close(0x94)', async (_what, topicAliasMaximum, alias) => {
    const world = await agreed({ topicAliasMaximum })
    expect(announced(world)).toBe(topicAliasMaximum || undefined)
    const subscription = await subscribe(world, '#')
    await world.sendBytes([0x30, 8, 0, 1, 0x61, 3, 0x23, alias >> 8, alias & 255, 0x78])
    expect([goodbyeCode(world), subscription.size]).toEqual([0x94, 0])
  })

  it('an unknown alias with an empty topic: close(0x82)', async () => {
    const world = await agreed()
    await world.send(aliased('', 4))
    expect(goodbyeCode(world)).toBe(0x82)
  })

  it('by default none is announced, as brokers that store messages under them lose their topics, and 10 are taken, no more', async () => {
    const world = await agreed()
    expect(world.peer.last('connect').properties).not.toHaveProperty('topicAliasMaximum')
    await world.send(...numbered(10))
    expect(world.client.state).toBe('connected')
    await world.send(aliased(long, 11))
    expect(goodbyeCode(world)).toBe(0x94)
  })

  const many = { topicAliasMaximum: 65_535, memoryBudget: 4 * 1024 * 1024 }

  it('count as bytes: a quarter of the memory budget is theirs, beyond it 0x97', async () => {
    const world = await agreed(many)
    await world.send(...numbered(8))
    expect(world.client.state).toBe('connected')
    await world.send(aliased(`${long}8`, 9))
    expect(goodbyeCode(world)).toBe(0x97)
  })

  it('one that is defined again takes the place of the one before', async () => {
    const world = await agreed(many)
    for (let round = 0; round < 40; round++)
      await world.send(aliased(`${long}${round}`, 1 + (round % 8)))
    await world.send(aliased('', 3))
    expect(world.client.state).toBe('connected')
  })
})

describe('floods', () => {
  it('twenty thousand messages in one segment reach a reader, and a synchronous handler', async () => {
    const world = await agreed()
    const reading = read(await subscribe(world, 'a', { qos: 0 }))
    let count = 0
    const handling = world.client.listen('a', () => void count++)
    await world.settle()
    await handling
    await world.sendBytes(bytesOf(quick('a', 20_000)))
    await world.settle()
    expect([reading.texts.length, reading.texts.at(-1), count]).toEqual([20_000, '20000', 20_000])
    expect(world.client.state).toBe('connected')
  })

  it('[MQTT-4.5.0-2] no subscription: acknowledged by its QoS, with an event', async () => {
    const world = await connected({}, accepting())
    await world.send(publish('a', '0'), publish('a', '1', 1), qos2('2', 2))
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
    expect(world.seen('unclaimed').map(({ message }) => message.text())).toEqual(['0', '1', '2'])
  })
})

describe('a reader that calls back into the client', () => {
  it.each([0, 1, 2] as const)('publish at QoS %i in the loop body: order kept', async (qos) => {
    const world = await agreed({ receiveMaximum: 2 }, obliging)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    ;(async () => {
      for await (const message of subscription)
        await world.client.publish('b', message.text(), { qos })
    })()
    const ids = [1, 2, 3, 4, 5, 6]
    for (const id of ids) await world.send(publish('a', String(id), id))
    expect(
      world.peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload)),
    ).toEqual(ids.map(String))
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual(ids)
  })

  it('unsubscribe inside the loop body', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const texts: string[] = []
    const loop = async (): Promise<void> => {
      for await (const message of subscription) {
        texts.push(message.text())
        await subscription.unsubscribe()
      }
    }
    const done = loop()
    await world.send(publish('a', '1', 1), publish('a', '2', 2))
    await done
    await world.settle()
    expect([texts, acks(world)]).toEqual([
      ['1', '2'],
      ['puback 1', 'puback 2'],
    ])
  })

  it('destroy inside the loop body', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const loop = async (): Promise<void> => {
      for await (const _ of subscription) world.client.destroy()
    }
    const done = loop().catch(() => undefined)
    await world.send(publish('a', '1', 1), publish('a', '2', 2))
    await done
    expect(world.client.state).toBe('closed')
    expect(takenTexts(subscription).length).toBeLessThanOrEqual(1)
  })
})
