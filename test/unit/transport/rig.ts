/** Targets, pairs, recorders and open connections for the tests of transports. */

import { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import type {
  Accept,
  Dial,
  Listener,
  Sink,
  Target,
  Transport,
} from '../../../src/transport/transport.js'
import type { Pair } from './contract.js'

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

export function target(url: string, parts: Partial<Omit<Target, 'url'>> = {}): Target {
  return { url: new URL(url), tls: {}, socket: {}, headers: {}, protocols: ['mqtt'], ...parts }
}

export const { signal: never } = new AbortController()

/** What a recorder opens now is destroyed with the test. */
export function openedOver(transport: Transport): Recorder {
  const recorder = new Recorder(transport).open()
  onTestFinished(async () => {
    recorder.destroy()
    await recorder.untilClosed()
  })
  return recorder
}

export async function opened(
  dial: Dial,
  url: string,
  {
    maximumPacketSize,
    ...parts
  }: Partial<Omit<Target, 'url'>> & { maximumPacketSize?: number } = {},
): Promise<Recorder> {
  const limit = maximumPacketSize === undefined ? {} : { maximumPacketSize }
  return openedOver(await dial(target(url, parts), { signal: never, ...limit }))
}

/** Listens, dials once and gives both ends. */
export async function dialledPair(
  listen: (accept: Accept) => Promise<Listener>,
  dial: Dial,
  parts: Partial<Omit<Target, 'url'>> = {},
): Promise<Pair> {
  let accepted: (transport: Transport) => void = () => {}
  const far = new Promise<Transport>((resolve) => {
    accepted = resolve
  })
  const listener = await listen((transport) => accepted(transport))
  const a = await dial(target(listener.url, parts), { signal: never })
  return { a, b: await far, cleanup: () => listener.close() }
}

export async function failure(
  promise: Promise<unknown>,
): Promise<Error & { code?: unknown; reason?: unknown; option?: unknown }> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
    throw new Error(`Rejected with something that is no error: ${String(error)}`)
  }
  throw new Error('It did not reject')
}

/** One end. What it is written becomes what the other one reads, as soon as that one wants more. */
class Side extends Duplex {
  other: Side | undefined
  /** Lets a write of the other side go on. */
  #more: (() => void) | undefined

  override _read(): void {
    const more = this.#more
    this.#more = undefined
    more?.()
  }

  override _write(
    bytes: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    setImmediate(() => {
      const { other } = this
      if (!other || other.destroyed) done(new Error('The other side is gone'))
      else if (other.push(bytes)) done()
      else other.#more = done
    })
  }

  override _final(done: () => void): void {
    this.other?.push(null)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { other } = this
    if (other) {
      const more = other.#more
      other.#more = undefined
      more?.()
      // A cut, not an end: the other side has nothing more to come.
      if (!other.destroyed && !this.readableEnded) other.destroy()
    }
    done(error)
  }
}

export function duplexPair(highWaterMark = 16 * 1024): [Duplex, Duplex] {
  const [one, two] = [new Side({ highWaterMark }), new Side({ highWaterMark })]
  one.other = two
  two.other = one
  return [one, two]
}
