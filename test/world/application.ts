/**
 * The application of the world: does what the schedule says through the public API only, reads its subscriptions in every style there is, and writes
 * down what it sees.
 */

import type { BaseClient } from '../../src/client/client.js'
import type { ClientEvents, Message, Subscription } from '../../src/client/options/index.js'
import { endpoints } from './client-options.js'
import type { Call, Delivered, Subscribed } from './history.js'
import { differs, given, payloadOf } from './payloads.js'
import { payloadName } from './reader.js'
import type { Abort, Operation } from './schedule.js'
import type { World } from './world.js'

/** Turns of a loop over `writable` within one millisecond: more are a storm. */
const mostTurns = 2000
const mostNested = 3

const filtersOf = ({ filter, more = [] }: Subscribe): string | string[] =>
  more.length === 0 ? filter : [filter, ...more]

function settingsOf({ qos, buffer, overflow, lifetime }: Subscribe) {
  return {
    qos,
    onExit: 'unsubscribe' as const,
    ...(buffer === undefined ? {} : { buffer }),
    // The default, and wrong with on-receive.
    ...(overflow === undefined || overflow === 'backpressure' ? {} : { overflow }),
    ...(lifetime && { lifetime }),
  }
}

type Of<Name extends Operation['do']> = Extract<Operation, { do: Name }>
type Subscribe = Of<'subscribe'>

/** What a subscription and a handler have in common. */
type Owned = Pick<Subscription, 'unsubscribe' | 'detach' | typeof Symbol.asyncDispose>

/** One process of the application, with its client. */
export class Application {
  alive = true
  /** Turns that take their time: bodies, handlers, acknowledgements. */
  working = 0
  readonly client: BaseClient
  readonly subscriptions = new Map<number, { readonly record: Subscribed; readonly owned: Owned }>()
  readonly #world: World
  readonly #process: number
  /** Of the client, before what it is doing. */
  #state = ''

  constructor(client: BaseClient, world: World) {
    this.client = client
    this.#world = world
    this.#process = world.history.process
  }

  perform(op: Operation): void {
    // A listener may do something within something else.
    const outer = this.#state
    this.#state = this.client.state
    try {
      const doing = this.#doings[op.do] as (op: Operation) => unknown
      doing(op)
    } catch (error) {
      // Synchronous methods throw what their documentation says; it is recorded like a rejection.
      this.#track(op.do, Promise.reject(error))
    }
    this.#state = outer
  }

  readonly #doings: {
    readonly [Name in Operation['do']]: (op: Operation & { readonly do: Name }) => unknown
  } = {
    connect: ({ abort }) =>
      this.#tracked('connect', abort, (signal) => this.client.connect(signal)),
    on: (op) => this.#on(op),
    publish: (op) => this.#publish(op),
    abortable: (op) => this.#publish(op),
    post: (op) => this.#post(op),
    'post-all': (op) => this.#track('post-all', this.#postAll(op)),
    together: ({ ops }) => ops.map((op) => this.perform(op)),
    subscribe: (op) => this.#subscribe(op),
    unsubscribe: ({ s }) => this.#leave(s, 'unsubscribe'),
    'unsubscribe-from': (op) => this.#leaveFilter(op),
    detach: ({ s }) => this.#leave(s, 'detach'),
    dispose: ({ s }) => this.#dispose(s),
    feed: ({ topic, n, qos, retain = false, size = 0 }) =>
      this.#world.broker.feed(topic, `f${n}`, qos, retain, size),
    request: (op) => this.#request(op),
    respond: (op) => this.#respond(op),
    reconnect: ({ force }) => this.#reconnect(force),
    'set-brokers': ({ endpoints }) => this.#setBrokers(endpoints),
    reauthenticate: () => this.#track('reauthenticate', this.client.reauthenticate()),
    flush: () => [
      this.#track('writable', this.client.writable),
      this.#track('flush', this.client.flush()),
    ],
    clear: () => this.client.outbound.clear(),
    disconnect: ({ timeout }) => this.#stop('disconnect', timeout),
    drain: ({ timeout }) => this.#stop('drain', timeout),
    destroy: () => this.#destroy(),
    'restart-process': () => this.#world.restart(),
  }

  #track(
    what: string,
    promise: PromiseLike<unknown>,
    more: Pick<Call, 'signal' | 'timeout'> = {},
  ): Call {
    return this.#world.history.track(what, promise, { ...more, state: this.#state })
  }

  #reconnect(force: boolean): void {
    const { client } = this
    // It is about to leave the connection that is up.
    if (force && client.state === 'connected')
      this.#world.monitor.forsaken = this.#world.monitor.connections
    this.#track(
      'reconnect',
      client.reconnect(force ? { force, reason: 'the application wants it' } : {}),
    )
  }

  #post(op: Of<'post'>): void {
    const { payload, overwrite } = given(payloadOf(`p${op.n}`, op.size), op.form ?? 'text')
    this.client.post(op.topic, payload)
    overwrite()
  }

  #request(op: Of<'request'>): void {
    const promise = this.client.request(op.topic, `r${op.n}`, {
      timeout: op.timeout,
      qos: op.qos ?? 0,
    })
    // Nobody looks at its outcome: it must not end the process.
    if (op.careless !== true) this.#track(`request r${op.n}`, promise)
  }

  #destroy(): void {
    const { history } = this.#world
    this.#leaveAll()
    this.client.destroy()
    if (history.destroyed === 0) history.destroyedIn = history.process
    history.destroyed ||= history.next()
  }

  #stop(how: 'disconnect' | 'drain', timeout: number): void {
    const { client } = this
    const begun = this.#world.history.next()
    this.#leaveAll()
    const promise = how === 'drain' ? client.drain({ timeout }) : client.disconnect({ timeout })
    // What it told before it returned came after its call.
    Object.assign(this.#track(how, promise, { timeout }), { begun })
  }

  #publish(op: Of<'publish' | 'abortable'>): void {
    const { history } = this.#world
    const name = `p${op.n}`
    const { payload, overwrite } = given(payloadOf(name, op.size), op.form ?? 'text')
    const properties =
      op.do === 'publish' && op.expiry !== undefined
        ? { messageExpiryInterval: op.expiry }
        : undefined
    const {
      after,
      options,
      abort = after,
    }: { after?: number; abort?: Abort; options?: object } = op
    const signal = abort === undefined ? undefined : this.#abortAfter(abort)
    const promise = this.client.publish(op.topic, payload, {
      properties,
      ...options,
      qos: op.qos,
      signal,
    })
    const call = this.#track(`publish ${name}`, promise, { signal })
    // The memory is the application's again.
    const free = (): void => {
      if (!overwrite()) history.report('bytes', `the memory of ${name} was written to`)
    }
    promise.then(free, free)
    history.published.push({ op, payload: name, call })
  }

  async #postAll({ n, topic, count, size }: Of<'post-all'>): Promise<void> {
    const { clock, history } = this.#world
    let turns = 0
    let since = clock.now()
    for (let index = 0; index < count && this.alive; ) {
      if (clock.now() !== since) turns = 0
      since = clock.now()
      turns += 1
      if (turns > mostTurns)
        return history.report(
          'storm',
          `writable was fulfilled ${turns} times within one millisecond`,
        )
      if (this.client.post(topic, payloadOf(`p${n + index}`, size))) index += 1
      else await this.client.writable
    }
  }

  #respond({ topic, fails }: Of<'respond'>): void {
    const answer = (message: Message): string => {
      if (fails === true) throw new Error('the responder failed')
      return `answer to ${message.text()}`
    }
    this.#track(
      'respond',
      this.client.respond(topic, answer, {
        qos: 1,
        onError: fails === true ? 'reject' : undefined,
      }),
    )
  }

  #tracked(
    what: string,
    abort: Abort | undefined,
    call: (options: { readonly signal?: AbortSignal }) => Promise<unknown>,
  ): Promise<unknown> {
    const signal = abort === undefined ? undefined : this.#abortAfter(abort)
    const promise = call(signal === undefined ? {} : { signal })
    this.#track(what, promise, { signal })
    return promise
  }

  #setBrokers(count: number): void {
    const { history } = this.#world
    const seq = history.last
    this.client.setBrokers(endpoints(count))
    history.lists.push({ process: this.#process, seq, count })
  }

  #on({ event, does, throws }: Of<'on'>): void {
    let times = 0
    this.client.on(event as keyof ClientEvents, () => {
      times += 1
      if (does !== undefined && times <= mostNested && this.alive) this.perform(does)
      if (throws === true) throw new Error('a listener of the application throws')
    })
  }

  #leaveFilter({ filter, abort }: Of<'unsubscribe-from'>): void {
    const { history } = this.#world
    const mine = history.subscribed.filter(
      ({ process, left }) => process === this.#process && left === 0,
    )
    const left = mine.filter(({ filters }) => filters.includes(filter))
    for (const record of left) {
      this.#left(record)
      record.dismissed ||= history.next()
    }
    this.#tracked(`unsubscribe-from ${filter}`, abort, (signal) =>
      this.client.unsubscribe(filter, signal),
    ).catch(() => {
      for (const record of left) record.dismissed = 0
    })
  }

  // As the end of an `await using` block.
  #dispose(s: number): void {
    const entry = this.subscriptions.get(s)
    if (entry === undefined || entry.record.left > 0) return
    this.#left(entry.record)
    entry.record.dismissed ||= this.#world.history.next()
    this.#track(
      `dispose ${entry.record.filter}`,
      Promise.resolve(entry.owned[Symbol.asyncDispose]()),
    )
  }

  #abortAfter(after: Abort): AbortSignal {
    const controller = new AbortController()
    const abort = (): void => controller.abort(new Error('the application changed its mind'))
    if (after === 'before') abort()
    else this.#world.clock.setTimer(abort, after, 'abort')
    return controller.signal
  }

  // Receiving

  #subscribe(op: Subscribe): void {
    const { s, filter, more = [], qos, style, concurrency = 1 } = op
    const { buffer = Number.POSITIVE_INFINITY, overflow = 'backpressure' } = op
    // What was acknowledged when it came is dropped under every policy once it does not fit.
    const drops = overflow !== 'backpressure' || (style === 'on-receive' && op.buffer !== undefined)
    const asked = { s, filter, filters: [filter, ...more], qos, style, concurrency, buffer, drops }
    const granted = { granted: 0, grantedAt: 0, grantedQos: qos, left: 0, dismissed: 0 }
    const life = { process: this.#process, live: false, ended: undefined, size: () => 0 }
    const record: Subscribed = { ...asked, ...granted, ...life }
    this.#world.history.subscribed.push(record)
    if (style === 'listen') this.#listen(op, record)
    else this.#iterate(op, record)
  }

  #listen(op: Subscribe, record: Subscribed): void {
    const { history } = this.#world
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
    const concurrency = op.concurrency === undefined ? {} : { concurrency: op.concurrency }
    const signal = op.abortAfter === undefined ? undefined : this.#abortAfter(op.abortAfter)
    const until = this.#until(op, record)
    const options = { ...settingsOf(op), ...concurrency, signal, until }
    const promise = this.client.listen(filtersOf(op), handler, options)
    promise.then(
      (handling) => {
        this.#granted(record, handling.granted[0]?.qos)
        this.subscriptions.set(op.s, { record, owned: handling })
        this.#follow(handling.done, record)
      },
      (error: unknown) => this.#ended(record, error),
    )
    this.#track(`listen ${op.filter}`, promise, { signal })
  }

  #until({ until }: Subscribe, record: Subscribed): AbortSignal | undefined {
    const signal = until === undefined ? undefined : this.#abortAfter(until)
    signal?.addEventListener('abort', () => this.#left(record))
    return signal
  }

  #iterate(op: Subscribe, record: Subscribed): void {
    const signal = op.abortAfter === undefined ? undefined : this.#abortAfter(op.abortAfter)
    const ack = op.style === 'manual' || op.style === 'on-receive' ? op.style : 'auto'
    const until = this.#until(op, record)
    const options = { ...settingsOf(op), ack, signal, until } as const
    const subscription = this.client.subscription(filtersOf(op), options)
    record.size = () => subscription.size
    this.subscriptions.set(op.s, { record, owned: subscription })
    subscription.ready.then(
      () => this.#granted(record, subscription.granted[0]?.qos),
      () => undefined,
    )
    this.#follow(this.#reading(op, subscription, record), record)
    this.#track(`subscribe ${op.filter}`, subscription.ready, { signal })
  }

  #reading(
    { style, work }: Subscribe,
    subscription: Subscription,
    record: Subscribed,
  ): Promise<void> {
    if (style === 'batches') return this.#batches(subscription, record, work)
    if (style === 'manual') return this.#manual(subscription, record, work)
    if (style === 'read') return this.#read(subscription, record, work)
    if (style === 'next') return this.#next(subscription, record, work)
    if (style === 'idle') return new Promise(() => undefined)
    return this.#loop(subscription, record, work, style === 'break' ? 2 : undefined)
  }

  async #loop(
    subscription: Subscription,
    record: Subscribed,
    work: number,
    most = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    let count = 0
    for await (const message of subscription) {
      const entry = this.#deliver(record, message)
      await this.#sleep(work)
      entry.done = this.#world.history.next()
      count += 1
      if (count < most) continue
      this.#left(record)
      record.dismissed ||= this.#world.history.next()
      break
    }
  }

  async #batches(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    for await (const batch of subscription.batches(3)) {
      const entries = batch.map((message) => this.#deliver(record, message))
      await this.#sleep(work)
      for (const entry of entries) entry.done = this.#world.history.next()
    }
  }

  // Acknowledges in whatever order: each message takes a time of its own.
  async #manual(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    for await (const message of subscription) {
      const entry = this.#deliver(record, message)
      this.working += 1
      this.#world.clock.setTimer(
        () => {
          this.working -= 1
          if (!this.alive) return
          entry.done = this.#world.history.next()
          message.ack()
        },
        this.#world.random.below(work * 4 + 1),
        'ack',
      )
    }
  }

  async #read(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    let last: Delivered | undefined
    while (this.alive && record.left === 0 && this.client.state !== 'closed') {
      if (last !== undefined) last.done = this.#world.history.next()
      const message = subscription.read()
      last = message === undefined ? undefined : this.#deliver(record, message)
      await this.#sleep(Math.max(work, 10))
    }
  }

  async #next(subscription: Subscription, record: Subscribed, work: number): Promise<void> {
    for (
      let message = await subscription.next();
      message !== undefined;
      message = await subscription.next()
    ) {
      const entry = this.#deliver(record, message)
      await this.#sleep(work)
      entry.done = this.#world.history.next()
    }
  }

  #deliver(record: Subscribed, message: Message): Delivered {
    const { history, sizes } = this.#world
    const name = payloadName(message.payload)
    // Each way to look at it has to show the same.
    const wrong = differs(message.payload, name, sizes.get(name))
    if (wrong !== undefined && sizes.get(name) !== undefined)
      history.report('bytes', `${name} came as ${wrong}`)
    const { topic, qos, redelivered } = message
    const reader = { s: record.s, process: this.#process, seq: history.next() }
    const entry = { payload: name, topic, qos, redelivered, ...reader, done: 0, waits: 0 }
    history.delivered.push(entry)
    history.note(`  delivered ${entry.payload} q${entry.qos} to ${record.s}`)
    return entry
  }

  #granted(record: Subscribed, qos: number | undefined): void {
    record.granted = this.#world.history.next()
    record.grantedAt = this.#world.clock.now()
    record.grantedQos = qos ?? 0
    record.live = record.left === 0
  }

  #follow(reading: Promise<unknown>, record: Subscribed): void {
    reading.then(
      () => this.#ended(record, undefined),
      (error: unknown) => this.#ended(record, error),
    )
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
    if (how === 'unsubscribe') entry.record.dismissed ||= this.#world.history.next()
    if (how === 'detach') return entry.owned.detach()
    const leaving = entry.owned.unsubscribe()
    // Who is told that it did not work knows that the broker may have it still.
    leaving.catch(() => {
      entry.record.dismissed = 0
    })
    this.#track(`unsubscribe ${entry.record.filter}`, leaving)
  }

  #leaveAll(): void {
    for (const { record } of this.subscriptions.values()) this.#left(record)
  }

  #left(record: Subscribed): void {
    if (record.left === 0) record.left = this.#world.history.next()
    record.live = false
  }

  // A process that is gone never wakes up.
  #sleep(duration: number): Promise<void> {
    if (duration === 0) return Promise.resolve()
    this.working += 1
    return new Promise((resolve) => {
      this.#world.clock.setTimer(
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
