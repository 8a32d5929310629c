/**
 * One thread's part of a load: its publishers and its subscribers.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, type ClientOptions, connect, type EndpointOptions } from 'mqwire'
import { answered } from '../common/ending.js'
import {
  Ledger,
  microseconds,
  noTotals,
  type Sums,
  stamp,
  stampSize,
  type Totals,
} from './ledger.js'
import { countOf, dueAt, filtersOf, hasDevices, type Plan, shareOf, topicOf } from './plan.js'

/** Connections that are opened at a time. */
const atOnce = 32

/** Publishes of one client that may be on their way; more wait in the plan, and count as late. */
const mostPending = 1000

/** Milliseconds between two looks at what is due. */
const tick = 2

interface Sender {
  readonly client: Client
  readonly plan: Plan
  readonly publisher: number
  readonly topic: string
  readonly sums: Sums
  readonly count: number
  next: number
  pending: number
}

/** What a load dials with. */
export interface Dial {
  readonly endpoint: EndpointOptions
  readonly options: ClientOptions
}

/** The clients of one part. */
export class Load {
  readonly sums: Totals
  /** Milliseconds after the end of the plan in which what is late may still leave. */
  protected readonly patience: number = 5000
  protected readonly plan: Plan
  protected readonly part: number
  protected readonly parts: number
  protected readonly dial: Dial
  protected readonly signal: AbortSignal
  /** Zero of the plan, in microseconds. */
  protected start = 0
  readonly #senders: Sender[] = []
  /** What ended a connection. */
  failure: unknown
  /** The first error of a publish. */
  problem: unknown
  readonly #clients: Client[] = []

  constructor(plan: Plan, part: number, parts: number, dial: Dial, signal: AbortSignal) {
    this.plan = plan
    this.sums = noTotals(hasDevices(plan) ? plan.storms : 0)
    this.part = part
    this.parts = parts
    this.dial = dial
    this.signal = signal
  }

  /** Opens all connections and subscribes. */
  async open(): Promise<void> {
    const plan = this.plan
    const roles = [
      ...shareOf(plan.subscribers, this.part, this.parts).map(
        (index) => () => this.#subscriber(index),
      ),
      ...shareOf(plan.publishers, this.part, this.parts).map(
        (index) => () => this.#publisher(index),
      ),
    ]
    const work = async (): Promise<void> => {
      for (let role = roles.shift(); role !== undefined; role = roles.shift()) await role()
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }

  /** Opens one connection. */
  protected async connected(
    more: ClientOptions = {},
    endpoint: EndpointOptions = this.dial.endpoint,
  ): Promise<Client> {
    this.signal.throwIfAborted()
    const start = microseconds()
    const client = await connect(endpoint, {
      ...this.dial.options,
      reconnect: false,
      logger: null,
      ...more,
      signal: this.signal,
    })
    this.sums.connects.record(Math.max(1, microseconds() - start))
    this.#clients.push(client)
    client.closed.then((error) => {
      this.failure ??= error
    })
    return client
  }

  async #subscriber(index: number): Promise<void> {
    const client = await this.connected()
    await this.listen(client, filtersOf(this.plan, index), this.sums, new Ledger(this.sums))
  }

  async #publisher(publisher: number): Promise<void> {
    const client = await this.connected()
    this.send(client, this.plan, publisher, topicOf(this.plan, publisher), this.sums)
  }

  /** Subscribes, and counts what arrives. */
  protected async listen(
    client: Client,
    filters: readonly string[],
    sums: Sums,
    ledger: Ledger,
  ): Promise<void> {
    const listening = client.listen(filters, ({ payload }) => ledger.add(payload), {
      qos: this.plan.qos,
      lifetime: 'borrowed',
      buffer: 100_000,
      bufferBytes: 64 * 1024 * 1024,
      onDrop: () => {
        sums.dropped += 1
      },
    })
    await answered(listening, this.signal)
  }

  /** Adds a publisher of a plan to those that `publish` serves. */
  protected send(client: Client, plan: Plan, publisher: number, topic: string, sums: Sums): void {
    const count = countOf(plan, publisher)
    this.#senders.push({ client, plan, publisher, topic, sums, count, next: 0, pending: 0 })
  }

  /** Called at each look at what is due, with the milliseconds since the start. True goes on. */
  protected busy(_now: number): boolean {
    return false
  }

  /** Publishes by the plan; `start` is its zero in microseconds. */
  async publish(start: number): Promise<void> {
    this.start = start
    const senders = new Set(this.#senders)
    while (!this.signal.aborted && this.failure === undefined) {
      const now = (microseconds() - start) / 1000
      // What could not leave for so long never will.
      if (now > this.plan.duration + this.patience) return
      if (!this.busy(now) && senders.size === 0) return
      for (const sender of senders) {
        while (sender.next < sender.count && sender.pending < mostPending) {
          const due = dueAt(sender.plan, sender.publisher, sender.next)
          if (due > now) break
          this.#sendNext(sender, start + due * 1000)
        }
        if (sender.next >= sender.count && sender.pending === 0) senders.delete(sender)
      }
      await sleep(tick)
    }
  }

  /** Disconnects all clients. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#clients.map((client) => this.leave(client)))
  }

  /** Disconnects one client. */
  protected leave(client: Client): Promise<void> {
    return client.disconnect({ timeout: 1000 })
  }

  #sendNext(sender: Sender, due: number): void {
    const payload = Buffer.alloc(Math.max(stampSize, this.plan.size))
    stamp(payload, sender.publisher, sender.next, due)
    sender.next += 1
    sender.pending += 1
    sender.client.publish(sender.topic, payload, { qos: this.plan.qos, flush: true }).then(
      () => {
        sender.pending -= 1
        sender.sums.sent += 1
      },
      (error: unknown) => {
        sender.pending -= 1
        sender.sums.failed += 1
        this.problem ??= error
      },
    )
  }
}
