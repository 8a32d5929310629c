/**
 * The messages of several subscriptions, one after the other: each subscription in its turn, as long as it has messages.
 *
 * Under automatic acks asking for a message acknowledges those before, whoever they came from. Of each subscription at most one message is taken before
 * somebody asks for it, and only while somebody waits. One that ends leaves the others going.
 */
import type { NextOptions, Subscription } from '../client/api/index.js'
import { aborted, type Deferred, deferred, onAbort, silent } from '../client/common/abort.js'
import { MqttError } from '../errors.js'
import type { Time } from '../members/time.js'
import type { Duplicates } from './duplicates.js'
import type { GroupMessage } from './types.js'

/** One of the merged. */
export interface Source {
  /** Name of the member. */
  readonly name: string
  readonly from: Subscription
  /** Taken while somebody waited, who got another one. */
  ready: GroupMessage | undefined
  /** It is being waited for. */
  waiting: boolean
  /** It has ended: with an error, or undefined. */
  end: { readonly error: unknown } | undefined
}

/** The name of its member on a message. */
export function named(message: object, member: string): GroupMessage {
  return Object.assign(message, { member }) as GroupMessage
}

/** What was merged, and who waits for it. */
export class Merge {
  readonly sources: Source[] = []
  /** Nothing is taken any more. */
  ended = false
  /** Asking for a message acknowledges those before. */
  readonly automatic: boolean
  readonly #duplicates: Duplicates
  readonly #time: () => Time
  /** Handed out, and acknowledged by asking for more. */
  #turn: GroupMessage[] = []
  /** The source whose turn it is. */
  #at = 0
  #waiter: { readonly outcome: Deferred<GroupMessage | undefined>; readonly stop: () => void } | undefined

  constructor(automatic: boolean, duplicates: Duplicates, time: () => Time) {
    this.automatic = automatic
    this.#time = time
    this.#duplicates = duplicates
  }

  /** One more. */
  add(name: string, from: Subscription): Source {
    const source: Source = { name, from, ready: undefined, waiting: false, end: undefined }
    this.sources.push(source)
    silent(from.ready)
    if (this.#waiter !== undefined) this.#wait(source)
    return source
  }

  /** Its member has gone. The last one stays, as the end of all. */
  remove(source: Source): void {
    if (this.sources.length > 1 && source.ready === undefined) this.sources.splice(this.sources.indexOf(source), 1)
    this.#at = 0
  }

  /** Messages that were taken and not asked for. */
  get taken(): number {
    return this.sources.filter(({ ready }) => ready !== undefined).length
  }

  /** Nothing more can come. */
  get over(): boolean {
    return this.ended || (this.sources.length > 0 && this.sources.every(({ end, ready }) => end !== undefined && ready === undefined))
  }

  /** A message that is there; the turn before is over. @throws MqttError ERR_CONCURRENT_NEXT; what a key function throws */
  read(): GroupMessage | undefined {
    if (this.#waiter !== undefined) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.endTurn()
    return this.more()
  }

  /** A message that is there, in the same turn. */
  more(): GroupMessage | undefined {
    const count = this.sources.length
    for (let step = 0; step < count; step++) {
      const index = (this.#at + step) % count
      const source = this.sources[index] as Source
      for (let message = this.#takeFrom(source); message !== undefined; message = this.#takeFrom(source)) {
        if (!this.#admits(message)) continue
        this.#at = (index + 1) % count
        return message
      }
    }
    return undefined
  }

  /** What was handed out is acknowledged. */
  endTurn(): void {
    for (const message of this.#turn.splice(0)) message.ack()
  }

  /** Waits for a message; undefined when there is none any more. @throws MqttError ERR_TIMEOUT, ERR_ABORTED */
  wait({ signal, timeout }: NextOptions): Promise<GroupMessage | undefined> {
    const outcome = deferred<GroupMessage | undefined>()
    const fail = (error: MqttError): void => {
      this.#settled()
      outcome.reject(error)
    }
    const late = (): void => fail(new MqttError('ERR_TIMEOUT', `no message in ${timeout} ms`))
    const cancel = timeout === undefined ? undefined : this.#time().setTimer(late, timeout)
    const unwatch = onAbort(signal, () => fail(aborted(signal)))
    const stop = (): void => {
      cancel?.()
      unwatch()
    }
    this.#waiter = { outcome, stop }
    for (const source of this.sources) this.#wait(source)
    return outcome.promise
  }

  /** Takes nothing more: whoever waits gets nothing. What is in hand is the clients' to settle. */
  stop(): void {
    this.ended = true
    this.#turn = []
    this.#settled()?.resolve(undefined)
  }

  #takeFrom(source: Source): GroupMessage | undefined {
    const { ready } = source
    if (this.ended) return undefined
    source.ready = undefined
    if (ready !== undefined) return ready
    if (source.waiting || source.end !== undefined) return undefined
    const message = source.from.read()
    return message && named(message, source.name)
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
    else if (this.automatic) this.#turn.push(message)
    return admitted !== undefined
  }

  #settled(): Deferred<GroupMessage | undefined> | undefined {
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
        else source.ready = named(message, source.name)
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
      const message = this.more()
      if (message !== undefined) return this.#settled()?.resolve(message)
    } catch (error) {
      return this.#settled()?.reject(error)
    }
    if (!this.over) {
      for (const source of this.sources) this.#wait(source)
      return
    }
    this.#settled()?.resolve(undefined)
  }
}
