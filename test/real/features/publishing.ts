/** What is published arrives: at each QoS, in order, once, with every byte and property, under a topic alias or not. */
import { expect } from 'vitest'
import type { Client, ClientOptions, QoS, Subscription } from '../../../src/client/node.js'
import type { Feature, World } from '../target.js'
import { eventually, sequence, take, takeTexts, within } from '../waiting.js'

const levels: readonly QoS[] = [0, 1, 2]
export const large: ClientOptions = { maximumPacketSize: 2 * 1024 * 1024 }

/** User properties whose order matters. */
export const mixed: [string, string][] = [
  ['b', '1'],
  ['a', '2'],
  ['b', '3'],
  ['b', '1'],
  ['', ''],
  ['__proto__', 'größe'],
  ['constructor', 'x'],
]

/** Bytes, 1 MB unless told, that repeat nowhere near each other. */
export function pattern(length = 1_000_000): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = 1
  for (let index = 0; index < bytes.length; index += 1) {
    state = (state * 48_271) % 0x7fffffff
    bytes[index] = state & 0xff
  }
  return bytes
}

/** True when a subscription made now is given a retained message on `topic`; `fence` holds one that is always there. */
async function retainedOn(world: World, topic: string, fence: string): Promise<boolean> {
  const client = await world.connect()
  const subscription = await client.subscribe([topic, fence])
  for (;;) {
    const message = await take(subscription, 'the retained fence')
    if (message.topic === topic) return true
    if (message.topic === fence) {
      client.destroy()
      return false
    }
  }
}

async function many(
  sender: Client,
  subscription: Subscription,
  topic: string,
  qos: QoS,
  count: number,
): Promise<void> {
  const sent = Promise.all(sequence(count).map((text) => sender.publish(topic, text, { qos })))
  expect(await takeTexts(subscription, count)).toEqual(sequence(count))
  const receipts = await within(sent, 'every receipt')
  expect(receipts.filter((receipt) => receipt.reasonCode !== 0)).toEqual([])
}

function grantedQos(name: string, title: string, wildcard: string): Feature {
  return {
    name,
    title,
    async run(world) {
      const sender = await world.connect()
      for (const granted of levels) {
        const topic = world.topic(`granted/${granted}`)
        const receiver = await world.connect()
        const subscription = await receiver.subscribe(`${topic}${wildcard}`, { qos: granted })
        for (const qos of levels) {
          await within(sender.publish(topic, 'x', { qos }), 'the receipt')
          expect((await take(subscription)).qos, `published at ${qos}, granted ${granted}`).toBe(
            Math.min(qos, granted),
          )
        }
      }
    },
  }
}

export const publishing: readonly Feature[] = [
  {
    name: 'qos',
    reach: 'everywhere',
    title: 'QoS 0, 1 and 2 from one client to the other, with receipts',
    async run(world) {
      for (const qos of levels) {
        const topic = world.topic(`q${qos}`)
        const [sender, subscription] = await world.pair(topic, { qos })
        expect(subscription.granted).toMatchObject([{ filter: topic, qos }])
        const receipt = await within(sender.publish(topic, `at ${qos}`, { qos }), 'the receipt')
        expect(receipt.reasonCode).toBe(0)
        expect(receipt.packetId === undefined).toBe(qos === 0)
        expect(await take(subscription)).toMatchObject({ topic, qos, retain: false, dup: false })
      }
    },
  },
  grantedQos(
    'granted qos',
    'a message comes at the lower QoS of publication and subscription, in all nine combinations',
    '',
  ),
  grantedQos('granted qos on a wildcard', 'the same for a filter with a wildcard', '/#'),
  ...levels.map(
    (qos): Feature => ({
      name: `order at QoS ${qos}`,
      title: `2,000 messages at QoS ${qos}, published at once, arrive once each and in order`,
      async run(world) {
        const topic = world.topic('order')
        const [sender, subscription] = await world.pair(topic, { qos })
        await many(sender, subscription, topic, qos, 2000)
        // Anything delivered twice would come before this one.
        await sender.publish(topic, 'last', { qos })
        expect((await take(subscription)).text()).toBe('last')
      },
    }),
  ),
  {
    name: 'both directions',
    reach: 'everywhere',
    title:
      'one client sends to itself at QoS 2 while it receives at QoS 1, 500 messages each, exactly once',
    async run(world) {
      const client = await world.connect()
      const [one, two] = [world.topic('one'), world.topic('two')]
      const [at1, at2] = [
        await client.subscribe(one, { qos: 1 }),
        await client.subscribe(two, { qos: 2 }),
      ]
      await Promise.all([many(client, at1, one, 1, 500), many(client, at2, two, 2, 500)])
      expect([at1.size, at2.size, at1.dropped, at2.dropped]).toEqual([0, 0, 0, 0])
    },
  },
  {
    name: 'large payloads',
    reach: 'everywhere',
    title: '1 MB both ways at each QoS, with maximumPacketSize raised',
    async run(world) {
      const payload = pattern()
      const topic = world.topic('large')
      const client = await world.connect(large)
      const subscription = await client.subscribe(topic, { qos: 2 })
      for (const qos of levels) {
        const sent = client.publish(topic, payload, { qos })
        const message = await take(subscription, `1 MB at QoS ${qos}`)
        expect(Buffer.compare(message.payload, payload), `bytes at QoS ${qos}`).toBe(0)
        await within(sent, 'the receipt')
      }
    },
  },
  {
    name: 'properties',
    title: 'every property at every QoS',
    async run(world) {
      const topic = world.topic('properties')
      const [sender, subscription] = await world.pair(topic, { qos: 2 })
      const userProperties: [string, string][] = [
        ['name', 'größe'],
        ['name', ''],
      ]
      const given = {
        payloadFormatIndicator: 1,
        contentType: 'text/plain; charset=utf-8',
        responseTopic: 'answers/ü',
        correlationData: Uint8Array.from([0, 1, 255]),
        userProperties,
      }
      for (const qos of levels) {
        await within(sender.publish(topic, 'text', { qos, properties: given }), 'the receipt')
        const { properties } = await take(subscription)
        expect(properties).toMatchObject({ ...given, correlationData: expect.anything() })
        expect([...(properties.correlationData ?? [])]).toEqual([0, 1, 255])
        expect(properties.userProperties).toEqual(userProperties)
      }
    },
  },
  {
    name: 'user properties',
    title:
      'user properties in order, with repeats, empty ones, and names that mean something to JavaScript',
    async run(world) {
      const topic = world.topic('properties')
      const [sender, subscription] = await world.pair(topic, { qos: 2 })
      for (const qos of levels) {
        await within(
          sender.publish(topic, 'x', { qos, properties: { userProperties: mixed } }),
          'the receipt',
        )
        expect((await take(subscription)).properties.userProperties).toEqual(mixed)
      }
    },
  },
  {
    name: 'message expiry',
    title: 'Message Expiry Interval reaches the receiver, and ends a retained message',
    async run(world) {
      const [live, retained, fence] = [
        world.topic('live'),
        world.topic('retained'),
        world.topic('fence'),
      ]
      const [sender, subscription] = await world.pair(live, { qos: 1 })
      await sender.publish(live, 'x', { qos: 1, properties: { messageExpiryInterval: 1000 } })
      const left = (await take(subscription)).properties.messageExpiryInterval
      expect(left).toBeGreaterThan(990)
      expect(left).toBeLessThanOrEqual(1000)
      await sender.publish(fence, 'stays', { qos: 1, retain: true })
      await sender.publish(retained, 'goes', {
        qos: 1,
        retain: true,
        properties: { messageExpiryInterval: 3 },
      })
      await eventually(() => retainedOn(world, retained, fence), 'the retained message')
      await eventually(
        async () => !(await retainedOn(world, retained, fence)),
        'the end of the retained message',
      )
    },
  },
]

function aliasesOf(client: Client, way: 'in' | 'out'): { topics: Set<number>; bare: number } {
  const seen = { topics: new Set<number>(), bare: 0 }
  client.on('packet', ({ direction, packet }) => {
    if (
      direction !== way ||
      packet.type !== 'publish' ||
      packet.properties.topicAlias === undefined
    )
      return
    seen.topics.add(packet.properties.topicAlias)
    if (packet.topic === '') seen.bare += 1
  })
  return seen
}

export const aliases: readonly Feature[] = [
  {
    name: 'topic aliases to the broker',
    title:
      'aliases that the broker offers are used, and every message arrives under its own topic, also with more topics than aliases',
    reach: 'TCP',
    async run(world) {
      const [sender, subscription] = await world.pair(world.topic('#'), { buffer: 5000 })
      expect(sender.negotiated?.topicAliasMaximum).toBeGreaterThan(0)
      const seen = aliasesOf(sender, 'out')
      const topics = sequence(400).map((text) =>
        world.topic(`${text}/with/a/name/that/is/worth/an/alias`),
      )
      for (const [index, topic] of [...topics, ...topics].entries()) {
        for (const again of ['once', 'twice']) await sender.publish(topic, `${topic} ${again}`)
        if (index % 100 === 0)
          await within(sender.publish(topic, 'a fence', { qos: 1 }), 'the receipt')
      }
      await within(sender.publish(world.topic('last'), 'last', { qos: 1 }), 'the receipt')
      let count = 0
      for (;;) {
        const message = await take(subscription)
        if (message.text() === 'last') break
        if (message.text() === 'a fence') continue
        expect(message.text().split(' ')[0]).toBe(message.topic)
        count += 1
      }
      expect(count).toBe(1600)
      expect(seen.topics.size).toBeGreaterThan(0)
      expect(Math.max(...seen.topics)).toBeLessThanOrEqual(
        sender.negotiated?.topicAliasMaximum ?? 0,
      )
      expect(seen.bare).toBeGreaterThan(0)
    },
  },
  {
    name: 'topic aliases from the broker',
    title:
      'aliases that the broker sets up within the Topic Alias Maximum of the client are resolved',
    reach: 'TCP',
    async run(world) {
      const [sender, receiver] = [
        await world.connect(),
        await world.connect({ topicAliasMaximum: 5 }),
      ]
      const seen = aliasesOf(receiver, 'in')
      const subscription = await receiver.subscribe(world.topic('#'), { qos: 1 })
      const topics = sequence(10).map((text) =>
        world.topic(`${text}/with/a/name/that/is/worth/an/alias`),
      )
      for (const topic of [...topics, ...topics, ...topics])
        await within(sender.publish(topic, topic, { qos: 1 }), 'the receipt')
      for (const topic of [...topics, ...topics, ...topics]) {
        const message = await take(subscription)
        expect([message.topic, message.text()]).toEqual([topic, topic])
      }
      expect(seen.bare).toBeGreaterThan(0)
      expect(Math.max(...seen.topics)).toBeLessThanOrEqual(5)
    },
  },
]
