/** Inbound PUBLISH: exchanges at each QoS, violations, topic aliases, floods, and handlers that call back into the client. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { accepting, connected, type World } from './harness.js'
import { acks, agreed, bytesOf, goodbyeCode, obliging, pubacks, publish, quick, quiet, read, subscribe, taken, takenTexts } from './incoming.js'

const pubrel = (packetId: number, reasonCode = 0) => ({ type: 'pubrel', packetId, reasonCode }) as const

/** A client with a reader of `#` at QoS 2. */
async function reader(options: ClientOptions = {}): Promise<{ world: World; texts: string[] }> {
  const world = await agreed(options)
  return { world, texts: read(await subscribe(world, '#', { qos: 2 })).texts }
}

describe('exchanges', () => {
  it('QoS 0: delivered once, nothing sent', async () => {
    const { world, texts } = await reader()
    const before = world.peer.bytes.length
    await world.send(publish('a', 'x'))
    expect(texts).toEqual(['x'])
    expect(world.peer.bytes.length).toBe(before)
  })

  it('[MQTT-3.3.4-1] [MQTT-4.3.2-4] QoS 1: PUBACK of the same identifier, in its shortest form', async () => {
    const { world, texts } = await reader()
    const before = world.peer.bytes.length
    await world.send(publish('a', 'x', 0x1234))
    expect(texts).toEqual(['x'])
    expect(world.peer.bytes.slice(before)).toEqual([0x40, 2, 0x12, 0x34])
  })

  it('[MQTT-4.3.3-8] [MQTT-4.3.3-11] QoS 2: PUBREC, then PUBREL and PUBCOMP, one delivery', async () => {
    const { world, texts } = await reader()
    const before = world.peer.bytes.length
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    expect(world.peer.bytes.slice(before)).toEqual([0x50, 2, 0, 5])
    await world.send(pubrel(5))
    expect(world.peer.bytes.slice(before)).toEqual([0x50, 2, 0, 5, 0x70, 2, 0, 5])
    expect(texts).toEqual(['x'])
  })

  it.each(['62020005', '6203000500', '620400050000', '6203000592', '6208000500041f000178'])('PUBREL of each length: %s', async (hex) => {
    const { world } = await reader()
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    await world.sendBytes(hex)
    expect(acks(world)).toEqual(['pubrec 5', 'pubcomp 5'])
  })

  it('[MQTT-4.3.3-10] the same QoS 2 message again before PUBREL: PUBREC again, one delivery', async () => {
    const { world, texts } = await reader()
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    await world.send(publish('a', 'x', 5, { qos: 2, dup: true }))
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    expect(acks(world)).toEqual(['pubrec 5', 'pubrec 5', 'pubrec 5'])
    await world.send(pubrel(5))
    expect(acks(world)).toEqual(['pubrec 5', 'pubrec 5', 'pubrec 5', 'pubcomp 5'])
    expect(texts).toEqual(['x'])
  })

  it('a repeat while the message is in hand binds to it: one delivery, one PUBREC at the end', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    await world.send(publish('a', 'x', 5, { qos: 2, dup: true }))
    expect(subscription.size).toBe(1)
    expect(acks(world)).toEqual([])
    taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(['pubrec 5'])
  })

  it('PUBREL repeated: PUBCOMP each time', async () => {
    const { world, texts } = await reader()
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    await world.send(pubrel(5))
    await world.send(pubrel(5), pubrel(5))
    expect(acks(world)).toEqual(['pubrec 5', 'pubcomp 5', 'pubcomp 5 0x92', 'pubcomp 5 0x92'])
    expect(texts).toEqual(['x'])
    expect(world.client.state).toBe('connected')
  })

  it('PUBREL for an identifier never seen: PUBCOMP 0x92', async () => {
    const { world } = await reader()
    await world.send(pubrel(9))
    expect(acks(world)).toEqual(['pubcomp 9 0x92'])
  })

  it('[MQTT-4.3.2-5] [MQTT-4.3.3-12] an identifier that is free again is a new message, whatever DUP says', async () => {
    const { world, texts } = await reader()
    await world.send(publish('a', '1', 5))
    await world.send(publish('a', '2', 5, { dup: true }))
    await world.send(publish('a', '3', 5, { qos: 2 }))
    await world.send(pubrel(5))
    await world.send(publish('a', '4', 5, { qos: 2, dup: true }))
    expect(texts).toEqual(['1', '2', '3', '4'])
    expect(acks(world)).toEqual(['puback 5', 'puback 5', 'pubrec 5', 'pubcomp 5', 'pubrec 5'])
  })

  it('every property reaches the reader, at each QoS', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 2 })
    const properties = {
      payloadFormatIndicator: 1,
      messageExpiryInterval: 60,
      contentType: 'text/plain',
      responseTopic: 'r',
      correlationData: Uint8Array.of(0, 255),
      subscriptionIdentifiers: [7],
      userProperties: [
        ['k', '1'],
        ['k', '2'],
        ['', ''],
      ] as [string, string][],
    }
    await world.send(publish('a', '0', undefined, { properties }), publish('a', '1', 1, { properties }), publish('a', '2', 2, { qos: 2, properties }))
    for (const qos of [0, 1, 2]) {
      const message = taken(subscription)
      expect([message.qos, message.text(), message.topic]).toEqual([qos, String(qos), 'a'])
      expect(message.properties).toEqual(properties)
    }
  })

  it('a message without properties has none, and retain, dup and redelivered are as sent', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(publish('a', 'x', undefined, { retain: true }), publish('a', 'y', 1, { dup: true }))
    const first = taken(subscription)
    expect(Object.values(first.properties).filter((value) => value !== undefined)).toEqual([])
    expect([first.retain, first.dup, first.redelivered]).toEqual([true, false, false])
    const second = taken(subscription)
    expect([second.retain, second.dup, second.redelivered]).toEqual([false, true, true])
  })

  it('payloads outlive the packets that follow', async () => {
    const world = await connected({}, (packet) => obliging(packet), { backward: { delivery: 'buffer' } })
    const subscription = await subscribe(world, 'a')
    await world.send(publish('a', 'first', undefined, { properties: { contentType: 'one' } }))
    await world.send(publish('a', 'other', undefined, { properties: { contentType: 'two' } }))
    const [first, second] = [taken(subscription), taken(subscription)]
    await world.send(publish('a', 'third', undefined, { properties: { contentType: 'six' } }))
    expect([first.text(), first.topic, first.properties.contentType]).toEqual(['first', 'a', 'one'])
    expect([second.text(), second.properties.contentType]).toEqual(['other', 'two'])
  })
})

describe('violations', () => {
  it('PUBREL before our PUBREC: close(0x82)', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', 'x', 5, { qos: 2 }), pubrel(5))
    expect(goodbyeCode(world)).toBe(0x82)
  })

  it.each([false, true])('QoS 1: the same identifier, not yet acknowledged, DUP %s: close(0x82)', async (dup) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 5), publish('a', 'y', 5, { dup }))
    expect(goodbyeCode(world)).toBe(0x82)
    expect(subscription.size).toBe(1)
  })

  it.each([
    [2, 1],
    [1, 2],
  ] as const)('an identifier in use at QoS %i, then at QoS %i: close(0x82)', async (first, second) => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', 'x', 5, { qos: first }), publish('a', 'y', 5, { qos: second }))
    expect(goodbyeCode(world)).toBe(0x82)
  })

  it('QoS 1 with the identifier of a QoS 2 message whose PUBREL has not come', async () => {
    const { world, texts } = await reader()
    await world.send(publish('a', 'x', 5, { qos: 2 }))
    await world.send(publish('a', 'y', 5))
    expect(goodbyeCode(world)).toBe(0x82)
    expect(texts).toEqual(['x'])
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
    ['[MQTT-3.3.2-14] Response Topic with a wildcard', '3009 0001 61 04 08000123 78', [0x81, 0x82, 0x90]],
    ['Subscription Identifier 0', '3007 0001 61 02 0b00 78', [0x82]],
    ['[MQTT-3.6.1-1] PUBREL with flags 0', '60020001', [0x81]],
  ] as const)('%s: closed, nothing delivered', async (_what, hex, codes) => {
    const { world, texts } = await reader()
    await world.sendBytes(hex)
    expect(codes).toContain(goodbyeCode(world))
    expect(texts).toEqual([])
    expect(world.client.state).toBe('closed')
  })

  it('[MQTT-3.3.4-9] more than our Receive Maximum is borne with: delivered, acknowledged in order, told once, counted', async () => {
    const warnings: string[] = []
    const world = await agreed({ receiveMaximum: 3, stats: true, logger: { warn: (text) => void warnings.push(text) } })
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual', buffer: 2 })
    await world.send(...Array.from({ length: 500 }, (_, index) => publish('a', String(index), index + 1)))
    expect([world.client.state, subscription.size, subscription.dropped, world.client.stats().receiveMaximumExceeded]).toEqual([
      'connected',
      500,
      0,
      497,
    ])
    expect(warnings).toEqual([expect.stringMatching(/Receive Maximum$/)])
    for (let count = 0; count < 500; count++) taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 500))
  })

  it("[MQTT-3.3.4-9] more than our Receive Maximum under 'disconnect': close(0x93)", async () => {
    const world = await agreed({ receiveMaximum: 3, receiveMaximumExceeded: 'disconnect' })
    expect(world.peer.last('connect').properties.receiveMaximum).toBe(3)
    const subscription = await subscribe(world, 'a', { qos: 2 })
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }), publish('a', '3', 3))
    expect(world.client.state).toBe('connected')
    await world.send(publish('a', '4', 4))
    expect(goodbyeCode(world)).toBe(0x93)
    expect(subscription.size).toBe(3)
  })

  it('a QoS 2 message counts until its PUBCOMP, a refused one until its PUBREC', async () => {
    const world = await agreed({ receiveMaximum: 1, receiveMaximumExceeded: 'disconnect' })
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', '1', 1, { qos: 2 }))
    taken(subscription).ack(0x83)
    await world.settle()
    await world.send(publish('a', '2', 2, { qos: 2 }))
    taken(subscription).ack()
    await world.settle()
    await world.send(pubrel(2))
    await world.send(publish('a', '3', 3, { qos: 2 }))
    taken(subscription).ack()
    await world.settle()
    expect(world.client.state).toBe('connected')
    await world.send(publish('a', '4', 4, { qos: 2 }))
    expect(goodbyeCode(world)).toBe(0x93)
  })

  it.each([128, 129])('%i user properties on one message', async (count) => {
    const { world, texts } = await reader()
    const userProperties = Array.from({ length: count }, (): [string, string] => ['k', 'v'])
    await world.send(publish('a', 'x', undefined, { properties: { userProperties } }))
    expect(goodbyeCode(world)).toBe(count === 128 ? undefined : 0x97)
    expect(texts).toEqual(count === 128 ? ['x'] : [])
  })

  it('what comes after our DISCONNECT is dropped', async () => {
    const world = await agreed()
    const reading = read(await subscribe(world, 'a', { qos: 1 }))
    const done = quiet(world.client.disconnect())
    world.peer.send(publish('a', 'late', 1))
    await world.settle()
    await done
    expect(reading.texts).toEqual([])
    expect(acks(world)).toEqual([])
  })

  it('what follows a violation in the same segment is not delivered', async () => {
    const { world, texts } = await reader()
    await world.sendBytes(bytesOf([publish('a', 'good')]), '3005 0001 ff 00 78', bytesOf([publish('a', 'late')]))
    expect(texts).toEqual(['good'])
  })
})

describe('topic aliases', () => {
  const aliased = (topic: string, text: string, topicAlias: number) => publish(topic, text, undefined, { properties: { topicAlias } })
  const topics = async (world: World) => {
    const subscription = await subscribe(world, '#')
    return () => {
      const seen: string[] = []
      for (let message = subscription.read(); message !== undefined; message = subscription.read()) seen.push(message.topic)
      return seen
    }
  }

  it('[MQTT-3.3.2-10] defined, then used with an empty topic, up to our maximum', async () => {
    const world = await agreed({ topicAliasMaximum: 3 })
    expect(world.peer.last('connect').properties.topicAliasMaximum).toBe(3)
    const seen = await topics(world)
    await world.send(aliased('one', 'x', 1), aliased('three', 'y', 3), aliased('', 'z', 1), aliased('', 'z', 3))
    expect(seen()).toEqual(['one', 'three', 'one', 'three'])
  })

  it('the alias is no property of the message', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, '#')
    await world.send(aliased('one', 'x', 1))
    expect('topicAlias' in taken(subscription).properties).toBe(false)
  })

  it('defined again: the newest wins', async () => {
    const world = await agreed()
    const seen = await topics(world)
    await world.send(aliased('one', 'x', 1), aliased('two', 'x', 1), aliased('', 'x', 1))
    expect(seen()).toEqual(['one', 'two', 'two'])
  })

  it.each([
    ['[MQTT-3.3.2-8] alias 0', 10, 0],
    ['[MQTT-3.3.2-11] alias above our maximum', 10, 11],
    ['any alias when we announced none', 0, 1],
  ])('%s: close(0x94)', async (_what, topicAliasMaximum, alias) => {
    const world = await agreed({ topicAliasMaximum })
    const seen = await topics(world)
    await world.sendBytes([0x30, 8, 0, 1, 0x61, 3, 0x23, alias >> 8, alias & 255, 0x78])
    expect(goodbyeCode(world)).toBe(0x94)
    expect(seen()).toEqual([])
  })

  it('with a maximum of 0 none is announced', async () => {
    const world = await agreed({ topicAliasMaximum: 0 })
    expect(world.peer.last('connect').properties.topicAliasMaximum ?? 0).toBe(0)
  })

  it('an unknown alias with an empty topic: close(0x82)', async () => {
    const world = await agreed()
    await world.send(aliased('', 'x', 4))
    expect(goodbyeCode(world)).toBe(0x82)
  })

  it('the default announces none: a broker that stores messages under them would lose their topics', async () => {
    const world = await agreed()
    expect(world.peer.last('connect').properties).not.toHaveProperty('topicAliasMaximum')
  })

  it('where nothing was asked for 10 are taken, no more', async () => {
    const world = await agreed()
    const long = 'x'.repeat(60_000)
    await world.send(...Array.from({ length: 10 }, (_, index) => aliased(`${long}${index}`, 'x', index + 1)))
    expect(world.client.state).toBe('connected')
    await world.send(aliased(long, 'x', 11))
    expect(goodbyeCode(world)).toBe(0x94)
  })

  const long = 'x'.repeat(60_000)
  const many = { topicAliasMaximum: 65_535, memoryBudget: 4 * 1024 * 1024 }

  it('count as bytes: a quarter of the memory budget is theirs, beyond it 0x97', async () => {
    const world = await agreed(many)
    await world.send(...Array.from({ length: 8 }, (_, index) => aliased(`${long}${index}`, 'x', index + 1)))
    expect(world.client.state).toBe('connected')
    await world.send(aliased(`${long}8`, 'x', 9))
    expect(goodbyeCode(world)).toBe(0x97)
  })

  it('one that is defined anew takes the place of the one before', async () => {
    const world = await agreed(many)
    for (let round = 0; round < 40; round++) await world.send(aliased(`${long}${round}`, 'x', 1 + (round % 8)))
    expect(world.client.state).toBe('connected')
    await world.send(aliased('', 'y', 3))
    expect(world.client.state).toBe('connected')
  })
})

describe('floods', () => {
  it('twenty thousand messages in one segment reach a reader', async () => {
    const world = await agreed()
    const reading = read(await subscribe(world, 'a', { qos: 0 }))
    await world.sendBytes(bytesOf(quick('a', 20_000)))
    await world.settle()
    expect(reading.texts.length).toBe(20_000)
    expect(reading.texts.at(-1)).toBe('20000')
  })

  it('twenty thousand messages in one segment reach a synchronous handler', async () => {
    const world = await agreed()
    let count = 0
    const handling = world.client.listen('a', () => {
      count += 1
    })
    await world.settle()
    await handling
    await world.sendBytes(bytesOf(quick('a', 20_000)))
    await world.settle()
    expect(count).toBe(20_000)
    expect(world.client.state).toBe('connected')
  })

  it('[MQTT-4.5.0-2] nobody subscribed: acknowledged by its QoS, with an event', async () => {
    const world = await connected({}, accepting())
    await world.send(publish('a', '0'), publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }))
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
    expect(world.seen('unclaimed').map(({ message }) => message.text())).toEqual(['0', '1', '2'])
  })
})

describe('a reader that calls back into the client', () => {
  it.each([0, 1, 2] as const)('publish at QoS %i inside the loop body never deadlocks, order kept', async (qos) => {
    const world = await agreed({ receiveMaximum: 2 }, obliging)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    ;(async () => {
      for await (const message of subscription) await world.client.publish('b', message.text(), { qos })
    })()
    for (let id = 1; id <= 6; id++) await world.send(publish('a', String(id), id))
    expect(world.peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('unsubscribe inside the loop body', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const texts: string[] = []
    const done = (async () => {
      for await (const message of subscription) {
        texts.push(message.text())
        await subscription.unsubscribe()
      }
    })()
    await world.send(publish('a', '1', 1), publish('a', '2', 2))
    await done
    await world.settle()
    expect(texts).toEqual(['1', '2'])
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('read some messages, then stop: they are acknowledged before DISCONNECT, the rest is left alone', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(publish('a', '1', 1), publish('a', '2', 2), publish('a', '3', 3))
    const first = [taken(subscription), taken(subscription)].map((message) => message.text())
    expect(subscription.size).toBe(1)
    const done = world.client.disconnect({ timeout: 100 })
    await world.settle()
    expect(await subscription.next()).toBeUndefined()
    await world.settle()
    await done
    expect(first).toEqual(['1', '2'])
    expect(world.peer.received.slice(-3).map((packet) => ('packetId' in packet ? `${packet.type} ${packet.packetId}` : packet.type))).toEqual([
      'puback 1',
      'puback 2',
      'disconnect',
    ])
  })

  it('destroy inside the loop body', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const done = (async () => {
      for await (const _ of subscription) world.client.destroy()
    })()
    await world.send(publish('a', '1', 1), publish('a', '2', 2))
    await done.catch(() => undefined)
    expect(world.client.state).toBe('closed')
    expect(takenTexts(subscription).length).toBeLessThanOrEqual(1)
  })
})
