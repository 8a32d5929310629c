/**
 * What calls and packets cost a whole client: four times as many, at most six times the work. Work is counted, not timed: see `counted-work.ts`.
 *
 * Each row prepares a world for so many, and then does what counts. Rows differ in the call, in the kind of packet, or in the order of the ends.
 */
import { expect } from 'vitest'
import { again, comeBack, lose, willing } from './across.js'
import {
  costsEvenly,
  filters,
  handed,
  inFlight,
  offline,
  open,
  outbound,
  type Row,
  settled,
  shuffled,
  silentTo,
  subscribed,
  upTo,
  wide,
} from './cost-worlds.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { bytesOf, obliging, publish, quick, quiet, series } from './incoming.js'

const rows: Readonly<Record<string, Row>> = {
  // Sending

  async 'publishes at QoS 0 in one turn'(count) {
    const world = await open()
    return () => settled(world, Promise.all(upTo(count).map((index) => world.client.publish(`t/${index}`, 'x'))))
  },
  async 'posts in one turn'(count) {
    const world = await open()
    return async () => {
      for (const index of upTo(count)) world.client.post('t', String(index))
      await world.settle()
    }
  },
  async 'publishes at QoS 1, answered'(count) {
    const world = await open({ outbound })
    return () => settled(world, Promise.all(upTo(count).map((index) => world.client.publish('t', String(index), { qos: 1 }))))
  },
  async 'publishes at QoS 2, with their whole exchange'(count) {
    const world = await open({ outbound })
    return () => settled(world, Promise.all(upTo(count).map((index) => world.client.publish('t', String(index), { qos: 2 }))))
  },
  async 'publishes one after the other, each awaited'(count) {
    const world = await open()
    return async () => {
      for (const index of upTo(count)) await settled(world, world.client.publish('t', String(index), { qos: 1 }))
    }
  },
  async 'PUBACKs in any order'(count) {
    const { world, all } = await inFlight(count, 1)
    return async () => {
      for (const index of shuffled(upTo(count))) world.peer.send({ type: 'puback', packetId: index + 1, reasonCode: 0, properties: {} })
      await settled(world, all)
    }
  },
  async 'PUBRECs in any order'(count) {
    const { world } = await inFlight(count, 2)
    return async () => {
      for (const index of shuffled(upTo(count))) world.peer.send({ type: 'pubrec', packetId: index + 1, reasonCode: 0, properties: {} })
      await world.settle()
      expect(world.peer.all('pubrel')).toHaveLength(count)
    }
  },
  async 'a replay of what was in flight'(count) {
    const { world, all } = await inFlight(count, 1, { reconnect: { backoff: () => 10 }, cleanStart: false, clientId: 'me' })
    return async () => {
      await again(world, willing(true))
      await settled(world, all)
    }
  },
  async 'a session that is lost with all that was in flight'(count) {
    const { world, all } = await inFlight(count, 1, { reconnect: { backoff: () => 10 }, cleanStart: false, clientId: 'me' })
    return async () => {
      await again(world, willing(false))
      await settled(world, all)
    }
  },
  async 'aborts of what is in flight, in any order'(count) {
    const world = await connected({ ...wide, outbound }, silentTo('publish'))
    const controllers = upTo(count).map(() => new AbortController())
    for (const { signal } of controllers) quiet(world.client.publish('t', 'x', { qos: 1, signal }))
    await world.settle()
    return async () => {
      for (const index of shuffled(upTo(count))) controllers[index]?.abort()
      await world.settle()
    }
  },
  async 'a queue that is filled offline, and sent'(count) {
    const { world, all } = offline(count)
    world.answer = obliging
    return async () => {
      await settled(world, world.client.connect())
      await settled(world, Promise.all(all))
    }
  },
  async 'a queue that overflows, the oldest dropped'(count) {
    const world = new World({ ...wide, outbound: { maxQueuedMessages: count, overflow: 'drop-oldest' }, reconnect: false })
    const fill = (): void => {
      for (const index of upTo(count)) quiet(world.client.publish('t', String(index), { qos: 1 }))
    }
    fill()
    return async () => {
      fill()
      await world.settle()
    }
  },
  async 'aborts in a queue, in any order'(count) {
    const world = new World({ ...wide, outbound, reconnect: false })
    const controllers = upTo(count).map(() => new AbortController())
    for (const { signal } of controllers) quiet(world.client.publish('t', 'x', { qos: 1, signal }))
    return async () => {
      for (const index of shuffled(upTo(count))) controllers[index]?.abort()
      await world.settle()
    }
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
    const world = await connected(wide, (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { topicAliasMaximum: 20 } }
        : agreeable(packet),
    )
    return () => settled(world, Promise.all(filters(count).map((topic) => world.client.publish(topic, 'x'))))
  },
  async 'user properties of one message'(count) {
    const world = await open()
    const userProperties = upTo(count).map((index) => [`name ${index}`, 'value'] as [string, string])
    return () => settled(world, world.client.publish('t', 'x', { properties: { userProperties } }))
  },
  async 'clear() of a queue'(count) {
    const { world } = offline(count)
    return async () => {
      world.client.outbound.clear()
      await world.settle()
    }
  },
  async 'destroy() with everything pending'(count) {
    const { world } = await inFlight(count, 1)
    return async () => {
      world.client.destroy()
      await world.settle()
    }
  },
  async 'waits for writable'(count) {
    const world = await connected({ ...wide, reconnect: { backoff: () => 10 }, outbound: { offline: { qos0: 'reject' } } }, agreeable)
    await lose(world)
    return async () => {
      const all = Promise.allSettled(upTo(count).map(() => world.client.writable))
      world.client.destroy()
      await settled(world, all)
    }
  },

  // Receiving

  ...Object.fromEntries(
    ([0, 1, 2] as const).map((qos) => [
      `messages at QoS ${qos} for a loop`,
      async (count: number) => {
        const world = await open()
        const subscription = await settled(world, world.client.subscribe('t', { qos }))
        let seen = 0
        const loop = (async () => {
          for await (const message of subscription) if (message.topic === 't' && ++seen === count) break
        })()
        await world.settle()
        const packets = qos === 0 ? quick('t', count) : series('t', count).map((packet) => ({ ...packet, qos }) as typeof packet)
        return async () => {
          await world.sendBytes(bytesOf(packets))
          await settled(world, loop)
        }
      },
    ]),
  ),
  async 'messages for as many filters'(count) {
    const { world } = await subscribed(count)
    return () => world.sendBytes(bytesOf(filters(count).map((topic, index) => publish(topic, 'x', index + 1))))
  },
  async 'one message for as many consumers of a filter'(count) {
    const world = await open()
    const calls = Promise.all(upTo(count).map(() => world.client.subscribe('t', { qos: 1 })))
    await settled(world, calls)
    return () => world.send(publish('t', 'x', 1))
  },
  async 'messages under aliases of their own'(count) {
    const world = await open({ topicAliasMaximum: 65_535 })
    await settled(world, world.client.subscribe('#', { qos: 0 }))
    const first = upTo(count).map((index) => publish(`t/${index}`, 'x', undefined, { properties: { topicAlias: index + 1 } }))
    const next = upTo(count).map((index) => publish('', 'x', undefined, { properties: { topicAlias: index + 1 } }))
    return () => world.sendBytes(bytesOf([...first, ...next]))
  },
  async 'user properties of messages'(count) {
    const world = await open()
    const subscription = await settled(world, world.client.subscribe('t'))
    const userProperties = upTo(100).map((index) => [`name ${index}`, 'value'] as [string, string])
    return async () => {
      await world.sendBytes(bytesOf(upTo(count).map(() => publish('t', 'x', undefined, { properties: { userProperties } }))))
      for (const _ of upTo(count)) expect(subscription.read()?.properties.userProperties).toHaveLength(100)
    }
  },
  async 'waiting next() calls, each with its message'(count) {
    const world = await open()
    const subscription = await settled(world, world.client.subscribe('t', { qos: 1, ack: 'manual' }))
    return async () => {
      const all = Promise.all(upTo(count).map(() => subscription.next()))
      await world.sendBytes(bytesOf(series('t', count)))
      await settled(world, all)
    }
  },
  async 'acknowledgements by hand, in any order'(count) {
    const { world, messages } = await handed(count)
    return async () => {
      for (const index of shuffled(upTo(count))) messages[index]?.ack()
      await world.settle()
      expect(world.peer.all('puback')).toHaveLength(count)
    }
  },
  async 'acknowledgements by hand at QoS 2, the youngest first'(count) {
    const { world, messages } = await handed(count, 2)
    return async () => {
      for (const message of messages.reverse()) message.ack()
      await world.settle()
      expect(world.peer.all('pubrec')).toHaveLength(count)
    }
  },
  async 'detached messages, acknowledged in any order'(count) {
    const { world, messages } = await handed(count, 1, { lifetime: 'borrowed' })
    return async () => {
      const kept = messages.map((message) => message.detach())
      for (const index of shuffled(upTo(count))) kept[index]?.ack()
      await world.settle()
    }
  },
  async batches(count) {
    const world = await open()
    const subscription = await settled(world, world.client.subscribe('t', { qos: 1 }))
    await world.sendBytes(bytesOf(series('t', count)))
    return async () => {
      let seen = 0
      const loop = (async () => {
        for await (const batch of subscription.batches(10)) {
          seen += batch.length
          if (seen >= count) break
        }
      })()
      await settled(world, loop)
    }
  },
  async 'a buffer that is full, the oldest dropped'(count) {
    const world = await open()
    await settled(world, world.client.subscribe('t', { overflow: 'drop-oldest', buffer: count }))
    await world.sendBytes(bytesOf(quick('t', count)))
    return async () => {
      for (const index of upTo(count)) await world.send(publish('t', String(index)))
    }
  },
  async 'QoS 0 behind a message that is owed an acknowledgement'(count) {
    const world = await open()
    const subscription = await settled(world, world.client.subscribe('t', { qos: 1, buffer: count, ack: 'manual' }))
    await world.sendBytes(bytesOf([...series('t', count), ...quick('t', 2)]))
    return async () => {
      for (const index of upTo(count)) await world.send(publish('t', String(index)))
      expect(subscription.size).toBeGreaterThanOrEqual(count)
    }
  },
  // Each end walks over those that run at once: how many may is what `concurrency` bounds.
  async 'handlers, 50 at once, that end in any order'(count) {
    const world = await open()
    const ends: (() => void)[] = []
    const handle = (): Promise<void> => new Promise((resolve) => void ends.push(resolve))
    await settled(world, world.client.listen('t', handle, { qos: 1, concurrency: 50, order: 'none' }))
    await world.sendBytes(bytesOf(series('t', count)))
    return async () => {
      for (let ended = 0; ended < count; ) {
        const now = ends.splice(0)
        ended += now.length
        for (const index of shuffled(upTo(now.length))) now[index]?.()
        await world.settle()
      }
    }
  },
  async 'messages that nobody claims'(count) {
    const world = await connected({ ...wide, cleanStart: false, clientId: 'me' }, willing(true))
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
    return () => settled(world, Promise.all(filters(count).map((filter) => world.client.subscribe(filter, { qos: 1 }))))
  },
  async 'calls of one turn for one filter'(count) {
    const world = await open()
    return () => settled(world, Promise.all(upTo(count).map(() => world.client.subscribe('a', { qos: 1 }))))
  },
  async 'SUBSCRIBEs of one filter that wait for their answers, and then get them'(count) {
    const world = await connected(wide, silentTo('subscribe'))
    return async () => {
      const calls: Promise<unknown>[] = []
      for (const _ of upTo(count)) {
        calls.push(world.client.subscribe('a', { qos: 1 }))
        await world.settle()
      }
      expect(world.peer.all('subscribe')).toHaveLength(count)
      for (const { packetId } of world.peer.all('subscribe')) world.peer.send({ type: 'suback', packetId, reasonCodes: [1], properties: {} })
      await settled(world, Promise.all(calls))
    }
  },
  async 'subscriptions that are aborted in any order while they wait'(count) {
    const world = await connected(wide, silentTo('subscribe'))
    const controllers = upTo(count).map(() => new AbortController())
    for (const { signal } of controllers) quiet(world.client.subscribe('a', { qos: 1, signal }))
    await world.settle()
    return async () => {
      for (const index of shuffled(upTo(count))) controllers[index]?.abort()
      await world.settle()
    }
  },
  async 'identifiers of the application, then automatic ones'(count) {
    const world = await open()
    return async () => {
      const own = filters(count).map((filter, index) => world.client.subscribe(filter, { qos: 1, properties: { subscriptionIdentifier: index + 1 } }))
      await settled(world, Promise.all(own))
      await settled(world, Promise.all(filters(count).map((filter) => world.client.subscribe(`own/${filter}`, { qos: 1 }))))
    }
  },
  async 'unsubscribe() of filters, one call'(count) {
    const { world } = await subscribed(count)
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
    return async () => {
      await lose(world)
      await comeBack(world, willing(false))
    }
  },
  async 'loops that are left one after the other while their bodies run'(count) {
    const world = await open()
    const calls = Promise.all(filters(count).map((filter) => world.client.subscribe(filter, { qos: 1, ack: 'manual' })))
    const subscriptions = await settled(world, calls)
    await world.sendBytes(bytesOf(filters(count).map((topic, index) => publish(topic, 'x', index + 1))))
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
    const ends: (() => void)[] = []
    const wait = (): Promise<void> => new Promise((resolve) => void ends.push(resolve))
    await settled(world, Promise.all(filters(count).map((filter) => world.client.listen(filter, wait, { qos: 1 }))))
    await world.sendBytes(bytesOf(filters(count).map((topic, index) => publish(topic, 'x', index + 1))))
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
    const all = Promise.all(upTo(count).map((index) => world.client.request('service', String(index), { timeout: 60_000 })))
    quiet(all)
    await world.settle()
    const asked = world.peer.all('publish')
    expect(asked).toHaveLength(count)
    return async () => {
      for (const index of shuffled(upTo(count))) {
        const { responseTopic = '', correlationData } = asked[index]?.properties ?? {}
        world.peer.send(publish(responseTopic, 'yes', undefined, { properties: { correlationData } }))
      }
      await settled(world, all)
    }
  },
  async 'requests whose time is over'(count) {
    const world = await open()
    for (const index of upTo(count)) quiet(world.client.request('service', String(index), { timeout: 100 }))
    await world.settle()
    return () => world.clock.advance(200)
  },
  async responses(count) {
    const world = await open()
    await settled(
      world,
      world.client.respond('service', () => 'yes', { qos: 1, concurrency: 10 }),
    )
    const requests = upTo(count).map((index) => publish('service', 'x', index + 1, { properties: { responseTopic: `answers/${index}` } }))
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
      for (const index of shuffled(upTo(count))) stops[index]?.()
    }
  },
}

costsEvenly('four times as many', rows)
