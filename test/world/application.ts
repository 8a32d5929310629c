/**
 * The application of the world: does what the schedule says through the public API only, reads its subscriptions in every style there is, and
 * writes down what it sees.
 *
 * It may assume nothing of the client but its documentation. Everything that it starts is tracked; nothing that it awaits may throw unseen.
 */

import type { Message, Subscription } from '../../src/client/api/index.js'
import type { BaseClient } from '../../src/client/client.js'
import type { WorldClock } from './clock.js'
import type { Call, Delivered, History, Subscribed } from './history.js'
import { differs, given, payloadOf } from './payloads.js'
import type { Random } from './random.js'
import { payloadName } from './reader.js'
import type { Operation, Style } from './schedule.js'

/** What the application needs of the world. */
export interface Surroundings {
  readonly clock: WorldClock
  readonly random: Random
  readonly history: History
  readonly endpoints: (count: number) => string[]
  /** Another client of the broker publishes. */
  readonly feed: (topic: string, payload: string, qos: 0 | 1 | 2, retain: boolean, size: number) => void
  readonly restart: () => void
  /** The client is about to leave the connection that is up. */
  readonly forsake: () => void
  /** Bytes of a message of that name; undefined of one that the world did not make. */
  readonly sizeOf: (name: string) => number | undefined
}

/** Turns of a loop over `writable` within one millisecond: more are a storm. */
const mostTurns = 2000

const filtersOf = ({ filter, more = [] }: Subscribe): string | string[] => (more.length === 0 ? filter : [filter, ...more])

function settingsOf({ qos, buffer, overflow, lifetime }: Subscribe) {
  return {
    qos,
    onExit: 'unsubscribe' as const,
    ...(buffer === undefined ? {} : { buffer }),
    ...(overflow === undefined ? {} : { overflow }),
    ...(lifetime && { lifetime }),
  }
}

type Subscribe = Extract<Operation, { do: 'subscribe' }>

/** One process of the application, with its client. */
export class Application {
  /** False once the process is gone. */
  alive = true
  /** Turns that take their time: bodies, handlers, acknowledgements. */
  working = 0
  readonly client: BaseClient
  readonly subscriptions = new Map<
    number,
    {
      record: Subscribed
      subscription: Subscription | undefined
      unsubscribe: () => Promise<unknown>
      dispose: () => Promise<unknown>
      detach: () => void
    }
  >()
  readonly #around: Surroundings
  readonly #process: number

  constructor(client: BaseClient, around: Surroundings) {
    this.client = client
    this.#around = around
    this.#process = around.history.process
  }

  /** Does one operation. */
  perform(op: Operation): void {
    const { history } = this.#around
    try {
      this.#perform(op)
    } catch (error) {
      // Synchronous methods throw what their documentation says; it is recorded like a rejection.
      history.track(op.do, Promise.reject(error))
    }
  }

  #perform(op: Operation): void {
    const { client } = this
    const { history, feed, restart, endpoints } = this.#around
    switch (op.do) {
      case 'connect':
        history.track('connect', client.connect())
        return
      case 'publish':
      case 'abortable':
        return this.#publish(op)
      case 'post':
        return this.#post(op)
      case 'post-all':
        history.track('post-all', this.#postAll(op))
        return
      case 'together':
        for (const inner of op.ops) this.perform(inner)
        return
      case 'dispose':
        return this.#dispose(op.s)
      case 'subscribe':
        return this.#subscribe(op)
      case 'unsubscribe':
        return this.#leave(op.s, 'unsubscribe')
      case 'detach':
        return this.#leave(op.s, 'detach')
      case 'feed':
        return feed(op.topic, `f${op.n}`, op.qos, op.retain === true, op.size ?? 0)
      case 'request':
        return this.#request(op)
      case 'respond':
        return this.#respond(op)
      case 'reconnect':
        if (op.force && client.state === 'connected') this.#around.forsake()
        history.track('reconnect', client.reconnect(op.force ? { force: true, reason: 'the application wants it' } : {}))
        return
      case 'set-brokers':
        client.setBrokers(endpoints(op.endpoints))
        return
      case 'reauthenticate':
        history.track('reauthenticate', client.reauthenticate())
        return
      case 'flush':
        history.track('writable', client.writable)
        history.track('flush', client.flush())
        return
      case 'clear':
        client.outbound.clear()
        return
      case 'disconnect':
        return this.stop('disconnect', op.timeout)
      case 'drain':
        return this.stop('drain', op.timeout)
      case 'destroy':
        return this.#destroy()
      case 'restart-process':
        return restart()
    }
  }

  #post(op: Extract<Operation, { do: 'post' }>): void {
    const { payload, overwrite } = given(payloadOf(`p${op.n}`, op.size), op.form ?? 'text')
    this.client.post(op.topic, payload)
    overwrite()
  }

  #request(op: Extract<Operation, { do: 'request' }>): void {
    const promise = this.client.request(op.topic, `r${op.n}`, { timeout: op.timeout, qos: op.qos ?? 0 })
    // Nobody looks at its outcome: it must not end the process.
    if (op.careless !== true) this.#around.history.track(`request r${op.n}`, promise)
  }

  #destroy(): void {
    const { history } = this.#around
    this.#leaveAll()
    this.client.destroy()
    if (history.destroyed === 0) history.destroyedIn = history.process
    history.destroyed ||= history.next()
  }

  /** Ends the client. */
  stop(how: 'disconnect' | 'drain', timeout: number): void {
    const { client } = this
    const { history } = this.#around
    const begun = history.next()
    this.#leaveAll()
    const promise = how === 'drain' ? client.drain({ timeout }) : client.disconnect({ timeout })
    // What it told before it returned came after its call.
    Object.assign(history.track(how, promise), { begun })
  }

  #publish(op: Extract<Operation, { do: 'publish' | 'abortable' }>): void {
    const { history } = this.#around
    const name = `p${op.n}`
    const { payload, overwrite } = given(payloadOf(name, op.size), op.form ?? 'text')
    const properties = op.do === 'publish' && op.expiry !== undefined ? { messageExpiryInterval: op.expiry } : undefined
    const signal = op.do === 'abortable' ? this.#abortAfter(op.after) : undefined
    const promise = this.client.publish(op.topic, payload, { qos: op.qos, properties, signal })
    const call = history.track(`publish ${name}`, promise)
    // The memory is the application's again.
    promise.then(overwrite, overwrite)
    history.published.push({ op, payload: name, call })
  }

  async #postAll({ n, topic, count, size }: Extract<Operation, { do: 'post-all' }>): Promise<void> {
    const { clock, history } = this.#around
    let turns = 0
    let since = clock.now()
    for (let index = 0; index < count && this.alive; ) {
      if (clock.now() !== since) turns = 0
      since = clock.now()
      turns += 1
      if (turns > mostTurns) return history.report('storm', `writable was fulfilled ${turns} times within one millisecond`)
      if (this.client.post(topic, payloadOf(`p${n + index}`, size))) index += 1
      else await this.client.writable
    }
  }

  #respond({ topic, fails }: Extract<Operation, { do: 'respond' }>): void {
    const answer = (message: Message): string => {
      if (fails === true) throw new Error('the responder failed')
      return `answer to ${message.text()}`
    }
    this.#around.history.track('respond', this.client.respond(topic, answer, { qos: 1, onError: fails === true ? 'reject' : undefined }))
  }

  // As the end of an `await using` block.
  #dispose(s: number): void {
    const entry = this.subscriptions.get(s)
    if (entry === undefined || entry.record.left > 0) return
    this.#left(entry.record)
    entry.record.dismissed ||= this.#around.history.next()
    this.#around.history.track(`dispose ${entry.record.filter}`, entry.dispose())
  }

  #abortAfter(after: number): AbortSignal {
    const controller = new AbortController()
    this.#around.clock.setTimer(() => controller.abort(new Error('the application changed its mind')), after, 'abort')
    return controller.signal
  }

  // Receiving

  #subscribe(op: Subscribe): void {
    const { history } = this.#around
    const record: Subscribed = {
      s: op.s,
      filter: op.filter,
      filters: [op.filter, ...(op.more ?? [])],
      // What was acknowledged when it came is dropped under every policy once it does not fit.
      drops: (op.overflow ?? 'backpressure') !== 'backpressure' || (op.style === 'on-receive' && op.buffer !== undefined),
      concurrency: op.concurrency ?? 1,
      dismissed: 0,
      buffer: op.buffer ?? Number.POSITIVE_INFINITY,
      qos: op.qos,
      style: op.style,
      process: this.#process,
      live: false,
      granted: 0,
      left: 0,
      grantedAt: 0,
      grantedQos: op.qos,
      ended: undefined,
      size: () => 0,
    }
    history.subscribed.push(record)
    const call = op.style === 'listen' ? this.#listen(op, record) : this.#iterate(op, record)
    void call
  }

  #listen(op: Subscribe, record: Subscribed): Call {
    const { history } = this.#around
    const seen = new Map<Message, { entry: Delivered; tries: number }>()
    const handler = async (message: Message): Promise<void> => {
      const known = seen.get(message) ?? { entry: this.#deliver(record, message), tries: 0 }
      seen.set(message, known)
      known.tries += 1
      known.entry.waits = 0
      await this.#sleep(Math.max(0, op.work - (op.hurry ?? 0) * (seen.size - 1)))
      if (known.tries <= (op.failures ?? 0)) {
        known.entry.waits = history.next()
        // At QoS 0 there is no second attempt.
        if (message.qos === 0) known.entry.done = history.next()
        throw new Error('the handler failed')
      }
      known.entry.done = history.next()
    }
    const promise = this.client.listen(filtersOf(op), handler, {
      ...settingsOf(op),
      ...(op.concurrency === undefined ? {} : { concurrency: op.concurrency }),
      signal: op.abortAfter === undefined ? undefined : this.#abortAfter(op.abortAfter),
    })
    promise.then(
      (handling) => {
        this.#granted(record, handling.granted[0]?.qos)
        this.subscriptions.set(op.s, {
          record,
          subscription: undefined,
          unsubscribe: () => handling.unsubscribe(),
          dispose: () => Promise.resolve(handling[Symbol.asyncDispose]()),
          detach: () => handling.detach(),
        })
        handling.done.then(
          () => this.#ended(record, undefined),
          (error: unknown) => this.#ended(record, error),
        )
      },
      (error: unknown) => this.#ended(record, error),
    )
    return history.track(`listen ${op.filter}`, promise)
  }

  #iterate(op: Subscribe, record: Subscribed): Call {
    const { history } = this.#around
    const subscription = this.client.subscription(filtersOf(op), {
      ...settingsOf(op),
      ack: op.style === 'manual' ? 'manual' : op.style === 'on-receive' ? 'on-receive' : 'auto',
      signal: op.abortAfter === undefined ? undefined : this.#abortAfter(op.abortAfter),
    })
    record.size = () => subscription.size
    this.subscriptions.set(op.s, {
      record,
      subscription,
      unsubscribe: () => subscription.unsubscribe(),
      dispose: () => Promise.resolve(subscription[Symbol.asyncDispose]()),
      detach: () => subscription.detach(),
    })
    subscription.ready.then(
      () => this.#granted(record, subscription.granted[0]?.qos),
      () => undefined,
    )
    const readers: Record<Exclude<Style, 'listen'>, () => Promise<void>> = {
      loop: () => this.#loop(subscription, record, op.work),
      break: () => this.#loop(subscription, record, op.work, 2),
      'on-receive': () => this.#loop(subscription, record, op.work),
      batches: () => this.#batches(subscription, record, op.work),
      manual: () => this.#manual(subscription, record, op.work),
      read: () => this.#read(subscription, record, op.work),
      idle: () => new Promise(() => undefined),
    }
    readers[op.style as Exclude<Style, 'listen'>]().then(
      () => this.#ended(record, undefined),
      (error: unknown) => this.#ended(record, error),
    )
    return history.track(`subscribe ${op.filter}`, subscription.ready)
  }

  async #loop(subscription: Subscription, record: Subscribed, work: number, most = Number.POSITIVE_INFINITY): Promise<void> {
    let count = 0
    for await (const message of subscription) {
      const entry = this.#deliver(record, message)
      await this.#sleep(work)
      entry.done = this.#around.history.next()
      count += 1
      if (count < most) continue
      this.#left(record)
      record.dismissed ||= this.#around.history.next()
      break
    }
  }

  async #batches(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    for await (const batch of subscription.batches(3)) {
      const entries = batch.map((message) => this.#deliver(record, message))
      await this.#sleep(work)
      for (const entry of entries) entry.done = this.#around.history.next()
    }
  }

  // Acknowledges in whatever order: each message takes a time of its own.
  async #manual(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    for await (const message of subscription) {
      const entry = this.#deliver(record, message)
      this.working += 1
      this.#around.clock.setTimer(
        () => {
          this.working -= 1
          if (!this.alive) return
          entry.done = this.#around.history.next()
          message.ack()
        },
        this.#around.random.below(work * 4 + 1),
        'ack',
      )
    }
  }

  async #read(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    let last: Delivered | undefined
    while (this.alive && record.left === 0 && this.client.state !== 'closed') {
      if (last !== undefined) last.done = this.#around.history.next()
      const message = subscription.read()
      last = message === undefined ? undefined : this.#deliver(record, message)
      await this.#sleep(Math.max(work, 10))
    }
  }

  #deliver(record: Subscribed, message: Message): Delivered {
    const { history, sizeOf } = this.#around
    const name = payloadName(message.payload)
    // Each way to look at it has to show the same.
    const wrong = differs(message.payload, name, sizeOf(name))
    if (wrong !== undefined && sizeOf(name) !== undefined) history.report('bytes', `${name} came as ${wrong}`)
    const entry: Delivered = {
      s: record.s,
      process: this.#process,
      payload: name,
      topic: message.topic,
      qos: message.qos,
      redelivered: message.redelivered,
      seq: history.next(),
      done: 0,
      waits: 0,
    }
    history.delivered.push(entry)
    history.trace?.(`     delivered ${entry.payload} q${entry.qos} to ${record.s}`)
    return entry
  }

  #granted(record: Subscribed, qos: number | undefined): void {
    record.granted = this.#around.history.next()
    record.grantedAt = this.#around.clock.now()
    record.grantedQos = qos ?? 0
    record.live = record.left === 0
  }

  #ended(record: Subscribed, error: unknown): void {
    this.#left(record)
    record.ended = { error }
    record.live = false
  }

  #leave(s: number, how: 'unsubscribe' | 'detach'): void {
    const entry = this.subscriptions.get(s)
    if (entry === undefined || entry.record.left > 0) return
    this.#left(entry.record)
    if (how === 'unsubscribe') entry.record.dismissed ||= this.#around.history.next()
    if (how === 'detach') return entry.detach()
    const leaving = entry.unsubscribe()
    // Who is told that it did not work knows that the broker may have it still.
    leaving.catch(() => {
      entry.record.dismissed = 0
    })
    this.#around.history.track(`unsubscribe ${entry.record.filter}`, leaving)
  }

  #leaveAll(): void {
    for (const { record } of this.subscriptions.values()) this.#left(record)
  }

  #left(record: Subscribed): void {
    if (record.left === 0) record.left = this.#around.history.next()
    record.live = false
  }

  // A process that is gone never wakes up.
  #sleep(duration: number): Promise<void> {
    if (duration === 0) return Promise.resolve()
    this.working += 1
    return new Promise((resolve) => {
      this.#around.clock.setTimer(
        () => {
          this.working -= 1
          if (this.alive) resolve()
        },
        duration,
        'work',
      )
    })
  }
}
