/** Topic names and filters: wildcards, UTF-8 at its edges, and the longest of all (sections 1.5.4, 4.7). */
import { expect } from 'vitest'
import type { Feature } from '../target.js'
import { take, textsUntil, within } from '../waiting.js'

export const names: readonly Feature[] = [
  {
    name: 'wildcards',
    title: '+ and # match whole levels, empty ones too, and the parent',
    reach: 'most',
    async run(world) {
      const sender = await world.connect()
      const matches: Record<string, string[]> = {
        '#': ['a', 'a/b', 'a/b/c', 'a//c', 'a/'],
        'a/#': ['a', 'a/b', 'a/b/c', 'a//c', 'a/'],
        'a/+': ['a/b', 'a/'],
        'a/+/c': ['a/b/c', 'a//c'],
        '+/+': ['a/b', 'a/'],
        '+': ['a'],
      }
      const topics = ['a', 'a/b', 'a/b/c', 'a//c', 'a/', 'last/last/last']
      for (const [filter, wanted] of Object.entries(matches)) {
        const subscription = await (await world.connect()).subscribe([
          world.topic(filter),
          world.topic('last/last/last'),
        ])
        for (const topic of topics)
          await within(sender.publish(world.topic(topic), topic, { qos: 1 }), 'the receipt')
        // A broker may send one copy for each filter.
        expect([...new Set(await textsUntil(subscription, 'last/last/last'))], filter).toEqual(
          wanted,
        )
      }
    },
  },
  {
    name: 'topics of the broker',
    ownBroker: true,
    title:
      'MQTT-4.7.2-1: a filter that begins with a wildcard does not match topics that begin with $',
    reach: 'TCP',
    async run(world) {
      const subscription = await (await world.connect()).subscribe(
        ['#', '+/broker/#', '+/broker'],
        { qos: 1 },
      )
      const sender = await world.connect()
      const began = performance.now()
      const seen: string[] = []
      // Brokers with $SYS topics have retained ones, or publish them every few seconds.
      while (performance.now() - began < 1500) {
        await within(sender.publish(world.topic('fence'), 'x', { qos: 1 }), 'the receipt')
        for (;;) {
          const { topic } = await take(subscription)
          seen.push(topic)
          if (topic === world.topic('fence')) break
        }
      }
      expect(seen.filter((topic) => topic.startsWith('$'))).toEqual([])
    },
  },
  {
    name: 'UTF-8',
    title:
      'MQTT-1.5.4-3: topics, client ids and properties keep every character: BOM, four bytes, combining and unassigned ones, empty levels',
    reach: 'most',
    async run(world) {
      const texts = [
        '\ufeff',
        '\ufeffx\ufeff',
        '\u{1f600}',
        '\u{10000}',
        '\u{10fffd}',
        'e\u0301',
        '\u00e9',
        '\u2028',
        '\u00a0',
        ' ',
        '\ud7ff',
        '\ue000',
        '\ufffd',
      ]
      const client = await world.connect({ clientId: world.id('\u{1f600}e\u0301') })
      const [sender, subscription] = await world.pair(world.topic('#'), { qos: 1 })
      for (const text of texts) {
        const topic = world.topic(`/${text}//${text}/`)
        const own = await client.subscribe(topic, { qos: 1 })
        const userProperties: [string, string][] = [[text, text]]
        await within(
          sender.publish(topic, text, {
            qos: 1,
            properties: { userProperties, contentType: text, responseTopic: `a/${text}` },
          }),
          'the receipt',
        )
        for (const each of [own, subscription]) {
          const message = await take(each, JSON.stringify(text))
          expect(message.topic).toBe(topic)
          expect(message.text()).toBe(text)
          expect(message.properties).toMatchObject({
            userProperties,
            contentType: text,
            responseTopic: `a/${text}`,
          })
        }
        await within(own.unsubscribe(), 'unsubscribing')
      }
    },
  },
  {
    name: 'longest topic',
    title: 'MQTT-1.5.4: a topic of 65,535 bytes, and a user property of twice as many',
    reach: 'TCP',
    async run(world) {
      const [sender, subscription] = await world.pair(world.topic('#'), { qos: 1 })
      const topic = world.topic('a').padEnd(65_535, 'x')
      const userProperties: [string, string][] = [['n'.repeat(65_535), 'v'.repeat(65_535)]]
      await within(
        sender.publish(topic, 'x', { qos: 1, properties: { userProperties } }),
        'the receipt',
      )
      const message = await take(subscription)
      expect(message.topic).toBe(topic)
      expect(message.properties.userProperties).toEqual(userProperties)
    },
  },
]
