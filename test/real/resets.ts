/**
 * QoS 1 and 2 through a proxy that resets at random bytes: publishes a plan's messages, and counts what a subscriber got of them.
 *
 * The broker keeps its sessions, so that whatever is lost or comes twice is the client's doing. It judges nothing: tests and figures do.
 */
import { Client, type ClientOptions, constant, type Subscription } from '../../src/client/node.js'
import { Random } from '../world/random.js'
import { exchanges, Lifecycle } from './lifecycle.js'
import { ShapedLink } from './link.js'
import type { Restartable } from './restartable.js'
import { within } from './waiting.js'

export interface ResetsPlan {
  /** At each of QoS 1 and 2. */
  readonly messages: number
  readonly seed: number
  /** Bytes after which a connection is reset, on average. */
  readonly meanBytes: number
  /** How the subscriber reaches the broker. */
  readonly subscriber: 'direct' | 'through the proxy'
  /** Milliseconds that all of it may take. */
  readonly deadline: number
}

export interface Tally {
  /** Publishes that fulfilled and that rejected. */
  fulfilled: number
  rejected: number
  /** Messages that the subscriber never got, and those that it got for the first time after a later one. */
  lost: number
  disordered: number
  /** Times that it got one again; at QoS 2 without those that the broker began anew (`begunAnew`). */
  again: number
  /** QoS 2: times that the broker sent a message once more after its PUBREL, which makes it a new one. mosquitto does. */
  begunAnew: number
}

export interface ResetsResult {
  readonly resets: number
  /** Of those the ones before the broker had said anything. */
  readonly early: number
  readonly bytes: number
  readonly seconds: number
  readonly qos1: Tally
  readonly qos2: Tally
  /** Contradictions among the events of publisher and subscriber. */
  readonly contradictions: readonly string[]
  /** `sessionlost` events. */
  readonly sessionsLost: number
}

let runs = 0

/** As few as 0: also an early cut must be one in the middle of something. */
const padding = 'x'.repeat(6000)

class Arrivals {
  readonly #seen: Uint8Array
  #highest = -1
  again = 0
  disordered = 0

  constructor(messages: number) {
    this.#seen = new Uint8Array(messages)
  }

  get different(): number {
    return this.#seen.length - this.lost
  }

  add(index: number): void {
    if (this.#seen[index] !== 0) {
      this.again += 1
      return
    }
    this.#seen[index] = 1
    if (index < this.#highest) this.disordered += 1
    this.#highest = Math.max(this.#highest, index)
  }

  get lost(): number {
    return this.#seen.reduce((sum, seen) => sum + (seen === 0 ? 1 : 0), 0)
  }
}

const rough: ClientOptions = {
  cleanStart: false,
  keepAlive: 5,
  firstConnect: 'wait',
  reconnect: { backoff: constant(1) },
  // mosquitto exceeds what it is told by one before version 2.0.13.
  receiveMaximum: 65_535,
  outbound: { maxQueuedMessages: 500, maxInflight: 200 },
}

export async function runResets(broker: Restartable, plan: ResetsPlan): Promise<ResetsResult> {
  // The broker may remember an earlier run.
  runs += 1
  const proxy = await ShapedLink.start({ port: broker.port, resets: plan })
  const publisher = new Client(proxy.url, { ...rough, clientId: `publisher-${runs}` })
  const subscriber = new Client(plan.subscriber === 'direct' ? broker.url : proxy.url, {
    ...rough,
    clientId: `subscriber-${runs}`,
  })
  const watched = [new Lifecycle(publisher), new Lifecycle(subscriber)]
  try {
    const started = performance.now()
    const tallies = await within(
      transfer(publisher, subscriber, plan, `resets-${runs}`),
      `${plan.messages} messages at QoS 1 and 2`,
      plan.deadline,
    )
    const seconds = (performance.now() - started) / 1000
    proxy.calmed = true
    for (const client of [publisher, subscriber]) await within(client.disconnect(), 'goodbye')
    return {
      ...tallies,
      seconds,
      resets: proxy.resets,
      early: proxy.early,
      bytes: proxy.bytes,
      contradictions: watched.flatMap((client) => client.ended()),
      sessionsLost: watched.reduce((sum, { lost }) => sum + lost.absent + lost.expired, 0),
    }
  } finally {
    publisher.destroy()
    subscriber.destroy()
    await proxy.stop()
  }
}

async function transfer(
  publisher: Client,
  subscriber: Client,
  plan: ResetsPlan,
  topic: string,
): Promise<Pick<ResetsResult, 'qos1' | 'qos2'>> {
  const arrivals = { 1: new Arrivals(plan.messages), 2: new Arrivals(plan.messages) }
  const begun = exchanges(subscriber, `${topic}/2`)
  const subscription = subscriber.subscription(`${topic}/+`, { qos: 2 })
  await Promise.all([publisher.connect(), subscriber.connect(), subscription.ready])
  const received = receive(subscription, arrivals)
  const [qos1, qos2] = await send(publisher, plan, topic)
  // Behind everything that was sent before it.
  await publisher.publish(`${topic}/end`, '', { qos: 2 })
  await received
  const begunAnew = begun() - arrivals[2].different
  return {
    qos1: { ...qos1, ...counted(arrivals[1], 0) },
    qos2: { ...qos2, ...counted(arrivals[2], begunAnew) },
  }
}

function counted(
  { lost, again, disordered }: Arrivals,
  begunAnew: number,
): Omit<Tally, keyof Sent> {
  return { lost, disordered, again: again - begunAnew, begunAnew }
}

async function receive(
  subscription: Subscription,
  arrivals: Readonly<Record<1 | 2, Arrivals>>,
): Promise<void> {
  for await (const message of subscription) {
    if (message.topic.endsWith('/end')) break
    arrivals[message.topic.endsWith('/1') ? 1 : 2].add(Number.parseInt(message.text(), 10))
  }
}

type Sent = Pick<Tally, 'fulfilled' | 'rejected'>

async function send(
  publisher: Client,
  { messages, seed }: ResetsPlan,
  topic: string,
): Promise<[Sent, Sent]> {
  const random = new Random(seed + 1)
  const sent: [Sent, Sent] = [
    { fulfilled: 0, rejected: 0 },
    { fulfilled: 0, rejected: 0 },
  ]
  const pending: Promise<void>[] = []
  for (let index = 0; index < messages; index += 1) {
    for (const qos of [1, 2] as const) {
      const length = random.chance(0.01) ? random.below(padding.length) : random.below(120)
      await publisher.writable
      const tally = sent[qos - 1] as Sent
      const publish = publisher.publish(`${topic}/${qos}`, `${index}:${padding.slice(0, length)}`, {
        qos,
      })
      pending.push(
        publish.then(
          () => {
            tally.fulfilled += 1
          },
          () => {
            tally.rejected += 1
          },
        ),
      )
    }
  }
  await Promise.all(pending)
  return sent
}
