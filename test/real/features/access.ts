/** Reason codes: what a broker does not allow, and what it has nobody for. */
import { expect } from 'vitest'
import { account } from '../brokers.js'
import type { Feature } from '../target.js'
import { failure, take, textsUntil, within } from '../waiting.js'

export const access: readonly Feature[] = [
  ...([1, 2] as const).map(
    (qos): Feature => ({
      name: `refused publish at QoS ${qos}`,
      title: `a publish that is not allowed rejects with 0x87 of ${qos === 1 ? 'PUBACK' : 'PUBREC'}; the connection goes on`,
      setup: 'guarded',
      reach: 'TCP',
      async run(world) {
        const client = await world.connect(account)
        const all = await client.subscribe(world.topic('#'), { qos: 1 })
        const error = await failure(
          client.publish(world.topic('denied/a'), 'x', { qos }),
          'the publish',
        )
        expect(error).toMatchObject({
          code: 'ERR_PUBLISH_REFUSED',
          reasonCode: 0x87,
          outcome: 'refused',
          fault: 'remote',
        })
        await within(
          client.publish(world.topic('allowed'), 'last', { qos }),
          'a publish afterwards',
        )
        expect(await textsUntil(all, 'last')).toEqual([])
        expect(client.state).toBe('connected')
      },
    }),
  ),
  {
    name: 'refused publish at QoS 0',
    title:
      'a publish at QoS 0 that is not allowed is dropped by the broker; the connection goes on',
    setup: 'guarded',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect(account)
      const all = await client.subscribe(world.topic('#'), { qos: 1 })
      await client.publish(world.topic('denied/a'), 'x')
      await within(
        client.publish(world.topic('allowed'), 'last', { qos: 1 }),
        'a publish afterwards',
      )
      expect(await textsUntil(all, 'last')).toEqual([])
    },
  },
  {
    name: 'refused subscription',
    title:
      'a filter that is not allowed is refused with 0x87, and others of the same SUBSCRIBE are granted',
    setup: 'guarded',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect(account)
      const error = await failure(
        client.subscribe(world.topic('denied/#'), { qos: 1 }),
        'subscribing',
      )
      expect(error).toMatchObject({
        code: 'ERR_SUBSCRIBE_REFUSED',
        reasonCode: 0x87,
        fault: 'remote',
      })
      const mixed = await within(
        client.subscribe([world.topic('denied/a'), world.topic('allowed')], { qos: 1 }),
        'subscribing',
      )
      expect(mixed.granted.map(({ reasonCode, error }) => [reasonCode, error?.code])).toEqual([
        [0x87, 'ERR_SUBSCRIBE_REFUSED'],
        [0x01, undefined],
      ])
      await within(client.publish(world.topic('allowed'), 'x', { qos: 1 }), 'the receipt')
      expect((await take(mixed)).text()).toBe('x')
    },
  },
  {
    name: 'no matching subscribers',
    ownBroker: true,
    title: 'a publish at QoS 1 that nobody has subscribed to is acknowledged with 0x10',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect()
      const receipt = await within(
        client.publish(world.topic('nobody'), 'x', { qos: 1 }),
        'the receipt',
      )
      expect(receipt).toMatchObject({ reasonCode: 0x10, reasonName: 'No matching subscribers' })
    },
  },
]
