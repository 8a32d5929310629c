/**
 * The endpoints of a client and whose turn it is: rotation on failure, what worked sticks, what refused us is left out, references are detours.
 *
 * Pure. It never holds an empty list.
 */

import { SparseMap } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'

/** References that lead on from one another. */
const mostHops = 3

/** An endpoint, and why it came to nothing there. */
export type Failure<E> = readonly [endpoint: E, error: MqttError]

/** A list of endpoints of whatever kind. */
export class BrokerList<E> {
  #list: readonly E[]
  #index = 0
  readonly #refused = new SparseMap<E, MqttError>()
  /** Where a server sent us, and how we came there. */
  #detour: E | undefined
  #visited: string[] = []
  #departing = false
  #asked: E | undefined

  constructor(list: readonly E[]) {
    this.#list = list
  }

  /** Whom to dial. */
  get current(): E {
    return this.#detour ?? (this.#list[this.#index] as E)
  }

  /** Whom the latest attempt was at: failures are about this one, whatever the list is by now. */
  get asked(): E {
    return this.#asked ?? this.current
  }

  /** An attempt begins: gives whom to dial. */
  ask(): E {
    this.#asked = this.current
    return this.current
  }

  get length(): number {
    return this.#list.length
  }

  /** Why every endpoint refused us; undefined while one is left. */
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

  /** The next one that did not refuse us; a detour ends here, and goes on with the one after its origin. */
  rotate(): void {
    if (!this.#leaveDetour() && this.asked === this.current) this.#advance()
  }

  /** A reference is followed: the broker of the list that gave it has had its turn. False when it leads on from another one. */
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

  /** The current endpoint is not asked again, unless the list is replaced or another one worked. */
  refuse(error: MqttError): void {
    if (this.#detour === undefined && this.#list.includes(this.asked))
      this.#refused.set(this.asked, error)
  }

  /** The current endpoint took us. */
  worked(): void {
    this.#refused.clear()
  }

  /** A stable connection: a chain of references restarts after it. */
  settled(): void {
    this.#visited = []
  }

  /** Another list. `kept` is the place in it of the broker that is being asked; -1 where it is not in it, or no broker is asked. */
  replace(list: readonly E[], kept = -1): void {
    this.#list = list
    this.#index = Math.max(0, kept)
    this.#asked = list[kept] ?? this.#asked
    this.#refused.clear()
    this.#detour = undefined
    this.#visited = []
  }

  /** Follows a reference by name; false after too many of them, or when it leads back. */
  follow(endpoint: E, name: string): boolean {
    if (this.#visited.length >= mostHops || this.#visited.includes(name)) return false
    this.#visited.push(name)
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
