/** Every feature on mochi-mqtt, where it can be built. */
import { expect } from 'vitest'
import type { Subscription } from '../../../src/client/node.js'
import { limits } from '../../real/brokers.js'
import { fewestResets, payloadCount, throughCuts } from '../../real/features/recovery.js'
import { noAliasesToBroker, noWordOfSubscribers } from '../../real/lacks.js'
import { type Lack, type Lacks, runOn } from '../../real/target.js'
import {
  eventually,
  failure,
  sequence,
  take,
  takeTexts,
  textsUntil,
  within,
} from '../../real/waiting.js'

/** Texts, in whatever order they come. */
async function unordered(subscription: Subscription, count: number): Promise<void> {
  const texts = await takeTexts(subscription, count)
  expect([...texts].sort()).toEqual(sequence(count).sort())
  // So many are in order by no accident: it is mended.
  if (count > 10) expect(texts).not.toEqual(sequence(count))
}

/** What waits for a session comes, but not in order. */
const disorder = (count: number, qos: 1 | 2, protocolVersion: 4 | 5 = 5): Lack => ({
  reason: 'mochi sends what waited in a session in no particular order',
  async shows(world) {
    const topic = world.topic('durable')
    const options = { clientId: world.id('durable'), cleanStart: false, protocolVersion }
    const first = await world.connect(options)
    await first.subscribe(topic, { qos })
    await within(first.disconnect(), 'disconnecting')
    const sender = await world.connect()
    await within(
      Promise.all(sequence(count).map((text) => sender.publish(topic, text, { qos }))),
      'the receipts',
    )
    const second = world.client(options)
    const subscription = second.subscription(topic, { qos })
    await within(second.connect(), 'connecting again')
    expect(second.negotiated?.sessionPresent).toBe(true)
    await unordered(subscription, count)
  },
})

const sharedIdentifiers: Lack = {
  reason:
    'mochi keeps the packet identifiers of both directions in one table: what uses one that is in use on the other side is refused, or drops it',
  async shows(world) {
    const [sender, subscription, client] = await world.pair(world.topic('a'), {
      qos: 1,
      ack: 'manual',
    })
    for (const text of sequence(20))
      await within(sender.publish(world.topic('a'), text, { qos: 1 }), 'the receipt')
    await eventually(() => subscription.size === 20, 'twenty messages in hand')
    const codes: number[] = []
    client.on('packet', ({ packet }) => {
      if (packet.type === 'suback') codes.push(...packet.reasonCodes)
    })
    // The client tries again with another identifier, which is more than it can do for a PUBLISH.
    await Promise.allSettled(
      sequence(20).map((text) => client.subscribe(world.topic(`filter ${text}`))),
    )
    expect(codes).toContain(0x91)
  },
}

const lacks: Lacks = {
  'both directions': sharedIdentifiers,
  'sessions of MQTT 3.1.1': disorder(100, 1, 4),
  'durable session at QoS 1': disorder(100, 1),
  'durable session at QoS 2': disorder(100, 2),
  redelivery: disorder(3, 1),
  'expiry of queued messages': disorder(2, 1),
  'inbound window': {
    reason:
      'mochi does not keep to the Receive Maximum of its clients, who may then end the connection; and its bookkeeping of it may lock it up, so that the clients of the other features take 65,535',
    async shows(world) {
      const topic = world.topic('slow')
      const [sender, client] = [
        await world.connect(),
        await world.connect({ receiveMaximum: 5, receiveMaximumExceeded: 'disconnect' }),
      ]
      const stalled = await client.subscribe(topic, { qos: 1 })
      await within(
        Promise.all(sequence(50).map((text) => sender.publish(topic, text, { qos: 1 }))),
        'the receipts',
      )
      await eventually(() => stalled.size === 5, 'the window to fill')
      // What the client sends itself counts as room in the window.
      const more = (async () => {
        for (const text of sequence(10))
          await client.publish(world.topic('other'), text, { qos: 2 })
        await takeTexts(stalled, 50)
      })()
      more.catch(() => undefined)
      expect(await within(client.closed, 'closed')).toMatchObject({
        reasonCode: 0x93,
        fault: 'remote',
      })
    },
  },
  'inbound window at QoS 2': {
    reason: 'mochi sends what waited for room in the window in no particular order',
    async shows(world) {
      const topic = world.topic('slow')
      const [sender, client] = [
        await world.connect(),
        await world.connect({ receiveMaximum: 5, receiveMaximumExceeded: 'disconnect' }),
      ]
      const stalled = await client.subscribe(topic, { qos: 2 })
      await within(
        Promise.all(sequence(50).map((text) => sender.publish(topic, text, { qos: 2 }))),
        'the receipts',
      )
      await eventually(() => stalled.size === 5, 'the window to fill')
      await unordered(stalled, 50)
    },
  },
  'topic aliases to the broker': noAliasesToBroker(
    'mochi takes topic aliases, but does not announce it, so that none may be sent',
  ),
  'topic aliases from the broker': {
    reason:
      'mochi keeps messages that wait without their topics, and sends them under aliases of another connection, or before these were set up',
    async shows(world) {
      const options = { clientId: world.id('durable'), cleanStart: false, topicAliasMaximum: 10 }
      const first = await world.connect(options)
      await first.subscribe(world.topic('#'), { qos: 1 })
      await within(first.disconnect(), 'disconnecting')
      const sender = await world.connect()
      for (const text of sequence(50))
        await within(
          sender.publish(world.topic(String(Number(text) % 5)), text, { qos: 1 }),
          'the receipt',
        )
      const second = await world.connect(options)
      expect(await within(second.closed, 'closed')).toMatchObject({
        reasonCode: 0x82,
        fault: 'remote',
      })
    },
  },
  will: {
    reason: 'mochi leaves out the properties of a will, except for user properties',
    async shows(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const userProperties: [string, string][] = [['k', '1']]
      const properties = {
        contentType: 'text/plain',
        responseTopic: 'r',
        correlationData: 'id',
        payloadFormatIndicator: 1,
        userProperties,
      }
      const client = await world.connect({ will: { topic, payload: 'gone', qos: 1, properties } })
      client.destroy()
      const message = await take(subscription, 'the will')
      expect(message.text()).toBe('gone')
      expect(message.properties.userProperties).toEqual(userProperties)
      for (const name of [
        'contentType',
        'responseTopic',
        'correlationData',
        'payloadFormatIndicator',
      ] as const) {
        expect(message.properties[name], name).toBe(undefined)
      }
    },
  },
  'largest packet of the broker': {
    reason:
      'mochi does not announce its Maximum Packet Size, and ends the connection of who exceeds it',
    async shows(world) {
      const client = await world.connect()
      expect(client.negotiated?.maximumPacketSize).toBeGreaterThan(limits.maximumPacketSize)
      const error = await failure(
        client.publish(world.topic('a'), 'x'.repeat(3000), { qos: 1 }),
        'the publish',
      )
      expect(error).toMatchObject({ outcome: 'unknown', fault: 'remote' })
      expect(client.state).toBe('closed')
    },
  },
  'no retained messages': unannounced(),
  'will above the limits': {
    reason: 'mochi refuses a will above its limits with 0x82',
    async shows(world) {
      for (const will of [{ qos: 2 } as const, { retain: true }]) {
        const error = await failure(
          world.connect({ will: { topic: world.topic('will'), ...will } }),
          'a will',
        )
        expect([error.code, error.reasonCode]).toEqual(['ERR_CONNECT_REFUSED', 0x82])
      }
    },
  },
  'no matching subscribers': noWordOfSubscribers('mochi does not tell that nobody has subscribed'),
  'cuts at QoS 1': {
    reason:
      'mochi now and then loses a message that comes while it moves the session of a client that was cut to its next connection',
    async shows(world) {
      const began = performance.now()
      const { got, payloads, failures, resets } = await throughCuts(
        world,
        1,
        () => performance.now() - began > 8000,
      )
      expect(failures).toEqual([])
      expect(got.length).toBeGreaterThan(payloadCount / 2)
      expect(got.filter((text) => text !== 'last' && !payloads.includes(text))).toEqual([])
      expect(resets).toBeGreaterThan(fewestResets)
    },
  },
  'cuts at QoS 2': {
    reason:
      'mochi answers PUBREC before it passes a message on, and now and then loses one when the client is cut at that moment',
    async shows(world) {
      const began = performance.now()
      const { got, payloads, failures, resets } = await throughCuts(
        world,
        2,
        () => performance.now() - began > 8000,
      )
      // Now and then it answers the second copy of a message with 0x91 before it has said anything of the first one.
      const inUse = { code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91, outcome: 'unknown' }
      expect(failures).toEqual(failures.map(() => expect.objectContaining(inUse)))
      expect(new Set(got).size).toBe(got.length)
      expect(got.length).toBeGreaterThan(payloadCount / 2)
      expect(got.length).toBeLessThanOrEqual(payloads.length + 1)
      expect(resets).toBeGreaterThan(fewestResets)
    },
  },
  'sessions through a restart': {
    reason:
      'mochi remembers the session, but not the packet identifiers of what waits in it, and ends the connection that is to have it',
    async shows(world) {
      const options = { clientId: world.id('durable'), cleanStart: false }
      const first = await world.connect(options)
      await first.subscribe(world.topic('a'), { qos: 1 })
      await within(first.disconnect(), 'disconnecting')
      const sender = await world.connect()
      for (const text of sequence(3))
        await within(sender.publish(world.topic('a'), text, { qos: 1 }), 'the receipt')
      await within(sender.disconnect(), 'disconnecting')
      await within(world.broker.shutDown(), 'shutting down')
      await within(world.broker.live(), 'coming back')
      const second = await world.connect(options)
      expect(second.negotiated?.sessionPresent).toBe(true)
      expect(await within(second.closed, 'closed')).toMatchObject({
        code: 'ERR_CONNECTION_LOST',
        fault: 'remote',
      })
    },
  },
}

function unannounced(): Lack {
  return {
    reason: 'mochi does not announce that it retains nothing, and drops what it is to retain',
    async shows(world) {
      const client = await world.connect()
      expect(client.negotiated).toMatchObject({ maximumQoS: 1, retainAvailable: true })
      await within(
        client.publish(world.topic('kept'), 'kept', { qos: 1, retain: true }),
        'the receipt',
      )
      const subscription = await client.subscribe(world.topic('#'))
      await within(client.publish(world.topic('last'), 'last'), 'the publish')
      expect(await textsUntil(subscription, 'last')).toEqual([])
    },
  }
}

await runOn('mochi', () => lacks)
