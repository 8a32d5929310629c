/**
 * The log of `mqwire/store/file`: the format of a batch, and how the log is read when the store
 * opens.
 *
 * The header is there twice: `mqwire`, a version byte, a line feed, a random salt of 8 bytes, and
 * CRC-32C of these. Frames follow, one for each write:
 *
 *     4 marker | 4 length of the index | 4 length of the values | 2 zero | 6 synced
 *       | 4 + 4 + 4 CRC-32C of the head, the index, the values
 *     index: for each change 2 bytes (length of the key; the highest bit: deleted)
 *       | 4 length of the value, unless deleted | key
 *     values, one behind the other
 *
 * Numbers have the most significant byte first. Each checksum covers the ones before it, the salt
 * and the place of the frame: bytes of a log inside a value, or of an earlier log, are never taken
 * for a frame. `synced` is how much of the log was certainly on disk when the frame was written.
 *
 * A frame that is not whole is either the torn end of the log, or damage. It is damage if a later
 * frame says that its place was synced. A torn end is cut off. Damage in the values affects only
 * those values, which are returned as they are, because records have their own checksums. Damage
 * elsewhere hides which keys the batch changed. Skipping it would bring back deleted entries, so
 * the log is refused unless it is to be repaired.
 */
import { randomBytes } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { MqttError } from '../errors.js'
import { crc32c } from './base/checksum.js'
import type { StoreOperation } from './base/store.js'

const version = 1
const name = Buffer.from(`mqwire${String.fromCharCode(version)}\n`)
const saltLength = 8
const copyLength = name.length + saltLength + 4
/** Start of the first frame. */
export const headerLength = 2 * copyLength
const marker = Buffer.from([0xf1, 0x6d, 0x71, 0x0e])
const headLength = 32
const deleted = 0x8000
/** Bytes read at once. */
const windowLength = 1_048_576
/** Bytes searched at once for the next frame. */
const searchLength = 4096

/** Place of a value in the log. */
export interface Position {
  readonly at: number
  readonly length: number
}

/** Receives each key of a frame: the place of its value, or undefined when it was deleted. */
export type Apply = (key: string, position: Position | undefined) => void

/** The salt of a new log. */
export function newSalt(): Buffer {
  return randomBytes(saltLength)
}

/** The header of a log. */
export function headerOf(salt: Buffer): Buffer {
  const copy = Buffer.concat([name, salt, Buffer.alloc(4)])
  copy.writeUInt32BE(crc32c(copy.subarray(0, -4)), copyLength - 4)
  return Buffer.concat([copy, copy])
}

/** @throws MqttError ERR_STORE: not a log, or one of a later version */
export async function saltOf(log: FileHandle): Promise<Buffer> {
  const { buffer: header } = await log.read(Buffer.alloc(headerLength), 0, headerLength, 0)
  for (const copy of [header.subarray(0, copyLength), header.subarray(copyLength)]) {
    const isWhole =
      copy.readUInt32BE(copyLength - 4) === crc32c(copy.subarray(0, -4)) &&
      copy.subarray(0, 6).equals(name.subarray(0, 6))
    if (!isWhole) continue
    if (copy[6] !== version)
      throw new MqttError(
        'ERR_STORE',
        'store: the log was written by a later version of this package',
      )
    return copy.subarray(name.length, -4)
  }
  throw new MqttError('ERR_STORE', 'store: the log does not begin as one')
}

/** Initial checksum of the frame at a place. */
function seed(salt: Buffer, at: number): number {
  const place = Buffer.alloc(8)
  place.writeUIntBE(at, 2, 6)
  return crc32c(place, crc32c(salt))
}

/** Encodes a frame for a place. @throws RangeError for 4 GiB or more */
export function encodeFrame(
  operations: readonly StoreOperation[],
  salt: Buffer,
  at: number,
  synced: number,
): Buffer {
  let [indexLength, valuesLength] = [0, 0]
  for (const each of operations) {
    indexLength += 2 + each.key.length
    if (each.type === 'delete') continue
    indexLength += 4
    valuesLength += each.value.length
  }
  const frame = Buffer.allocUnsafe(headLength + indexLength + valuesLength)
  frame.set(marker)
  frame.writeUInt32BE(indexLength, 4)
  frame.writeUInt32BE(valuesLength, 8)
  frame.writeUInt16BE(0, 12)
  frame.writeUIntBE(synced, 14, 6)
  let place = headLength
  let valueAt = headLength + indexLength
  for (const each of operations) {
    const isPut = each.type === 'put'
    place = frame.writeUInt16BE(each.key.length | (isPut ? 0 : deleted), place)
    if (isPut) {
      place = frame.writeUInt32BE(each.value.length, place)
      frame.set(each.value, valueAt)
      valueAt += each.value.length
    }
    place += frame.write(each.key, place, 'latin1')
  }
  const headSum = crc32c(frame.subarray(4, 20), seed(salt, at))
  const indexSum = crc32c(frame.subarray(headLength, headLength + indexLength), headSum)
  frame.writeUInt32BE(headSum, 20)
  frame.writeUInt32BE(indexSum, 24)
  frame.writeUInt32BE(crc32c(frame.subarray(headLength + indexLength), indexSum), 28)
  return frame
}

/** Reads the index of the frame at a place of the log. */
export function applyFrame(frame: Buffer, at: number, apply: Apply): void {
  const end = headLength + frame.readUInt32BE(4)
  let valueAt = at + end
  for (let place = headLength; place < end; ) {
    const word = frame.readUInt16BE(place)
    const keyLength = word & ~deleted
    const isPut = word < deleted
    place += isPut ? 6 : 2
    const key = frame.toString('latin1', place, place + keyLength)
    if (isPut) {
      const length = frame.readUInt32BE(place - 4)
      apply(key, { at: valueAt, length })
      valueAt += length
    } else apply(key, undefined)
    place += keyLength
  }
}

interface Frame {
  readonly bytes: Buffer
  readonly end: number
  readonly synced: number
  readonly isWhole: boolean
}

/** Reads a log by position. */
class LogReader {
  readonly #log: FileHandle
  readonly #size: number
  readonly #salt: Buffer
  #window: Buffer = Buffer.alloc(0)
  #from = 0

  constructor(log: FileHandle, size: number, salt: Buffer) {
    this.#log = log
    this.#size = size
    this.#salt = salt
  }

  /**
   * The frame at a place; its memory is valid until the next call. Undefined when its head or index
   * is damaged.
   */
  async frame(at: number): Promise<Frame | undefined> {
    const head = await this.#bytes(at, headLength)
    if (head.length < headLength || head.compare(marker, 0, 4, 0, 4) !== 0) return undefined
    const sum = crc32c(head.subarray(4, 20), seed(this.#salt, at))
    if (sum !== head.readUInt32BE(20)) return undefined
    const indexEnd = headLength + head.readUInt32BE(4)
    const length = indexEnd + head.readUInt32BE(8)
    const bytes = await this.#bytes(at, length)
    const indexSum = crc32c(bytes.subarray(headLength, indexEnd), sum)
    if (bytes.length < indexEnd || indexSum !== bytes.readUInt32BE(24)) return undefined
    const isWhole =
      bytes.length === length &&
      crc32c(bytes.subarray(indexEnd), indexSum) === bytes.readUInt32BE(28)
    return { bytes, end: at + length, synced: bytes.readUIntBE(14, 6), isWhole }
  }

  /**
   * Where the log continues after damage at a place that was synced. Undefined when nothing proves
   * that it was synced.
   */
  async behindDamage(at: number): Promise<number | undefined> {
    let next: number | undefined
    for (let place = await this.#nextMarker(at + 1); place < this.#size; ) {
      const frame = await this.frame(place)
      if (frame !== undefined) {
        next ??= place
        if (frame.synced > at) return next
      }
      place = await this.#nextMarker(frame?.end ?? place + 1)
    }
    return undefined
  }

  async #nextMarker(from: number): Promise<number> {
    for (let place = from; place < this.#size; ) {
      const bytes = await this.#bytes(place, searchLength)
      const found = bytes.indexOf(marker)
      if (found >= 0) return place + found
      // A marker may cross the border.
      place += Math.max(1, bytes.length - marker.length + 1)
    }
    return this.#size
  }

  /** Returns fewer bytes only at the end of the log. */
  async #bytes(at: number, length: number): Promise<Buffer> {
    const wanted = Math.max(0, Math.min(length, this.#size - at))
    if (at < this.#from || at + wanted > this.#from + this.#window.length) {
      this.#window = await readAt(
        this.#log,
        at,
        Math.min(Math.max(wanted, windowLength), Math.max(0, this.#size - at)),
      )
      this.#from = at
    }
    return this.#window.subarray(at - this.#from, at - this.#from + wanted)
  }
}

/** Reads bytes of a file. @throws Error when the file ends before */
export async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  // Node refuses reads of length 0.
  if (length === 0) return bytes
  const { bytesRead } = await file.read(bytes, 0, length, at)
  if (bytesRead < length) throw new Error(`the file ends at ${at + bytesRead}`)
  return bytes
}

/**
 * Reads the log and returns the end of its last whole frame; `isRepaired` when damaged frames
 * before it were skipped.
 *
 * @throws MqttError ERR_STORE when it is damaged and must not be repaired; or the system's error
 */
export async function recover(
  log: FileHandle,
  size: number,
  salt: Buffer,
  repair: boolean,
  apply: Apply,
): Promise<{ readonly end: number; readonly isRepaired: boolean }> {
  const reader = new LogReader(log, size, salt)
  let isRepaired = false
  for (let at = headerLength; at < size; ) {
    const frame = await reader.frame(at)
    if (frame === undefined || !frame.isWhole) {
      const next = await new LogReader(log, size, salt).behindDamage(at)
      if (next === undefined) return { end: at, isRepaired }
      if (frame === undefined) {
        if (!repair)
          throw new MqttError(
            'ERR_STORE',
            `store: the log is damaged at byte ${at}; the option repair opens it without what stood there`,
          )
        isRepaired = true
        at = next
        continue
      }
    }
    applyFrame(frame.bytes, at, apply)
    at = frame.end
  }
  return { end: Math.max(size, headerLength), isRepaired }
}
