/**
 * Keeps the messages of one topic in order although its member may change: while a topic has
 * messages in flight, it stays with its member.
 *
 * It assumes that a member publishes in the order of the calls. It stores only topics with messages
 * in flight, and at most as many waiting calls as the room allows.
 */
import { deferred, tolerant } from '../common/abort.js'
import { attempt } from './failure.js'
import type { Patience, WaitingRoom } from './waiting.js'

/** Rules of ownership of topics. */
export interface Owning<M> {
  /** The member for a topic without an owner; undefined without members. */
  choose(topic: string): M | undefined
  /** False when the member accepts nothing more: its messages in flight are awaited. */
  takes(member: M): boolean
  /**
   * True when topics leave this member immediately, despite messages in flight: their order is
   * given up.
   */
  leaves(member: M): boolean
}

/** A publish, with or without a member. */
export interface Call<M, R> {
  /** Calls with lower numbers come first. */
  readonly number: number
  send(member: M | undefined): Promise<R>
  /** True if it was certainly not sent and another member should get it. */
  again(error: unknown, member: M): boolean
  readonly patience: Patience
}

interface Open<M> {
  readonly call: Call<M, unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  /** Ends the wait. */
  stop: () => unknown
}

interface Topic<M> {
  owner: M
  inFlight: number
  waiting: Open<M>[]
}

/** Topics with something in flight, and their members. */
export class TopicOwners<M> {
  readonly #topics = new Map<string, Topic<M>>()
  readonly #owning: Owning<M>
  /** Limits calls that wait for messages in flight at another member. */
  readonly #room: WaitingRoom

  constructor(owning: Owning<M>, room: WaitingRoom) {
    this.#owning = owning
    this.#room = room
  }

  /** Topics with something in flight. */
  get size(): number {
    return this.#topics.size
  }

  /** The member that owns this topic, or would own it. */
  ownerOf(topic: string): M | undefined {
    return this.#topics.get(topic)?.owner ?? this.#owning.choose(topic)
  }

  /**
   * Sends now, or when the messages in flight at the previous member have settled.
   * @throws MqttError ERR_QUEUE_FULL, ERR_ABORTED, ERR_EXPIRED, and what the call rejects with
   */
  run<R>(topic: string, call: Call<M, R>): Promise<R> {
    const { promise, resolve, reject } = deferred<R>()
    this.#begin(topic, {
      call,
      resolve: resolve as (result: unknown) => void,
      reject,
      stop: () => undefined,
    })
    return tolerant(promise)
  }

  #begin(topic: string, open: Open<M>): void {
    let entry = this.#topics.get(topic)
    if (entry === undefined) {
      const owner = this.#owning.choose(topic)
      if (owner === undefined)
        return void attempt(() => open.call.send(undefined)).then(open.resolve, open.reject)
      entry = { owner, inFlight: 0, waiting: [] }
      this.#topics.set(topic, entry)
    } else if (this.#owning.leaves(entry.owner))
      entry.owner = this.#owning.choose(topic) ?? entry.owner
    if (this.#owning.takes(entry.owner)) this.#send(topic, entry, open)
    else this.#wait(entry, open)
  }

  #send(topic: string, entry: Topic<M>, open: Open<M>): void {
    const { owner } = entry
    entry.inFlight += 1
    const failed = (error: unknown): void => {
      // Before other calls of this topic continue.
      if (open.call.again(error, owner)) this.#wait(entry, open)
      else open.reject(error)
      this.#ended(topic, entry)
    }
    attempt(() => open.call.send(owner)).then((result) => {
      open.resolve(result)
      this.#ended(topic, entry)
    }, failed)
  }

  #wait(entry: Topic<M>, open: Open<M>): void {
    const { patience } = open.call
    const giveUp = (error: unknown): void => {
      entry.waiting = entry.waiting.filter((other) => other !== open)
      open.reject(error)
    }
    entry.waiting.push(open)
    try {
      open.stop = this.#room.enter(patience, giveUp)
    } catch (error) {
      patience.refuse?.(error)
      giveUp(error)
    }
  }

  #ended(topic: string, entry: Topic<M>): void {
    entry.inFlight -= 1
    if (entry.inFlight > 0) return
    const waiting = entry.waiting.sort((one, other) => one.call.number - other.call.number)
    this.#topics.delete(topic)
    for (const open of waiting) open.stop()
    // A call made meanwhile uses the owner that the first of these sets.
    for (const open of waiting) this.#begin(topic, open)
  }
}
