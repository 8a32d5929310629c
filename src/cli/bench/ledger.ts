/**
 * What arrived: how late, how often, and in which order.
 *
 * A payload begins with its publisher, its number, and when it was due. Latency counts from then, so
 * that messages which wait in the sender count as late (no coordinated omission).
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

/** Bytes of the stamp. */
export const stampSize = 16

/** Microseconds of the clock that all threads of this machine share. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

/** Writes the stamp at the start of a payload. */
export function stamp(payload: Buffer, publisher: number, number: number, due: number): void {
  payload.writeUInt32LE(publisher, 0)
  payload.writeUInt32LE(number, 4)
  payload.writeDoubleLE(due, 8)
}

/** The sums of one part, as they travel between threads. */
export interface Sums {
  sent: number
  failed: number
  received: number
  twice: number
  disordered: number
  dropped: number
  /** Microseconds. */
  latency: RecordableHistogram
}

/** Sums of nothing. */
export function noSums(): Sums {
  return {
    sent: 0,
    failed: 0,
    received: 0,
    twice: 0,
    disordered: 0,
    dropped: 0,
    latency: createHistogram(),
  }
}

function addSums(all: Sums, sums: Sums): void {
  for (const name of ['sent', 'failed', 'received', 'twice', 'disordered', 'dropped'] as const)
    all[name] += sums[name]
  addHistogram(all.latency, sums.latency)
}

/** What one part has measured. `Sums` are those of its publishers; in a load of devices, telemetry. */
export interface Totals extends Sums {
  /** Microseconds from dialling to CONNACK. */
  readonly connects: RecordableHistogram
  /** Commands to devices. */
  readonly commands: Sums
  readonly storms: Storm[]
}

/** How a load of devices came through the loss of all connections. */
export interface Storm {
  /** Microseconds from the loss until a device was connected and subscribed again. */
  readonly back: RecordableHistogram
  /** Messages that arrived, of those that count to this storm. */
  received: number
}

/** Totals of nothing. */
export function noTotals(storms = 0): Totals {
  return {
    ...noSums(),
    connects: createHistogram(),
    commands: noSums(),
    storms: Array.from({ length: storms }, () => ({ back: createHistogram(), received: 0 })),
  }
}

/** Adds the totals of one part to those of all. */
export function addTotals(all: Totals, part: Totals): void {
  addSums(all, part)
  addSums(all.commands, part.commands)
  addHistogram(all.connects, part.connects)
  for (const [index, storm] of all.storms.entries()) {
    const { back, received } = part.storms[index] as Storm
    addHistogram(storm.back, back)
    storm.received += received
  }
}

// An empty histogram cannot be added.
function addHistogram(all: RecordableHistogram, part: RecordableHistogram): void {
  if (part.count > 0) all.add(part)
}

/** What one subscriber has seen of one publisher. */
interface Seen {
  next: number
  readonly missing: Set<number>
}

/** Most numbers that are remembered as missing, for each publisher. */
const mostMissing = 10_000

/** What one subscriber has received. */
export class Ledger {
  readonly #sums: Sums
  readonly #onFirst: (due: number) => void
  readonly #seen = new Map<number, Seen>()

  /** `onFirst` gets the time at which a message was due, the first time that the message arrives. */
  constructor(sums: Sums, onFirst: (due: number) => void = () => undefined) {
    this.#sums = sums
    this.#onFirst = onFirst
  }

  /** Counts a payload; those of others are left out. */
  add(payload: Uint8Array): void {
    if (payload.length < stampSize) return
    const view = new DataView(payload.buffer, payload.byteOffset, stampSize)
    const publisher = view.getUint32(0, true)
    const number = view.getUint32(4, true)
    const due = view.getFloat64(8, true)
    this.#sums.latency.record(Math.max(1, Math.round(microseconds() - due)))
    const seen = this.#seen.get(publisher) ?? { next: 0, missing: new Set() }
    this.#seen.set(publisher, seen)
    if (number < seen.next) {
      if (!seen.missing.delete(number)) {
        this.#sums.twice += 1
        return
      }
      this.#sums.disordered += 1
    }
    for (; seen.next < number; seen.next++)
      if (seen.missing.size < mostMissing) seen.missing.add(seen.next)
    if (seen.next === number) seen.next += 1
    this.#sums.received += 1
    this.#onFirst(due)
  }
}
