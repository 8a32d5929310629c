/**
 * Keeps the messages of one topic in order, although the member that takes them changes: while something of a topic is in flight, it goes on where it is.
 *
 * It assumes that a member publishes in the order of the calls. It holds topics with something in flight only, and no more calls than the room has.
 */
import { deferred, tolerant } from '../common/abort.js'
import { attempt } from './failure.js'
import type { Patience, WaitingRoom } from './waiting.js'

/** Who has which topic. */
export interface Owning<M> {
  /** The member for a topic without an owner; undefined without members. */
  choose(topic: string): M | undefined
  /** False when the member takes nothing more: what it has in flight is waited for. */
  takes(member: M): boolean
  /** True when a topic leaves this member at once, whatever it has in flight: its order is given up. */
  leaves(member: M): boolean
}

/** A publish: to a member, or what happens without one. */
export interface Call<M, R> {
  /** Calls with lower numbers come first. */
  readonly number: number
  send(member: M | undefined): Promise<R>
  /** True when it has certainly not been sent, and another member is to have it. */
  again(error: unknown, member: M): boolean
  readonly patience: Patience
}

interface Open<M> {
  readonly call: Call<M, unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  /** Ends its wait. */
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
  /** For calls that wait for the end of what another member has in flight. */
  readonly #room: WaitingRoom

  constructor(owning: Owning<M>, room: WaitingRoom) {
    this.#owning = owning
    this.#room = room
  }

  /** Topics with something in flight. */
  get size(): number {
    return this.#topics.size
  }

  /** Who has this topic now, or would have it. */
  ownerOf(topic: string): M | undefined {
    return this.#topics.get(topic)?.owner ?? this.#owning.choose(topic)
  }

  /** Sends, now or when the member before has ended what it has. @throws MqttError ERR_QUEUE_FULL, ERR_ABORTED, ERR_EXPIRED, and what the call rejects with */
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
      // Before anything of this topic goes on.
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
    // A call meanwhile finds the topic where the first of these puts it.
    for (const open of waiting) this.#begin(topic, open)
  }
}
