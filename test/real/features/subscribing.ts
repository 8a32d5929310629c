/** Subscriptions and their consumers: sharing, identifiers, acknowledgement, handlers, and calls from inside a turn. */
import { expect } from 'vitest'
import type { QoS } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

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
