/** Topic aliases. */
import { expect } from 'vitest'
import type { Client } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { sequence, take, within } from '../waiting.js'

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
