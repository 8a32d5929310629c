/**
 * Bytes of one connection that were handed to its transport: how many are under way, how many have left, and who waits for that.
 */
import type { MqttError } from '../../errors.js'
import { Ring } from '../common/ring.js'

/** Called with what kept the bytes from leaving, if anything did. */
export type WrittenCallback = (error?: unknown) => void

/** What is under way. */
export class UnderWay {
  /** Bytes that were handed over since the connection began, and those of them that have left. */
  handed = 0
  left = 0
  /** Writes that have not left. */
  writes = 0
  /** Bytes of large payloads in them: these are few at a time, and the peer did not ask for them. */
  exempt = 0
  /** The transport asks for patience. */
  blocked = false
  /** Too much is under way. */
  full = false
  /** Why nothing more leaves. */
  #gone: MqttError | undefined
  readonly #waiting = new Ring<{ readonly at: number; readonly callback: WrittenCallback }>()

  /** Bytes that have not left. */
  get length(): number {
    return this.handed - this.left
  }

  /** A write begins. */
  begin(length: number, exempt: number): void {
    this.writes += 1
    this.handed += length
    this.exempt += exempt
  }

  /** A write has left, or failed to. */
  end(length: number, exempt: number, error: unknown): void {
    this.writes -= 1
    this.exempt -= exempt
    this.left += length
    for (let next = this.#waiting.peek(); next !== undefined && next.at <= this.left; next = this.#waiting.peek()) {
      this.#waiting.shift()
      next.callback(error)
    }
  }

  /** Calls back when so many bytes have left, or never will. */
  wait(at: number, callback: WrittenCallback): void {
    if (this.#gone === undefined) this.#waiting.push({ at, callback })
    else callback(this.#gone)
  }

  /** Nothing more leaves. */
  abandon(error: MqttError): void {
    this.#gone = error
    for (const { callback } of this.#waiting.drain()) callback(error)
  }
}
