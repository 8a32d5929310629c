/**
 * A sink that records what a transport does and what it must not do: calls from inside `open()` or `write()`, calls after `closed()`.
 */

import type { Sink, Transport } from '../../../src/transport/transport.js'

export class Recorder implements Sink {
  readonly transport: Transport
  readonly violations: string[] = []
  readonly parts: Uint8Array[] = []
  length = 0
  drains = 0
  ends = 0
  cause: unknown
  /** Called after each event. */
  onEvent: () => void = () => {}
  #inside = ''
  readonly #window: Uint8Array

  constructor(transport: Transport, windowSize = 8191) {
    this.transport = transport
    this.#window = new Uint8Array(windowSize)
  }

  open(): this {
    this.#within('open', () => this.transport.open(this))
    return this
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    return this.#within('write', () =>
      this.transport.write(bytes, (error) => {
        if (this.#inside) this.violations.push(`written inside ${this.#inside}`)
        written?.(error)
      }),
    )
  }

  close(): void {
    this.#within('close', () => this.transport.close())
  }

  destroy(cause?: unknown): void {
    this.#within('destroy', () => this.transport.destroy(cause))
  }

  buffer(): Uint8Array {
    this.#note('buffer')
    return this.#window
  }

  read(length: number): void {
    this.#take('read', this.#window.slice(0, length))
    this.#window.fill(0xee)
  }

  chunk(bytes: Uint8Array): void {
    this.#take('chunk', new Uint8Array(bytes))
  }

  drain(): void {
    this.#note('drain')
    this.drains++
    this.onEvent()
  }

  closed(cause: unknown): void {
    this.#note('closed')
    this.ends++
    this.cause = cause
    this.onEvent()
  }

  /** All bytes so far. */
  get bytes(): Buffer {
    return Buffer.concat(this.parts)
  }

  /** Waits until the condition holds; fails with what was seen when it does not come true. */
  async until(condition: () => boolean, what = 'the condition', limit = 8000): Promise<void> {
    if (condition()) return
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.onEvent = () => condition() && resolve()
        const seen = () =>
          `${what} did not come: ${this.length} bytes, ${this.drains} drains, ${this.ends} ends`
        timer = setTimeout(() => reject(new Error(seen())), limit)
      })
    } finally {
      clearTimeout(timer)
      this.onEvent = () => {}
    }
  }

  untilClosed(): Promise<void> {
    return this.until(() => this.ends > 0, 'closed()')
  }

  #take(name: string, bytes: Uint8Array): void {
    this.#note(name)
    this.parts.push(bytes)
    this.length += bytes.length
    this.onEvent()
  }

  #note(name: string): void {
    if (this.#inside) this.violations.push(`${name} inside ${this.#inside}`)
    if (this.ends > 0) this.violations.push(`${name} after closed`)
  }

  #within<T>(name: string, action: () => T): T {
    this.#inside = name
    try {
      return action()
    } finally {
      this.#inside = ''
    }
  }
}

/** Bytes without a period that a lost or repeated chunk could hide behind. */
export function pattern(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = seed
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    bytes[at] = state >>> 24
  }
  return bytes
}
