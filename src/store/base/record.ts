/**
 * Records: what sessions and queues keep in a store, with a version and a checksum, and the place where damaged ones go.
 *
 * Byte 0 is the version, bytes 1 to 4 are CRC-32C over the version and the body, most significant byte first; the body follows. What stands in the body
 * is up to the owner. A damaged record must never be delivered, and never stop anybody.
 */
import { crc32c } from './checksum.js'
import type { Store } from './store.js'

/** The version that is written. */
const version = 1
/** Bytes before the body. */
export const headLength = 5

/** Damaged records that are kept; the oldest go first. */
const mostQuarantined = 1000
/** Below it stand damaged records. */
const prefix = 'x/'
const digits = 15

/** A body as a record, in memory of its own. */
export function sealRecord(body: Uint8Array): Uint8Array {
  const record = new Uint8Array(headLength + body.length)
  record.set(body, headLength)
  return seal(record)
}

/** The same record, whose body stands behind `headLength` bytes that are written here. */
export function seal(record: Uint8Array): Uint8Array {
  record[0] = version
  const sum = checksumOf(record)
  for (let at = 1; at < headLength; at++) record[at] = sum >>> (8 * (headLength - 1 - at))
  return record
}

/** The body of a record, in place. Undefined: it is damaged, or of a version that is not known here. Never throws. */
export function openRecord(record: Uint8Array): Uint8Array | undefined {
  return isWhole(record) && record[0] === version ? record.subarray(headLength) : undefined
}

/** True for a record that is whole, and that a later version of mqwire wrote: such a store is left to that version. Never throws. */
export function isOfLaterVersion(record: Uint8Array): boolean {
  return isWhole(record) && (record[0] as number) > version
}

// The head is the same in all versions.
function isWhole(record: Uint8Array): boolean {
  if (!ArrayBuffer.isView(record) || record.length < headLength) return false
  return new DataView(record.buffer, record.byteOffset).getUint32(1) === checksumOf(record)
}

let ofVersion: number | undefined

function checksumOf(record: Uint8Array): number {
  ofVersion ??= crc32c(Uint8Array.of(version))
  return crc32c(
    record.subarray(headLength),
    record[0] === version ? ofVersion : crc32c(record.subarray(0, 1)),
  )
}

// Two that came at once would take the same place.
const turns: WeakMap<Store, Promise<unknown>> = /* @__PURE__ */ new WeakMap()

/**
 * Takes a damaged record out of its owner's way: deletes the key, and puts what was there below the prefix `x/`, in one batch. The last 1,000 are kept.
 * The new value is a line of JSON with `key` and `why`, a line break, and the bytes as they were found.
 *
 * Gives the new key. @throws MqttError ERR_STORE; the record is where it was then
 */
export function quarantine(
  store: Store,
  key: string,
  bytes: Uint8Array,
  why: string,
): Promise<string> {
  const move = (): Promise<string> => moveAway(store, key, bytes, why)
  const turn = (turns.get(store) ?? Promise.resolve()).then(move, move)
  turns.set(store, turn)
  return turn
}

// Keys of damaged records that could not be moved, and were reported.
const staying: WeakMap<Store, Set<string>> = /* @__PURE__ */ new WeakMap()

/**
 * The same for a reader that goes on in either case. False: it could not be moved, as the disk is full; it stays where it is, and is to be passed over. `report` is
 * called where it was not for this record before. Never rejects.
 */
export async function setAside(
  store: Store,
  key: string,
  bytes: Uint8Array,
  report: (key: string) => void,
): Promise<boolean> {
  const known = staying.get(store) ?? new Set<string>()
  staying.set(store, known)
  const moved = await quarantine(store, key, bytes, 'damaged').then(
    () => true,
    () => false,
  )
  if (!known.delete(key)) report(key)
  if (!moved && known.size < mostQuarantined) known.add(key)
  return moved
}

async function moveAway(
  store: Store,
  key: string,
  bytes: Uint8Array,
  why: string,
): Promise<string> {
  let number = 1
  // Numbers follow each other, so that the one to go is known without counting.
  for await (const [last] of store.entries({
    gt: prefix,
    lt: `${prefix}:`,
    reverse: true,
    limit: 1,
  }))
    number = Number(last.slice(prefix.length)) + 1
  const head = new TextEncoder().encode(`${JSON.stringify({ key, why })}\n`)
  const value = new Uint8Array(head.length + bytes.length)
  value.set(head)
  value.set(bytes, head.length)
  await store.batch([
    { type: 'delete', key },
    { type: 'put', key: keyOf(number), value },
    { type: 'delete', key: keyOf(number - mostQuarantined) },
  ])
  return keyOf(number)
}

const keyOf = (number: number): string => prefix + String(Math.max(number, 0)).padStart(digits, '0')
