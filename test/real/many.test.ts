/**
 * Groups and pools on two real brokers, one of which ends at random under load: nothing is lost at QoS 1, topics keep their order where that is promised,
 * and every publish is told how it ended. They end by SIGTERM: by SIGKILL mosquitto loses what it has acknowledged a moment ago.
 */
import { expect, it } from 'vitest'
import { Client, connect } from '../../src/client/node.js'
import { groupOf } from '../../src/group/broker-group.js'
import type { Group } from '../../src/group/types.js'
import { poolOf } from '../../src/pool/publisher-pool.js'
import { type Broker, startMosquitto, withMosquitto } from './brokers.js'

const topics = Array.from({ length: 8 }, (_, index) => `many/${index}`)
const sleep = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time))

/** Texts by topic, without those that came again. */
class Seen {
  readonly first = new Map<string, string[]>()
  repeats = 0

  add(topic: string, text: string): void {
    const known = this.first.get(topic) ?? []
    this.first.set(topic, known)
    if (known.includes(text)) this.repeats += 1
    else known.push(text)
  }

  has(topic: string, text: string): boolean {
    return this.first.get(topic)?.includes(text) === true
  }
}

async function reading(broker: Broker, clientId: string, seen: Seen): Promise<Client> {
  const url = broker.urls.TCP as string
  // It reads what its broker kept for it while that was away.
  const client = await connect(url, {
    clientId,
    cleanStart: false,
    sessionExpiryInterval: 600,
    reconnect: { backoff: () => 50 },
  })
  await client.listen('many/#', (message) => seen.add(message.topic, message.text()), { qos: 1 })
  return client
}

/** Ends one of the brokers now and then until it is told to stop; both live in the end. */
async function killing(brokers: readonly Broker[], kills: number): Promise<void> {
  for (let kill = 0; kill < kills; kill++) {
    const broker = brokers[kill % brokers.length] as Broker
    await sleep(150 + 100 * (kill % 3))
    await broker.shutDown()
    await sleep(100 + 80 * (kill % 4))
    await broker.live()
  }
}

/** What a group said that it took, by which members, and what was to follow. */
interface Published {
  readonly taken: {
    readonly topic: string
    readonly text: string
    readonly members: readonly string[]
  }[]
  readonly late: Promise<unknown>[]
  /** Calls that have settled. */
  told: number
}

/** Publishes round after round, to each topic once. */
async function publishing(group: Group, over: () => boolean): Promise<Published> {
  const published: Published = { taken: [], late: [], told: 0 }
  for (let round = 0; !over(); round++) {
    const text = String(round)
    const calls = topics.map(async (topic) => {
      try {
        const { members } = await group.publish(topic, text, { qos: 1 })
        published.taken.push({
          topic,
          text,
          members: Object.keys(members).filter((name) => members[name]?.status === 'fulfilled'),
        })
        for (const result of Object.values(members))
          if (result.status === 'pending')
            published.late.push(result.delivered.catch(() => undefined))
      } catch {
        // Told that nobody took it.
      }
      published.told += 1
    })
    await Promise.race([Promise.all(calls), sleep(20)])
  }
  return published
}

withMosquitto(['TCP'], () => {
  it.each(['broadcast', 'hash', 'round-robin'] as const)(
    'a group that publishes by %s loses nothing that it said was taken',
    async (routing) => {
      const brokers = await Promise.all([
        startMosquitto({ memory: 'all of it' }),
        startMosquitto({ memory: 'all of it' }),
      ])
      const seen = [new Seen(), new Seen()]
      const readers = await Promise.all(
        brokers.map((broker, index) => reading(broker, `reader-${index}`, seen[index] as Seen)),
      )
      const [a, b] = brokers.map(({ urls }) => urls.TCP as string) as [string, string]
      const group: Group = groupOf((at, options) => new Client(at, options), {
        members: { a, b },
        shared: {
          clientId: `many-${routing}`,
          reconnect: { backoff: () => 50 },
          sessionExpiryInterval: 600,
        },
        routing,
        stalledAfter: 100,
      })
      try {
        await group.connect()
        const killed = killing(brokers, 6)
        let over = false
        void killed.then(() => {
          over = true
        })
        const published = await publishing(group, () => over)
        await killed
        const end = Date.now() + 20_000
        while (Date.now() < end && (group.stats().up < 2 || group.stats().inFlight > 0))
          await sleep(20)
        const { taken, late, told } = published
        await Promise.race([Promise.all(late), sleep(5000)])
        expect(group.stats()).toMatchObject({ up: 2, inFlight: 0 })
        expect(taken.length).toBeGreaterThan(200)
        const lost = (): object[] =>
          taken.flatMap(({ topic, text, members }) =>
            members
              .filter((name) => seen[name === 'a' ? 0 : 1]?.has(topic, text) !== true)
              .map((name) => ({ topic, text, name })),
          )
        while (Date.now() < end && lost().length > 0) await sleep(20)
        expect(lost().slice(0, 5)).toEqual([])
        expect(told).toBeGreaterThanOrEqual(taken.length)
        // At each member, in the order of the calls, as far as it got them.
        if (routing !== 'round-robin')
          for (const { first } of seen)
            for (const texts of first.values()) {
              const numbers = texts.map(Number)
              expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
            }
      } finally {
        await group.disconnect({ timeout: 500 })
        for (const reader of readers) reader.destroy()
        await Promise.all(brokers.map((broker) => broker.stop()))
      }
    },
  )

  it('a pool keeps the order of each topic through ends of its broker, and loses nothing', async () => {
    const broker = await startMosquitto({ memory: 'all of it' })
    const seen = new Seen()
    const reader = await reading(broker, 'reader', seen)
    const pool = poolOf((at, options) => new Client(at, options), broker.urls.TCP as string, {
      size: 4,
      clientId: 'pool',
      routing: 'hash',
      options: { reconnect: { backoff: () => 50 }, sessionExpiryInterval: 600 },
    })
    try {
      await pool.connect()
      const killed = killing([broker], 4)
      let over = false
      void killed.then(() => {
        over = true
      })
      const taken: Promise<string | undefined>[] = []
      for (let round = 0; !over; round++) {
        for (const topic of topics) {
          taken.push(
            pool.publish(topic, String(round), { qos: 1 }).then(
              () => `${topic} ${round}`,
              () => undefined,
            ),
          )
        }
        await sleep(5)
      }
      await killed
      const ended = (await Promise.all(taken)).filter((text) => text !== undefined)
      expect(ended.length).toBeGreaterThan(200)
      const end = Date.now() + 20_000
      const lost = (): string[] =>
        ended.filter((text) => !seen.has(...(text.split(' ') as [string, string])))
      while (Date.now() < end && lost().length > 0) await sleep(20)
      expect(lost().slice(0, 5)).toEqual([])
      for (const texts of seen.first.values()) {
        const numbers = texts.map(Number)
        expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
      }
    } finally {
      await pool.disconnect({ timeout: 500 })
      reader.destroy()
      await broker.stop()
    }
  })
})
