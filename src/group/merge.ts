/**
 * The messages of several subscriptions, one after the other: each subscription in its turn, as long as it has messages.
 *
 * Asking for a message ends the turn of those before, from any member; under automatic acks that acknowledges them. Of each subscription at most
 * one message is taken before a reader asks for it, and only while a reader waits. One that ends leaves the others going, and one whose member was removed
 * is forgotten when it has ended.
 */

import { access, type ClientAccess, type SubscriptionAccess } from '../client/access.js'
import type { NextOptions, Subscription } from '../client/options/index.js'
import { aborted, type Deferred, deferred, onAbort, silent } from '../common/abort.js'
import { MqttError } from '../errors.js'
import type { Time } from '../members/time.js'
import type { Duplicates } from './duplicates.js'
import type { GroupMessage } from './types.js'

/** How a member goes: its turns end (`'leaving'`), it has ended (`'gone'`), or it was not added after all (`'refused'`). */
export type Departure = 'leaving' | 'gone' | 'refused'

/** What is merged of one member. */
export interface MergedMember {
  readonly name: string
  readonly up: boolean
  readonly client: object
}

/** One of the merged. */
export interface Source {
  readonly member: MergedMember
  readonly from: Subscription
  /** What is behind it, in clients of this package. */
  readonly behind: SubscriptionAccess | undefined
  /** Taken for a reader that waited and got another one. */
  ready: GroupMessage | undefined
  /** It is being waited for. */
  waiting: boolean
  /** It has ended: with an error, or undefined. */
  end: { readonly error: unknown } | undefined
  /** Its member was removed. */
  leaving: boolean
}

interface Waiter {
  readonly outcome: Deferred<GroupMessage | undefined>
  stop: () => void
}

/** The name of its member on a message. */
export function named(message: object, member: string): GroupMessage {
  return Object.assign(message, { member }) as GroupMessage
}

// Another copy of the package may have other names.
function behindOf(from: Subscription): SubscriptionAccess | undefined {
  const behind = (from as { [access]?(): Partial<SubscriptionAccess> })[access]?.()
  return behind?.unacknowledged?.endTurn === undefined || behind.readers === undefined
    ? undefined
    : (behind as SubscriptionAccess)
}

// No further read comes that would end the turn.
function endTurn({ behind, member }: Source): void {
  behind?.unacknowledged.endTurn()
  ;(member.client as { [access]?(): ClientAccess })[access]?.().handleTurnEnd?.()
}

/** What was merged, and who waits for it. */
export class Merge {
  sources: readonly Source[] = []
  /** Nothing is taken any more. */
  ended = false
  /** Asking for a message acknowledges those before. */
  readonly automatic: boolean
  /** More may be added: without sources it waits for them. */
  #stays: boolean
  readonly #duplicates: Duplicates
  readonly #time: () => Time
  /** Handed out since a reader asked last. */
  #turn: { readonly source: Source; readonly message: GroupMessage; done: boolean }[] = []
  /** The source whose turn it is. */
  #at = 0
  readonly #waiters = new Set<Waiter>()
  #iterating = false

  constructor(automatic: boolean, stays: boolean, duplicates: Duplicates, time: () => Time) {
    this.automatic = automatic
    this.#stays = stays
    this.#duplicates = duplicates
    this.#time = time
  }

  /** One more. */
  add(member: MergedMember, from: Subscription): void {
    const source: Source = {
      member,
      from,
      behind: behindOf(from),
      ready: undefined,
      waiting: false,
      end: undefined,
      leaving: false,
    }
    this.sources = [...this.sources, source]
    this.iterating = this.#iterating
    silent(from.ready)
    if (this.#waiters.size > 0) this.#wait(source)
  }

  /** Its member has gone. */
  remove(source: Source): void {
    source.leaving = true
    source.end ??= { error: undefined }
    this.#look()
  }

  /** No more are added. */
  complete(): void {
    this.#stays = false
    this.#look()
  }

  /** A loop runs. */
  get iterating(): boolean {
    return this.#iterating
  }
  set iterating(iterating: boolean) {
    this.#iterating = iterating
    for (const { behind } of this.sources)
      if (behind !== undefined) behind.readers.iterating = iterating
  }

  /** Messages that were taken and not asked for. */
  get taken(): number {
    return this.sources.filter(({ ready }) => ready !== undefined).length
  }

  /** Nothing more can come. */
  get over(): boolean {
    return (
      this.ended ||
      (this.sources.every(({ end, ready }) => end !== undefined && ready === undefined) &&
        !(this.#stays && this.sources.length === 0))
    )
  }

  /** A message that is there; the turn before is over. @throws MqttError ERR_CONCURRENT_NEXT; what a key function throws */
  read(): GroupMessage | undefined {
    if (this.automatic && this.#waiters.size > 0) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#endTurn()
    return this.more()
  }

  /** A message that is there, in the same turn. */
  more(): GroupMessage | undefined {
    // A key function may end what is read.
    const { sources } = this
    const count = sources.length
    for (let step = 0; step < count; step++) {
      const index = (this.#at + step) % count
      const source = sources[index] as Source
      for (
        let message = this.#takeFrom(source);
        message !== undefined;
        message = this.#takeFrom(source)
      ) {
        const handed = { source, message, done: false }
        this.#turn.push(handed)
        if (this.#duplicates.has(message)) {
          // The message of which it is one may be in hand: then it is acknowledged with that, at the end of the turn.
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

  /** Waits for a message, behind those who wait already; undefined when no more will come. @throws MqttError ERR_TIMEOUT, ERR_ABORTED */
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
    for (const source of this.sources) this.#wait(source)
    return outcome.promise
  }

  /** Takes nothing more: each wait ends without a message. What is in hand is the clients' to settle. */
  stop(): void {
    this.ended = true
    this.#turn = []
    this.#look()
  }

  // What was taken and not handed out belongs to no reader's turn.
  #endTurn(): void {
    for (const { source, message } of this.#turn.splice(0)) {
      if (this.automatic) message.ack()
      if (source.ready === undefined) endTurn(source)
    }
  }

  #takeFrom(source: Source): GroupMessage | undefined {
    const { ready, behind, from, member } = source
    if (this.ended) return undefined
    source.ready = undefined
    if (ready !== undefined && source.leaving) this.#forget()
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

  // A subscription that has ended with its member is not merged any more.
  #forget(): void {
    const left = this.sources.filter(
      ({ leaving, end, ready }) => !leaving || end === undefined || ready !== undefined,
    )
    if (left.length === this.sources.length) return
    this.sources = left
    this.#at = 0
  }

  // A reader may wait for what has come or ended.
  #look(): void {
    this.#forget()
    for (const waiter of this.#waiters) {
      try {
        const message = this.more()
        if (message === undefined && !this.over) break
        this.#settled(waiter).resolve(message)
      } catch (error) {
        this.#settled(waiter).reject(error)
      }
    }
    if (this.#waiters.size > 0) for (const source of this.sources) this.#wait(source)
  }
}
