/**
 * Streams inside one process, for tests and simulations: a pair of connected transports, and a hub of named listeners.
 *
 * Each delivery happens in a task of its own, so that microtasks of the receiver run in between; nothing is ever delivered synchronously.
 * All time goes through `schedule`, which may be virtual. It must keep no process alive while idle.
 *
 * @module
 */

import { MqttError, textOf } from '../errors.js'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Accept, Listener, Sink, Transport } from './transport.js'

type Written = (error?: unknown) => void

/** Runs `callback` after `delay` milliseconds, in a task of its own; returns what cancels it. */
export type Schedule = (callback: () => void, delay: number) => () => void

/** How one direction behaves. */
export interface MemoryKnobs {
  /** Milliseconds from `write()` to delivery, 0 or more. Default 0: the next task. */
  readonly latency?: number | undefined
  /** Most bytes of one delivery, 1 or more. Default: what was written at once arrives at once. */
  readonly split?: number | undefined
  /** Cuts the stream, both ways, once this many bytes were delivered. Default: never. */
  readonly drop?: number | undefined
  /** Undelivered bytes above which `write()` returns false. Default 64 KiB. */
  readonly highWaterMark?: number | undefined
  /** `'buffer'` delivers like a socket, by `Sink.buffer()` and `read()`; `'chunk'` (default) hands over the written array itself. */
  readonly delivery?: 'buffer' | 'chunk' | undefined
}

/** Options of a pair: knobs for both directions, or for one. */
export interface MemoryOptions extends MemoryKnobs {
  /** Knobs from the first transport to the second; win over the common ones. */
  readonly forward?: MemoryKnobs | undefined
  /** Knobs from the second transport to the first; win over the common ones. */
  readonly backward?: MemoryKnobs | undefined
  /** Default: real tasks and timers. */
  readonly schedule?: Schedule | undefined
}

/** Two connected transports: what one writes, the other reads. @throws MqttError ERR_INVALID_OPTION */
export function memoryPair(options: MemoryOptions = {}): [Transport, Transport] {
  const schedule = options.schedule ?? realSchedule
  checkOptions(options)
  const first = new MemoryTransport({ ...options, ...options.forward }, schedule)
  const second = new MemoryTransport({ ...options, ...options.backward }, schedule)
  first.peer = second
  second.peer = first
  return [first, second]
}

/** A place in memory where servers listen by name and clients dial them. */
export interface MemoryHub {
  /** Gives the far end of each dialled pair to `accept`. Throws when the name is taken. The listener's URL is `memory:` and the name. */
  listen(name: string, accept: Accept): Listener
  /** Connects to a listener by its name or URL. Rejects with an error whose `code` is `ECONNREFUSED` without a listener, or with the signal's reason. */
  dial(
    target: string | URL,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Transport>
}

/** Makes a hub. The options shape every connection; forward is from client to server. @throws MqttError ERR_INVALID_OPTION */
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

// A delivery of 0 bytes would have no end, and NaN would be no bound at all.
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

/** What one side has written and the other has not got, in order. */
class Line {
  /** Bytes that were not delivered, and those that were. */
  queued = 0
  delivered = 0
  readonly #items: Item[] = []
  /** Bytes of the oldest item that were delivered. */
  #offset = 0
  /** Items that have arrived at the other end. */
  #arrived = 0

  /** The oldest item, if it has arrived. */
  get arrival(): Item | undefined {
    return this.#arrived > 0 ? this.#items[0] : undefined
  }

  push(item: Item): void {
    this.#items.push(item)
    this.queued += item.bytes?.length ?? 0
  }

  /** The oldest item that is under way has arrived. */
  arrive(): void {
    this.#arrived++
  }

  /** Takes the next bytes of an arrival, so many at most. */
  take(bytes: Uint8Array, most: number): Uint8Array {
    const taken = bytes.subarray(this.#offset, this.#offset + most)
    this.#offset += taken.length
    this.delivered += taken.length
    this.queued -= taken.length
    return taken
  }

  /** True when all bytes of an arrival were taken. */
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

  /** Nothing more is delivered. */
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

  /** Delivers in a later task, if anything has arrived. */
  pump(): void {
    if (this.#busy || this.#line.arrival === undefined) return
    this.#busy = true
    this.#later(() => {
      this.#busy = false
      this.#deliver()
    }, 0)
  }

  // One delivery; the rest follows in tasks of their own.
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

  // Over in both directions.
  #finish(): void {
    if (this.#peerEnded && this.#endArrived) this.#over(undefined)
  }

  #lose(): void {
    const error = new Error(`The stream was cut after ${this.#line.delivered} bytes`)
    this.peer?.cut(error)
    this.cut(error)
  }

  /** Ends at once, this side only. */
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

/** What Node has and pages have not; asked for by name, so that a bundle for browsers refers to nothing of Node. */
interface Immediates {
  readonly setImmediate?: (callback: () => void) => object
  readonly clearImmediate?: (immediate: object) => void
}

// A bare task where the platform has one: timers of 0 ms are slowed down to 4 ms in browsers.
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

/** Tasks by way of one channel: a channel for each would cost more than all that a simulation in a page does besides. */
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
    // Where ports keep a process alive, an idle one is not to.
    ;(port1 as { unref?: () => void }).unref?.()
  }

  add(callback: () => void): () => void {
    const number = this.#count++
    this.#waiting.set(number, callback)
    this.#port.postMessage(number)
    return () => void this.#waiting.delete(number)
  }
}

// Made when it is needed first.
let tasks: Tasks | undefined
