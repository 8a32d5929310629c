/**
 * A disk in memory that loses what was not synced, tears the last write at any byte, and fails on demand; and a store on it: a log of checked records.
 *
 * The backend does what a database does: each write is one record of the log, and after a failure it reads the log anew before it goes on.
 */
import { BackedStore } from '../../src/store/base/backed-store.js'
import type { Backend } from '../../src/store/base/backend.js'
import { openRecord, sealRecord } from '../../src/store/base/record.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from '../../src/store/base/store.js'

/** What a disk does at one of its steps: fails with this code, or stops for ever; of what is appended, so many bytes get through. */
export interface Fault {
  readonly code: 'ENOSPC' | 'EIO' | 'crash'
  readonly bytes: number
}

/** One file, to which bytes are appended. */
export class SimulatedDisk {
  /** What was written, synced or not. */
  written: Uint8Array
  /** So many bytes of it outlive a crash. */
  synced: number
  /** Appends and syncs so far. */
  steps = 0
  /** Asked before each step. */
  fault: (step: number, length: number) => Fault | undefined = () => undefined
  /** True from a crash on: nothing is answered any more. */
  dead = false

  constructor(written: Uint8Array = new Uint8Array(0)) {
    this.written = written
    this.synced = written.length
  }

  async append(bytes: Uint8Array): Promise<void> {
    const fault = await this.#step(bytes.length)
    const through = fault === undefined ? bytes : bytes.subarray(0, fault.bytes)
    const longer = new Uint8Array(this.written.length + through.length)
    longer.set(this.written)
    longer.set(through, this.written.length)
    this.written = longer
    await this.#end(fault)
  }

  async sync(): Promise<void> {
    const fault = await this.#step(0)
    if (fault === undefined) this.synced = this.written.length
    await this.#end(fault)
  }

  /** Cuts off what is behind a place. */
  truncate(length: number): void {
    this.written = this.written.slice(0, length)
    this.synced = Math.min(this.synced, length)
  }

  /** What the next process finds: everything synced, and so many bytes of the rest. */
  afterCrash(rest: number): SimulatedDisk {
    return new SimulatedDisk(this.written.slice(0, this.synced + rest))
  }

  async #step(length: number): Promise<Fault | undefined> {
    await this.#answer()
    this.steps += 1
    return this.fault(this.steps, length)
  }

  async #end(fault: Fault | undefined): Promise<void> {
    this.dead ||= fault?.code === 'crash'
    await this.#answer()
    if (fault !== undefined) throw Object.assign(new Error(`${fault.code}: simulated`), { code: fault.code })
  }

  #answer(): Promise<void> {
    return this.dead ? new Promise(() => undefined) : Promise.resolve()
  }
}

const lengthBytes = 4

/** The operations of one write as a record of the log. */
function encoded(operations: readonly StoreOperation[]): Uint8Array {
  const plain = operations.map((each) => (each.type === 'put' ? [each.key, [...each.value]] : [each.key]))
  const record = sealRecord(new TextEncoder().encode(JSON.stringify(plain)))
  const bytes = new Uint8Array(lengthBytes + record.length)
  new DataView(bytes.buffer).setUint32(0, record.length)
  bytes.set(record, lengthBytes)
  return bytes
}

/** What a log holds, up to the first record that is not whole. */
export function recovered(log: Uint8Array): { readonly entries: Map<string, Uint8Array>; readonly length: number } {
  const entries = new Map<string, Uint8Array>()
  let at = 0
  while (at + lengthBytes <= log.length) {
    const end = at + lengthBytes + new DataView(log.buffer, log.byteOffset + at).getUint32(0)
    const body = end <= log.length ? openRecord(log.subarray(at + lengthBytes, end)) : undefined
    if (body === undefined) break
    for (const [key, value] of JSON.parse(new TextDecoder().decode(body)) as [string, number[] | undefined][]) {
      if (value === undefined) entries.delete(key)
      else entries.set(key, Uint8Array.from(value))
    }
    at = end
  }
  return { entries, length: at }
}

/** A database of one log. */
export class LogBackend implements Backend {
  readonly #disk: SimulatedDisk
  readonly #sync: boolean
  #entries = new Map<string, Uint8Array>()

  constructor(disk: SimulatedDisk, sync: boolean) {
    this.#disk = disk
    this.#sync = sync
    this.#recover()
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#entries.get(key)?.slice()
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    try {
      await this.#disk.append(encoded(operations))
      if (this.#sync) await this.#disk.sync()
    } finally {
      this.#recover()
    }
  }

  async page({ gt, gte, lt, lte, reverse, limit = 100 }: StoreRange): Promise<StoreEntry[]> {
    const isIn = (key: string): boolean =>
      (gt === undefined || key > gt) && (gte === undefined || key >= gte) && (lt === undefined || key < lt) && (lte === undefined || key <= lte)
    const keys = [...this.#entries.keys()].filter(isIn).sort()
    if (reverse) keys.reverse()
    return keys.slice(0, Math.min(limit, 100)).map((key) => [key, (this.#entries.get(key) as Uint8Array).slice()])
  }

  async close(): Promise<void> {}

  #recover(): void {
    const { entries, length } = recovered(this.#disk.written)
    this.#entries = entries
    this.#disk.truncate(length)
  }
}

/** A store on a simulated disk. */
export function simulatedStore(disk: SimulatedDisk, durability: 'sync' | 'os' = 'sync'): Store {
  return new BackedStore(new LogBackend(disk, durability === 'sync'))
}
