/**
 * The broker in memory: SUBSCRIBE, UNSUBSCRIBE, identifiers and shares.
 */
import { describe, expect, it } from 'vitest'
import type { ServerPacket } from '../../src/wire/index.js'
import { durable, type RawClient, world } from './raw-client.js'

const publishes = (client: RawClient) =>
  client.take().filter((packet): packet is Extract<ServerPacket, { type: 'publish' }> => packet.type === 'publish')

describe('SUBSCRIBE and UNSUBSCRIBE', () => {
  it('answers each filter in order [MQTT-3.8.4-6] [MQTT-3.9.3-1] [MQTT-3.8.4-5] [MQTT-2.2.1-6]', async () => {
    const { join } = world({ authorizeSubscribe: (_client, { filter }) => (filter === 'secret' ? false : filter === 'odd' ? 0x83 : true) })
    const subscriptions = [{ filter: 'a', qos: 1 }, { filter: 'secret', qos: 1 }, { filter: 'b/#', qos: 2 }, { filter: 'odd' }, { filter: 'c' }]
    const five = await join('five')
    expect(await five.send({ type: 'subscribe', packetId: 9, subscriptions })).toEqual([
      { type: 'suback', packetId: 9, properties: {}, reasonCodes: [1, 0x87, 2, 0x83, 0] },
    ])
    const four = await join('four', {}, 4)
    expect(await four.send({ type: 'subscribe', packetId: 9, subscriptions })).toMatchObject([{ reasonCodes: [1, 0x80, 2, 0x80, 0] }])
  })

  it('UNSUBSCRIBE: 0x00 and 0x11 on 5.0, nothing on 3.1.1 [MQTT-3.10.4-1] [MQTT-3.11.3-1] [MQTT-3.10.4-5]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe('t/+')
    expect(await client.send({ type: 'unsubscribe', packetId: 5, filters: ['t/a', 't/+', 't/+'] })).toEqual([
      { type: 'unsuback', packetId: 5, properties: {}, reasonCodes: [0x11, 0, 0x11] },
    ])
    broker.publish({ topic: 't/a' })
    expect(await client.messages()).toEqual([])
    const four = await join('b', {}, 4)
    await four.send({ type: 'unsubscribe', packetId: 5, filters: ['t/a'] })
    expect(four.bytes.slice(4)).toEqual([0xb0, 2, 0, 5])
  })

  it('subscribing again replaces the options [MQTT-3.8.4-3]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe({ filter: 't', qos: 2 }, 1, 7)
    await client.subscribe({ filter: 't', qos: 1, retainAsPublished: true }, 2)
    expect(broker.sessions.get('a')?.subscriptions).toEqual([{ filter: 't', qos: 1, noLocal: false, retainAsPublished: true, identifier: undefined }])
    broker.publish({ topic: 't', qos: 2, retain: true })
    await client.send()
    expect(client.received.at(-1)).toMatchObject({ qos: 1, retain: true, properties: {} })
  })

  it('one copy for overlapping filters: highest QoS, all identifiers [MQTT-3.3.4-2] [MQTT-3.3.4-3] [MQTT-3.3.4-4]', async () => {
    const { join, broker, clock } = world()
    const client = await join('a')
    await client.subscribe({ filter: 't/#', qos: 0 }, 1, 5)
    await client.subscribe({ filter: 't/+', qos: 2 }, 2, 300)
    await client.subscribe({ filter: 't/a', qos: 1 }, 3)
    broker.publish({ topic: 't/a', qos: 2 })
    await clock.settle()
    const [copy, ...more] = publishes(client)
    expect(more).toEqual([])
    expect(copy?.qos).toBe(2)
    expect([...(copy?.properties.subscriptionIdentifiers ?? [])].sort()).toEqual([300, 5])
  })

  it('No Local: not to the publisher itself, by identifier [MQTT-3.8.3-3]', async () => {
    const { join } = world()
    const a = await join('a')
    const b = await join('b')
    for (const client of [a, b]) await client.subscribe({ filter: 't', noLocal: true })
    expect(await a.publish('t', 'from a', { retain: true })).toEqual([])
    expect(await b.messages()).toEqual(['t from a'])
    // Nor as a retained message, later on.
    expect(await a.subscribe({ filter: 't', noLocal: true }, 2)).toMatchObject([{ type: 'suback' }])
    expect(await b.subscribe({ filter: 't', noLocal: true }, 2)).toMatchObject([{ type: 'suback' }, { type: 'publish' }])
  })

  it('Retain As Published keeps RETAIN, its absence clears it [MQTT-3.3.1-12] [MQTT-3.3.1-13]', async () => {
    const { join, broker, clock } = world()
    const client = await join('a')
    await client.subscribe({ filter: 'as', retainAsPublished: true }, 1)
    await client.subscribe({ filter: 'not' }, 2)
    for (const topic of ['as', 'not']) for (const retain of [true, false]) broker.publish({ topic, retain, payload: 'x' })
    await clock.settle()
    expect(publishes(client).map(({ topic, retain }) => [topic, retain])).toEqual([
      ['as', true],
      ['as', false],
      ['not', false],
      ['not', false],
    ])
  })

  it('wildcards do not match topics that begin with $ [MQTT-4.7.2-1]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe('#')
    await client.subscribe('+/x', 2)
    broker.publish({ topic: '$SYS/x' })
    expect(await client.messages()).toEqual([])
  })

  it('the properties of a message pass unchanged, in order [MQTT-3.3.2-4] [MQTT-3.3.2-15] to [MQTT-3.3.2-18] [MQTT-3.3.2-20]', async () => {
    const { join } = world()
    const client = await join('a')
    await client.subscribe('t')
    const properties = {
      userProperties: [
        ['b', '1'],
        ['a', '2'],
        ['b', '1'],
      ] as [string, string][],
      payloadFormatIndicator: 1,
      contentType: 'text/plain',
      responseTopic: 'r',
      correlationData: Uint8Array.of(0, 255),
    }
    await client.publish('t', 'x', { properties })
    expect(client.received.at(-1)).toMatchObject({ type: 'publish', properties })
    expect(Object.keys((client.received.at(-1) as { properties: object }).properties)).toEqual(Object.keys(properties))
  })
})

describe('what is not available', () => {
  it.each([
    [{ wildcardSubscriptionAvailable: false }, { filter: 'a/+' }, undefined, 0xa2],
    [{ sharedSubscriptionAvailable: false }, { filter: '$share/g/a' }, undefined, 0x9e],
    [{ subscriptionIdentifierAvailable: false }, { filter: 'a' }, 4, 0xa1],
  ] as const)('ends a 5.0 connection: %j', async (options, subscription, identifier, reasonCode) => {
    const { join } = world(options)
    const client = await join('a')
    await client.subscribe({ filter: 'fine' }, 1)
    expect(client.goodbye).toBeUndefined()
    await client.subscribe(subscription, 2, identifier)
    expect(client.goodbye).toBe(reasonCode)
  })

  it('is refused by filter on 3.1.1, which was not told', async () => {
    const { join } = world({ wildcardSubscriptionAvailable: false, sharedSubscriptionAvailable: false })
    const client = await join('a', {}, 4)
    const filters = ['a', 'a/+', '$share/g/a'].map((filter) => ({ filter }))
    expect(await client.send({ type: 'subscribe', packetId: 1, subscriptions: filters })).toMatchObject([{ reasonCodes: [0, 0x80, 0x80] }])
  })

  it('Maximum QoS: subscriptions are granted less, publishing more is 0x9B [MQTT-3.2.2-10] [MQTT-3.2.2-11]', async () => {
    const { join, dial } = world({ maximumQoS: 1 })
    const client = await join('a')
    expect(await client.subscribe({ filter: 't', qos: 2 })).toMatchObject([{ reasonCodes: [1] }])
    await client.publish('t', '', { qos: 2, packetId: 1 })
    expect(client.goodbye).toBe(0x9b)
    expect(await dial().connect({ clientId: 'b', will: { topic: 'w', qos: 2 } })).toMatchObject({ reasonCode: 0x9b }) // [MQTT-3.2.2-12]
  })

  it('Retain Available 0: 0x9A [MQTT-3.2.2-13] [MQTT-3.2.2-14]', async () => {
    const { join, dial, broker } = world({ retainAvailable: false })
    const client = await join('a')
    await client.publish('t', 'x', { retain: true })
    expect(client.goodbye).toBe(0x9a)
    expect(await dial().connect({ clientId: 'b', will: { topic: 'w', retain: true } })).toMatchObject({ reasonCode: 0x9a })
    const four = await join('c', {}, 4)
    await four.publish('t', 'x', { retain: true })
    expect([broker.retained.size, broker.accepted.length]).toEqual([0, 1])
  })
})

describe('shared subscriptions', () => {
  it('one member gets each message, in turn; others get theirs too [MQTT-4.8.2-3]', async () => {
    const { join, broker } = world()
    const members = [await join('a'), await join('b'), await join('c')]
    const other = await join('d')
    for (const member of members) await member.subscribe({ filter: '$share/g/t/#', qos: 1 })
    await other.subscribe('t/#')
    for (let i = 0; i < 6; i++) broker.publish({ topic: 't/x', payload: String(i), qos: 2 })
    const got = []
    for (const member of members) got.push(await member.messages())
    expect(got).toEqual([
      ['t/x 0', 't/x 3'],
      ['t/x 1', 't/x 4'],
      ['t/x 2', 't/x 5'],
    ])
    expect(members[0]?.received.at(-1)).toMatchObject({ qos: 1 })
    expect(await other.messages()).toHaveLength(6)
  })

  it('groups are apart, and a member of two gets two copies', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe('$share/one/t', 1, 1)
    await client.subscribe('$share/two/t', 2, 2)
    broker.publish({ topic: 't', payload: 'x' })
    await client.send()
    expect(client.received.slice(3)).toMatchObject([
      { properties: { subscriptionIdentifiers: [1] } },
      { properties: { subscriptionIdentifiers: [2] } },
    ])
  })

  it('prefers members that are there; without one QoS 1 waits in a session', async () => {
    const { join, broker } = world()
    const here = await join('here')
    const away = await join('away', durable)
    for (const member of [away, here]) await member.subscribe('$share/g/t')
    await away.cut()
    for (let i = 0; i < 3; i++) broker.publish({ topic: 't', payload: String(i), qos: 1 })
    expect(await here.messages()).toHaveLength(3)
    for (const packetId of [1, 2, 3]) await here.send({ type: 'puback', packetId })
    await here.cut()
    broker.publish({ topic: 't', payload: 'late', qos: 1 })
    expect((await join('away', durable)).takeMessages()).toEqual(['t late'])
  })

  it('what a session that ends had not sent, and QoS 1 without PUBACK, goes to another; QoS 2 that was sent does not [MQTT-4.8.2-5]', async () => {
    const { join, broker, clock } = world()
    const leaver = await join('leaver', { cleanStart: false, properties: { sessionExpiryInterval: 5, receiveMaximum: 2 } })
    await leaver.subscribe('$share/g/t')
    broker.publish({ topic: 't', payload: 'one', qos: 1 })
    broker.publish({ topic: 't', payload: 'two', qos: 2 })
    broker.publish({ topic: 't', payload: 'unsent', qos: 2 })
    await leaver.cut()
    const stayer = await join('stayer')
    await stayer.subscribe('$share/g/t')
    await clock.advance(4999)
    expect(await stayer.messages()).toEqual([])
    await clock.advance(1)
    expect(await stayer.messages()).toEqual(['t one', 't unsent'])
  })

  it('a QoS 2 delivery is finished with the member on its return [MQTT-4.8.2-4]; a refused one goes to nobody else [MQTT-4.8.2-6]', async () => {
    const { join, broker } = world()
    const a = await join('a', durable)
    await a.subscribe('$share/g/t')
    broker.publish({ topic: 't', payload: 'x', qos: 2 })
    await a.send()
    await a.cut()
    const b = await join('b')
    await b.subscribe('$share/g/t')
    const again = await join('a', durable)
    expect(again.take()).toMatchObject([{ type: 'publish', dup: true, qos: 2 }])
    await again.send({ type: 'pubrec', packetId: 1, reasonCode: 0x97 })
    expect([await again.messages(), await b.messages()]).toEqual([[], []])
  })

  it('no retained messages, and none left of a group without members', async () => {
    const { join, broker } = world()
    broker.publish({ topic: 't', payload: 'kept', retain: true })
    const client = await join('a')
    expect(await client.subscribe('$share/g/+')).toMatchObject([{ type: 'suback' }])
    await client.send({ type: 'unsubscribe', packetId: 2, filters: ['$share/g/+'] })
    expect(broker.publish({ topic: 't' })).toBe(false)
  })
})
