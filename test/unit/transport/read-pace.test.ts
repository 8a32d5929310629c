/**
 * When reads wait: never at the pace of requests and answers, soon where a server writes message by
 * message, and not for long where the server waits as well.
 */

import { EventEmitter } from 'node:events'
import type { OnReadOpts, Socket } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { lull, ReadPace } from '../../../src/transport/read-pace.js'
import { SocketTransport } from '../../../src/transport/socket.js'

afterEach(() => vi.useRealTimers())

/** A socket that reads what its peer has sent meanwhile; waits take `lull` and a little. */
class Reading {
  readonly #pace = new ReadPace()
  time = 1000
  waits = 0

  /** Reads `length` bytes, `after` milliseconds later. True when the next read waits. */
  read(length: number, after: number): boolean {
    this.time += after
    const waits = this.#pace.waits(length, () => this.time)
    if (waits) {
      this.waits += 1
      this.time += lull * 1.1
    }
    return waits
  }

  /** Reads until one waits, at most this often. The number of reads. */
  untilWait(length: number, after: number, most = 100_000): number {
    let reads = 1
    while (!this.read(length, after) && reads < most) reads += 1
    return reads
  }
}

it.each<[string, length: number, after: (index: number) => number]>([
  ['requests and answers, and slow streams', 20, () => 0.05],
  ['large reads', 4096, () => 0.01],
  ['bursts of some small reads', 100, (index) => (index % 200 === 0 ? 20 : 0.01)],
])('%s never wait', (_name, length, after) => {
  const reading = new Reading()
  for (let index = 0; index < 10_000; index++) reading.read(length, after(index))
  expect(reading.waits).toBe(0)
})

it('where the clock stands still, as in tests, no read waits', () => {
  const pace = new ReadPace()
  for (let index = 0; index < 10_000; index++) expect(pace.waits(100, () => 5)).toBe(false)
})

it('many small reads: from then on each waits that brings as much as before', () => {
  const reading = new Reading()
  reading.read(100, 5)
  // The time before the first read does not count.
  expect(reading.untilWait(100, 0.01)).toBeLessThan(512)
  for (let index = 0; index < 15; index++) expect(reading.read(11_000, 0)).toBe(true)
})

it('the second read after a wait may bring it, when the first one has released it', () => {
  const reading = new Reading()
  reading.untilWait(100, 0.01)
  for (let index = 0; index < 15; index++) {
    expect(reading.read(100, 0)).toBe(false)
    expect(reading.read(11_000, 0.02)).toBe(true)
  }
})

it('now and then the rate without waits is measured again', () => {
  const reading = new Reading()
  reading.untilWait(100, 0.01)
  let waits = 1
  while (reading.read(11_000, 0)) waits += 1
  expect(waits).toBe(16)
  expect(reading.untilWait(100, 0.01)).toBe(32)
})

it('where waits bring too little, four times as many reads must be as fast before the next one', () => {
  const reading = new Reading()
  const runs = Array.from({ length: 7 }, () => {
    const reads = reading.untilWait(100, 0.01)
    reading.read(100, 0.01)
    reading.read(100, 0.01)
    return reads
  })
  expect(runs.slice(1)).toEqual([1024, 4096, 16_384, 16_384, 16_384, 16_384])
})

/**
 * Milliseconds until so many messages have been read from a server that takes `perMessage` for one,
 * and has at most `window` that the reader has not acknowledged.
 */
function timeOf(
  count: number,
  window: number,
  perMessage: (index: number) => number,
  pace?: ReadPace,
) {
  const [perRead, wait] = [0.01, 1.15]
  let [time, free, sent, read] = [1, 1, 0, 0]
  while (read < count) {
    // What the server has written by now.
    while (sent < count && sent - read < window && free + perMessage(sent) <= time) {
      free += perMessage(sent)
      sent += 1
    }
    if (sent === read) {
      time = Math.max(time, free + perMessage(sent))
      continue
    }
    const length = (sent - read) * 100
    // The acknowledgements open the window: a server that waited goes on from here.
    if (sent - read === window) free = Math.max(free, time)
    read = sent
    time += pace?.waits(length, () => time) ? wait : perRead
  }
  return time
}

it.each([
  [1, 0.003, 0.003],
  [8, 0.003, 0.003],
  [40, 0.022, 0.003],
  [60, 0.018, 0.003],
  [80, 0.012, 0.003],
  [80, 0.012, 0.012],
  [120, 0.008, 0.008],
  [200, 0.012, 0.003],
  [1000, 0.012, 0.003],
  [65_535, 0.012, 0.003],
])(
  'a window of %i, %f ms for a message at first and %f later: not a tenth slower',
  (window, early, later) => {
    const count = 400_000
    const perMessage = (index: number): number => (index < count / 10 ? early : later)
    const without = timeOf(count, window, perMessage)
    expect(timeOf(count, window, perMessage, new ReadPace())).toBeLessThan(without * 1.1)
  },
)

it('waits that bring something make the next ones easy again', () => {
  const reading = new Reading()
  for (let index = 0; index < 4; index++) {
    reading.untilWait(100, 0.01)
    reading.read(100, 0.01)
    reading.read(100, 0.01)
  }
  reading.untilWait(100, 0.01)
  reading.read(11_000, 0.01)
  reading.read(0, 0.01)
  reading.read(0, 0.01)
  expect(reading.untilWait(100, 0.01)).toBe(128)
})

/** A socket that has read so often and so fast that the next read waits. */
async function waitingSocket() {
  let given: OnReadOpts | undefined
  const socket = Object.assign(new EventEmitter(), {
    paused: false,
    resumed: 0,
    isPaused: () => socket.paused,
    pause: () => {
      socket.paused = true
    },
    resume: () => {
      socket.paused = false
      socket.resumed += 1
    },
    destroy: () => undefined,
  })
  const transport = new SocketTransport((onread) => {
    given = onread
    return socket as object as Socket
  })
  const buffer = new Uint8Array(65_536)
  let bytes = 0
  transport.open({
    buffer: () => buffer,
    read: (length) => {
      bytes += length
    },
    chunk: () => undefined,
    drain: () => undefined,
    closed: () => undefined,
  })
  await Promise.resolve()
  socket.resumed = 0
  let reads = 1
  while (given?.callback(1, buffer) === true) reads += 1
  expect(bytes).toBe(reads)
  return { socket, transport }
}

it('a socket stops reading where the next read waits, and then reads on, also where tests replace timers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'Date'] })
  const { socket } = await waitingSocket()
  expect(socket.resumed).toBe(0)
  vi.useRealTimers()
  await vi.waitFor(() => expect(socket.resumed).toBe(1))
})

it.each(['pause', 'destroy'] as const)('after %s() it does not read on by itself', async (end) => {
  const { transport, socket } = await waitingSocket()
  const other = await waitingSocket()
  transport[end]()
  // The wait that began later is over.
  await vi.waitFor(() => expect(other.socket.resumed).toBe(1))
  expect(socket.resumed).toBe(0)
})
