/**
 * Transports within one process, for tests and simulations: connected pairs, and a hub of named
 * listeners.
 *
 * Each delivery has its own task, so that the receiver's microtasks run in between; nothing is
 * delivered synchronously. All timing uses `schedule`, which may be virtual. Nothing keeps an idle
 * process alive.
 *
 * @module
 */

import { MqttError, textOf } from '../errors.js'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Accept, Listener, Sink, Transport } from './transport.js'

type Written = (error?: unknown) => void

/**
 * Runs `callback` after `delay` milliseconds in its own task; returns a function that cancels it.
 */
export type Schedule = (callback: () => void, delay: number) => () => void

/** The behaviour of one direction. */
export interface MemoryKnobs {
  /** Milliseconds from `write()` to delivery, 0 or more. Default 0: the next task. */
  readonly latency?: number | undefined
  /** Most bytes of one delivery, 1 or more. Default: each write arrives as a whole. */
  readonly split?: number | undefined
  /** Cuts the stream in both directions once this many bytes were delivered. Default: never. */
  readonly drop?: number | undefined
  /** Undelivered bytes above which `write()` returns false. Default 64 KiB. */
  readonly highWaterMark?: number | undefined
  /**
   * `'buffer'` delivers like a socket, through `Sink.buffer()` and `read()`; `'chunk'` (default)
   * passes the written array itself.
   */
  readonly delivery?: 'buffer' | 'chunk' | undefined
}

/** Options of a pair: common ones, and ones for each direction. */
export interface MemoryOptions extends MemoryKnobs {
  /** Options from the first transport to the second; override the common ones. */
  readonly forward?: MemoryKnobs | undefined
  /** Options from the second transport to the first; override the common ones. */
  readonly backward?: MemoryKnobs | undefined
  /** Runs tasks. Default: real tasks and timers. */
  readonly schedule?: Schedule | undefined
}

/**
 * Creates two connected transports: each reads what the other writes. @throws MqttError
 * ERR_INVALID_OPTION
 */
export function memoryPair(options: MemoryOptions = {}): [Transport, Transport] {
  const schedule = options.schedule ?? realSchedule
  checkOptions(options)
  const first = new MemoryTransport({ ...options, ...options.forward }, schedule)
  const second = new MemoryTransport({ ...options, ...options.backward }, schedule)
  first.peer = second
  second.peer = first
  return [first, second]
}

/** Listeners with names, and clients that dial them, in memory. */
export interface MemoryHub {
  /**
   * Passes the far end of each dialled pair to `accept`. Throws when the name is taken. The
   * listener's URL is `memory:` plus the name.
   */
  listen(name: string, accept: Accept): Listener
  /**
   * Connects to a listener by its name or URL. Rejects with an error whose `code` is `ECONNREFUSED`
   * without a listener, or with the signal's reason.
   */
  dial(
    target: string | URL,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Transport>
}

/**
 * Creates a hub. The options apply to every connection; forward is from client to server. @throws
 * MqttError ERR_INVALID_OPTION
 */
export function createMemoryHub(options: MemoryOptions = {}): MemoryHub {
  checkOptions(options)
  const listeners = new Map<string, { accept: Accept; open: Set<Transport> }>()
  const schedule = options.schedule ?? realSchedule
  return {
    listen(name, accept) {
      const url = `memory:${name}`
      if (listeners.has(url)) throw new Error(`Something listens at ${url} already`)
      const open = new Set<Transport>()
      listeners.set(url, { accept, open })
      return {
        url,
        async close() {
          listeners.delete(url)
          for (const transport of open) transport.destroy(new Error('The listener was closed'))
        },
      }
    },
    dial(target, { signal } = {}) {
      const url = String(target).startsWith('memory:') ? String(target) : `memory:${target}`
      return dialled(schedule, options.forward?.latency ?? options.latency ?? 0, signal, () => {
        const listener = listeners.get(url)
        if (!listener)
          throw Object.assign(new Error(`Nothing listens at ${url}`), { code: 'ECONNREFUSED' })
        const [client, server] = memoryPair(options)
        listener.open.add(server)
        if (server instanceof MemoryTransport) server.onEnd = () => listener.open.delete(server)
        listener.accept(server)
        return client
      })
    },
  }
}

function checkOptions(options: MemoryOptions): void {
  for (const name of ['forward', 'backward'] as const) {
    const { [name]: knobs = {} } = options
    check(name, knobs, typeof knobs === 'object' && knobs !== null, 'an object')
    checkKnobs(knobs)
  }
  checkKnobs(options)
}

const least = { latency: 0, split: 1, drop: 0, highWaterMark: 0 } as const

// Deliveries of 0 bytes would never end, and NaN would be no limit.
function checkKnobs(knobs: MemoryKnobs): void {
  for (const option of Object.keys(least) as (keyof typeof least)[]) {
    const from = least[option]
    const { [option]: value = from } = knobs
    const isNumber =
      option === 'latency' ? Number.isFinite(value) : value === Infinity || Number.isInteger(value)
    check(option, value, isNumber && value >= from, `a number of ${from} or more`)
  }
  const { delivery = 'chunk' } = knobs
  check('delivery', delivery, delivery === 'chunk' || delivery === 'buffer', "'chunk' or 'buffer'")
}

function check(option: string, value: unknown, holds: boolean, expected: string): void {
  if (!holds)
    throw new MqttError(
      'ERR_INVALID_OPTION',
      `${option} must be ${expected}, not ${textOf(value)}`,
      { option },
    )
}

function dialled(
  schedule: Schedule,
  latency: number,
  signal: AbortSignal | undefined,
  connect: () => Transport,
): Promise<Transport> {
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = schedule(() => {
      signal?.removeEventListener('abort', abort)
      try {
        resolve(connect())
      } catch (error) {
        reject(error)
      }
    }, latency)
    signal?.addEventListener('abort', abort, { once: true })
  })
}

interface Item {
  // Undefined for the end of the stream.
  readonly bytes: Uint8Array | undefined
  readonly written: Written | undefined
}

/** Data written by one side and not yet delivered to the other, in order. */
class Line {
  /** Undelivered bytes, and delivered bytes. */
  queued = 0
  delivered = 0
  readonly #items: Item[] = []
  /** Delivered bytes of the oldest item. */
  #offset = 0
  /** Number of items that have arrived. */
  #arrived = 0

  /** The oldest item, if it has arrived. */
  get arrival(): Item | undefined {
    return this.#arrived > 0 ? this.#items[0] : undefined
  }

  push(item: Item): void {
    this.#items.push(item)
    this.queued += item.bytes?.length ?? 0
  }

  /** The oldest item in transit has arrived. */
  arrive(): void {
    this.#arrived++
  }

  /** Takes at most `most` bytes of an arrived item. */
  take(bytes: Uint8Array, most: number): Uint8Array {
    const taken = bytes.subarray(this.#offset, this.#offset + most)
    this.#offset += taken.length
    this.delivered += taken.length
    this.queued -= taken.length
    return taken
  }

  /** True when all bytes of an arrived item were taken. */
  isTaken(bytes: Uint8Array): boolean {
    return this.#offset === bytes.length
  }

  /** The oldest item is delivered. */
  shift(): void {
    const item = this.#items.shift()
    this.#offset = 0
    this.#arrived--
    item?.written?.()
  }

  /** Discards everything undelivered. */
  clear(): void {
    for (const { written } of this.#items.splice(0)) refuse(written)
  }
}

class MemoryTransport implements Transport {
  peer: MemoryTransport | undefined
  /** Called once, at the end. */
  onEnd: (() => void) | undefined
  /** True once bytes may be delivered here. */
  opened = false
  readonly #holder = new SinkHolder()
  readonly #knobs: MemoryKnobs
  readonly #schedule: Schedule
  readonly #cancels = new Set<() => void>()
  readonly #line = new Line()
  #busy = false
  #full = false
  #ended = false
  #endArrived = false
  #peerEnded = false

  constructor(knobs: MemoryKnobs, schedule: Schedule) {
    this.#knobs = knobs
    this.#schedule = schedule
  }

  open(sink: Sink): void {
    this.#holder.open(sink, () => {
      this.opened = true
      this.peer?.pump()
    })
  }

  write(bytes: Uint8Array, written?: Written): boolean {
    if (this.#ended) return refuse(written)
    this.#push({ bytes, written })
    if (this.#line.queued > (this.#knobs.highWaterMark ?? 64 * 1024)) this.#full = true
    return !this.#full
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    this.#push({ bytes: undefined, written: undefined })
  }

  destroy(cause?: unknown): void {
    if (this.#holder.over) return
    this.cut(cause)
    const peer = this.peer
    if (peer)
      peer.#later(() => peer.cut(new Error('The peer cut the stream')), this.#knobs.latency ?? 0)
  }

  #push(item: Item): void {
    this.#line.push(item)
    this.#later(() => {
      this.#line.arrive()
      if (!this.#busy) this.#deliver()
    }, this.#knobs.latency ?? 0)
  }

  /** Schedules a delivery if anything has arrived. */
  pump(): void {
    if (this.#busy || this.#line.arrival === undefined) return
    this.#busy = true
    this.#later(() => {
      this.#busy = false
      this.#deliver()
    }, 0)
  }

  // One delivery; later ones have their own tasks.
  #deliver(): void {
    const item = this.#line.arrival
    const peer = this.peer
    if (!item || !peer?.opened) return
    if (!item.bytes) {
      this.#line.shift()
      this.#endArrived = true
      peer.#peerEnd()
      this.#finish()
    } else this.#deliverBytes(item.bytes, peer)
  }

  #deliverBytes(bytes: Uint8Array, peer: MemoryTransport): void {
    const { split = Infinity, drop = Infinity } = this.#knobs
    const line = this.#line
    const taken = line.take(bytes, Math.min(split, drop - line.delivered))
    if (taken.length > 0) peer.#receive(taken, this.#knobs.delivery === 'buffer')
    if (this.#holder.over) return
    if (line.isTaken(bytes)) line.shift()
    if (line.delivered >= drop) this.#lose()
    else this.#relax()
  }

  #relax(): void {
    if (this.#full && this.#line.queued <= (this.#knobs.highWaterMark ?? 64 * 1024) / 2) {
      this.#full = false
      this.#holder.live?.drain()
    }
    this.pump()
  }

  #receive(bytes: Uint8Array, inPlace: boolean): void {
    if (!inPlace) {
      this.#holder.chunk(bytes)
      return
    }
    for (let at = 0; at < bytes.length && this.#holder.live; ) {
      const array = this.#holder.live.buffer()
      const part = bytes.subarray(at, at + array.length)
      array.set(part)
      at += part.length
      this.#holder.live.read(part.length)
    }
  }

  #peerEnd(): void {
    this.#peerEnded = true
    this.close()
    this.#finish()
  }

  // Ends when both directions are over.
  #finish(): void {
    if (this.#peerEnded && this.#endArrived) this.#over(undefined)
  }

  #lose(): void {
    const error = new Error(`The stream was cut after ${this.#line.delivered} bytes`)
    this.peer?.cut(error)
    this.cut(error)
  }

  /** Ends this side immediately. */
  cut(cause: unknown): void {
    if (this.#holder.over) return
    this.#holder.drop()
    this.#over(cause)
  }

  #over(cause: unknown): void {
    if (this.#holder.over) return
    this.#ended = true
    for (const cancel of this.#cancels) cancel()
    this.#line.clear()
    this.#holder.end(cause)
    this.onEnd?.()
  }

  #later(callback: () => void, delay: number): void {
    const cancel = this.#schedule(() => {
      this.#cancels.delete(cancel)
      callback()
    }, delay)
    this.#cancels.add(cancel)
  }
}

/**
 * Node functions that browsers lack, accessed by name so that browser bundles contain no reference
 * to Node.
 */
interface Immediates {
  readonly setImmediate?: (callback: () => void) => object
  readonly clearImmediate?: (immediate: object) => void
}

// Uses a plain task if possible, because browsers delay timers of 0 ms to 4 ms.
const realSchedule: Schedule = (callback, delay) => {
  if (delay > 0) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  }
  const { setImmediate: begin, clearImmediate: cancel } = globalThis as Immediates
  if (begin !== undefined) {
    const immediate = begin(callback)
    return () => cancel?.(immediate)
  }
  tasks ??= new Tasks()
  return tasks.add(callback)
}

/**
 * Runs tasks over a single message channel; one for each task would cost too much in a simulation.
 */
class Tasks {
  readonly #port: MessagePort
  readonly #waiting = new Map<number, () => void>()
  #count = 0

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.#port = port2
    port1.onmessage = ({ data }: MessageEvent<number>) => {
      const callback = this.#waiting.get(data)
      this.#waiting.delete(data)
      callback?.()
    }
    // An idle port must not keep the process alive.
    ;(port1 as { unref?: () => void }).unref?.()
  }

  add(callback: () => void): () => void {
    const number = this.#count++
    this.#waiting.set(number, callback)
    this.#port.postMessage(number)
    return () => void this.#waiting.delete(number)
  }
}

// Created on first use.
let tasks: Tasks | undefined
