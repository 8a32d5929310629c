/**
 * The list of endpoints and which is next: rotates on failure, stays with what worked, skips
 * endpoints that refused, and follows server references as detours. Pure. The list is never empty.
 */

import { SparseMap } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'

/** Most references followed in a row. */
const mostHops = 3

const nowhere: readonly string[] = Object.freeze([])

/** An endpoint and its error. */
export type Failure<E> = readonly [endpoint: E, error: MqttError]

/** A list of endpoints of any type. */
export class BrokerList<E> {
  #list: readonly E[]
  #index = 0
  readonly #refused = new SparseMap<E, MqttError>()
  /** The endpoint of a followed server reference, and the names visited on the way. */
  #detour: E | undefined
  #visited = nowhere
  #departing = false
  #asked: E | undefined

  constructor(list: readonly E[]) {
    this.#list = list
  }

  /** The endpoint to dial next. */
  get current(): E {
    return this.#detour ?? (this.#list[this.#index] as E)
  }

  /** The endpoint of the latest attempt, to which failures apply, even if the list has changed. */
  get asked(): E {
    return this.#asked ?? this.current
  }

  /** Starts an attempt and returns its endpoint. */
  ask(): E {
    this.#asked = this.current
    return this.current
  }

  get length(): number {
    return this.#list.length
  }

  /** The refusals of all endpoints; undefined while any has not refused. */
  get refusals(): readonly Failure<E>[] | undefined {
    const failures = this.#list.map((endpoint) => [endpoint, this.#refused.get(endpoint)] as const)
    return failures.every((failure): failure is Failure<E> => failure[1] !== undefined)
      ? failures
      : undefined
  }

  /** True while a reference is followed. */
  get detoured(): boolean {
    return this.#detour !== undefined
  }

  /**
   * Moves to the next endpoint that has not refused. A detour ends, and continues with the endpoint
   * after its origin.
   */
  rotate(): void {
    if (!this.#leaveDetour() && this.asked === this.current) this.#advance()
  }

  /**
   * Follows a reference: the endpoint in the list that gave it is skipped from now on. False when
   * another reference gave it.
   */
  handleFollowed(error: MqttError): boolean {
    if (!this.#departing) return false
    this.#departing = false
    this.#refused.set(this.#list[this.#index] as E, error)
    this.#advance()
    return true
  }

  #advance(): void {
    for (let step = 1; step <= this.#list.length; step++) {
      const index = (this.#index + step) % this.#list.length
      if (this.#refused.has(this.#list[index] as E)) continue
      this.#index = index
      return
    }
  }

  /** Skips the current endpoint until the list is replaced or a connection succeeds. */
  refuse(error: MqttError): void {
    if (this.#detour === undefined && this.#list.includes(this.asked))
      this.#refused.set(this.asked, error)
  }

  /** The current endpoint accepted the connection. */
  worked(): void {
    this.#refused.clear()
  }

  /** A connection was stable: the count of references restarts. */
  settled(): void {
    this.#visited = nowhere
  }

  /**
   * Replaces the list. `kept` is the index of the endpoint being dialled in the new list; -1 if it
   * is not there, or none is being dialled.
   */
  replace(list: readonly E[], kept = -1): void {
    this.#list = list
    this.#index = Math.max(0, kept)
    this.#asked = list[kept] ?? this.#asked
    this.#refused.clear()
    this.#detour = undefined
    this.#visited = nowhere
  }

  /** Follows a reference; false after too many, or when it leads back to a visited name. */
  follow(endpoint: E, name: string): boolean {
    if (this.#visited.length >= mostHops || this.#visited.includes(name)) return false
    this.#visited = [...this.#visited, name]
    this.#departing = this.#detour === undefined
    this.#detour = endpoint
    return true
  }

  #leaveDetour(): boolean {
    const was = this.#detour !== undefined
    this.#detour = undefined
    return was
  }
}
