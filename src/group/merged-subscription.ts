/**
 * The subscriptions of several members as one.
 */

import { iteration, streamOf } from '../client/deliver/subscription.js'
import { nextOptions } from '../client/options/check-calls.js'
import type { Filters, NextOptions, SubscribeOptions, Subscriber } from '../client/options/index.js'
import { assertNotAborted, silent } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { invalid } from '../common/schema.js'
import { MqttError } from '../errors.js'
import { membersError } from '../members/failure.js'
import { granting, leaving } from './answers.js'
import { Duplicates, type GroupCommon } from './duplicates.js'
import { type Departure, Merge, type MergedMember, type Source } from './merge.js'
import type { CheckedReading } from './options.js'
import type { GroupGrant, GroupMessage, GroupSubscription } from './types.js'

/** A member that subscribes. */
export interface SubscribingMember extends MergedMember {
  readonly client: Pick<Subscriber, 'subscription'>
}

/** The implementation of {@link GroupSubscription}. */
export class MergedSubscription implements GroupSubscription {
  /** Members that come later are its too. */
  readonly all: boolean
  readonly #filters: Filters
  readonly #reading: CheckedReading<SubscribeOptions>
  readonly #duplicates: Duplicates
  readonly #merge: Merge
  readonly #group: GroupCommon
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
    this.#group = group
    this.#duplicates = new Duplicates(reading.deduplicate, group)
    this.#merge = new Merge(
      (reading.options.ack ?? 'auto') === 'auto',
      this.all,
      this.#duplicates,
      group.time,
    )
    this.#over = over
  }

  /** Subscribes on a member. @throws MqttError as `subscription` of the client */
  add(member: SubscribingMember): void {
    if (this.#merge.ended) return
    this.#merge.add(member, member.client.subscription(this.#filters, this.#reading.options))
  }

  get ready(): Promise<GroupSubscription> {
    this.#ready ??= silent(this.#granting())
    return this.#ready
  }

  get granted(): readonly GroupGrant[] {
    return this.#sources.flatMap(({ member, from }) =>
      from.granted.map((grant) => ({ ...grant, member: member.name })),
    )
  }

  get size(): number {
    return this.#sources.reduce((sum, { from }) => sum + from.size, this.#merge.taken)
  }

  get dropped(): number {
    return this.#sources.reduce((sum, { from }) => sum + from.dropped, 0)
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
    // The end of the members is no reason to end the process.
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
    // What is buffered can still be read.
    this.#over()
    await leaving(this.#sources, ({ from }) => from.unsubscribe(), this.#group)
  }

  detach(): void {
    this.#stop()
    for (const { from } of this.#sources) from.detach()
  }

  /** A member goes. What is in hand of it ends by itself. */
  remove(member: SubscribingMember, how: Departure): void {
    for (const source of this.#sources.filter((one) => one.member === member)) {
      if (how === 'refused') void source.from[asyncDisposeSymbol]()
      if (how === 'leaving') source.leaving = true
      else this.#merge.remove(source)
    }
  }

  /** The group has ended: no member comes any more. */
  handleEnd(): void {
    this.#merge.complete()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    this.#stop()
    // Each member knows what leaving means for its session.
    await Promise.all(this.#sources.map(({ from }) => from[asyncDisposeSymbol]()))
  }

  get #sources(): readonly Source[] {
    return this.#merge.sources
  }

  async #granting(): Promise<GroupSubscription> {
    try {
      await granting(
        () => this.#sources,
        ({ from }) => from.ready,
        this.#reading.require,
        this.#group,
      )
      return this
    } catch (error) {
      // Where some were granted they end too.
      void silent(this.unsubscribe())
      throw error
    }
  }

  // What ended all of them is reported once.
  #end(): undefined {
    this.#over()
    const failures = new Map(
      this.#sources.flatMap(({ member, end }) =>
        end?.error === undefined ? [] : [[member.name, end.error] as const],
      ),
    )
    if (
      this.#failureReported ||
      this.#merge.ended ||
      failures.size === 0 ||
      failures.size < this.#sources.length
    )
      return undefined
    this.#failureReported = true
    throw membersError('ERR_CLOSED', 'every member has ended', failures)
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
