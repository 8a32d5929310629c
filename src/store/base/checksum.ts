/**
 * CRC-32C (Castagnoli), the checksum of records. Pure.
 */

const polynomial = 0x82f63b78

/**
 * Four tables in sequence: the effect of a byte with 0 to 3 bytes behind it. Created on first use.
 */
let table: Int32Array | undefined

function makeTable(): Int32Array {
  const made = new Int32Array(1024)
  for (let byte = 0; byte < 256; byte++) {
    let rest = byte
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ polynomial : rest >>> 1
    made[byte] = rest
  }
  for (let at = 256; at < 1024; at++) {
    const before = made[at - 256] as number
    made[at] = (before >>> 8) ^ (made[before & 255] as number)
  }
  return made
}

/**
 * The checksum of bytes, from 0 to 2^32 - 1. `before`: the checksum of the preceding bytes, 0 by
 * default.
 */
export function crc32c(bytes: Uint8Array, before = 0): number {
  table ??= makeTable()
  const known = table
  const { length } = bytes
  let rest = ~before
  let at = 0
  // Four bytes at a time is 1.8 times as fast.
  for (; at + 4 <= length; at += 4) {
    rest ^=
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)
    const low =
      (known[768 + (rest & 255)] as number) ^ (known[512 + ((rest >>> 8) & 255)] as number)
    rest = low ^ (known[256 + ((rest >>> 16) & 255)] as number) ^ (known[rest >>> 24] as number)
  }
  for (; at < length; at++)
    rest = (rest >>> 8) ^ (known[(rest ^ (bytes[at] as number)) & 255] as number)
  return ~rest >>> 0
}
