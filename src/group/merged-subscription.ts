/**
 * The subscriptions of several members as one: each in its turn, as long as it has messages.
 *
 * A message is acknowledged as one subscription does it: under automatic acks by asking for the next one, whoever that comes from. Of each member at most
 * one message is taken before somebody asks for it, and only while somebody waits. A member that ends leaves the others going.
 */
import type { Filters, Grant, NextOptions, SubscribeOptions, Subscriber, Subscription } from '../client/api/index.js'
import { aborted, type Deferred, deferred, onAbort, silent } from '../client/common/abort.js'
import { asyncDisposeSymbol } from '../client/common/dispose.js'
import { invalid } from '../client/common/schema.js'
import { iteration, streamOf } from '../client/delivery/iteration.js'
import { nextOptions } from '../client/parsing/requests.js'
import { MqttError } from '../errors.js'
import { membersError } from '../members/failure.js'
import type { CheckedDeduplication, CheckedReading } from './options.js'
import { SeenKeys } from './seen-keys.js'
import type { GroupGrant, GroupMessage, GroupSubscription } from './types.js'

/** A member that subscribes. */
export interface SubscribingMember {
  readonly name: string
  readonly client: Pick<Subscriber, 'subscription'>
  readonly up: boolean
}

/** One of the merged. */
interface Source {
  readonly member: SubscribingMember
  readonly from: Subscription
  /** Taken while somebody waited, who got another one. */
  ready: GroupMessage | undefined
  /** It is being waited for. */
  waiting: boolean
  /** It has ended: with an error, or undefined. */
  end: { readonly error: unknown } | undefined
}

/** Tells messages that were here before; they are acknowledged. */
export class Duplicates {
  count = 0
  readonly #seen: SeenKeys | undefined
  readonly #key: CheckedDeduplication['key'] | undefined
  readonly #total: { duplicates: number }

  /** @param total where duplicates of all are counted */
  constructor(given: CheckedDeduplication | undefined, total: { duplicates: number }) {
    this.#seen = given && new SeenKeys(given.window, given.limit)
    this.#key = given?.key
    this.#total = total
  }

  /** The key of a message that is new, in an array; undefined where it was here before. */
  admit(message: GroupMessage): readonly [unknown] | undefined {
    const key = this.#key?.(message)
    if (key === undefined || this.#seen?.has(key) !== true) return [key]
    this.count += 1
    this.#total.duplicates += 1
    return undefined
  }

  /** It was not handled: it may come again. */
  forget(key: unknown): void {
    this.#seen?.forget(key)
  }
}

/** The name of its member on a message. */
export function named(message: object, member: string): GroupMessage {
  return Object.assign(message, { member }) as GroupMessage
}

/** The implementation of {@link GroupSubscription}. */
export class MergedSubscription implements GroupSubscription {
  /** Members that come later are its too. */
  readonly all: boolean
  readonly #filters: Filters
  readonly #reading: CheckedReading<SubscribeOptions>
  readonly #duplicates: Duplicates
  readonly #sources: Source[] = []
  readonly #over: () => void
  /** Handed out, and acknowledged by asking for more. */
  #turn: GroupMessage[] = []
  /** The source whose turn it is. */
  #at = 0
  #waiter: { readonly outcome: Deferred<GroupMessage | undefined>; readonly stop: () => void } | undefined
  #iterating = false
  #left: 'unsubscribe' | 'detach' | undefined
  #failureTold = false
  #ready: Promise<GroupSubscription> | undefined

  constructor(filters: Filters, reading: CheckedReading<SubscribeOptions>, total: { duplicates: number }, over: () => void) {
    this.all = reading.members === undefined
    this.#filters = filters
    this.#reading = reading
    this.#duplicates = new Duplicates(reading.deduplicate, total)
    this.#over = over
  }

  /** Subscribes on a member. @throws MqttError as `subscription` of the client */
  add(member: SubscribingMember): void {
    if (this.ended) return
    const from = member.client.subscription(this.#filters, this.#reading.options)
    const source: Source = { member, from, ready: undefined, waiting: false, end: undefined }
    this.#sources.push(source)
    silent(from.ready)
    if (this.#waiter !== undefined) this.#wait(source)
  }

  get ended(): boolean {
    return this.#left !== undefined
  }

  get ready(): Promise<GroupSubscription> {
    this.#ready ??= silent(this.#granting())
    return this.#ready
  }

  get granted(): readonly GroupGrant[] {
    return this.#sources.flatMap(({ member, from }) => from.granted.map((grant: Grant) => ({ ...grant, member: member.name })))
  }

  get size(): number {
    return this.#sources.reduce((sum, { from, ready }) => sum + from.size + (ready === undefined ? 0 : 1), 0)
  }

  get dropped(): number {
    return this.#sources.reduce((sum, { from }) => sum + from.dropped, 0)
  }

  get duplicates(): number {
    return this.#duplicates.count
  }

  next(given?: NextOptions): Promise<GroupMessage | undefined> {
    try {
      const { signal, timeout } = given === undefined ? ({} as NextOptions) : nextOptions(given, '')
      if (signal?.aborted) throw aborted(signal)
      if (this.#waiter !== undefined) throw new MqttError('ERR_CONCURRENT_NEXT')
      const message = this.read()
      if (message !== undefined) return Promise.resolve(message)
      return this.#isOver ? this.#end() : this.#waited(signal, timeout)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  read(): GroupMessage | undefined {
    if (this.#waiter !== undefined) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#endTurn()
    return this.#take()
  }

  batches(max = Number.POSITIVE_INFINITY): AsyncIterableIterator<GroupMessage[]> {
    if (!(max >= 1)) invalid('max', 'a number of 1 or more')
    const rest = (first: GroupMessage | undefined): GroupMessage[] | undefined => {
      if (first === undefined) return undefined
      const batch = [first]
      while (batch.length < max) {
        const message = this.#take()
        if (message === undefined) break
        batch.push(message)
      }
      return batch
    }
    return this.#iterate(
      () => this.next().then(rest),
      () => rest(this.read()),
    )
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<GroupMessage> {
    return this.#iterate(
      () => this.next(),
      () => this.read(),
    )
  }

  readable(): ReadableStream<GroupMessage> {
    if (this.#isAuto) invalid('ack', "'manual' or 'on-receive' for a stream")
    return streamOf(this[Symbol.asyncIterator]())
  }

  async unsubscribe(): Promise<void> {
    const open = this.#leave('unsubscribe')
    const results = await Promise.allSettled(open.map(({ from }) => from.unsubscribe()))
    const failures = new Map(
      results.flatMap((result, index) => (result.status === 'rejected' ? [[open[index]?.member.name as string, result.reason] as const] : [])),
    )
    if (failures.size > 0) throw membersError('unsubscribing failed', failures)
  }

  detach(): void {
    for (const { from } of this.#leave('detach')) from.detach()
  }

  /** Leaves a member that was removed. */
  remove(member: SubscribingMember): void {
    for (const { member: other, from } of this.#sources) if (other === member) from.detach()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await Promise.all(this.#leave('unsubscribe').map(({ from }) => from[asyncDisposeSymbol]()))
  }

  get #isAuto(): boolean {
    return (this.#reading.options.ack ?? 'auto') === 'auto'
  }

  // Nothing more can come.
  get #isOver(): boolean {
    return this.ended || (this.#sources.length > 0 && this.#sources.every(({ end, ready }) => end !== undefined && ready === undefined))
  }

  async #granting(): Promise<GroupSubscription> {
    const connected = this.#sources.filter(({ member }) => member.up)
    const { require } = this.#reading
    const asked = connected.length > 0 || require === 'all' ? (require === 'all' ? this.#sources : connected) : this.#sources
    const ready = asked.map(({ from }) => from.ready)
    const first = connected.length === 0 && require === 'any'
    // Without a connection the first that comes is enough.
    const results = first
      ? await Promise.any(ready).then(
          () => [],
          (error: AggregateError) => failed(error.errors),
        )
      : await Promise.allSettled(ready)
    const failures = new Map(
      results.flatMap((result, index) => (result.status === 'rejected' ? [[asked[index]?.member.name as string, result.reason] as const] : [])),
    )
    const enough = require === 'all' ? failures.size === 0 : first ? failures.size === 0 : failures.size < asked.length
    if (enough) return this
    if (require === 'all') this.detachAll()
    throw membersError('no grant', failures)
  }

  /** Those that were granted end too. */
  detachAll(): void {
    for (const { from } of this.#leave('unsubscribe')) void silent(from.unsubscribe())
  }

  #endTurn(): void {
    const turn = this.#turn
    if (turn.length === 0) return
    this.#turn = []
    for (const message of turn) message.ack()
  }

  // What is there, from the source whose turn it is.
  #take(): GroupMessage | undefined {
    const count = this.#sources.length
    for (let step = 0; step < count; step++) {
      const index = (this.#at + step) % count
      const source = this.#sources[index] as Source
      for (let message = this.#takeFrom(source); message !== undefined; message = this.#takeFrom(source)) {
        if (!this.#admits(message)) continue
        this.#at = (index + 1) % count
        return message
      }
    }
    return undefined
  }

  #takeFrom(source: Source): GroupMessage | undefined {
    const { ready } = source
    source.ready = undefined
    if (ready !== undefined) return ready
    if (source.waiting || source.end !== undefined || this.ended) return undefined
    const message = source.from.read()
    return message && named(message, source.member.name)
  }

  // A duplicate is done with.
  #admits(message: GroupMessage): boolean {
    let admitted: readonly [unknown] | undefined
    try {
      admitted = this.#duplicates.admit(message)
    } catch (error) {
      this.#turn.push(message)
      throw error
    }
    if (admitted === undefined) message.ack()
    else if (this.#isAuto) this.#turn.push(message)
    return admitted !== undefined
  }

  #waited(signal: AbortSignal | undefined, timeout: number | undefined): Promise<GroupMessage | undefined> {
    const outcome = deferred<GroupMessage | undefined>()
    const fail = (error: MqttError): void => {
      this.#settleWaiter()
      outcome.reject(error)
    }
    const timer = timeout === undefined ? undefined : setTimeout(() => fail(new MqttError('ERR_TIMEOUT')), timeout)
    const unwatch = onAbort(signal, () => fail(aborted(signal)))
    const stop = (): void => {
      clearTimeout(timer)
      unwatch()
    }
    this.#waiter = { outcome, stop }
    for (const source of this.#sources) this.#wait(source)
    return outcome.promise
  }

  #settleWaiter(): Deferred<GroupMessage | undefined> | undefined {
    const waiter = this.#waiter
    this.#waiter = undefined
    waiter?.stop()
    return waiter?.outcome
  }

  #wait(source: Source): void {
    if (source.waiting || source.end !== undefined || source.ready !== undefined) return
    source.waiting = true
    source.from.next().then(
      (message) => {
        source.waiting = false
        if (message === undefined) source.end = { error: undefined }
        else source.ready = named(message, source.member.name)
        this.#look()
      },
      (error: unknown) => {
        source.waiting = false
        source.end = { error }
        this.#look()
      },
    )
  }

  // Somebody may wait for what has come.
  #look(): void {
    if (this.#waiter === undefined) return
    try {
      const message = this.#take()
      if (message !== undefined) return this.#settleWaiter()?.resolve(message)
    } catch (error) {
      return this.#settleWaiter()?.reject(error)
    }
    if (!this.#isOver) {
      for (const source of this.#sources) this.#wait(source)
      return
    }
    const outcome = this.#settleWaiter()
    this.#end().then(outcome?.resolve, outcome?.reject)
  }

  // What ended all of them is told once.
  async #end(): Promise<undefined> {
    this.#over()
    const failures = new Map(this.#sources.flatMap(({ member, end }) => (end?.error === undefined ? [] : [[member.name, end.error] as const])))
    if (this.#failureTold || this.ended || failures.size < this.#sources.length) return undefined
    this.#failureTold = true
    throw membersError('every member has ended', failures)
  }

  #leave(how: 'unsubscribe' | 'detach'): readonly Source[] {
    this.#left ??= how
    this.#over()
    if (how === 'unsubscribe' && this.#isAuto) this.#endTurn()
    const outcome = this.#settleWaiter()
    outcome?.resolve(undefined)
    return this.#sources
  }

  #iterate<T>(pull: () => Promise<T | undefined>, buffered: () => T | undefined): AsyncIterableIterator<T> {
    if (this.#iterating && this.#isAuto) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#iterating = true
    const exit = this.#reading.options.onExit
    return iteration(pull, buffered, (left) => {
      this.#iterating = false
      if (!left) return
      const open = this.#leave(exit === 'unsubscribe' ? 'unsubscribe' : 'detach')
      // Each member knows what leaving a loop means for its session.
      for (const { from } of open) void from[asyncDisposeSymbol]()
    })
  }
}

function failed(errors: readonly unknown[]): { readonly status: 'rejected'; readonly reason: unknown }[] {
  return errors.map((reason) => ({ status: 'rejected', reason }))
}
