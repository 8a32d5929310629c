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

it('requests and answers never wait, nor does a slow stream', () => {
  const reading = new Reading()
  for (let index = 0; index < 10_000; index++) reading.read(20, 0.05)
  expect(reading.waits).toBe(0)
})

it('large reads never wait', () => {
  const reading = new Reading()
  for (let index = 0; index < 10_000; index++) reading.read(4096, 0.01)
  expect(reading.waits).toBe(0)
})

it('after a pause, a burst of few small reads does not wait', () => {
  const reading = new Reading()
  for (let index = 0; index < 1000; index++) reading.read(100, index % 31 === 0 ? 20 : 0.01)
  expect(reading.waits).toBe(0)
})

it('many small reads: from then on each waits that brings as much as before', () => {
  const reading = new Reading()
  reading.read(100, 5)
  // The time before the first read does not count.
  expect(reading.untilWait(100, 0.01)).toBeLessThan(64)
  for (let index = 0; index < 50; index++) expect(reading.read(11_000, 0)).toBe(true)
})

it('the second read after a wait may bring it, when the first one has released it', () => {
  const reading = new Reading()
  reading.untilWait(100, 0.01)
  for (let index = 0; index < 50; index++) {
    expect(reading.read(100, 0)).toBe(false)
    expect(reading.read(11_000, 0.02)).toBe(true)
  }
})

it('where waits bring nothing, twice as many reads must be as fast before the next one', () => {
  const reading = new Reading()
  const runs = Array.from({ length: 8 }, () => {
    const reads = reading.untilWait(100, 0.01)
    reading.read(100, 0.01)
    reading.read(100, 0.01)
    return reads
  })
  expect(runs.slice(1)).toEqual([64, 128, 256, 512, 1024, 2048, 4096])
})

it('a server that waits for eight acknowledgements at a time: not a hundredth of the time is lost', () => {
  const reading = new Reading()
  const reads = 200_000
  for (let index = 0; index < reads; index++) reading.read(8 * 4, 0.01)
  expect(reading.waits * lull * 1.1).toBeLessThan(reads * 0.01 * 0.01)
})

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
  expect(reading.untilWait(100, 0.01)).toBe(64)
})

async function socketInMode() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  let given: OnReadOpts | undefined
  const socket = Object.assign(new EventEmitter(), {
    destroyed: false,
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
    destroy: () => {
      socket.destroyed = true
    },
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
  const read = (): boolean => given?.callback(100, buffer) === true
  let reads = 1
  while (read()) reads += 1
  return { socket, transport, read, reads: () => reads, bytes: () => bytes }
}

it('a socket stops reading after a read that makes the next one wait, and reads on after it', async () => {
  const { socket, reads, bytes } = await socketInMode()
  expect(bytes()).toBe(reads() * 100)
  expect(socket.resumed).toBe(0)
  vi.advanceTimersByTime(lull)
  expect(socket.resumed).toBe(1)
})

it.each(['pause', 'destroy'] as const)('after %s() it does not read on by itself', async (end) => {
  const { socket, transport } = await socketInMode()
  transport[end]()
  vi.advanceTimersByTime(lull * 10)
  expect(socket.resumed).toBe(0)
})
