/** The connection itself: idle, ended, cut, refused, and made and ended many times. */
import { expect } from 'vitest'
import { Client, type ClientEvents } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, failure, within } from '../waiting.js'
import { iterate } from './sessions.js'

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
