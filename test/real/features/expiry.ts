/** What ends by itself: sessions, queued messages, and the wills of sessions (sections 3.1.2.11.2, 3.3.2.3.3, 3.14.2.2.2). */
import { expect } from 'vitest'
import type { ClientOptions } from '../../../src/client/node.js'
import type { Feature, World } from '../target.js'
import { eventually, take, textsUntil, within } from '../waiting.js'

/** Lets the broker's clock run: brokers look for what has expired every second or so. */
async function pass(milliseconds: number): Promise<void> {
  const began = performance.now()
  await eventually(
    () => performance.now() - began >= milliseconds,
    'the time that something takes to expire',
  )
}

/** A session with a subscription. Some brokers remember a session by its subscriptions only. */
async function begin(world: World, options: ClientOptions) {
  const client = await world.connect(options)
  await client.subscribe(world.topic('a'), { qos: 1 })
  return client
}

async function isPresent(world: World, options: ClientOptions): Promise<boolean | undefined> {
  const client = await world.connect(options)
  return client.negotiated?.sessionPresent
}

/** Options of a session that is to expire, and of one that is to live. */
function twoOf(world: World): [short: ClientOptions, long: ClientOptions] {
  const of = (name: string) => ({ clientId: world.id(name), cleanStart: false })
  return [of('short'), of('long')]
}

export const expiry: readonly Feature[] = [
  {
    name: 'session expiry',
    title: 'a session outlives its connection by the Session Expiry Interval, and no longer',
    reach: 'TCP',
    async run(world) {
      const [short, long] = twoOf(world)
      const clients = [
        await begin(world, { ...short, sessionExpiryInterval: 1 }),
        await begin(world, { ...long, sessionExpiryInterval: 100 }),
      ]
      for (const client of clients) client.destroy()
      await pass(3500)
      expect([await isPresent(world, short), await isPresent(world, long)]).toEqual([false, true])
    },
  },
  {
    name: 'session expiry changed by DISCONNECT',
    title: 'disconnect({ sessionExpiryInterval: 1 }) shortens the life of a session',
    reach: 'TCP',
    async run(world) {
      const [short, long] = twoOf(world)
      const lasting = { sessionExpiryInterval: 100 }
      const one = await begin(world, { ...short, ...lasting })
      const other = await begin(world, { ...long, ...lasting })
      await within(one.disconnect({ sessionExpiryInterval: 1 }), 'disconnecting')
      await within(other.disconnect(), 'disconnecting')
      await pass(3500)
      expect([await isPresent(world, short), await isPresent(world, long)]).toEqual([false, true])
    },
  },
  {
    name: 'session for ever',
    title: 'a session that never expires is resumed',
    reach: 'TCP',
    async run(world) {
      const options = {
        clientId: world.id('for ever'),
        cleanStart: false,
        sessionExpiryInterval: 0xffffffff,
      }
      const client = await begin(world, options)
      expect(client.negotiated?.sessionExpiryInterval).toBe(0xffffffff)
      await within(client.disconnect(), 'disconnecting')
      expect(await isPresent(world, options)).toBe(true)
    },
  },
  {
    name: 'expiry of queued messages',
    title:
      'of what waits for a durable session, that alone comes which has not expired, with the time that is left',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('a')
      const options = { clientId: world.id('durable'), cleanStart: false }
      await within((await begin(world, options)).disconnect(), 'disconnecting')
      const sender = await world.connect()
      for (const [text, messageExpiryInterval] of [
        ['short', 1] as const,
        ['long', 1000] as const,
        ['unlimited', undefined] as const,
      ]) {
        await within(
          sender.publish(topic, text, { qos: 1, properties: { messageExpiryInterval } }),
          'the receipt',
        )
      }
      await pass(3000)
      const client = world.client(options)
      const subscription = client.subscription(topic, { qos: 1 })
      await within(client.connect(), 'connecting again')
      const message = await take(subscription)
      expect(message.text()).toBe('long')
      expect(message.properties.messageExpiryInterval).toBeGreaterThan(900)
      expect(message.properties.messageExpiryInterval).toBeLessThan(1000)
      expect(await textsUntil(subscription, 'unlimited')).toEqual([])
    },
  },
  {
    name: 'will at the end of the session',
    title: 'a will whose delay is longer than the session is published when the session ends',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const will = {
        topic,
        payload: 'gone',
        qos: 1,
        properties: { willDelayInterval: 1000 },
      } as const
      const client = await world.connect({
        clientId: world.id('leaving'),
        sessionExpiryInterval: 1,
        will,
      })
      const began = performance.now()
      client.destroy()
      expect((await take(subscription, 'the will')).text()).toBe('gone')
      expect(performance.now() - began).toBeGreaterThan(500)
    },
  },
]
