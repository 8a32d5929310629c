/** What calls and packets cost a whole client: four times as many, at most six times the work, counted in `cost-worlds.ts`. */
import { expect } from 'vitest'
import type { PublishOptions, SubscribeOptions } from '../../../src/client/options/index.js'
import { again, lose, willing } from './across.js'
import {
  costsEvenly,
  filters,
  handed,
  inFlight,
  offline,
  open,
  outbound,
  type Row,
  shuffled,
  subscribed,
  upTo,
  wide,
} from './cost-worlds.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { bytesOf, obliging, publish, quick, quiet, series } from './incoming.js'
import { deafTo, settled } from './steps.js'

/** Does this for each, then lets all settle. */
const each =
  (world: World, indices: readonly number[], act: (index: number) => unknown) =>
  async (): Promise<void> => {
    for (const index of indices) act(index)
    await world.settle()
  }
const coming = { reconnect: { backoff: () => 10 } }
const session = { cleanStart: false, clientId: 'me' }
const inAnyOrder = (count: number): number[] => shuffled(upTo(count))
const answer = (type: 'puback' | 'pubrec', index: number) =>
  ({ type, packetId: index + 1, reasonCode: 0, properties: {} }) as const
/** One message on each topic. */
const onEach = (count: number) =>
  bytesOf(filters(count).map((topic, index) => publish(topic, 'x', index + 1)))

/** One call for each of these, in one turn. */
const subscribeEach = (world: World, names: readonly string[], options: SubscribeOptions = {}) =>
  settled(
    world,
    Promise.all(names.map((name) => world.client.subscribe(name, { qos: 1, ...options }))),
  )

/** A world with one subscription to `t`. */
async function withOne(options: SubscribeOptions = {}) {
  const world = await open()
  return { world, subscription: await settled(world, world.client.subscribe('t', options)) }
}

/** Publishes of one turn, to their end. */
const publishing = (qos: 0 | 1 | 2, topic = (_index: number): string => 't'): Row => {
  const options: PublishOptions = { qos }
  return async (count) => {
    const world = await open({ outbound })
    const send = (index: number) => world.client.publish(topic(index), String(index), options)
    return () => settled(world, Promise.all(upTo(count).map(send)))
  }
}

/** The next connection with so much in flight; the session is there or not. */
const returning = (hasSession: boolean): Row => {
  return async (count) => {
    const { world, all } = await inFlight(count, 1, { ...coming, ...session })
    return async () => {
      await again(world, willing(hasSession))
      await settled(world, all)
    }
  }
}

/** Aborts calls that wait, in any order. */
async function aborting(
  world: World,
  count: number,
  call: (signal: AbortSignal) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const controllers = upTo(count).map(() => new AbortController())
  for (const { signal } of controllers) quiet(call(signal))
  await world.settle()
  return each(world, inAnyOrder(count), (index) => controllers[index]?.abort())
}

/** Messages for a loop. */
const reading = (qos: 0 | 1 | 2): Row => {
  return async (count) => {
    const { world, subscription } = await withOne({ qos })
    let seen = 0
    const loop = (async () => {
      for await (const message of subscription) if (message.topic === 't' && ++seen === count) break
    })()
    await world.settle()
    const packets =
      qos === 0
        ? quick('t', count)
        : series('t', count).map((packet) => ({ ...packet, qos }) as typeof packet)
    return async () => {
      await world.sendBytes(bytesOf(packets))
      await settled(world, loop)
    }
  }
}

/** Handlers that wait to be ended. */
function waiting(): { readonly handle: () => Promise<void>; readonly ends: (() => void)[] } {
  const ends: (() => void)[] = []
  return { handle: () => new Promise((resolve) => void ends.push(resolve)), ends }
}

const rows: Readonly<Record<string, Row>> = {
  // Sending

  'publishes at QoS 0 in one turn': publishing(0, (index) => `t/${index}`),
  async 'posts in one turn'(count) {
    const world = await open()
    return each(world, upTo(count), (index) => world.client.post('t', String(index)))
  },
  'publishes at QoS 1, answered': publishing(1),
  'publishes at QoS 2, with their whole exchange': publishing(2),
  async 'publishes one after the other, each awaited'(count) {
    const world = await open()
    return async () => {
      for (const index of upTo(count))
        await settled(world, world.client.publish('t', String(index), { qos: 1 }))
    }
  },
  async 'PUBACKs in any order'(count) {
    const { world, all } = await inFlight(count, 1)
    return async () => {
      await each(world, inAnyOrder(count), (index) => world.peer.send(answer('puback', index)))()
      await settled(world, all)
    }
  },
  async 'PUBRECs in any order'(count) {
    const { world } = await inFlight(count, 2)
    return async () => {
      await each(world, inAnyOrder(count), (index) => world.peer.send(answer('pubrec', index)))()
      expect(world.peer.all('pubrel')).toHaveLength(count)
    }
  },
  'a replay of what was in flight': returning(true),
  'a session that is lost with all that was in flight': returning(false),
  async 'aborts of what is in flight, in any order'(count) {
    const world = await connected({ ...wide, outbound }, deafTo('publish'))
    return aborting(world, count, (signal) => world.client.publish('t', 'x', { qos: 1, signal }))
  },
  async 'a queue that is filled offline, and sent'(count) {
    const { world, all } = offline(count)
    world.answer = obliging
    return async () => {
      await world.up()
      await settled(world, Promise.all(all))
    }
  },
  async 'a queue that overflows, the oldest dropped'(count) {
    const policy = { maxQueuedMessages: count, overflow: 'drop-oldest' } as const
    const world = new World({ ...wide, outbound: policy, reconnect: false })
    const send = (index: number) => quiet(world.client.publish('t', String(index), { qos: 1 }))
    const fill = each(world, upTo(count), send)
    await fill()
    return fill
  },
  async 'aborts in a queue, in any order'(count) {
    const world = new World({ ...wide, outbound, reconnect: false })
    return aborting(world, count, (signal) => world.client.publish('t', 'x', { qos: 1, signal }))
  },
  async 'times to live in a queue, all over at once'(count) {
    const { world } = offline(count, { ttl: 100 })
    return () => world.clock.advance(200)
  },
  async 'times for an acknowledgement, all over at once'(count) {
    const { world } = await inFlight(count, 1, { outbound: { ...outbound, ackTimeout: 100 } })
    return () => world.clock.advance(200)
  },
  async 'topics under an alias, once each'(count) {
    const properties = { topicAliasMaximum: 20 }
    const world = await connected(wide, (packet) =>
      packet.type === 'connect' ? accepting(properties)(packet) : agreeable(packet),
    )
    return () =>
      settled(world, Promise.all(filters(count).map((topic) => world.client.publish(topic, 'x'))))
  },
  async 'user properties of one message'(count) {
    const world = await open()
    const userProperties = upTo(count).map(
      (index) => [`name ${index}`, 'value'] as [string, string],
    )
    return () => settled(world, world.client.publish('t', 'x', { properties: { userProperties } }))
  },
  async 'clear() of a queue'(count) {
    const { world } = offline(count)
    return each(world, [0], () => world.client.outbound.clear())
  },
  async 'destroy() with everything pending'(count) {
    const { world } = await inFlight(count, 1)
    return each(world, [0], () => world.client.destroy())
  },
  async 'waits for writable'(count) {
    const offline = { qos0: 'reject' } as const
    const world = await connected({ ...wide, ...coming, outbound: { offline } }, agreeable)
    await lose(world)
    return async () => {
      const all = Promise.allSettled(upTo(count).map(() => world.client.writable))
      world.client.destroy()
      await settled(world, all)
    }
  },

  // Receiving

  'messages at QoS 0 for a loop': reading(0),
  'messages at QoS 1 for a loop': reading(1),
  'messages at QoS 2 for a loop': reading(2),
  async 'messages for as many filters'(count) {
    const { world } = await subscribed(count)
    return () => world.sendBytes(onEach(count))
  },
  async 'one message for as many consumers of a filter'(count) {
    const world = await open()
    await subscribeEach(world, Array(count).fill('t'))
    return () => world.send(publish('t', 'x', 1))
  },
  async 'messages under aliases of their own'(count) {
    const world = await open({ topicAliasMaximum: 65_535 })
    await settled(world, world.client.subscribe('#', { qos: 0 }))
    const aliased = (topic: (index: number) => string) =>
      upTo(count).map((index) =>
        publish(topic(index), 'x', undefined, { properties: { topicAlias: index + 1 } }),
      )
    return () =>
      world.sendBytes(bytesOf([...aliased((index) => `t/${index}`), ...aliased(() => '')]))
  },
  async 'user properties of messages'(count) {
    const { world, subscription } = await withOne()
    const userProperties = upTo(100).map((index) => [`name ${index}`, 'value'] as [string, string])
    const packet = publish('t', 'x', undefined, { properties: { userProperties } })
    return async () => {
      await world.sendBytes(bytesOf(upTo(count).map(() => packet)))
      for (const _ of upTo(count))
        expect(subscription.read()?.properties.userProperties).toHaveLength(100)
    }
  },
  async 'waiting next() calls, each with its message'(count) {
    const { world, subscription } = await withOne({ qos: 1, ack: 'manual' })
    return async () => {
      const all = Promise.all(upTo(count).map(() => subscription.next()))
      await world.sendBytes(bytesOf(series('t', count)))
      await settled(world, all)
    }
  },
  async 'acknowledgements by hand, in any order'(count) {
    const { world, messages } = await handed(count)
    return async () => {
      await each(world, inAnyOrder(count), (index) => messages[index]?.ack())()
      expect(world.peer.all('puback')).toHaveLength(count)
    }
  },
  async 'acknowledgements by hand at QoS 2, the youngest first'(count) {
    const { world, messages } = await handed(count, 2)
    return async () => {
      await each(world, upTo(count).reverse(), (index) => messages[index]?.ack())()
      expect(world.peer.all('pubrec')).toHaveLength(count)
    }
  },
  async 'detached messages, acknowledged in any order'(count) {
    const { world, messages } = await handed(count, 1, { lifetime: 'borrowed' })
    return async () => {
      const kept = messages.map((message) => message.detach())
      await each(world, inAnyOrder(count), (index) => kept[index]?.ack())()
    }
  },
  async batches(count) {
    const { world, subscription } = await withOne({ qos: 1 })
    await world.sendBytes(bytesOf(series('t', count)))
    const loop = async (): Promise<void> => {
      let seen = 0
      for await (const batch of subscription.batches(10)) {
        seen += batch.length
        if (seen >= count) break
      }
    }
    return () => settled(world, loop())
  },
  async 'a buffer that is full, the oldest dropped'(count) {
    const { world } = await withOne({ overflow: 'drop-oldest', buffer: count })
    await world.sendBytes(bytesOf(quick('t', count)))
    return async () => {
      for (const index of upTo(count)) await world.send(publish('t', String(index)))
    }
  },
  async 'QoS 0 behind a message that is owed an acknowledgement'(count) {
    const { world, subscription } = await withOne({ qos: 1, buffer: count, ack: 'manual' })
    await world.sendBytes(bytesOf([...series('t', count), ...quick('t', 2)]))
    return async () => {
      for (const index of upTo(count)) await world.send(publish('t', String(index)))
      expect(subscription.size).toBeGreaterThanOrEqual(count)
    }
  },
  // Each end walks over those that run at once: how many may is what `concurrency` bounds.
  async 'handlers, 50 at once, that end in any order'(count) {
    const world = await open()
    const { handle, ends } = waiting()
    const options = { qos: 1, concurrency: 50, order: 'none' } as const
    await settled(world, world.client.listen('t', handle, options))
    await world.sendBytes(bytesOf(series('t', count)))
    return async () => {
      for (let ended = 0; ended < count; ) {
        const now = ends.splice(0)
        ended += now.length
        await each(world, inAnyOrder(now.length), (index) => now[index]?.())()
      }
    }
  },
  async 'messages that nobody claims'(count) {
    const world = await connected({ ...wide, ...session }, willing(true))
    return async () => {
      await world.sendBytes(bytesOf(series('t', count)))
      const subscription = await settled(world, world.client.subscribe('t', { qos: 1 }))
      expect(subscription.size).toBe(count)
    }
  },

  // Subscribing

  async 'filters of one call'(count) {
    const world = await open()
    return () => settled(world, world.client.subscribe(filters(count), { qos: 1 }))
  },
  async 'calls of one turn'(count) {
    const world = await open()
    return () => subscribeEach(world, filters(count))
  },
  async 'calls of one turn for one filter'(count) {
    const world = await open()
    return () => subscribeEach(world, Array(count).fill('a'))
  },
  async 'SUBSCRIBEs of one filter that wait for their answers, and then get them'(count) {
    const world = await connected(wide, deafTo('subscribe'))
    return async () => {
      const calls: Promise<unknown>[] = []
      for (const _ of upTo(count)) {
        calls.push(world.client.subscribe('a', { qos: 1 }))
        await world.settle()
      }
      expect(world.peer.all('subscribe')).toHaveLength(count)
      for (const { packetId } of world.peer.all('subscribe'))
        world.peer.send({ type: 'suback', packetId, reasonCodes: [1] })
      await settled(world, Promise.all(calls))
    }
  },
  async 'subscriptions that are aborted in any order while they wait'(count) {
    const world = await connected(wide, deafTo('subscribe'))
    return aborting(world, count, (signal) => world.client.subscribe('a', { qos: 1, signal }))
  },
  async 'identifiers of the application, then automatic ones'(count) {
    const world = await open()
    return async () => {
      const own = (index: number) =>
        ({ qos: 1, properties: { subscriptionIdentifier: index + 1 } }) as const
      const calls = filters(count).map((name, index) => world.client.subscribe(name, own(index)))
      await settled(world, Promise.all(calls))
      const names = filters(count).map((name) => `own/${name}`)
      await subscribeEach(world, names)
    }
  },
  async 'unsubscribe() of filters, one call'(count) {
    const { world } = await subscribed(count)
    return () => settled(world, world.client.unsubscribe(filters(count)))
  },
  async 'unsubscribe() of filters, a packet for each'(count) {
    const { world } = await subscribed(count, { maxFiltersPerSubscribe: 1 })
    return () => settled(world, world.client.unsubscribe(filters(count)))
  },
  async 'unsubscribe() of one filter again and again'(count) {
    const world = await open()
    return () => settled(world, Promise.all(upTo(count).map(() => world.client.unsubscribe('a'))))
  },
  async 'a filter that is taken and left again and again'(count) {
    const world = await open()
    return async () => {
      for (const _ of upTo(count)) {
        const subscription = await settled(world, world.client.subscribe(['a', 'b/#'], { qos: 1 }))
        await settled(world, subscription.unsubscribe())
      }
    }
  },
  async 'subscriptions of a session that was lost'(count) {
    const { world } = await subscribed(count)
    return () => again(world, willing(false))
  },
  async 'loops that are left one after the other while their bodies run'(count) {
    const world = await open()
    const subscriptions = await subscribeEach(world, filters(count), { ack: 'manual' })
    await world.sendBytes(onEach(count))
    for (const subscription of subscriptions) subscription.read()
    return async () => {
      for (const subscription of subscriptions) {
        quiet(subscription.unsubscribe())
        await world.settle()
      }
    }
  },

  // The rest

  async 'handlers that end one after the other while the client does'(count) {
    const world = await open()
    const { handle, ends } = waiting()
    const calls = filters(count).map((name) => world.client.listen(name, handle, { qos: 1 }))
    await settled(world, Promise.all(calls))
    await world.sendBytes(onEach(count))
    expect(ends).toHaveLength(count)
    return async () => {
      const ended = world.client.disconnect({ timeout: 60_000 })
      for (const end of ends) {
        end()
        await world.settle()
      }
      await ended
    }
  },
  async 'requests, answered in any order'(count) {
    const world = await open()
    const ask = (index: number) =>
      world.client.request('service', String(index), { timeout: 60_000 })
    const all = quiet(Promise.all(upTo(count).map(ask)))
    await world.settle()
    const asked = world.peer.all('publish')
    expect(asked).toHaveLength(count)
    return async () => {
      await each(world, inAnyOrder(count), (index) => {
        const { responseTopic = '', correlationData } = asked[index]?.properties ?? {}
        world.peer.send(
          publish(responseTopic, 'yes', undefined, { properties: { correlationData } }),
        )
      })()
      await settled(world, all)
    }
  },
  async 'requests whose time is over'(count) {
    const world = await open()
    for (const index of upTo(count))
      quiet(world.client.request('service', String(index), { timeout: 100 }))
    await world.settle()
    return () => world.clock.advance(200)
  },
  async responses(count) {
    const world = await open()
    const responding = world.client.respond('service', () => 'yes', { qos: 1, concurrency: 10 })
    await settled(world, responding)
    const requests = upTo(count).map((index) =>
      publish('service', 'x', index + 1, { properties: { responseTopic: `answers/${index}` } }),
    )
    return async () => {
      await world.sendBytes(bytesOf(requests))
      await world.settle()
      expect(world.peer.all('publish')).toHaveLength(count)
    }
  },
  async 'listeners that come and go'(count) {
    const world = await connected(wide, accepting())
    return async () => {
      const stops = upTo(count).map(() => world.client.on('late', () => undefined))
      for (const index of inAnyOrder(count)) stops[index]?.()
    }
  },

  // Bytes that come in

  async 'a message that comes in pieces'(count) {
    const { world, subscription } = await withOne({ qos: 1 })
    const bytes = bytesOf([publish('t', 'x'.repeat(count * 20), 1)])
    return async () => {
      for (let at = 0; at < bytes.length; at += 20)
        await world.sendBytes(bytes.subarray(at, at + 20))
      expect(subscription.size).toBe(1)
    }
  },
  async 'a topic of as many levels, where filters have few'(count) {
    const world = await open()
    await settled(world, world.client.subscribe(['a/+', '+/+/#']))
    const bytes = bytesOf([publish(`b${'/'.repeat(count)}`, 'x')])
    return () => world.sendBytes(bytes)
  },
  async 'messages at QoS 2 that come again'(count) {
    const { world } = await withOne({ qos: 2, ack: 'manual' })
    const once = series('t', count).map((packet) => ({ ...packet, qos: 2 }) as typeof packet)
    await world.sendBytes(bytesOf(once))
    return () =>
      world.sendBytes(bytesOf(once.map((packet) => ({ ...packet, dup: true }) as typeof packet)))
  },
  async 'acknowledgements that belong to nothing'(count) {
    const world = await open()
    return each(world, upTo(count), (index) => world.peer.send(answer('puback', index)))
  },
  async 'connections, one after the other'(count) {
    const world = await connected({ ...wide, ...coming, ...session }, willing(true))
    quiet(world.client.closed)
    return async () => {
      for (const _ of upTo(count)) await again(world, willing(true))
    }
  },
}

costsEvenly('four times as many', rows)
