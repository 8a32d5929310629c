/**
 * Merges the subscriptions of several members: they take turns, as long as they have messages.
 *
 * Requesting a message ends the turn of earlier messages of all members; with automatic acks that
 * acknowledges them. From each subscription at most one message is taken in advance, and only while
 * a reader waits. When one subscription ends, the others continue.
 */
import { access, type ClientAccess, type SubscriptionAccess } from '../client/access.js'
import { iteration, streamOf } from '../client/deliver/subscription.js'
import { nextOptions } from '../client/options/check-calls.js'
import type {
  Filters,
  NextOptions,
  SubscribeOptions,
  Subscription,
} from '../client/options/index.js'
import {
  aborted,
  assertNotAborted,
  type Deferred,
  deferred,
  onAbort,
  silent,
} from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { invalid } from '../common/schema.js'
import { MqttError } from '../errors.js'
import type { Member } from '../members/member.js'
import { Duplicates } from './duplicates.js'
import type { CheckedReading } from './options.js'
import {
  type Departure,
  type GroupCommon,
  named,
  type ReadingMember,
  type Source,
  Sources,
} from './sources.js'
import type { GroupGrant, GroupMessage, GroupSubscription } from './types.js'

interface MergedSource extends Source<Subscription> {
  /** The internals of the subscription, for clients of this package. */
  readonly behind: SubscriptionAccess | undefined
  /** A message taken for a waiting reader that got another one. */
  ready: GroupMessage | undefined
  /** True while its `next()` is pending. */
  waiting: boolean
}

interface Waiter {
  readonly outcome: Deferred<GroupMessage | undefined>
  stop: () => void
}

// Checked, because another copy of the package may have other internals.
function behindOf(from: Subscription): SubscriptionAccess | undefined {
  const behind = (from as { [access]?(): Partial<SubscriptionAccess> })[access]?.()
  return behind?.unacknowledged?.endTurn === undefined || behind.readers === undefined
    ? undefined
    : (behind as SubscriptionAccess)
}

// Ends the turn of a source explicitly, because no read of it may follow.
function endTurn({ behind, member }: MergedSource): void {
  behind?.unacknowledged.endTurn()
  ;(member.client as { [access]?(): ClientAccess })[access]?.().handleTurnEnd?.()
}

/** The merged subscriptions and the waiting readers. */
export class Merge extends Sources<MergedSource> {
  /** True once no more messages are taken. */
  ended = false
  /** True if requesting a message acknowledges earlier ones. */
  readonly automatic: boolean
  readonly #duplicates: Duplicates
  readonly #time: GroupCommon['time']
  /** Messages delivered since the last request of a reader. */
  #turn: { readonly source: MergedSource; readonly message: GroupMessage; done: boolean }[] = []
  /** Index of the source whose turn it is. */
  #at = 0
  readonly #waiters = new Set<Waiter>()
  #iterating = false

  constructor(automatic: boolean, stays: boolean, duplicates: Duplicates, group: GroupCommon) {
    super(stays, group)
    this.automatic = automatic
    this.#duplicates = duplicates
    this.#time = group.time
  }

  add(member: Member, from: Subscription): void {
    const source: MergedSource = {
      member,
      from,
      behind: behindOf(from),
      ready: undefined,
      waiting: false,
      end: undefined,
      leaving: false,
    }
    this.put(source)
    this.iterating = this.#iterating
    silent(from.ready)
    if (this.#waiters.size > 0) this.#wait(source)
  }

  override remove(member: Member, how: Departure): readonly MergedSource[] {
    const removed = super.remove(member, how)
    if (how !== 'leaving') this.#look()
    return removed
  }

  override complete(): void {
    super.complete()
    this.#look()
  }

  /** True when no more messages can arrive. */
  override get over(): boolean {
    return this.ended || super.over
  }

  /** True while an iteration is running. */
  get iterating(): boolean {
    return this.#iterating
  }
  set iterating(iterating: boolean) {
    this.#iterating = iterating
    for (const { behind } of this.all)
      if (behind !== undefined) behind.readers.iterating = iterating
  }

  /** Number of messages taken and not delivered. */
  get taken(): number {
    return this.all.filter(({ ready }) => ready !== undefined).length
  }

  /**
   * The next available message, without waiting; ends the turn of earlier ones.
   * @throws MqttError ERR_CONCURRENT_NEXT; what a key function throws
   */
  read(): GroupMessage | undefined {
    if (this.automatic && this.#waiters.size > 0) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#endTurn()
    return this.more()
  }

  /** The next available message, in the same turn. */
  more(): GroupMessage | undefined {
    // Copied, because a key function may remove sources.
    const { all: sources } = this
    const count = sources.length
    for (let step = 0; step < count; step++) {
      const index = (this.#at + step) % count
      const source = sources[index] as MergedSource
      for (
        let message = this.#takeFrom(source);
        message !== undefined;
        message = this.#takeFrom(source)
      ) {
        const handed = { source, message, done: false }
        this.#turn.push(handed)
        if (this.#duplicates.has(message)) {
          // If the original message may be in the same turn, the duplicate is acknowledged with it,
          // at the end of the turn.
          handed.done =
            !this.automatic || this.#turn.every((other) => other === handed || other.done)
          if (handed.done) message.ack()
          continue
        }
        this.#at = (index + 1) % count
        return message
      }
    }
    return undefined
  }

  /**
   * Waits for a message, after earlier waiters; undefined when no more will arrive.
   * @throws MqttError ERR_TIMEOUT, ERR_ABORTED
   */
  wait({ signal, timeout }: NextOptions): Promise<GroupMessage | undefined> {
    const outcome = deferred<GroupMessage | undefined>()
    const waiter: Waiter = { outcome, stop: () => undefined }
    this.#waiters.add(waiter)
    const fail = (error: MqttError): void => {
      this.#settled(waiter)
      outcome.reject(error)
    }
    const late = (): void => fail(new MqttError('ERR_TIMEOUT', `no message in ${timeout} ms`))
    const cancel = timeout === undefined ? undefined : this.#time().setTimer(late, timeout)
    const unwatch = onAbort(signal, () => fail(aborted(signal)))
    waiter.stop = () => {
      cancel?.()
      unwatch()
    }
    for (const source of this.all) this.#wait(source)
    return outcome.promise
  }

  /** Takes no more messages: each wait ends without one. The clients settle delivered messages. */
  stop(): void {
    this.ended = true
    this.#turn = []
    this.#look()
  }

  // The turn of a source with a taken, undelivered message stays open.
  #endTurn(): void {
    for (const { source, message } of this.#turn.splice(0)) {
      if (this.automatic) message.ack()
      if (source.ready === undefined) endTurn(source)
    }
  }

  #takeFrom(source: MergedSource): GroupMessage | undefined {
    const { ready, behind, from, member } = source
    if (this.ended) return undefined
    source.ready = undefined
    if (ready !== undefined && source.leaving) this.forget()
    if (ready !== undefined) return ready
    if (source.waiting || source.end !== undefined) return undefined
    const message = behind === undefined ? from.read() : behind.unacknowledged.next()
    return message && named(message, member.name)
  }

  #settled(waiter: Waiter): Deferred<GroupMessage | undefined> {
    this.#waiters.delete(waiter)
    waiter.stop()
    return waiter.outcome
  }

  #wait(source: MergedSource): void {
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

  override forget(): boolean {
    const forgot = super.forget()
    if (forgot) this.#at = 0
    return forgot
  }

  protected override isOver({ end, ready }: MergedSource): boolean {
    return end !== undefined && ready === undefined
  }

  // Serves waiting readers after a message arrived or a source ended.
  #look(): void {
    this.forget()
    for (const waiter of this.#waiters) {
      try {
        const message = this.more()
        if (message === undefined && !this.over) break
        this.#settled(waiter).resolve(message)
      } catch (error) {
        this.#settled(waiter).reject(error)
      }
    }
    if (this.#waiters.size > 0) for (const source of this.all) this.#wait(source)
  }
}

/** The implementation of {@link GroupSubscription}. */
export class MergedSubscription implements GroupSubscription {
  /** True if it includes members added later. */
  readonly all: boolean
  readonly #filters: Filters
  readonly #reading: CheckedReading<SubscribeOptions>
  readonly #duplicates: Duplicates
  readonly #merge: Merge
  readonly #over: () => void
  #failureReported = false
  #ready: Promise<GroupSubscription> | undefined

  constructor(
    filters: Filters,
    reading: CheckedReading<SubscribeOptions>,
    group: GroupCommon,
    over: () => void,
  ) {
    this.all = reading.members === undefined
    this.#filters = filters
    this.#reading = reading
    this.#duplicates = new Duplicates(reading.deduplicate, group)
    this.#merge = new Merge(
      (reading.options.ack ?? 'auto') === 'auto',
      this.all,
      this.#duplicates,
      group,
    )
    this.#over = over
  }

  /** Subscribes on a member. @throws MqttError as `subscription` of the client */
  add(member: ReadingMember): void {
    if (this.#merge.ended) return
    this.#merge.add(member, member.client.subscription(this.#filters, this.#reading.options))
  }

  get ready(): Promise<GroupSubscription> {
    this.#ready ??= silent(this.#granting())
    return this.#ready
  }

  get granted(): readonly GroupGrant[] {
    return this.#merge.granted
  }

  get size(): number {
    return this.#merge.all.reduce((sum, { from }) => sum + from.size, this.#merge.taken)
  }

  get dropped(): number {
    return this.#merge.all.reduce((sum, { from }) => sum + from.dropped, 0)
  }

  get duplicates(): number {
    return this.#duplicates.count
  }

  next(given?: NextOptions): Promise<GroupMessage | undefined> {
    const call = async (): Promise<GroupMessage | undefined> => {
      const options = given === undefined ? {} : nextOptions(given, '')
      assertNotAborted(options.signal)
      const message = this.read()
      if (message !== undefined) return message
      return (this.#merge.over ? undefined : await this.#merge.wait(options)) ?? this.#end()
    }
    // Silenced, so that the rejection does not end the process if it is not handled.
    return silent(call())
  }

  read(): GroupMessage | undefined {
    return this.#merge.read()
  }

  batches(max = Number.POSITIVE_INFINITY): AsyncIterableIterator<GroupMessage[]> {
    if (!(max >= 1)) invalid('max', 'a number of 1 or more')
    const rest = (first: GroupMessage | undefined): GroupMessage[] | undefined => {
      if (first === undefined) return undefined
      const batch = [first]
      while (batch.length < max) {
        const message = this.#merge.more()
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
    if (this.#merge.automatic) invalid('ack', "'manual' or 'on-receive' for a stream")
    return streamOf(this[Symbol.asyncIterator]())
  }

  async unsubscribe(): Promise<void> {
    // A running loop still reads what is buffered. No member comes any more.
    this.#over()
    this.#merge.complete()
    await this.#merge.leave(({ from }) => from.unsubscribe())
  }

  detach(): void {
    this.#stop()
    for (const { from } of this.#merge.all) from.detach()
  }

  /** A member is removed. Its delivered messages are settled as usual. */
  remove(member: Member, how: Departure): void {
    for (const { from } of this.#merge.remove(member, how))
      if (how === 'refused') void from[asyncDisposeSymbol]()
  }

  /** The group has ended: no members are added. */
  handleEnd(): void {
    this.#merge.complete()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    this.#stop()
    // Each client decides what leaving means for its session.
    await Promise.all(this.#merge.all.map(({ from }) => from[asyncDisposeSymbol]()))
  }

  async #granting(): Promise<GroupSubscription> {
    try {
      await this.#merge.granting(({ from }) => from.ready, this.#reading.require)
      return this
    } catch (error) {
      // Subscriptions that were granted end too.
      void silent(this.unsubscribe())
      throw error
    }
  }

  // The error that ended all sources is thrown once.
  #end(): undefined {
    this.#over()
    const failure = this.#merge.ended ? undefined : this.#merge.failure
    if (this.#failureReported || failure === undefined) return undefined
    this.#failureReported = true
    throw failure
  }

  #stop(): void {
    this.#over()
    this.#merge.stop()
  }

  #iterate<T>(
    pull: () => Promise<T | undefined>,
    buffered: () => T | undefined,
  ): AsyncIterableIterator<T> {
    if (this.#merge.iterating && this.#merge.automatic) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#merge.iterating = true
    return iteration(pull, buffered, (left) => {
      this.#merge.iterating = false
      if (left) void this[asyncDisposeSymbol]()
    })
  }
}
