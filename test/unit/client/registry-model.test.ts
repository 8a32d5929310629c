/**
 * Random histories of subscriptions on a few filters, against a broker that answers late, out of order, and now and then with a refusal.
 *
 * When everything has been answered, both ends must know the same subscriptions, no call and no reader may wait for what cannot come any more,
 * and no message may be kept for nobody. A failure names its seed.
 */
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { Consumer } from '../../../src/client/delivery/consumer.js'
import { MessageRouter } from '../../../src/client/delivery/message-router.js'
import type { SubscriptionHandle } from '../../../src/client/delivery/subscription.js'
import type { BrokerSubscription } from '../../../src/client/subscribing/broker-subscription.js'
import { Registry } from '../../../src/client/subscribing/registry.js'
import type { QoS } from '../../../src/wire/packets.js'
import { Random } from '../../world/random.js'
import type { World } from './harness.js'
import { Broker, type Profile } from './random-broker.js'

const filters = ['a', 'b', 'c', 'd'] as const
const steps = 60

const profiles: readonly Profile[] = [
  { name: 'a broker that agrees', subacks: [2], unsubacks: [0], careful: false },
  { name: 'a broker that refuses', subacks: [2, 2, 1, 0, 0x87], unsubacks: [0, 0, 0, 0x87], careful: false },
  { name: 'readers that only detach', subacks: [2, 2, 0x87], unsubacks: [0], careful: true },
]

/** One local subscription and what its reader saw. */
class Reader {
  readonly texts: string[] = []
  ready: 'pending' | 'granted' | 'failed' = 'pending'
  state: 'reading' | 'idle' | 'ended' = 'idle'
  /** Something was done that may end it. */
  touched = false
  readonly filters: readonly string[]
  readonly subscription: Subscription
  readonly abort: AbortController
  #most = 0

  constructor(filters: readonly string[], subscription: Subscription, abort: AbortController) {
    this.filters = filters
    this.subscription = subscription
    this.abort = abort
    subscription.ready.then(
      () => {
        this.ready = 'granted'
      },
      () => {
        this.ready = 'failed'
      },
    )
  }

  /** Reads until the end, or until it leaves its loop after `most` messages from now on. */
  async run(most: number): Promise<void> {
    this.#most = most
    if (this.state !== 'idle') return
    this.state = 'reading'
    try {
      for await (const message of this.subscription) {
        this.texts.push(message.text())
        message.ack()
        if (--this.#most > 0) continue
        this.touched = true
        break
      }
    } catch {
      // A subscription that did not come about.
    }
    this.state = 'ended'
  }
}

/** One history. */
class History {
  readonly readers: Reader[] = []
  readonly calls = new Set<Promise<unknown>>()
  readonly #random: Random
  readonly #profile: Profile
  readonly #broker: Broker
  readonly #world: World

  constructor(random: Random, profile: Profile, broker: Broker, world: World) {
    this.#random = random
    this.#profile = profile
    this.#broker = broker
    this.#world = world
  }

  async step(): Promise<void> {
    const random = this.#random
    const { careful } = this.#profile
    const reader = this.readers.length > 0 ? random.pick(this.readers) : undefined
    const action = random.below(100)
    if (action < 25) this.#subscribe()
    else if (action < 55) this.#broker.publish(random.pick(filters))
    else if (action < 68) reader?.run(random.chance(0.5) ? Number.POSITIVE_INFINITY : 1 + random.below(3))
    else if (action < 74) this.#touch(reader)?.subscription.detach()
    else if (action < 80) this.#touch(reader)?.abort.abort()
    else if (action < 88 && !careful) this.#follow(this.#touch(reader)?.subscription.unsubscribe())
    else if (action < 92 && !careful) this.#unsubscribe()
    // Several actions may come in one turn.
    if (random.chance(0.6)) await this.#world.clock.advance(random.below(20))
  }

  #subscribe(): void {
    const random = this.#random
    const { careful } = this.#profile
    const wanted = Array.from({ length: 1 + random.below(3) }, () => random.pick(filters))
    const abort = new AbortController()
    const options: SubscribeOptions = {
      qos: careful ? 1 : random.pick<QoS>([0, 1]),
      retainHandling: random.pick([0, 1, 2] as const),
      onExit: careful || random.chance(0.4) ? 'detach' : 'unsubscribe',
      ack: careful ? 'auto' : random.pick(['auto', 'auto', 'manual', 'on-receive'] as const),
      requireQos: random.chance(0.2),
      signal: abort.signal,
    }
    const reader = new Reader(wanted, this.#world.client.subscription(wanted, options), abort)
    this.readers.push(reader)
    if (random.chance(0.5)) reader.run(Number.POSITIVE_INFINITY)
  }

  #unsubscribe(): void {
    const given = [...new Set([this.#random.pick(filters), this.#random.pick(filters)])]
    for (const reader of this.readers) if (given.some((filter) => reader.filters.includes(filter))) reader.touched = true
    this.#follow(this.#world.client.unsubscribe(given))
  }

  #touch(reader: Reader | undefined): Reader | undefined {
    if (reader !== undefined) reader.touched = true
    return reader
  }

  #follow(call: Promise<unknown> | undefined): void {
    if (call === undefined) return
    this.calls.add(call)
    const over = () => this.calls.delete(call)
    call.then(over, over)
  }
}

/** Everything of one seed, up to the point where all has been answered; and what is wrong then. */
async function play(seed: number, profile: Profile): Promise<void> {
  const random = new Random(seed)
  const joined = vi.spyOn(MessageRouter.prototype, 'handleJoined')
  const subscribed = vi.spyOn(Registry.prototype, 'subscribe')
  const broker = new Broker(random, profile)
  const world = await broker.world
  const history = new History(random, profile, broker, world)
  for (let index = 0; index < steps; index++) await history.step()
  await world.clock.advance(100)
  await world.settle()
  const registry = subscribed.mock.contexts[0] as Registry | undefined
  const inbox = joined.mock.contexts[0] as MessageRouter | undefined
  if (registry === undefined || inbox === undefined) return
  const entries = filters.flatMap((filter) => registry.membership.trie.matchAll(filter))
  const label = `${profile.name}, seed ${seed}`
  expect(broker.faults, label).toEqual([])
  expect(history.calls.size, `${label}: calls that wait`).toBe(0)
  checkViews(entries, broker, label)
  for (const [index, reader] of history.readers.entries()) checkReader(reader, entries, `${label}: reader ${index}`)
  if (profile.careful) {
    const seen = new Set(history.readers.flatMap((reader) => reader.texts))
    expect(
      broker.acknowledged.filter((text) => !seen.has(text)),
      `${label}: acknowledged unseen`,
    ).toEqual([])
  }
  await checkDelivery(history, entries, broker, world, label)
  await checkEnd(history, registry, inbox, broker, world, label)
  world.client.destroy()
}

function checkViews(entries: readonly BrokerSubscription[], broker: Broker, label: string): void {
  // One that was not given up when asked, and that nobody reads, is as good as gone.
  const alive = entries.filter((entry) => entry.state !== 'leaving' || !broker.kept.has(entry.filter))
  const known = alive.map((entry) => entry.filter).sort()
  const common = [...broker.subscriptions.keys()].filter((filter) => known.includes(filter) || !broker.kept.has(filter))
  expect(known, `${label}: filters`).toEqual(common.sort())
  for (const entry of entries) {
    expect(entry.requests, `${label}: requests for ${entry.filter}`).toEqual([])
    expect(entry.takers.size > 0 ? entry.state : 'active', `${label}: state of ${entry.filter}`).toBe('active')
    if (entry.takers.size > 0) expect(entry.requeued.length, `${label}: held for nobody on ${entry.filter}`).toBe(0)
  }
}

function checkReader(reader: Reader, entries: readonly BrokerSubscription[], label: string): void {
  const { subscription, ready, touched } = reader
  const isOf = (consumer: Consumer): boolean => consumer.subscription === subscription
  const mine = entries.filter((entry) => [...entry.takers.keys()].some(isOf)).map((entry) => entry.filter)
  expect(ready, `${label}: ready`).not.toBe('pending')
  expect((subscription as SubscriptionHandle).toJSON(), `${label}: ended`).toMatchObject({ ended: mine.length === 0 })
  expect(new Set(reader.texts).size, `${label}: twice`).toBe(reader.texts.length)
  if (mine.length === 0) expect(reader.state, `${label}: reads for ever`).not.toBe('reading')
  if (touched || ready === 'failed') return
  const granted = subscription.granted.filter((grant) => grant.error === undefined).map((grant) => grant.filter)
  expect(
    granted.filter((filter) => !mine.includes(filter)),
    `${label}: lost filters`,
  ).toEqual([])
}

/** One more message on every filter: each member gets it once, nobody else gets it. */
async function checkDelivery(history: History, entries: readonly BrokerSubscription[], broker: Broker, world: World, label: string): Promise<void> {
  for (const reader of history.readers) reader.run(Number.POSITIVE_INFINITY)
  await world.settle()
  const members = entries.map(
    (entry) => [entry.filter, new Set([...entry.takers.keys()].map((consumer) => consumer.subscription as unknown))] as const,
  )
  const probes = filters.map((filter) => broker.publish(filter))
  await world.settle()
  for (const [index, { texts, subscription }] of history.readers.entries()) {
    const expected = probes.filter((text) => members.some(([filter, all]) => filter === text?.[0] && all.has(subscription)))
    expect(texts.filter((text) => probes.includes(text)).sort(), `${label}: probes of reader ${index}`).toEqual(expected.sort())
  }
}

/** Without subscriptions nothing is kept, and everything is acknowledged. */
async function checkEnd(history: History, registry: Registry, inbox: MessageRouter, broker: Broker, world: World, label: string): Promise<void> {
  broker.agrees = true
  const over = world.client.unsubscribe(filters)
  await world.clock.advance(100)
  await over
  expect([...broker.unacknowledged.values()], `${label}: not acknowledged`).toEqual([])
  expect(history.readers.filter((reader) => reader.state !== 'ended').length, `${label}: readers that wait`).toBe(0)
  expect([...registry.consumers].length, `${label}: consumers`).toBe(0)
  expect([registry.membership.running.length, registry.openUnsubscribes], `${label}: busy`).toEqual([0, 0])
  expect(inbox.budget.bytes, `${label}: bytes`).toBe(0)
}

describe('random histories of subscriptions', () => {
  afterEach(() => vi.restoreAllMocks())

  it.each(profiles)('$name: both ends agree, everything settles, nothing is kept for nobody', async (profile) => {
    // The last one is a history in which an UNSUBSCRIBE was refused while another for the same filter was under way.
    for (const seed of [...Array.from({ length: 150 }, (_, index) => index + 1), 491]) {
      await play(seed, profile)
      vi.restoreAllMocks()
    }
  })
})
