/** Latest values, retained messages, bad payloads and streams through mosquitto, on MQTT 5.0 and 3.1.1, while connections are made anew. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import * as mq from '../../../src/typed/index.js'
import { type Broker, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually } from '../../real/waiting.js'
import { all, upTo } from './rig.js'

withMosquitto(['TCP'], (transport) => {
  describe.each([5, 4] as const)('through mosquitto, MQTT version %d', (protocolVersion) => {
    let broker: Broker
    const open: Client[] = []
    beforeAll(async () => {
      broker = await startMosquitto()
    })
    afterAll(() => broker.stop())
    afterEach(async () => {
      for (const client of open.splice(0)) await client.destroy()
    })
    const connected = async (): Promise<Client> => {
      const client = new Client(
        { url: broker.urls[transport] as string },
        { protocolVersion, reconnect: { backoff: () => 20 } },
      )
      open.push(client)
      await client.connect()
      return client
    }

    it('latest values have a limit, and are confirmed after a reconnect', async () => {
      const [reading, sending] = [await connected(), await connected()]
      const level = mq.channel('plant/{line}/{n:number}', mq.json<{ v: number }>(), {
        qos: 1,
        retain: true,
      })
      for (let n = 0; n < 20; n++) await level.on(sending).publish({ line: 'x', n }, { v: n })
      const latest = await level.on(reading).latest({ line: 'x' }, { limit: 15 }).ready
      await eventually(() => latest.size === 15)
      await sending.publish('plant/x/03', '{', { qos: 1 })
      await level.on(sending).clear({ line: 'x', n: 19 })
      await eventually(() => !latest.has('plant/x/19') && latest.invalid === 1)
      await reading.reconnect({ force: true })
      await eventually(
        () => latest.size === 15 && [...latest.values()].every(({ stale }) => !stale),
        'each confirmed',
      )
      expect(await all(mq.retained(sending, 'plant/#'))).toHaveLength(19)
    })

    if (protocolVersion === 5)
      it('streams side by side survive connections of their caller that are made anew', async () => {
        const [serving, asking] = [await connected(), await connected()]
        const counting = mq.operation('count/{id}', mq.number(), mq.number())
        await counting.on(serving).serve(async function* ({ value }) {
          for (let n = 0; n < value; n++) yield n
        })
        const read = async (id: number): Promise<number[]> => {
          const got: number[] = []
          for await (const n of counting.on(asking).stream({ id }, 100, { timeout: 5000 })) {
            got.push(n)
            if (n === 20 * id) asking.reconnect({ force: true }).catch(() => undefined)
          }
          return got
        }
        expect(await Promise.all([1, 2, 3, 4].map(read))).toEqual(Array(4).fill(upTo(100)))
      }, 20_000)
  })
})
