/**
 * Much of it: identifiers that come round again, big messages, topic aliases, many requests.
 */
import { expect } from 'vitest'
import type { Client } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, sequence, take, takeTexts, within } from '../waiting.js'
import { pattern } from './publishing.js'

/** More than there are packet identifiers. */
const round = 66_000
const mebibyte = 1024 * 1024

/** The topic aliases of the publishes that go one way. */
function aliases(client: Client, way: 'in' | 'out'): { topics: Set<number>; bare: number } {
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

export const volume: readonly Feature[] = [
  {
    name: 'identifiers come round',
    title:
      '66,000 publishes at QoS 1 to itself use every identifier, never 0 and never one that is in flight, and all arrive in order',
    reach: 'TCP',
    alone: true,
    timeout: 120_000,
    async run(world) {
      const topic = world.topic('a')
      const client = await world.connect()
      const subscription = await client.subscribe(topic, { qos: 1 })
      const [used, open] = [new Set<number>(), new Set<number>()]
      const wrong: string[] = []
      client.on('packet', ({ direction, packet }) => {
        if (direction === 'in' && packet.type === 'puback') open.delete(packet.packetId)
        if (direction === 'in' || packet.type !== 'publish' || packet.packetId === undefined) return
        if (open.has(packet.packetId) || packet.packetId === 0)
          wrong.push(`identifier ${packet.packetId}`)
        open.add(packet.packetId)
        used.add(packet.packetId)
      })
      const sending = (async () => {
        for (let first = 0; first < round; first += 500) {
          const numbers = Array.from(
            { length: Math.min(500, round - first) },
            (_, index) => first + index,
          )
          await Promise.all(
            numbers.map((number) => client.publish(topic, String(number), { qos: 1 })),
          )
        }
      })()
      sending.catch(() => undefined)
      let expected = 0
      const receiving = (async () => {
        for await (const batch of subscription.batches(500)) {
          for (const message of batch) {
            if (message.text() !== String(expected))
              wrong.push(`${message.text()} in place of ${expected}`)
            expected += 1
          }
          if (expected >= round || wrong.length > 10) return
        }
      })()
      await within(receiving, 'every message', 100_000)
      expect(wrong).toEqual([])
      await within(sending, 'the receipts')
      expect(used.size).toBeGreaterThan(60_000)
    },
  },
  {
    name: 'payloads above 1 MiB',
    title: '1 MiB and a byte, and 5 MiB, both ways at each QoS, to a client that takes them',
    reach: 'TCP',
    alone: true,
    timeout: 60_000,
    async run(world) {
      const topic = world.topic('large')
      const client = await world.connect({ maximumPacketSize: 16 * mebibyte })
      const subscription = await client.subscribe(topic, { qos: 2, bufferBytes: 16 * mebibyte })
      for (const length of [mebibyte + 1, 5 * mebibyte]) {
        const payload = pattern(length)
        for (const qos of [0, 1, 2] as const) {
          const sent = client.publish(topic, payload, { qos })
          const message = await take(subscription, `${length} bytes at QoS ${qos}`)
          expect(Buffer.compare(message.payload, payload), `${length} bytes at QoS ${qos}`).toBe(0)
          message.ack()
          await within(sent, 'the receipt')
        }
      }
    },
  },
  {
    name: 'topic aliases to the broker',
    title:
      'aliases that the broker offers are used, and every message arrives under its own topic, also with more topics than aliases',
    reach: 'TCP',
    async run(world) {
      const [sender, subscription] = await world.pair(world.topic('#'), { buffer: 5000 })
      expect(sender.negotiated?.topicAliasMaximum).toBeGreaterThan(0)
      const seen = aliases(sender, 'out')
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
      const seen = aliases(receiver, 'in')
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
  {
    name: 'thousands at QoS 1 and 2 both ways',
    title:
      'two clients send each other 3,000 messages at QoS 1 and 2 at once; all arrive once and in order',
    reach: 'TCP',
    alone: true,
    timeout: 60_000,
    async run(world) {
      const [one, other] = [await world.connect(), await world.connect()]
      const [atOne, atOther] = [
        await one.subscribe(world.topic('one'), { qos: 2 }),
        await other.subscribe(world.topic('other'), { qos: 2 }),
      ]
      const send = (client: Client, topic: string, qos: 1 | 2) =>
        Promise.all(sequence(3000).map((text) => client.publish(topic, text, { qos })))
      const sent = [send(one, world.topic('other'), 1), send(other, world.topic('one'), 2)]
      for (const texts of await Promise.all([takeTexts(atOne, 3000), takeTexts(atOther, 3000)]))
        expect(texts).toEqual(sequence(3000))
      await within(Promise.all(sent), 'the receipts')
      await Promise.all([
        one.publish(world.topic('other'), 'last', { qos: 1 }),
        other.publish(world.topic('one'), 'last', { qos: 2 }),
      ])
      expect([(await take(atOne)).text(), (await take(atOther)).text()]).toEqual(['last', 'last'])
    },
  },
  {
    name: 'requests',
    title:
      '200 requests at once are each given their own answer; one that nobody answers times out',
    reach: 'TCP',
    async run(world) {
      const [requester, responder] = [await world.connect(), await world.connect()]
      await responder.respond(world.topic('service'), (request) => `${request.text()}!`, { qos: 1 })
      const replies = sequence(200).map((text) =>
        requester.request(world.topic('service'), text, { qos: 1 }),
      )
      const texts = (await within(Promise.all(replies), 'the answers')).map((reply) => reply.text())
      expect(texts).toEqual(sequence(200).map((text) => `${text}!`))
      const late = requester.request(world.topic('nobody'), 'x', { qos: 1, timeout: 100 })
      await expect(within(late, 'the end of a request')).rejects.toMatchObject({
        code: 'ERR_TIMEOUT',
      })
      await eventually(() => requester.state === 'connected', 'the client going on')
    },
  },
]
