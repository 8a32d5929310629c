/**
 * A disk in memory that loses what was not synced, tears the last write at any byte, and fails on demand; and a store on it: a log of checked records.
 *
 * The backend does what a database does: each write is one record of the log, and after a failure it reads the log anew, and makes safe what it found,
 * before it goes on.
 */
import { BackedStore } from '../../../src/store/base/backed-store.js'
import type { Backend } from '../../../src/store/base/backend.js'
import { openRecord, sealRecord } from '../../../src/store/base/record.js'
import type {
  Store,
  StoreEntry,
  StoreOperation,
  StoreRange,
} from '../../../src/store/base/store.js'

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
  /** How long a step takes: fulfils when it is to begin. */
  pause: (() => Promise<void>) | undefined

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

  truncate(length: number): void {
    this.written = this.written.slice(0, length)
    this.synced = Math.min(this.synced, length)
  }

  settle(): void {
    this.synced = this.written.length
  }

  /** What the next process finds: everything synced, and so many bytes of the rest. */
  afterCrash(rest: number): SimulatedDisk {
    return new SimulatedDisk(this.written.slice(0, this.synced + rest))
  }

  async #step(length: number): Promise<Fault | undefined> {
    await this.pause?.()
    await this.#answer()
    this.steps += 1
    return this.fault(this.steps, length)
  }

  async #end(fault: Fault | undefined): Promise<void> {
    this.dead ||= fault?.code === 'crash'
    await this.#answer()
    if (fault !== undefined)
      throw Object.assign(new Error(`${fault.code}: simulated`), { code: fault.code })
  }

  #answer(): Promise<void> {
    return this.dead ? new Promise(() => undefined) : Promise.resolve()
  }
}

const lengthBytes = 4
const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]

/** The operations of one write as a record of the log: of each its key and its value, with their lengths; of a deletion there is no value. */
function encoded(operations: readonly StoreOperation[]): Uint8Array {
  const parts = operations.map((each) => ({
    key: encoder.encode(each.key),
    value: each.type === 'put' ? each.value : undefined,
  }))
  const body = new Uint8Array(
    parts.reduce(
      (sum, { key, value }) => sum + 2 * lengthBytes + key.length + (value?.length ?? 0),
      0,
    ),
  )
  const fields = new DataView(body.buffer)
  let at = 0
  for (const { key, value } of parts) {
    fields.setUint32(at, key.length)
    fields.setInt32(at + lengthBytes, value?.length ?? -1)
    body.set(key, at + 2 * lengthBytes)
    at += 2 * lengthBytes + key.length
    if (value === undefined) continue
    body.set(value, at)
    at += value.length
  }
  const record = sealRecord(body)
  const bytes = new Uint8Array(lengthBytes + record.length)
  new DataView(bytes.buffer).setUint32(0, record.length)
  bytes.set(record, lengthBytes)
  return bytes
}

function apply(body: Uint8Array, entries: Map<string, Uint8Array>): void {
  const fields = new DataView(body.buffer, body.byteOffset, body.length)
  for (let at = 0; at < body.length; ) {
    const [keyLength, valueLength] = [fields.getUint32(at), fields.getInt32(at + lengthBytes)]
    at += 2 * lengthBytes + keyLength
    const key = decoder.decode(body.subarray(at - keyLength, at))
    if (valueLength < 0) entries.delete(key)
    else entries.set(key, body.slice(at, at + valueLength))
    at += Math.max(0, valueLength)
  }
}

interface Recovered {
  readonly entries: Map<string, Uint8Array>
  readonly length: number
}

/** What a log holds, up to the first record that is not whole. Given what it held up to `length`, it reads on from there. */
export function recovered(
  log: Uint8Array,
  { entries, length }: Recovered = { entries: new Map(), length: 0 },
): Recovered {
  const fields = new DataView(log.buffer, log.byteOffset, log.length)
  let at = length
  while (at + lengthBytes <= log.length) {
    const end = at + lengthBytes + fields.getUint32(at)
    const body = end <= log.length ? openRecord(log.subarray(at + lengthBytes, end)) : undefined
    if (body === undefined) break
    apply(body, entries)
    at = end
  }
  return { entries, length: at }
}

export class LogBackend implements Backend {
  readonly #disk: SimulatedDisk
  readonly #sync: boolean
  #found = recovered(new Uint8Array(0))

  constructor(disk: SimulatedDisk, sync: boolean) {
    this.#disk = disk
    this.#sync = sync
    this.#recover()
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#found.entries.get(key)?.slice()
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    try {
      await this.#disk.append(encoded(operations))
      if (this.#sync) await this.#disk.sync()
      this.#found = recovered(this.#disk.written, this.#found)
    } catch (error) {
      this.#recover()
      throw error
    }
  }

  async page({ gt, gte, lt, lte, reverse, limit = 100 }: StoreRange): Promise<StoreEntry[]> {
    const isIn = (key: string): boolean =>
      (gt === undefined || key > gt) &&
      (gte === undefined || key >= gte) &&
      (lt === undefined || key < lt) &&
      (lte === undefined || key <= lte)
    const keys = [...this.#found.entries.keys()].filter(isIn).sort()
    if (reverse) keys.reverse()
    return keys
      .slice(0, Math.min(limit, 100))
      .map((key) => [key, (this.#found.entries.get(key) as Uint8Array).slice()])
  }

  async close(): Promise<void> {}

  #recover(): void {
    this.#found = recovered(this.#disk.written)
    this.#disk.truncate(this.#found.length)
    if (this.#sync) this.#disk.settle()
  }
}

export function simulatedStore(disk: SimulatedDisk, durability: 'sync' | 'os' = 'sync'): Store {
  return new BackedStore(new LogBackend(disk, durability === 'sync'))
}
