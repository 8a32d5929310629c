/**
 * How a connection comes about, over each transport and in each version of the protocol; and how it is kept idle, ended, cut, refused, and made many
 * times.
 */
import { expect } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { Client, type ClientEvents } from '../../../src/client/node.js'
import { account, type TransportName, transports } from '../brokers.js'
import type { Feature, World } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, within } from '../waiting.js'
import { pattern } from './publishing.js'
import { iterate } from './sessions.js'

/** Both ways at each QoS, text and bytes. */
async function talks(world: World, client: Client): Promise<void> {
  const topic = world.topic('talk')
  const subscription = await within(client.subscribe(topic, { qos: 2 }), 'subscribing')
  const payload = pattern(50_000)
  for (const qos of [0, 1, 2] as const) {
    await within(client.publish(topic, `at ${qos}`, { qos }), `publishing at QoS ${qos}`)
    expect(await take(subscription)).toMatchObject({ topic, qos })
    await within(client.publish(topic, payload, { qos }), `50 KB at QoS ${qos}`)
    const message = await take(subscription)
    expect(Buffer.compare(message.payload, payload)).toBe(0)
    // One in hand would hold up the end of the connection.
    message.ack()
  }
  await within(subscription.unsubscribe(), 'unsubscribing')
}

/** One for each transport: a target runs its own. */
function transportFeature(transport: TransportName): Feature {
  return {
    name: `over ${transport}`,
    title: `connects over ${transport}, talks at each QoS, and leaves`,
    async run(world) {
      const client = await world.connect()
      expect(client.negotiated).toMatchObject({ protocolVersion: 5, sessionPresent: false })
      await talks(world, client)
      await within(client.disconnect(), 'disconnecting')
      expect(await within(client.closed, 'closed')).toBe(undefined)
    },
  }
}

export const transportFeatures: readonly Feature[] = transports.map(transportFeature)

export const connecting: readonly Feature[] = [
  {
    name: 'MQTT 3.1.1',
    title:
      'a client of 3.1.1 and one of 5.0 talk to each other at each QoS; retained messages, wildcards and unsubscribe work',
    reach: 'everywhere',
    async run(world) {
      const [old, present] = [await world.connect({ protocolVersion: 4 }), await world.connect()]
      expect(old.negotiated?.protocolVersion).toBe(4)
      const topic = world.topic('a')
      const [atOld, atPresent] = [
        await old.subscribe(world.topic('#'), { qos: 2 }),
        await present.subscribe(topic, { qos: 2 }),
      ]
      for (const qos of [0, 1, 2] as const) {
        for (const sender of [old, present]) {
          await within(sender.publish(topic, `at ${qos}`, { qos }), 'the receipt')
          for (const subscription of [atOld, atPresent])
            expect((await take(subscription)).text()).toBe(`at ${qos}`)
        }
      }
      await within(
        old.publish(world.topic('kept'), 'kept', { qos: 1, retain: true }),
        'the receipt',
      )
      expect((await take(atOld)).retain).toBe(false)
      const late = await (await world.connect({ protocolVersion: 4 })).subscribe(
        world.topic('kept'),
        { qos: 1 },
      )
      expect((await take(late, 'the retained message')).retain).toBe(true)
      const [result] = await within(old.unsubscribe(world.topic('#')), 'unsubscribing')
      expect(result).toMatchObject({ reasonCode: 0, error: undefined })
    },
  },
  {
    name: 'sessions of MQTT 3.1.1',
    title:
      'a session of 3.1.1 is resumed with 50 messages that waited at QoS 1 and 2; a clean one is not there again',
    reach: 'most',
    async run(world) {
      const topic = world.topic('durable')
      const options = { protocolVersion: 4, clientId: world.id('old'), cleanStart: false } as const
      const first = await world.connect(options)
      expect(first.negotiated?.sessionPresent).toBe(false)
      await first.subscribe(topic, { qos: 2 })
      await within(first.disconnect(), 'disconnecting')
      const sender = await world.connect()
      for (const [index, text] of sequence(50).entries())
        await sender.publish(topic, text, { qos: index % 2 === 0 ? 1 : 2 })
      const second = world.client(options)
      const subscription = second.subscription(topic, { qos: 2 })
      await within(second.connect(), 'connecting again')
      expect(second.negotiated?.sessionPresent).toBe(true)
      expect(await takeTexts(subscription, 50)).toEqual(sequence(50))
      await within(second.disconnect(), 'disconnecting')
      const clean = await world.connect({ protocolVersion: 4, clientId: world.id('old') })
      await within(clean.disconnect(), 'disconnecting')
      expect((await world.connect(options)).negotiated?.sessionPresent).toBe(false)
    },
  },
  {
    name: 'will of MQTT 3.1.1',
    title: 'the will of a client of 3.1.1 is published when it is cut, and not when it leaves',
    reach: 'most',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const quiet = await world.connect({
        protocolVersion: 4,
        will: { topic, payload: 'of the quiet one', qos: 1 },
      })
      await within(quiet.disconnect(), 'disconnecting')
      const loud = await world.connect({
        protocolVersion: 4,
        will: { topic, payload: 'of the loud one', qos: 1 },
      })
      loud.destroy()
      expect((await take(subscription, 'the will')).text()).toBe('of the loud one')
    },
  },
  {
    name: 'CONNECT properties',
    title:
      'user properties, no problem information and a request for response information in CONNECT are taken',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect({
        userProperties: [
          ['größe', '1'],
          ['größe', ''],
        ],
        requestProblemInformation: false,
        requestResponseInformation: true,
        topicAliasMaximum: 65_535,
        receiveMaximum: 65_535,
        keepAlive: false,
      })
      await talks(world, client)
    },
  },
  {
    name: 'login',
    title:
      'a user with the right password is let in; a wrong one, and nobody, are refused with 0x86 or 0x87',
    setup: 'guarded',
    reach: 'TCP',
    async run(world) {
      await talks(world, await world.connect(account))
      for (const options of [
        { ...account, password: 'wrong' },
        { ...account, username: 'nobody' },
        {},
      ]) {
        const error = await failure(world.connect(options), 'connecting')
        expect(error).toMatchObject({
          code: 'ERR_CONNECT_REFUSED',
          outcome: 'refused',
          fault: 'remote',
        })
        expect([0x86, 0x87]).toContain(error.reasonCode)
      }
    },
  },
  {
    name: 'enhanced authentication',
    title:
      'SCRAM-SHA-256 lets in who knows the password, and again on the open connection; 0x87 for others, 0x8C for other methods',
    setup: 'scram',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect({ auth: scramSha256(account) })
      await talks(world, client)
      for (let count = 0; count < 3; count += 1)
        await within(client.reauthenticate(), 'authenticating again')
      await talks(world, client)
      const wrong = await failure(
        world.connect({ auth: scramSha256({ ...account, password: 'wrong' }) }),
        'a wrong password',
      )
      expect(wrong).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x87 })
      const other = await failure(
        world.connect({ auth: { method: 'NONE', start: () => 'x', continue: () => 'x' } }),
        'another method',
      )
      expect(other).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8c })
    },
  },
]

export const connections: readonly Feature[] = [
  {
    name: 'idle',
    title: 'an idle client stays connected over several keep-alives, and pings in time',
    async run(world) {
      const client = await world.connect({ keepAlive: 2 })
      expect(client.negotiated?.keepAlive).toBe(2)
      let [pings, answers] = [0, 0]
      client.on('packet', ({ packet }) => {
        if (packet.type === 'pingreq') pings += 1
        if (packet.type === 'pingresp') answers += 1
      })
      const began = performance.now()
      await eventually(() => performance.now() - began >= 7000, 'seven seconds')
      expect(client.state).toBe('connected')
      expect(pings).toBeGreaterThanOrEqual(3)
      expect(pings).toBeLessThanOrEqual(7)
      await eventually(() => answers === pings, 'an answer to each')
      await within(client.publish(world.topic('a'), 'x', { qos: 1 }), 'a publish afterwards')
    },
  },
  {
    name: 'killed broker',
    reach: 'everywhere',
    title:
      'the broker dies: every promise and iterator settles with a typed error that tells the outcome',
    ownBroker: true,
    async run(world) {
      const client = await world.connect()
      const drops: ClientEvents['disconnect'][] = []
      client.on('disconnect', (event) => drops.push(event))
      const subscription = await client.subscribe(world.topic('a'), { qos: 1 })
      const handling = await client.listen(world.topic('b'), () => undefined)
      const iteration = failure(iterate(subscription), 'the iterator')
      world.broker.freeze()
      const pending = {
        'QoS 1': client.publish(world.topic('x'), 'x', { qos: 1 }),
        'QoS 2': client.publish(world.topic('x'), 'x', { qos: 2 }),
        subscribe: client.subscribe(world.topic('c')),
        unsubscribe: client.unsubscribe(world.topic('e')),
        listen: client.listen(world.topic('d'), () => undefined),
      }
      const outcomes = Object.entries(pending).map(
        async ([name, promise]) => [name, await failure(promise, name)] as const,
      )
      await within(client.flush(), 'the flush')
      await world.broker.kill()
      const end = await within(client.closed, 'closed')
      expect(end).toMatchObject({ code: 'ERR_CONNECTION_LOST', fault: 'remote' })
      for (const [name, error] of await Promise.all(outcomes)) {
        expect(error.code, name).toBe('ERR_CONNECTION_LOST')
        expect(error.outcome, name).toBe('unknown')
      }
      expect((await iteration).code).toBe('ERR_CONNECTION_LOST')
      expect((await failure(handling.done, 'the handling')).code).toBe('ERR_CONNECTION_LOST')
      expect(drops).toHaveLength(1)
      expect(client.state).toBe('closed')
      const next = new Client(world.endpoint)
      const refused = await failure(next.connect(), 'connecting to a dead broker')
      expect(refused).toMatchObject({
        code: 'ERR_CONNECT_FAILED',
        outcome: 'not-sent',
        fault: 'remote',
      })
      expect(next.state).toBe('closed')
    },
  },
]
