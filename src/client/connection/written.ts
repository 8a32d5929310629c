/**
 * What has left, and who waits for that.
 */
import type { MqttError } from '../../errors.js'
import { Ring } from '../common/ring.js'

/** Called with what kept the bytes from leaving, if anything did. */
export type WrittenCallback = (error?: unknown) => void

/** Bytes of one connection on their way out. */
export class Written {
  /** Bytes that have left. */
  left = 0
  readonly #waiting = new Ring<{ readonly at: number; readonly callback: WrittenCallback }>()
  #gone: MqttError | undefined

  /** Calls back when so many bytes have left, or never will. True when that is not decided. */
  wait(at: number, callback: WrittenCallback, soon: (callback: () => void) => void): boolean {
    if (this.#gone !== undefined) callback(this.#gone)
    else if (at === this.left) soon(callback)
    else this.#waiting.push({ at, callback })
    return at !== this.left && this.#gone === undefined
  }

  /** More has left, or failed to. */
  advance(length: number, error: unknown): void {
    this.left += length
    for (let next = this.#waiting.peek(); next !== undefined && next.at <= this.left; next = this.#waiting.peek()) {
      this.#waiting.shift()
      next.callback(error)
    }
  }

  /** Nothing more leaves. */
  abandon(error: MqttError): void {
    this.#gone = error
    for (const { callback } of this.#waiting.drain()) callback(error)
  }
}
