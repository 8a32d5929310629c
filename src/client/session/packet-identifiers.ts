/**
 * Packet identifiers of this client (section 2.2.1), shared by PUBLISH, SUBSCRIBE and UNSUBSCRIBE.
 *
 * They run from 1 to 65,535 and wrap, skipping those in use [MQTT-2.2.1-2] [MQTT-2.2.1-3]. If this
 * process resumes a session that it does not know (a *foreign* session), an earlier process may
 * have left unfinished QoS 2 exchanges. Identifiers are then cleared by a PUBREL before they are
 * used for QoS 2.
 */
import { PUBREL } from '../../wire/constants.js'
import type { AckQueue } from './actions.js'

const pageBits = 8
const pageSize = 1 << pageBits

/** Highest packet identifier (section 2.2.1). */
export const maximumPacketIdentifier = 65_535

/**
 * A small integer for each packet identifier from 1 to 65,535, in pages that are allocated on
 * demand; 0 means "not in use".
 *
 * An idle client holds no page. Callers must not pass identifiers outside 0 to 65,535; the codec
 * has rejected those.
 */
export class IdTable {
  /** Number of identifiers in use. */
  size = 0
  readonly #pages: (Uint8Array | undefined)[] = []
  readonly #used: number[] = []
  #spare: Uint8Array | undefined

  get(id: number): number {
    const page = this.#pages[id >> pageBits]
    return page === undefined ? 0 : (page[id & (pageSize - 1)] as number)
  }

  set(id: number, state: number): void {
    const index = id >> pageBits
    const offset = id & (pageSize - 1)
    const page = this.#pages[index] ?? this.#open(index)
    const before = page[offset] as number
    page[offset] = state
    if (before === 0 && state !== 0) this.#count(index, 1)
    else if (before !== 0 && state === 0) this.#count(index, -1)
  }

  /** Replaces the state of every identifier in use by the result of `change`. */
  update(change: (state: number) => number): void {
    this.#pages.forEach((page, index) => {
      if (page === undefined) return
      for (let offset = 0; offset < pageSize; offset++) {
        const before = page[offset] as number
        if (before !== 0) this.set((index << pageBits) | offset, change(before))
      }
    })
  }

  clear(): void {
    this.#pages.length = 0
    this.#spare = undefined
    this.size = 0
  }

  #open(index: number): Uint8Array {
    const page = this.#spare ?? new Uint8Array(pageSize)
    this.#spare = undefined
    while (this.#pages.length <= index) this.#pages.push(undefined)
    this.#pages[index] = page
    this.#used[index] = 0
    return page
  }

  #count(index: number, change: 1 | -1): void {
    this.size += change
    const used = (this.#used[index] as number) + change
    this.#used[index] = used
    if (used === 0) {
      this.#spare = this.#pages[index]
      this.#pages[index] = undefined
    }
  }
}

// States of a packet identifier.
export const AWAIT_PUBACK = 1
export const AWAIT_PUBREC = 2
export const STORING_RELEASE = 3
export const AWAIT_PUBCOMP = 4
export const AWAIT_SUBACK = 5
export const AWAIT_UNSUBACK = 6
/** PUBREL was sent for an identifier of a foreign session. */
export const CLEARING = 7
/** Known to be free on the server, and kept for the next QoS 2 publish. */
export const CLEAR = 8
/** In use on the server by an earlier process. */
const DISOWNED = 9
/** Added to the state of a publish that the current connection has not carried. */
export const held = 16

/** Most identifiers of a session that are abandoned as in use. */
const mostDisowned = 256
/** Identifiers of a foreign session cleared at a time. */
const clearBatch = 16

/** Which identifiers are in use, and for what. */
export class PacketIdentifiers extends IdTable {
  #last = 0
  readonly #foreignBase: number
  /** The session is foreign. */
  #foreign = false
  #disowned = 0
  /** 3.1.1 cannot report an identifier as in use, so QoS 1 uses cleared ones, too. */
  #cautious = false
  readonly #clear: number[] = []
  readonly #acks: AckQueue
  // valid for the connection
  #clearing = 0
  /** The send quota, which limits publishes in flight and also identifiers being cleared. */
  protected quota = 0

  /**
   * @param foreignBase first identifier in a foreign session, 0 to 65,534: far from those that an
   * earlier process left in use
   */
  constructor(acks: AckQueue, foreignBase: number) {
    super()
    this.#acks = acks
    this.#foreignBase = foreignBase
  }

  /** True when an identifier is free. */
  get hasIdentifier(): boolean {
    return this.size < maximumPacketIdentifier
  }

  /** A connection is up. `foreign`: it resumes a session that this process does not know. */
  protected resume(foreign: boolean, cautious: boolean): void {
    if (foreign && !this.#foreign) this.#last = this.#foreignBase
    this.#foreign ||= foreign
    this.#cautious = cautious
  }

  /** Takes a free identifier. Only while `hasIdentifier`. */
  protected take(state: number): number {
    let id = this.#last
    do id = id === maximumPacketIdentifier ? 1 : id + 1
    while (this.get(id) !== 0)
    this.#last = id
    this.set(id, state)
    return id
  }

  /** The same for a publish: takes a cleared identifier if one is required. */
  protected takeForPublish(state: number): number {
    const id = state !== AWAIT_PUBACK || this.#cautious ? this.#clear.shift() : undefined
    if (id === undefined) return this.take(state)
    this.set(id, state)
    return id
  }

  /**
   * True when a publish can get an identifier that no message of an earlier process uses. Otherwise
   * starts clearing some; `CLEARED` follows.
   */
  prepare(qos: number): boolean {
    if (!this.#foreign || this.#clear.length > 0 || (qos === 1 && !this.#cautious)) return true
    if (this.#clearing > 0) return false
    while (this.#clearing < Math.min(clearBatch, this.quota) && this.hasIdentifier) {
      this.#clearing += 1
      this.#acks.push(PUBREL, this.take(CLEARING), 0)
    }
    return false
  }

  /** True while identifiers are being cleared and none is ready. */
  protected get awaitsCleared(): boolean {
    return this.#clearing > 0 && this.#clear.length === 0
  }

  /** PUBCOMP came for an identifier that was being cleared. */
  protected handleCleared(id: number): void {
    this.#clearing -= 1
    this.#keepClear(id)
  }

  /** The exchange of a publish is over. */
  protected free(id: number): void {
    if (this.#foreign && (this.#cautious || this.get(id) !== AWAIT_PUBACK)) this.#keepClear(id)
    else this.set(id, 0)
  }

  /**
   * The server reports this identifier as in use (0x91). In a foreign session that is plausible:
   * returns true, and the identifier is not used again.
   */
  disown(id: number): boolean {
    if (!this.#foreign || this.#disowned >= mostDisowned) return false
    this.#disowned += 1
    this.set(id, DISOWNED)
    return true
  }

  /**
   * The server uses this identifier and probably its neighbours for its own messages: continues far
   * from it.
   */
  avoid(id: number): void {
    this.#last = (id + 32_768) % maximumPacketIdentifier
  }

  /** The connection is lost: publishes are held for replay, requests are forgotten. */
  suspend(): void {
    this.update((state) => (state <= AWAIT_PUBCOMP ? state | held : state >= CLEAR ? state : 0))
    this.#clearing = 0
  }

  /** The session is gone. */
  reset(): void {
    this.clear()
    this.#clear.length = 0
    this.#foreign = false
    this.#disowned = 0
  }

  #keepClear(id: number): void {
    this.set(id, CLEAR)
    this.#clear.push(id)
  }
}
