/** Random histories of subscriptions on a few filters, against a broker that answers late, out of order, and now and then with a refusal. */
import { afterEach, expect, it, vi } from 'vitest'
import type { Consumer } from '../../../src/client/deliver/consumer.js'
import { MessageRouter } from '../../../src/client/deliver/message-router.js'
import type { SubscriptionHandle } from '../../../src/client/deliver/subscription.js'
import type { SubscribeOptions, Subscription } from '../../../src/client/options/index.js'
import { Subscriptions } from '../../../src/client/subscribe/subscriptions.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import type { QoS } from '../../../src/wire/packets.js'
import { Random } from '../../world/random.js'
import { agreeable, connected, times, type World } from './harness.js'
import { publish } from './incoming.js'

const filters = ['a', 'b', 'c', 'd'] as const
const steps = 60
const forEver = Number.POSITIVE_INFINITY

interface Profile {
  /** Reason codes that SUBACK and UNSUBACK choose from. */
  readonly subacks: readonly number[]
  readonly unsubacks: readonly number[]
  /** Readers never give a message away unread: detach only, QoS 1 only, acknowledged by reading only. */
  readonly careful: boolean
}

const profiles: Readonly<Record<string, Profile>> = {
  'a broker that refuses': {
    subacks: [2, 2, 1, 0, 0x87],
    unsubacks: [0, 0, 0, 0x87],
    careful: false,
  },
  'readers that only detach': { subacks: [2, 2, 0x87], unsubacks: [0], careful: true },
}

/** A server's side: subscriptions change when the packet comes, answers leave later. */
class Broker {
  readonly subscriptions = new Map<string, { qos: number; subscriptionIdentifiers: number[] }>()
  /** Texts of QoS 1 messages, in the order of sending, by packet identifier; and those that were acknowledged. */
  readonly sent = new Map<number, string>()
  readonly acknowledged: string[] = []
  /** Filters that were not given up when asked: a client that is refused them later may not know of them any more. */
  readonly kept = new Set<string>()
  readonly faults: string[] = []
  agrees = false
  #sent = 0
  #world: World | undefined
  readonly #random: Random
  readonly #profile: Profile

  constructor(random: Random, profile: Profile) {
    this.#random = random
    this.#profile = profile
  }

  async connect(): Promise<World> {
    const options = { clientId: 'c', cleanStart: false, maxFiltersPerSubscribe: 2 }
    this.#world = await connected(options, this.#answer)
    return this.#world
  }

  /** A message on a topic that is subscribed to; its text, or undefined where there is no subscription. */
  publish(topic: string): string | undefined {
    const subscription = this.subscriptions.get(topic)
    if (subscription === undefined || this.sent.size > 1000) return undefined
    const { qos, subscriptionIdentifiers } = subscription
    const text = `${topic}${++this.#sent}`
    const packetId = qos > 0 ? this.#sent : undefined
    if (packetId !== undefined) this.sent.set(packetId, text)
    const properties = { subscriptionIdentifiers }
    this.#world?.peer.send(publish(topic, text, packetId, { properties }))
    return text
  }

  readonly #answer: Answer = (packet) => {
    if (packet.type === 'subscribe') {
      const reasonCodes = packet.subscriptions.map(({ filter, qos }) => {
        const most = this.agrees ? 2 : this.#random.pick(this.#profile.subacks)
        if (most >= 0x80) return most
        const subscriptionIdentifiers = [...(packet.properties.subscriptionIdentifiers ?? [])]
        this.subscriptions.set(filter, { qos: Math.min(most, qos), subscriptionIdentifiers })
        return Math.min(most, qos)
      })
      this.#later({ type: 'suback', packetId: packet.packetId, reasonCodes })
    } else if (packet.type === 'unsubscribe') {
      const reasonCodes = packet.filters.map((filter) => {
        const reasonCode = this.agrees ? 0 : this.#random.pick(this.#profile.unsubacks)
        if (reasonCode === 0) this.subscriptions.delete(filter)
        else this.kept.add(filter)
        return reasonCode
      })
      this.#later({ type: 'unsuback', packetId: packet.packetId, reasonCodes })
    } else if (packet.type === 'puback') this.#handlePuback(packet.packetId)
    else return agreeable(packet)
    return undefined
  }

  #later(packet: PacketInput): void {
    this.#world?.clock.setTimer(() => this.#world?.peer.send(packet), this.#random.below(30))
  }

  #handlePuback(packetId: number): void {
    const [oldest] = this.sent.keys()
    if (oldest !== packetId) this.faults.push(`PUBACK ${packetId}, where ${oldest} was next`)
    this.acknowledged.push(this.sent.get(packetId) ?? '')
    this.sent.delete(packetId)
  }
}

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
    const come = (ready: Reader['ready']) => (): void => {
      this.ready = ready
    }
    subscription.ready.then(come('granted'), come('failed'))
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

/** Everything of one seed, up to the point where all has been answered; and what is wrong then. */
async function play(seed: number, name: string, profile: Profile): Promise<void> {
  const random = new Random(seed)
  const { careful } = profile
  const joined = vi.spyOn(MessageRouter.prototype, 'handleJoined')
  const subscribed = vi.spyOn(Subscriptions.prototype, 'subscribe')
  const broker = new Broker(random, profile)
  const world = await broker.connect()
  const { client, clock } = world
  const readers: Reader[] = []
  let waiting = 0

  const follow = (call: Promise<unknown> | undefined): void => {
    if (call === undefined) return
    waiting += 1
    const over = (): void => {
      waiting -= 1
    }
    call.then(over, over)
  }
  const subscribe = (): void => {
    const wanted = times(1 + random.below(3), () => random.pick(filters))
    const abort = new AbortController()
    const options: SubscribeOptions = {
      qos: careful ? 1 : random.pick<QoS>([0, 1]),
      retainHandling: random.pick([0, 1, 2] as const),
      onExit: careful || random.chance(0.4) ? 'detach' : 'unsubscribe',
      ack: careful ? 'auto' : random.pick(['auto', 'auto', 'manual', 'on-receive'] as const),
      requireQos: random.chance(0.2),
      signal: abort.signal,
    }
    const reader = new Reader(wanted, client.subscription(wanted, options), abort)
    readers.push(reader)
    if (random.chance(0.5)) reader.run(forEver)
  }
  const unsubscribe = (): void => {
    const given = [...new Set([random.pick(filters), random.pick(filters)])]
    for (const reader of readers)
      reader.touched ||= given.some((filter) => reader.filters.includes(filter))
    follow(client.unsubscribe(given))
  }
  const touch = (reader: Reader | undefined): Reader | undefined =>
    reader && Object.assign(reader, { touched: true })

  for (let step = 0; step < steps; step++) {
    const reader = readers.length > 0 ? random.pick(readers) : undefined
    const action = random.below(100)
    if (action < 25) subscribe()
    else if (action < 55) broker.publish(random.pick(filters))
    else if (action < 68) reader?.run(random.chance(0.5) ? forEver : 1 + random.below(3))
    else if (action < 74) touch(reader)?.subscription.detach()
    else if (action < 80) touch(reader)?.abort.abort()
    else if (action < 88 && !careful) follow(touch(reader)?.subscription.unsubscribe())
    else if (action < 92 && !careful) unsubscribe()
    // Several actions may come in one turn.
    if (random.chance(0.6)) await clock.advance(random.below(20))
  }
  await clock.advance(100)
  await world.settle()

  const subscriptions = subscribed.mock.contexts[0] as Subscriptions | undefined
  const inbox = joined.mock.contexts[0] as MessageRouter | undefined
  if (subscriptions === undefined || inbox === undefined) return
  const label = `${name}, seed ${seed}`
  const entries = filters.flatMap((filter) => subscriptions.membership.trie.matchAll(filter))
  const members = entries.map(({ filter, takers }) => {
    const all = [...takers.keys()].map((consumer: Consumer) => consumer.subscription as unknown)
    return { filter, all: new Set(all) }
  })
  expect([broker.faults, waiting], `${label}: faults, calls that wait`).toEqual([[], 0])

  // One that was not given up when asked, and that has no reader, is as good as gone.
  const alive = entries.filter(
    ({ state, filter }) => state !== 'leaving' || !broker.kept.has(filter),
  )
  const known = alive.map(({ filter }) => filter).sort()
  const common = [...broker.subscriptions.keys()].filter(
    (filter) => known.includes(filter) || !broker.kept.has(filter),
  )
  expect(known, `${label}: filters`).toEqual(common.sort())
  for (const { filter, requests, takers, state, requeued } of entries) {
    expect(requests, `${label}: requests for ${filter}`).toEqual([])
    const kept = [state, requeued.length]
    if (takers.size > 0) expect(kept, `${label}: ${filter}, held`).toEqual(['active', 0])
  }

  for (const [index, { subscription, ready, touched, texts, state }] of readers.entries()) {
    const reader = `${label}: reader ${index}`
    const mine = members.filter(({ all }) => all.has(subscription)).map(({ filter }) => filter)
    expect(ready, `${reader}: ready`).not.toBe('pending')
    const ended = mine.length === 0
    expect((subscription as SubscriptionHandle).toJSON(), `${reader}: ended`).toMatchObject({
      ended,
    })
    expect(new Set(texts).size, `${reader}: twice`).toBe(texts.length)
    if (ended) expect(state, `${reader}: reads for ever`).not.toBe('reading')
    if (touched || ready === 'failed') continue
    const granted = subscription.granted
      .filter((grant) => grant.error === undefined)
      .map((grant) => grant.filter)
    const gone = granted.filter((filter) => !mine.includes(filter))
    expect(gone, `${reader}: lost filters`).toEqual([])
  }
  if (careful) {
    const seen = new Set(readers.flatMap(({ texts }) => texts))
    const unseen = broker.acknowledged.filter((text) => !seen.has(text))
    expect(unseen, `${label}: acknowledged unseen`).toEqual([])
  }

  // One more message on every filter: each member gets it once, and no other reader does.
  for (const reader of readers) reader.run(forEver)
  await world.settle()
  const probes = filters.map((filter) => broker.publish(filter))
  await world.settle()
  for (const [index, { texts, subscription }] of readers.entries()) {
    const wanted = (text?: string) =>
      members.some(({ filter, all }) => filter === text?.[0] && all.has(subscription))
    const got = texts.filter((text) => probes.includes(text))
    expect(got.sort(), `${label}: probes of reader ${index}`).toEqual(probes.filter(wanted).sort())
  }

  // Without subscriptions nothing is kept, and everything is acknowledged.
  broker.agrees = true
  const over = client.unsubscribe(filters)
  await clock.advance(100)
  await over
  const left = {
    sent: broker.sent.size,
    reading: readers.filter(({ state }) => state !== 'ended').length,
    consumers: [...subscriptions.consumers].length,
    running: subscriptions.membership.running.length,
    unsubscribes: subscriptions.openUnsubscribes,
    bytes: inbox.budget.bytes,
  }
  expect(
    Object.entries(left).filter(([, count]) => count > 0),
    label,
  ).toEqual([])
  client.destroy()
}

afterEach(() => vi.restoreAllMocks())

it.each(Object.entries(profiles))('%s: both ends agree, all settles', async (name, profile) => {
  // The last one is a history in which an UNSUBSCRIBE was refused while another for the same filter was under way.
  for (const seed of [...times(150, (index) => index + 1), 491]) {
    await play(seed, name, profile)
    vi.restoreAllMocks()
  }
})
