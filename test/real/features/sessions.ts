/**
 * Wills (sections 3.1.2.5, 3.1.3.2, 3.14.4); sessions, resumed, taken over, ended on purpose (3.1.2.4, 3.1.2.11.2, 4.1); and what ends by itself:
 * sessions, queued messages, the wills of sessions.
 */
import { expect } from 'vitest'
import type { Client, ClientOptions, Message, QoS, Subscription } from '../../../src/client/node.js'
import type { Feature, World } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

export const wills: readonly Feature[] = [
  {
    name: 'will',
    reach: 'everywhere',
    title: 'destroy() has the will published, with its properties',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const userProperties: [string, string][] = [
        ['k', '1'],
        ['k', '2'],
      ]
      const properties = {
        contentType: 'text/plain',
        responseTopic: 'r',
        correlationData: 'id',
        payloadFormatIndicator: 1,
        userProperties,
      }
      const client = await world.connect({ will: { topic, payload: 'gone', qos: 1, properties } })
      client.destroy()
      expect(await within(client.closed, 'the end')).toBe(undefined)
      const message = await take(subscription, 'the will')
      expect([message.text(), message.qos]).toEqual(['gone', 1])
      expect(message.properties).toMatchObject({
        contentType: 'text/plain',
        responseTopic: 'r',
        payloadFormatIndicator: 1,
        userProperties,
      })
      expect(Buffer.from(message.properties.correlationData ?? []).toString()).toBe('id')
    },
  },
  {
    name: 'no will on disconnect',
    title: 'disconnect() drops the will, reason code 0x04 has it published',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const quiet = await world.connect({ will: { topic, payload: 'of the quiet one', qos: 1 } })
      const loud = await world.connect({ will: { topic, payload: 'of the loud one', qos: 1 } })
      await within(quiet.disconnect(), 'disconnecting')
      await within(loud.disconnect({ reasonCode: 0x04 }), 'disconnecting with the will')
      expect(await textsUntil(subscription, 'of the loud one')).toEqual([])
    },
  },
  {
    name: 'retained will',
    title: 'a retained will is there for those who come later',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const client = await world.connect({ will: { topic, payload: 'gone', qos: 1, retain: true } })
      client.destroy()
      expect((await take(subscription, 'the will')).retain).toBe(false)
      const late = await (await world.connect()).subscribe(topic, { qos: 1 })
      const message = await take(late, 'the retained will')
      expect([message.text(), message.retain]).toEqual(['gone', true])
    },
  },
  {
    name: 'will delay',
    title: 'the will waits for its delay, and is not published when the session is resumed before',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const will = (payload: string, willDelayInterval: number) => ({
        topic,
        payload,
        qos: 1 as const,
        properties: { willDelayInterval },
      })
      const back = { clientId: world.id('back'), cleanStart: false }
      const returning = await world.connect({ ...back, will: will('of the one who came back', 1) })
      await returning.subscribe(world.topic('a'), { qos: 1 })
      const leaving = await world.connect({
        clientId: world.id('gone'),
        will: will('of the one who left', 2),
      })
      returning.destroy()
      const left = performance.now()
      leaving.destroy()
      const returned = await world.connect(back)
      expect(returned.negotiated?.sessionPresent).toBe(true)
      expect(await textsUntil(subscription, 'of the one who left')).toEqual([])
      expect(performance.now() - left).toBeGreaterThan(900)
    },
  },
]

async function away(world: World, filter: string, qos: QoS): Promise<ClientOptions> {
  const options: ClientOptions = { clientId: world.id('durable'), cleanStart: false }
  const client = await world.connect(options)
  expect(client.negotiated?.sessionPresent).toBe(false)
  await client.subscribe(filter, { qos })
  await within(client.disconnect(), 'disconnecting')
  return options
}

/** Reads to the end, which only an error is. */
export async function iterate(subscription: Subscription): Promise<void> {
  for await (const _message of subscription) expect.unreachable('nothing was published')
}

async function publishAll(
  client: Client,
  topic: string,
  texts: readonly string[],
  qos: QoS,
): Promise<void> {
  await within(
    Promise.all(texts.map((text) => client.publish(topic, text, { qos }))),
    'the receipts',
  )
}

export const sessions: readonly Feature[] = [
  {
    name: 'assigned identifier',
    title: 'without a clientId the server assigns one to each client, and it is shown',
    async run(world) {
      const options = Object.freeze({ clientId: '' })
      const [one, two] = [await world.connect(options), await world.connect(options)]
      expect(one.clientId).not.toBe('')
      expect(one.clientId).toBe(one.negotiated?.assignedClientIdentifier)
      expect(one.clientId).not.toBe(two.clientId)
      expect((await world.connect({ clientId: world.id('own') })).clientId).toBe(world.id('own'))
    },
  },
  {
    name: 'takeover',
    reach: 'everywhere',
    title:
      'another client with our id: ERR_SESSION_TAKEN_OVER 0x8E, closed settles with it, iterators and promises settle',
    async run(world) {
      const clientId = world.id('same')
      const loser = await world.connect({ clientId })
      const events: string[] = []
      for (const type of ['serverdisconnect', 'disconnect'] as const)
        loser.on(type, () => events.push(type))
      const subscription = await loser.subscribe(world.topic('a'), { qos: 1 })
      const handling = await loser.listen(world.topic('b'), () => undefined)
      const iteration = failure(iterate(subscription), 'the iterator')
      const winner = await world.connect({ clientId })
      const end = await within(loser.closed, 'closed')
      expect(end).toMatchObject({
        code: 'ERR_SESSION_TAKEN_OVER',
        reasonCode: 0x8e,
        fault: 'remote',
      })
      expect(await iteration).toBe(end)
      expect(await failure(handling.done, 'the handling')).toBe(end)
      expect(events).toEqual(['serverdisconnect', 'disconnect'])
      expect([loser.state, winner.state]).toEqual(['closed', 'connected'])
      expect((await failure(loser.publish(world.topic('a'), 'x'), 'publishing')).code).toBe(
        'ERR_CLOSED',
      )
    },
  },
  ...([1, 2] as const).map(
    (qos): Feature => ({
      name: `durable session at QoS ${qos}`,
      title: `published at QoS ${qos} while away, 100 messages come to a new client's subscription() made before connect(), once and in order`,
      async run(world) {
        const topic = world.topic('durable')
        const options = await away(world, topic, qos)
        const sender = await world.connect()
        await publishAll(sender, topic, sequence(100), qos)
        const client = world.client(options)
        const subscription = client.subscription(topic, { qos })
        await within(client.connect(), 'connecting')
        expect(client.negotiated?.sessionPresent).toBe(true)
        await within(subscription.ready, 'the grant')
        expect(await takeTexts(subscription, 100)).toEqual(sequence(100))
        await sender.publish(topic, 'last', { qos })
        expect(await textsUntil(subscription, 'last')).toEqual([])
      },
    }),
  ),
  {
    name: 'redelivery',
    title: 'what was in hand when the process died comes again to the next client, and only that',
    async run(world) {
      const topic = world.topic('work')
      const options: ClientOptions = { clientId: world.id('worker'), cleanStart: false }
      const first = await world.connect(options)
      const taken = await first.subscribe(topic, { qos: 1, ack: 'manual' })
      const sender = await world.connect()
      await publishAll(sender, topic, sequence(6), 1)
      const messages: Message[] = []
      while (messages.length < 6) messages.push(await take(taken))
      const acks: number[] = []
      first.on('packet', ({ direction, packet }) => {
        if (direction === 'out' && packet.type === 'puback') acks.push(packet.packetId)
      })
      for (const message of messages.slice(0, 3)) message.ack()
      await eventually(() => acks.length === 3, 'the first acknowledgements')
      // The broker's answer proves that it has read the acknowledgements before it.
      await within(first.unsubscribe(world.topic('nothing')), 'a round trip')
      first.destroy()
      const second = world.client(options)
      const again = second.subscription(topic, { qos: 1 })
      await within(second.connect(), 'connecting again')
      for (const text of ['3', '4', '5']) {
        const message = await take(again, `message ${text} again`)
        expect(message.text()).toBe(text)
      }
      await sender.publish(topic, 'last', { qos: 1 })
      expect(await textsUntil(again, 'last')).toEqual([])
    },
  },
  {
    name: 'redelivered',
    title: 'MQTT-3.3.1-1: what comes again is marked redelivered',
    async run(world) {
      const topic = world.topic('work')
      const options: ClientOptions = { clientId: world.id('worker'), cleanStart: false }
      const first = await world.connect(options)
      const taken = await first.subscribe(topic, { qos: 1 })
      await publishAll(await world.connect(), topic, ['x'], 1)
      expect((await take(taken)).redelivered).toBe(false)
      first.destroy()
      const second = world.client(options)
      const again = second.subscription(topic, { qos: 1 })
      await within(second.connect(), 'connecting again')
      expect((await take(again, 'the message again')).redelivered).toBe(true)
    },
  },
  {
    name: 'end of a session',
    title:
      'disconnect() ends the session of a clean client, keeps a durable one, and ends that when asked to',
    async run(world) {
      const present = async (name: string): Promise<boolean | undefined> => {
        const client = await world.connect({ clientId: world.id(name), cleanStart: false })
        const { negotiated } = client
        // aedes remembers a session by its subscriptions.
        await client.subscribe(world.topic('a'), { qos: 1 })
        await within(client.disconnect(), 'disconnecting')
        return negotiated?.sessionPresent
      }
      const clean = await world.connect({ clientId: world.id('clean') })
      await clean.subscribe(world.topic('a'), { qos: 1 })
      await clean.disconnect()
      await pass(whileSessionsEnd)
      expect(await present('clean')).toBe(false)
      await present('durable')
      expect(await present('durable')).toBe(true)
      const told = await world.connect({ clientId: world.id('durable'), cleanStart: false })
      await told.disconnect({ sessionExpiryInterval: 0 })
      await pass(whileSessionsEnd)
      expect(await present('durable')).toBe(false)
    },
  },
]

/** A broker may end a session a little after its connection has closed, milliseconds. */
const whileSessionsEnd = 500

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
