/**
 * The connection itself: idle, ended, cut, refused, and made and ended many times.
 */
import { expect } from 'vitest'
import { Client, type ClientEvents } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, within } from '../waiting.js'
import { iterate } from './sessions.js'

export const links: readonly Feature[] = [
  {
    name: 'states',
    reach: 'everywhere',
    title:
      'connect and disconnect, each transition once; pending iterators end; closed is terminal',
    async run(world) {
      const client = world.client()
      const states: string[] = [client.state]
      const ends: ClientEvents['disconnect'][] = []
      client.on('state', ({ state }) => states.push(state))
      client.on('disconnect', (event) => ends.push(event))
      await within(Promise.all([client.connect(), client.connect()]), 'connecting twice')
      expect((await failure(client.connect(), 'connecting again')).code).toBe(
        'ERR_ALREADY_CONNECTED',
      )
      const next = (await client.subscribe(world.topic('a'))).next()
      await within(Promise.all([client.disconnect(), client.disconnect()]), 'disconnecting twice')
      expect(await within(next, 'the iterator')).toBe(undefined)
      expect(await within(client.closed, 'closed')).toBe(undefined)
      expect(states).toEqual(['idle', 'connecting', 'connected', 'disconnecting', 'closed'])
      expect(ends).toEqual([{ cause: undefined }])
      expect((await failure(client.connect(), 'connecting when closed')).code).toBe('ERR_CLOSED')
    },
  },
  {
    name: 'before connect',
    title:
      'QoS 1 and 2 published, and subscribed, before connect() go out after it, in order; QoS 0 is refused',
    async run(world) {
      const client = world.client()
      const [one, two] = [world.topic('1'), world.topic('2')]
      const [, at1, receiver] = await world.pair(one, { qos: 1 })
      const at2 = await receiver.subscribe(two, { qos: 2 })
      const own = client.subscription(world.topic('own'), { qos: 1 })
      const sent = sequence(20).map((text, index) =>
        client.publish(index % 2 === 0 ? one : two, text, { qos: index % 2 === 0 ? 1 : 2 }),
      )
      const refused = await failure(client.publish(world.topic('early'), 'x'), 'QoS 0 offline')
      expect([refused.code, refused.outcome]).toEqual(['ERR_NOT_CONNECTED', 'not-sent'])
      await within(client.connect(), 'connecting')
      await within(Promise.all(sent), 'the receipts')
      const texts = await Promise.all([takeTexts(at1, 10), takeTexts(at2, 10)])
      expect(texts).toEqual(
        [0, 1].map((parity) => sequence(20).filter((_, index) => index % 2 === parity)),
      )
      await within(own.ready, 'the grant')
      await receiver.publish(world.topic('own'), 'x', { qos: 1 })
      expect((await take(own)).text()).toBe('x')
    },
  },
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
    name: 'blocked handler',
    title: 'a handler that hangs for several keep-alives, with traffic coming in, is no dead link',
    async run(world) {
      const topic = world.topic('traffic')
      const sender = await world.connect()
      const client = await world.connect({ keepAlive: 2, receiveMaximum: 65_535 })
      let release = (): void => undefined
      const blocked = new Promise<void>((resolve) => {
        release = resolve
      })
      await client.listen(topic, () => blocked, { qos: 1 })
      const began = performance.now()
      await eventually(async () => {
        await sender.publish(topic, 'x', { qos: 1 })
        return performance.now() - began >= 6000
      }, 'six seconds of traffic')
      expect(client.state).toBe('connected')
      release()
      await within(client.publish(world.topic('other'), 'x', { qos: 1 }), 'a publish afterwards')
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
  {
    name: 'disconnect from a dead broker',
    title:
      'disconnect() is bounded by its timeout when the broker does not answer, and leaves nothing pending',
    ownBroker: true,
    async run(world) {
      const client = await world.connect()
      world.broker.freeze()
      const publish = failure(client.publish(world.topic('x'), 'x', { qos: 1 }), 'the publish')
      await within(client.disconnect({ timeout: 200 }), 'disconnecting')
      expect((await publish).outcome).toBe('unknown')
      expect(client.state).toBe('closed')
    },
  },
]
