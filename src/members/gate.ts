/**
 * Holds publishes back while no member can take them, and lets them go in their order.
 */
import { type Deferred, deferred, tolerant } from '../common/abort.js'
import type { MqttError } from '../errors.js'
import type { Patience } from './asked.js'
import { attempt } from './failure.js'
import type { WaitingRoom } from './waiting-room.js'

interface Held {
  go(): void
  giveUp(error: MqttError): void
}

/** Publishes that wait. */
export class Gate {
  readonly #held = new Set<Held>()
  readonly #room: WaitingRoom
  #empty: Deferred<void> | undefined

  constructor(room: WaitingRoom) {
    this.#room = room
  }

  /** Fulfils when none waits; undefined while none does. */
  get settling(): Promise<void> | undefined {
    if (this.#held.size === 0) return undefined
    this.#empty ??= deferred()
    return this.#empty.promise
  }

  /** Calls when it opens; rejects with ERR_ABORTED, ERR_EXPIRED, ERR_DROPPED, and what the call rejects with. @throws MqttError as `enter` of the room */
  run<R>(call: () => Promise<R>, patience: Patience, overflow?: string): Promise<R> {
    const { size } = patience
    while (overflow === 'drop-oldest' && this.#held.size > 0) {
      const full = this.#room.refusal(size, overflow)
      if (full === undefined) break
      for (const oldest of this.#held) {
        oldest.giveUp(full)
        break
      }
    }
    this.#room.enter(size, overflow)
    const { promise, resolve, reject } = deferred<R>()
    const leave = (): boolean => {
      const held = this.#held.delete(item)
      if (held) this.#room.leave(size)
      return held
    }
    const item: Held = {
      go: () => {
        stop()
        if (leave()) attempt(call).then(resolve, reject)
      },
      giveUp: (error) => {
        stop()
        if (!leave()) return
        patience.refuse?.(error)
        reject(error)
        this.#look()
      },
    }
    this.#held.add(item)
    const stop = patience.watch((error) => {
      if (leave()) reject(error)
      this.#look()
    })
    return tolerant(promise)
  }

  /** Lets all go, in the order of their calls. */
  open(): void {
    for (const { go } of [...this.#held]) go()
    this.#look()
  }

  #look(): void {
    if (this.#held.size > 0) return
    this.#empty?.resolve()
    this.#empty = undefined
  }
}
