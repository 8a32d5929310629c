/**
 * CRC-32C (Castagnoli), the checksum of records. Pure.
 */

const polynomial = 0x82f63b78

// Made when it is needed first.
let table: Int32Array | undefined

function makeTable(): Int32Array {
  const made = new Int32Array(256)
  for (let byte = 0; byte < 256; byte++) {
    let rest = byte
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ polynomial : rest >>> 1
    made[byte] = rest
  }
  return made
}

/** The checksum of bytes; `before` is that of what comes before them, by default nothing. From 0 to 2^32 - 1. */
export function crc32c(bytes: Uint8Array, before = 0): number {
  table ??= makeTable()
  let rest = ~before
  for (let at = 0; at < bytes.length; at++) rest = (rest >>> 8) ^ (table[(rest ^ (bytes[at] as number)) & 255] as number)
  return ~rest >>> 0
}
