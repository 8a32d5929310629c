/**
 * Subscriptions and their consumers: sharing, identifiers, acknowledgement, handlers, and calls from inside a turn.
 */
import { expect } from 'vitest'
import type { Client, ClientEvents, Message, QoS } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

type Seen = ClientEvents['packet']

/** Every packet of a client from now on. */
function packets(client: Client): Seen[] {
  const seen: Seen[] = []
  client.on('packet', (event) => seen.push(event))
  return seen
}

function sent(seen: readonly Seen[], type: string): number {
  return seen.filter(({ direction, packet }) => direction === 'out' && packet.type === type).length
}

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
    title: 'several filters with options of their own, granted one by one, split where asked',
    async run(world) {
      const client = await world.connect({ maxFiltersPerSubscribe: 2 })
      const seen = packets(client)
      const filters = [0, 1, 2].map((qos) => ({ filter: world.topic(`f${qos}`), qos: qos as QoS }))
      const subscription = await client.subscribe(filters)
      expect(
        subscription.granted.map(({ filter, qos, reasonCode }) => ({ filter, qos, reasonCode })),
      ).toEqual(filters.map(({ filter, qos }) => ({ filter, qos, reasonCode: qos })))
      expect(sent(seen, 'subscribe')).toBe(2)
      for (const { filter, qos } of filters) {
        await client.publish(filter, 'x', { qos: 2 })
        expect((await take(subscription)).qos).toBe(qos)
      }
    },
  },
  {
    name: 'merged filters',
    title:
      'three subscriptions on one filter are one SUBSCRIBE, three deliveries, and one UNSUBSCRIBE by the last',
    async run(world) {
      const topic = world.topic('merged')
      const client = await world.connect()
      const seen = packets(client)
      const all = await Promise.all(
        [0, 1, 2].map((qos) => client.subscribe(topic, { qos: qos as QoS })),
      )
      expect(sent(seen, 'subscribe')).toBe(1)
      await client.publish(topic, 'x', { qos: 2 })
      for (const subscription of all) expect((await take(subscription)).qos).toBe(2)
      for (const [index, subscription] of all.entries()) {
        expect(sent(seen, 'unsubscribe')).toBe(0)
        await within(subscription.unsubscribe(), `unsubscribing ${index}`)
      }
      expect(sent(seen, 'unsubscribe')).toBe(1)
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
    name: 'listen',
    title:
      'listen with concurrency 4 runs four at a time, each message once, and retries a failed one',
    async run(world) {
      const topic = world.topic('jobs')
      const [sender, receiver] = [await world.connect(), await world.connect()]
      const [done, failed]: [string[], Set<string>] = [[], new Set()]
      let [running, peak] = [0, 0]
      let open = (): void => undefined
      const four = new Promise<void>((resolve) => {
        open = resolve
      })
      const handling = await receiver.listen(
        topic,
        async (message) => {
          running += 1
          peak = Math.max(peak, running)
          // Nobody goes on until four are at work; a fifth would show in the peak.
          if (running === 4) open()
          await within(four, 'four handlers at a time')
          running -= 1
          const text = message.text()
          if (Number(text) % 10 === 0 && !failed.has(text)) {
            failed.add(text)
            throw new Error('once')
          }
          done.push(text)
        },
        { qos: 1, concurrency: 4 },
      )
      await within(
        Promise.all(sequence(40).map((text) => sender.publish(topic, text, { qos: 1 }))),
        'the receipts',
      )
      await eventually(() => done.length === 40, 'every job')
      expect([...done].sort()).toEqual(sequence(40).sort())
      expect([peak, failed.size]).toEqual([4, 4])
      await within(handling.unsubscribe(), 'unsubscribing')
      await within(handling.done, 'the end of the handling')
    },
  },
  {
    name: 'manual ack',
    title:
      'MQTT-4.6.0-2: acknowledged out of order, PUBACK and PUBREC leave in the order of arrival',
    async run(world) {
      const topic = world.topic('manual')
      const [sender, subscription, receiver] = await world.pair(topic, { qos: 2, ack: 'manual' })
      const seen = packets(receiver)
      const acks = (): number[] =>
        seen.flatMap(({ direction, packet }) =>
          direction === 'out' && (packet.type === 'puback' || packet.type === 'pubrec')
            ? [packet.packetId]
            : [],
        )
      const levels: QoS[] = [1, 1, 1, 1]
      const got: Message[] = []
      for (const qos of levels) {
        await sender.publish(topic, `at ${qos}`, { qos })
        got.push(await take(subscription))
      }
      for (const index of [2, 1, 3]) expect(got[index]?.ack()).toBe(true)
      const fence = await receiver.subscribe(world.topic('fence'))
      await receiver.publish(world.topic('fence'), 'x')
      await take(fence)
      expect(acks()).toEqual([])
      expect(got[0]?.ack()).toBe(true)
      expect(got[0]?.ack()).toBe(false)
      const arrived = seen.flatMap(({ direction, packet }) =>
        direction === 'in' && packet.type === 'publish' && packet.qos > 0 ? [packet.packetId] : [],
      )
      await eventually(() => acks().length === 4, 'the acknowledgements')
      expect(acks()).toEqual(arrived)
    },
  },
  {
    name: 'calls inside a loop',
    title:
      'publish, subscribe, unsubscribe and disconnect awaited inside the loop body never deadlock',
    async run(world) {
      const topic = world.topic('loop')
      const [sender, subscription, client] = await world.pair(topic, { qos: 2 })
      await Promise.all(sequence(6).map((text) => sender.publish(topic, text, { qos: 2 })))
      const turns: string[] = []
      const loop = async (): Promise<void> => {
        for await (const message of subscription) {
          for (const qos of [0, 1, 2] as const)
            await client.publish(world.topic('echo'), message.payload, { qos })
          const inner = await client.subscribe(world.topic(`inner/${message.text()}`), { qos: 1 })
          await client.publish(world.topic(`inner/${message.text()}`), 'back', { qos: 1 })
          turns.push(`${message.text()} ${(await take(inner)).text()}`)
          await inner.unsubscribe()
          await client.unsubscribe(world.topic('nothing'))
          if (message.text() === '5') await client.disconnect({ timeout: 0 })
        }
      }
      await within(loop(), 'the loop')
      expect(turns).toEqual(sequence(6).map((text) => `${text} back`))
      expect(await within(client.closed, 'the end')).toBe(undefined)
    },
  },
  {
    name: 'calls inside a handler',
    title: 'the same inside a listen handler, where disconnect() waits no longer than its timeout',
    async run(world) {
      const topic = world.topic('handler')
      const [sender, client] = [await world.connect(), await world.connect()]
      const turns: string[] = []
      const handling = await client.listen(
        topic,
        async (message) => {
          for (const qos of [0, 1, 2] as const)
            await client.publish(world.topic('echo'), message.payload, { qos })
          const inner = await client.subscribe(world.topic('inner'), { qos: 1 })
          await client.unsubscribe(world.topic('inner'))
          expect(await inner.next()).toBe(undefined)
          turns.push(message.text())
          if (message.text() === '2') await client.disconnect({ timeout: 100 })
        },
        { qos: 1 },
      )
      await Promise.all(sequence(3).map((text) => sender.publish(topic, text, { qos: 1 })))
      expect(await within(client.closed, 'the end')).toBe(undefined)
      expect(turns).toEqual(sequence(3))
      await within(handling.done, 'the end of the handling')
      const error = await failure(client.publish(topic, 'late'), 'publishing when closed')
      expect(error.code).toBe('ERR_CLOSED')
    },
  },
  {
    name: 'leaving a loop',
    title: 'break unsubscribes, acknowledges what was buffered, and the client goes on',
    async run(world) {
      const topic = world.topic('left')
      const [sender, subscription, client] = await world.pair(topic, { qos: 1 })
      const seen = packets(client)
      await Promise.all(sequence(20).map((text) => sender.publish(topic, text, { qos: 1 })))
      for await (const message of subscription) {
        if (message.text() === '4') break
      }
      await eventually(
        () => sent(seen, 'unsubscribe') === 1 && sent(seen, 'puback') === 20,
        'UNSUBSCRIBE and every PUBACK',
      )
      const again = await client.subscribe(topic, { qos: 1 })
      await sender.publish(topic, 'again', { qos: 1 })
      expect(await textsUntil(again, 'again')).toEqual([])
    },
  },
  {
    name: 'batches',
    title:
      'batches() hands over what is there, in order, and acknowledges a batch when the next is asked for',
    async run(world) {
      const topic = world.topic('batches')
      const [sender, subscription, client] = await world.pair(topic, { qos: 1 })
      const seen = packets(client)
      const sending = Promise.all(
        sequence(500).map((text) => sender.publish(topic, text, { qos: 1 })),
      )
      const got: string[] = []
      for await (const batch of subscription.batches(50)) {
        expect(batch.length).toBeLessThanOrEqual(50)
        got.push(...batch.map((message) => message.text()))
        if (got.length === 500) break
      }
      expect(got).toEqual(sequence(500))
      await within(sending, 'the receipts')
      await eventually(() => sent(seen, 'puback') === 500, 'every PUBACK')
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
