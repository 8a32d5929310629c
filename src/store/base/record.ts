/**
 * Records: the values that sessions and queues store, with a version and a checksum; and the place
 * for damaged ones.
 *
 * Byte 0 is the version, bytes 1 to 4 are CRC-32C over version and body, most significant byte
 * first; then the body, whose content is up to the owner. A damaged record is never delivered, and
 * never blocks anything.
 */
import { crc32c } from './checksum.js'
import type { Store } from './store.js'

/** The version that is written. */
const version = 1
/** Bytes before the body. */
export const headLength = 5

/** Most damaged records kept; the oldest are deleted first. */
const mostQuarantined = 1000
/** Key prefix of damaged records. */
const prefix = 'x/'
const digits = 15

/** A record with this body, in its own memory. */
export function sealRecord(body: Uint8Array): Uint8Array {
  const record = new Uint8Array(headLength + body.length)
  record.set(body, headLength)
  return seal(record)
}

/**
 * Turns memory into a record: the body must follow after `headLength` bytes, which are filled in
 * here.
 */
export function seal(record: Uint8Array): Uint8Array {
  record[0] = version
  const sum = checksumOf(record)
  for (let at = 1; at < headLength; at++) record[at] = sum >>> (8 * (headLength - 1 - at))
  return record
}

/**
 * The body of a record, not copied. Undefined when it is damaged or of an unknown version. Never
 * throws.
 */
export function openRecord(record: Uint8Array): Uint8Array | undefined {
  return isWhole(record) && record[0] === version ? record.subarray(headLength) : undefined
}

/**
 * True for an undamaged record of a later version of mqwire: such a store is left to that version.
 * Never throws.
 */
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

// One at a time for each store, because two at once would take the same number.
const turns: WeakMap<Store, Promise<unknown>> = /* @__PURE__ */ new WeakMap()

/**
 * Moves a damaged record out of the way: deletes its key and stores it below the prefix `x/`, in
 * one batch. The last 1,000 are kept. The new value is a line of JSON with `key` and `why`, a line
 * break, and the original bytes.
 *
 * Returns the new key. @throws MqttError ERR_STORE; the record is then where it was
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

// Keys of damaged records that could not be moved and were reported.
const staying: WeakMap<Store, Set<string>> = /* @__PURE__ */ new WeakMap()

/**
 * Moves a damaged record if possible. False when that failed, for example on a full disk: the
 * record stays and must be skipped. `report` is called only once for each record. Never rejects.
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
  // Consecutive numbers show which record is the oldest, without counting.
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
