/**
 * A group and a pool on real brokers that end at random under load: nothing is lost at QoS 1, and topics keep their order. They end by SIGTERM: by
 * SIGKILL mosquitto loses what it has acknowledged a moment ago. Other routings and schedules are the world's.
 */
import { expect, it } from 'vitest'
import { Client, connect } from '../../src/client/node.js'
import { groupOf } from '../../src/group/broker-group.js'
import { poolOf } from '../../src/pool/publisher-pool.js'
import { pause } from '../support/pausing.js'
import { type Broker, startMosquitto, withMosquitto } from './brokers.js'
import { eventually } from './waiting.js'

const topics = Array.from({ length: 8 }, (_, index) => `many/${index}`)
const patient = { reconnect: { backoff: () => 50 }, sessionExpiryInterval: 600 }

/** Reads what its broker has, and had for it while that was away: texts by topic, without those that came again. */
async function reading(broker: Broker): Promise<[Client, ReadonlyMap<string, readonly string[]>]> {
  const seen = new Map(topics.map((topic): [string, string[]] => [topic, []]))
  const client = await connect(broker.urls.TCP ?? '', {
    ...patient,
    clientId: 'reader',
    cleanStart: false,
  })
  await client.listen(
    'many/+',
    (message) => {
      const known = seen.get(message.topic)
      if (known?.includes(message.text()) === false) known.push(message.text())
    },
    { qos: 1 },
  )
  return [client, seen]
}

/** Publishes to each topic, round after round, while brokers end one after the other and come back. Gives what was taken, and by which of them. */
async function underLoad(
  brokers: readonly Broker[],
  publish: (topic: string, text: string) => Promise<readonly number[]>,
): Promise<readonly (readonly [topic: string, text: string, by: readonly number[]])[]> {
  let over = false
  const ending = (async () => {
    for (let kill = 0; kill < 6; kill++) {
      const broker = brokers[kill % brokers.length] as Broker
      await pause(150 + 100 * (kill % 3))
      await broker.shutDown()
      await pause(100 + 80 * (kill % 4))
      await broker.live()
    }
    over = true
  })()
  const calls: Promise<readonly [string, string, readonly number[]] | undefined>[] = []
  for (let round = 0; !over; round++) {
    const text = String(round)
    for (const topic of topics)
      calls.push(
        publish(topic, text).then(
          (by) => [topic, text, by] as const,
          () => undefined,
        ),
      )
    await pause(10)
  }
  await ending
  return (await Promise.all(calls)).filter((taken) => taken !== undefined)
}

withMosquitto(['TCP'], () => {
  it.each(['a group', 'a pool'] as const)(
    '%s loses nothing that it said was taken, and each topic keeps its order',
    async (what) => {
      const brokers = await Promise.all(
        (what === 'a group' ? ['a', 'b'] : ['a']).map(() =>
          startMosquitto({ memory: 'all of it' }),
        ),
      )
      const readers = await Promise.all(brokers.map(reading))
      const [a = '', b = a] = brokers.map(({ urls }) => urls.TCP)
      const make = (...given: ConstructorParameters<typeof Client>) => new Client(...given)
      const pool = poolOf(make, a, { size: 4, clientId: 'pool', routing: 'hash', options: patient })
      const group = groupOf(make, {
        members: { a, b },
        shared: { clientId: 'group', ...patient },
        routing: 'hash',
        stalledAfter: 100,
      })
      const many = what === 'a group' ? group : pool
      try {
        await many.connect()
        const taken = await underLoad(brokers, async (topic, text) => {
          if (what === 'a pool') return pool.publish(topic, text, { qos: 1 }).then(() => [0])
          const { members } = await group.publish(topic, text, { qos: 1 })
          return ['a', 'b'].flatMap((name, at) => (members[name]?.status === 'fulfilled' ? at : []))
        })
        expect(taken.length).toBeGreaterThan(200)
        const lost = () =>
          taken.filter(([topic, text, by]) =>
            by.some((at) => readers[at]?.[1].get(topic)?.includes(text) !== true),
          )
        await eventually(() => lost().length === 0, 'every message', 20_000).catch(() => undefined)
        expect(lost().slice(0, 5)).toEqual([])
        for (const [, seen] of readers)
          for (const texts of seen.values())
            expect(texts).toEqual([...texts].sort((one, other) => Number(one) - Number(other)))
      } finally {
        await many.disconnect({ timeout: 500 })
        for (const [reader] of readers) reader.destroy()
        await Promise.all(brokers.map((broker) => broker.stop()))
      }
    },
  )
})
