/**
 * A broker that is killed and started again under load: holds what a client says of its publishes against the packets that it sent and got.
 *
 * What a broker forgets is not the client's fault, but the client must tell. It judges nothing but contradictions: tests and figures do.
 */
import {
  Client,
  type ClientOptions,
  constant,
  MqttError,
  type QoS,
  type Subscription,
} from '../../src/client/node.js'
import { Random } from '../world/random.js'
import { Lifecycle } from './lifecycle.js'
import { type Memory, Restartable } from './restartable.js'
import { eventually, take, within } from './waiting.js'

/** How often the broker dies, and what of a life it remembers in the next. */
export interface CrashesPlan {
  readonly kills: number
  readonly memory: Memory
  readonly seed: number
}

export interface CrashesResult {
  readonly kills: number
  readonly seconds: number
  readonly fulfilled: number
  readonly rejected: number
  /** Times that a message was reported as published anew. */
  readonly republished: number
  /** `sessionlost` events of the publisher. */
  readonly sessionsLost: number
  /** Acknowledged by the broker and never delivered: forgotten with its last life. */
  readonly forgotten: number
  /** Milliseconds from a broker that accepts to a client that is connected and gets messages again, at worst. */
  readonly slowestRecovery: number
  /** Where the client's words, its events and the packets contradict each other. */
  readonly contradictions: readonly string[]
}

/** Publishes by topic: each message has one of its own. */
class Ledger {
  fulfilled = 0
  rejected = 0
  republished = 0
  readonly acknowledged = new Set<string>()
  readonly contradictions: string[] = []
  readonly #open = new Map<number, string>()
  readonly #refused = new Set<string>()
  readonly #sent = new Map<string, number>()
  readonly #reports = new Map<string, number>()
  readonly #losses = new Set<string>()
  readonly #rejections = new Set<string>()

  constructor(client: Client) {
    client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'publish' && !packet.dup)
        this.#handleSent(packet.packetId ?? 0, packet.topic)
      if (direction === 'out') return
      if (packet.type === 'puback' || packet.type === 'pubrec' || packet.type === 'pubcomp')
        this.#handleAck(packet)
    })
    client.on('sessionlost', ({ republished, rejected }) => {
      this.republished += republished.length
      for (const { topic } of republished) count(this.#reports, topic)
      for (const { topic } of rejected) this.#losses.add(topic)
    })
  }

  async publish(client: Client, topic: string, payload: string, qos: QoS): Promise<void> {
    try {
      await client.publish(topic, payload, { qos })
      this.fulfilled += 1
      if (!this.acknowledged.has(topic))
        this.contradictions.push(`${topic} fulfilled without an acknowledgement`)
    } catch (error) {
      this.rejected += 1
      if (this.acknowledged.has(topic))
        this.contradictions.push(`${topic} rejected although acknowledged`)
      if (!this.#isTrue(error, topic, qos))
        this.contradictions.push(`${topic} rejected with ${String(error)}`)
    }
  }

  /** Contradictions, with those that only the end shows: what was sent anew, and what was rejected, was reported. */
  ended(): readonly string[] {
    const silent = [...this.#sent].filter(
      ([topic, times]) => times !== 1 + (this.#reports.get(topic) ?? 0),
    )
    const unreported = [...this.#rejections].filter((topic) => !this.#losses.has(topic))
    const unfounded = [...this.#losses].filter((topic) => !this.#rejections.has(topic))
    return [
      ...this.contradictions,
      ...silent.map(
        ([topic, times]) =>
          `${topic} sent as new ${times} times, reported ${this.#reports.get(topic) ?? 0} times`,
      ),
      ...unreported.map((topic) => `${topic} rejected, not reported`),
      ...unfounded.map((topic) => `${topic} reported as rejected, did not reject`),
    ]
  }

  // The broker said no, or the session is gone with a message that may have arrived.
  #isTrue(error: unknown, topic: string, qos: QoS): boolean {
    if (!MqttError.is(error)) return false
    if (error.code === 'ERR_PUBLISH_REFUSED') return this.#refused.has(topic)
    this.#rejections.add(topic)
    return error.code === 'ERR_SESSION_LOST' && error.outcome === 'unknown' && qos === 2
  }

  #handleSent(packetId: number, topic: string): void {
    count(this.#sent, topic)
    this.#open.set(packetId, topic)
  }

  // The last one of an exchange: a refusal, or PUBACK or PUBCOMP.
  #handleAck({
    type,
    packetId,
    reasonCode,
  }: {
    readonly type: string
    readonly packetId: number
    readonly reasonCode: number
  }): void {
    const topic = this.#open.get(packetId)
    if (topic === undefined) return
    if (reasonCode >= 0x80 && type !== 'pubcomp') this.#refused.add(topic)
    else if (type !== 'pubrec') this.acknowledged.add(topic)
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function hardened(clientId: string, memory: Memory): ClientOptions {
  return {
    clientId,
    cleanStart: false,
    firstConnect: 'wait',
    reconnect: { backoff: constant(5) },
    receiveMaximum: 65_535,
    outbound: { maxQueuedMessages: 200, maxInflight: 200 },
    // A broker that falls back behind its SUBACK remembers the session, but not its subscriptions.
    resubscribe: memory === 'every second' ? 'always' : 'when-lost',
  }
}

/** Publishes without pause until told to stop. */
class Load {
  readonly done: Promise<void>
  #stopped = false
  readonly #settled: Promise<void>[] = []

  constructor(client: Client, ledger: Ledger) {
    this.done = this.#run(client, ledger)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.done
    await within(Promise.all(this.#settled), 'every publish settled')
  }

  async #run(client: Client, ledger: Ledger): Promise<void> {
    for (let index = 0; !this.#stopped; index += 1) {
      const qos = index % 2 === 0 ? 1 : 2
      this.#settled.push(ledger.publish(client, `crashes/load/${qos}/${index}`, 'x', qos))
      await client.writable
      // Where acknowledgements come at once the loop would never let go.
      if (index % 50 === 49) await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

export async function runCrashes(plan: CrashesPlan): Promise<CrashesResult> {
  const broker = await Restartable.start({ memory: plan.memory })
  const client = new Client(broker.url, hardened('publisher', plan.memory))
  const collector = new Client(broker.url, hardened('collector', plan.memory))
  try {
    return await run(plan, broker, client, collector)
  } finally {
    client.destroy()
    collector.destroy()
    await broker.stop()
  }
}

async function run(
  plan: CrashesPlan,
  broker: Restartable,
  client: Client,
  collector: Client,
): Promise<CrashesResult> {
  const watched = [new Lifecycle(client), new Lifecycle(collector)] as const
  const ledger = new Ledger(client)
  const probes = client.subscription('crashes/probe/+', { qos: 1 })
  const arrivals = collector.subscription('crashes/load/#', { qos: 2 })
  await within(
    Promise.all([client.connect(), collector.connect(), probes.ready, arrivals.ready]),
    'connecting',
  )
  const delivered = collect(arrivals)
  const started = performance.now()
  const load = new Load(client, ledger)
  const slowestRecovery = await kill(plan, broker, ledger, client, probes)
  await load.stop()
  const seconds = (performance.now() - started) / 1000
  await connected(collector)
  const quarrels = (): string => watched.flatMap(({ contradictions }) => contradictions).join(', ')
  const got = await within(last(client, delivered), 'the last delivery').catch((error: Error) => {
    throw new Error(`${error.message} ${quarrels()}`)
  })
  await within(Promise.all([client.disconnect(), collector.disconnect()]), 'goodbye')
  return {
    kills: broker.kills,
    seconds,
    slowestRecovery,
    fulfilled: ledger.fulfilled,
    rejected: ledger.rejected,
    republished: ledger.republished,
    sessionsLost: watched[0].lost.absent + watched[0].lost.expired,
    forgotten: [...ledger.acknowledged].filter(
      (topic) => topic.startsWith('crashes/load/') && !got.has(topic),
    ).length,
    contradictions: [...ledger.ended(), ...watched.flatMap((lifecycle) => lifecycle.ended())],
  }
}

async function collect(subscription: Subscription): Promise<Set<string>> {
  const topics = new Set<string>()
  for await (const message of subscription) {
    topics.add(message.topic)
    if (message.topic === 'crashes/load/end') break
  }
  return topics
}

// A broker that fell back takes new messages for old ones, where identifiers meet: one of these arrives.
async function last<T>(client: Client, delivered: Promise<T>): Promise<T> {
  for (;;) {
    await client.publish('crashes/load/end', '', { qos: 1 })
    const got = await Promise.race([
      delivered,
      new Promise<undefined>((resolve) => setTimeout(resolve, 100)),
    ])
    if (got !== undefined) return got
  }
}

// Each time at a random moment, and after a random time up again.
async function kill(
  { kills, seed, memory }: CrashesPlan,
  broker: Restartable,
  ledger: Ledger,
  client: Client,
  probes: Subscription,
): Promise<number> {
  const random = new Random(seed)
  let slowest = 0
  if (memory !== 'nothing') await eventually(() => broker.saved, 'the first save')
  for (let number = 1; number <= kills; number += 1) {
    const enough = ledger.acknowledged.size + random.between(50, 800)
    await eventually(() => ledger.acknowledged.size >= enough, `${enough} acknowledgements`)
    await new Promise((resolve) => setTimeout(resolve, random.below(10)))
    await broker.kill()
    await eventually(() => client.state !== 'connected', 'the loss of the connection')
    await new Promise((resolve) => setTimeout(resolve, random.below(30)))
    await broker.live()
    const up = performance.now()
    await connected(client)
    await ledger.publish(client, `crashes/probe/${number}`, String(number), 1)
    await until(probes, String(number))
    slowest = Math.max(slowest, performance.now() - up)
  }
  return slowest
}

function connected(client: Client): Promise<true> {
  return eventually(() => client.state === 'connected', 'a new connection')
}

// A probe of an earlier life may come once more.
async function until(probes: Subscription, text: string): Promise<void> {
  for (let found = ''; found !== text; ) {
    const message = await take(probes, `probe ${text}`)
    found = message.text()
    // In hand it would hold up the goodbye.
    message.ack()
  }
}
