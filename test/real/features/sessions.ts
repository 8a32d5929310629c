/** Sessions: resumed by a new client of the same identifier, taken over by another, ended on purpose (sections 3.1.2.4, 3.1.2.11.2, 4.1). */
import { expect } from 'vitest'
import type { Client, ClientOptions, Message, QoS, Subscription } from '../../../src/client/node.js'
import type { Feature, World } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

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
      'disconnect() ends the session of a clean client, keeps a durable one, and ends that when told to',
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
      expect(await present('clean')).toBe(false)
      await present('durable')
      expect(await present('durable')).toBe(true)
      const told = await world.connect({ clientId: world.id('durable'), cleanStart: false })
      await told.disconnect({ sessionExpiryInterval: 0 })
      expect(await present('durable')).toBe(false)
    },
  },
]
