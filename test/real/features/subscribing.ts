/**
 * Topic names and filters (sections 1.5.4, 4.7), retained messages (3.3.1.3, 3.8.3.1), and subscriptions with their consumers: sharing, identifiers,
 * acknowledgement, handlers.
 */
import { expect } from 'vitest'
import type { Client, QoS } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

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

/** Has a message kept, and waits for the answer to something later: aedes acknowledges before it has kept it. */
async function retain(sender: Client, topic: string, payload: string): Promise<void> {
  await within(sender.publish(topic, payload, { qos: 1, retain: true }), 'the receipt')
  await within(sender.unsubscribe(`${topic}/nothing`), 'a round trip')
}

export const retained: readonly Feature[] = [
  {
    name: 'retained',
    title: 'a later subscriber gets the retained message; an empty one clears it',
    async run(world) {
      const topic = world.topic('state')
      const sender = await world.connect()
      await retain(sender, topic, 'old')
      await retain(sender, topic, 'new')
      const first = await (await world.connect()).subscribe(topic, { qos: 1 })
      const message = await take(first, 'the retained message')
      expect([message.text(), message.retain, message.qos]).toEqual(['new', true, 1])
      await retain(sender, topic, '')
      const second = await (await world.connect()).subscribe(topic, { qos: 1 })
      await sender.publish(topic, 'live', { qos: 1 })
      expect(await textsUntil(second, 'live')).toEqual([])
    },
  },
  {
    name: 'retained at QoS 2',
    title: 'a retained message comes at QoS 2, and its exchange is completed',
    async run(world) {
      const topic = world.topic('state')
      const sender = await world.connect()
      await within(sender.publish(topic, 'kept', { qos: 2, retain: true }), 'the receipt')
      const client = await world.connect()
      const subscription = await client.subscribe(topic, { qos: 2 })
      let completed = false
      client.on('packet', ({ direction, packet }) => {
        if (direction === 'out' && packet.type === 'pubcomp') completed = true
      })
      const message = await take(subscription, 'the retained message')
      expect([message.text(), message.qos, message.retain]).toEqual(['kept', 2, true])
      message.ack()
      await eventually(() => completed, 'PUBCOMP')
      await within(client.publish(topic, 'x', { qos: 1 }), 'a publish afterwards')
    },
  },
  {
    name: 'retain handling',
    title: 'Retain Handling 0 always, 1 only for a new subscription, 2 never',
    async run(world) {
      const topic = world.topic('state')
      const sender = await world.connect()
      await retain(sender, topic, 'kept')
      const client = await world.connect()
      const fresh = await client.subscribe(topic, { qos: 1, retainHandling: 1 })
      expect(await takeTexts(fresh, 1)).toEqual(['kept'])
      const again = await client.subscribe(topic, { qos: 1, retainHandling: 1 })
      const never = await client.subscribe(topic, { qos: 1, retainHandling: 2 })
      const always = await client.subscribe(topic, { qos: 1, retainHandling: 0 })
      expect(await takeTexts(always, 1)).toEqual(['kept'])
      const other = await (await world.connect()).subscribe(topic, { qos: 1, retainHandling: 2 })
      await sender.publish(topic, 'live', { qos: 1 })
      for (const subscription of [fresh, again, never, always, other])
        expect(await textsUntil(subscription, 'live')).toEqual([])
    },
  },
  {
    name: 'retain as published',
    title: 'live messages keep the RETAIN flag only under retainAsPublished',
    async run(world) {
      const topic = world.topic('state')
      const [sender, plain] = await world.pair(topic, { qos: 1 })
      const published = await (await world.connect()).subscribe(topic, {
        qos: 1,
        retainAsPublished: true,
      })
      await retain(sender, topic, 'kept')
      await sender.publish(topic, 'live', { qos: 1 })
      expect([(await take(plain)).retain, (await take(plain)).retain]).toEqual([false, false])
      // A broker may send what it keeps once more, when it looks for it after it has granted the subscription.
      for (let text = ''; text !== 'live'; ) {
        const message = await take(published)
        text = message.text()
        expect(message.retain, text).toBe(text === 'kept')
      }
    },
  },
]

export const subscribing: readonly Feature[] = [
  {
    name: 'shared subscription',
    title: '$share gives each message to one of two clients, once',
    async run(world) {
      const filter = `$share/group/${world.topic('jobs')}`
      const [sender, first] = await world.pair(filter, { qos: 1 })
      const second = await (await world.connect()).subscribe(filter, { qos: 1 })
      const got: string[][] = [[], []]
      const read = async (subscription: typeof first, into: string[]): Promise<void> => {
        for await (const message of subscription) into.push(message.text())
      }
      const reading = [read(first, got[0] as string[]), read(second, got[1] as string[])]
      await within(
        Promise.all(
          sequence(200).map((text) => sender.publish(world.topic('jobs'), text, { qos: 1 })),
        ),
        'the receipts',
      )
      await eventually(() => got.flat().length >= 200, 'every job')
      expect(got.flat().sort()).toEqual(sequence(200).sort())
      world.end()
      await within(Promise.allSettled(reading), 'the loops')
    },
  },
  {
    name: 'subscription identifiers',
    title:
      'overlapping filters of two subscriptions: each consumer gets each message once, in order',
    async run(world) {
      const [sender, wide, receiver] = await world.pair(world.topic('#'), { qos: 1 })
      const narrow = await receiver.subscribe(world.topic('x/+'), { qos: 2 })
      const sending = Promise.all(
        sequence(50).map((text) => sender.publish(world.topic('x/a'), text, { qos: 1 })),
      )
      // At once: a message that both are given counts as one until both are done with it.
      expect(await Promise.all([takeTexts(wide, 50), takeTexts(narrow, 50)])).toEqual([
        sequence(50),
        sequence(50),
      ])
      await within(sending, 'the receipts')
      await sender.publish(world.topic('x/b'), 'last', { qos: 1 })
      expect([await textsUntil(wide, 'last'), await textsUntil(narrow, 'last')]).toEqual([[], []])
    },
  },
  {
    name: 'overlap within one subscription',
    title: 'filters of one subscription that overlap: it gets each message once',
    async run(world) {
      const [sender, subscription] = await world.pair(
        [world.topic('+/a'), world.topic('x/+'), world.topic('#')],
        { qos: 1 },
      )
      for (const text of sequence(5)) await sender.publish(world.topic('x/a'), text, { qos: 1 })
      await sender.publish(world.topic('last'), 'last', { qos: 1 })
      expect(await textsUntil(subscription, 'last')).toEqual(sequence(5))
    },
  },
  {
    name: 'own identifier',
    title: 'a subscription identifier of the caller comes back with its messages, also the largest',
    async run(world) {
      const [sender, subscription] = await world.pair(world.topic('a'), {
        properties: { subscriptionIdentifier: 268_435_455 },
      })
      await sender.publish(world.topic('a'), 'x')
      expect((await take(subscription)).properties.subscriptionIdentifiers).toEqual([268_435_455])
    },
  },
  {
    name: 'several filters',
    title: 'several filters of one SUBSCRIBE with options of their own, granted one by one',
    async run(world) {
      const client = await world.connect()
      const filters = [0, 1, 2].map((qos) => ({ filter: world.topic(`f${qos}`), qos: qos as QoS }))
      const subscription = await client.subscribe(filters)
      expect(
        subscription.granted.map(({ filter, qos, reasonCode }) => ({ filter, qos, reasonCode })),
      ).toEqual(filters.map(({ filter, qos }) => ({ filter, qos, reasonCode: qos })))
      for (const { filter, qos } of filters) {
        await client.publish(filter, 'x', { qos: 2 })
        expect((await take(subscription)).qos).toBe(qos)
      }
    },
  },
  {
    name: 'unsubscribe',
    title:
      'unsubscribe tells per filter, nothing comes afterwards, and its local subscriptions end',
    async run(world) {
      const [gone, never] = [world.topic('gone'), world.topic('never')]
      const client = await world.connect()
      const subscription = await client.subscribe(gone, { qos: 1 })
      const ended = subscription.next()
      const results = await within(client.unsubscribe([gone, never]), 'the answer')
      expect(
        results.map(({ filter, reasonCode, error }) => ({ filter, reasonCode, error })),
      ).toEqual([
        { filter: gone, reasonCode: 0x00, error: undefined },
        { filter: never, reasonCode: 0x11, error: undefined },
      ])
      expect(await within(ended, 'the end')).toBe(undefined)
      const fence = await client.subscribe(world.topic('fence'), { qos: 1 })
      const unclaimed: string[] = []
      client.on('unclaimed', ({ message }) => unclaimed.push(message.topic))
      await client.publish(gone, 'x', { qos: 1 })
      await client.publish(world.topic('fence'), 'x', { qos: 1 })
      await take(fence)
      expect(unclaimed).toEqual([])
    },
  },
  {
    name: 'no local',
    title: 'noLocal leaves out what this client publishes, and only that',
    async run(world) {
      const topic = world.topic('chat')
      const [other, subscription, client] = await world.pair(topic, { qos: 1, noLocal: true })
      await client.publish(topic, 'mine', { qos: 1 })
      await other.publish(topic, 'theirs', { qos: 1 })
      expect(await textsUntil(subscription, 'theirs')).toEqual([])
    },
  },
  {
    name: 'inbound window',
    title:
      'an unread subscription stops the broker at Receive Maximum; QoS 0 and calls go on; nothing is lost',
    async run(world) {
      const [slow, quick] = [world.topic('slow'), world.topic('quick')]
      const sender = await world.connect()
      const client = await world.connect({ receiveMaximum: 5 })
      const stalled = await client.subscribe(slow, { qos: 1 })
      const lively = await client.subscribe(quick)
      await within(
        Promise.all(sequence(50).map((text) => sender.publish(slow, text, { qos: 1 }))),
        'the receipts',
      )
      await sender.publish(quick, 'x', { qos: 0 })
      await take(lively, 'QoS 0 past the stalled subscription')
      await within(
        client.publish(world.topic('other'), 'x', { qos: 2 }),
        'a publish past the stalled subscription',
      )
      await eventually(() => stalled.size === 5, 'the window to fill')
      expect(await takeTexts(stalled, 50)).toEqual(sequence(50))
      expect(stalled.dropped).toBe(0)
    },
  },
]
