/**
 * Finds and checks the control packets in the read area, in AssemblyScript with SIMD.
 * `.ci/build.mjs` compiles it to binary.ts.
 *
 * It never reports an error. A PUBLISH that it accepts is one that the TypeScript parser accepts,
 * with the fields of its row. A PUBLISH that it does not accept is marked, and bytes whose frame it
 * cannot measure end the scan: the TypeScript parser then reads the same bytes. No address may
 * depend on a length that was not checked against the end of the frame. Reads of 16 bytes may go
 * beyond that end; the extra bytes are masked. Nothing is allocated.
 */

// Memory layout, of fixed size. The offsets in the rows are addresses in the read area.
const READ_SIZE: u32 = 65536
const TABLE: u32 = READ_SIZE
const ROW_SIZE: u32 = 48
const MOST_ROWS: u32 = 256
/** Where the last scan stopped, and the generation of the topic ids. */
const CELLS: u32 = TABLE + ROW_SIZE * MOST_ROWS
/**
 * Slots by hash: the hash, the length of the topic, the address of its bytes, and its id plus one,
 * which is 0 in a free slot.
 */
const SLOTS: u32 = CELLS + 64
const SLOT_SIZE: u32 = 16
const SLOT_COUNT: u32 = 8192
const MOST_TOPICS: u32 = 4096
const ARENA: u32 = SLOTS + SLOT_SIZE * SLOT_COUNT
const ARENA_SIZE: u32 = 196608

/** Longer topics are not interned. */
const LONGEST_TOPIC: u32 = 1024
/** Most slots examined for one topic, which limits the cost of topics chosen to collide. */
const MOST_PROBES: u32 = 8
/** The table is cleared after this many topics that found no room. */
const MOST_MISSES: u32 = 4096

// Negative topic ids: a valid name that is not interned, an empty name that an alias replaces, and
// an invalid topic name.
const NOT_INTERNED: i32 = -1
const ALIAS_ONLY: i32 = -2
const NO_TOPIC: i32 = -3
// Marks above the first byte in a row: a PUBLISH with properties, a PUBLISH that was measured and
// not accepted, and a packet of another type.
const PROPERTIES: u32 = 0x100
const UNREAD: u32 = 0x200
const OTHER: u32 = 0x400

let topicCount: u32 = 0
let arenaUsed: u32 = 0
let misses: u32 = 0
let generation: u32 = 1

// Results of the last `readProperties`.
let topicAlias: u32 = 0
let userProperties: u32 = 0
let subscriptionIdentifier: u32 = 0
/** The address after the last variable byte integer read. */
let behind: u32 = 0

/** Lanes in which `before` is `lead` and `wrong` is set. */
@inline function follows(before: v128, lead: u8, wrong: v128): v128 {
  return v128.and(i8x16.eq(before, i8x16.splat(lead)), wrong)
}

/**
 * Whether [at, end) is well-formed (section 1.5.4); `at` must be at a character boundary. Checks
 * sixteen bytes at a time.
 */
function isUnicode(at: u32, end: u32, asTopic: bool): bool {
  let wrong = i8x16.splat(0)
  let last = i8x16.splat(0x20)
  // At least one space follows the end, which makes an incomplete last character invalid.
  for (; at <= end; at += 16) {
    const room = end - at
    let bytes = v128.load(at)
    if (room < 16) {
      const inside = i8x16.lt_u(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(<u8>room))
      bytes = v128.bitselect(bytes, i8x16.splat(0x20), inside)
    }
    const before = v128.shuffle<u8>(last, bytes, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
    const before2 = v128.shuffle<u8>(last, bytes, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
    const before3 = v128.shuffle<u8>(last, bytes, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)
    // Continuation bytes must be exactly where lead bytes require them.
    const second = i8x16.ge_u(before, i8x16.splat(<u8>0xc0))
    const third = i8x16.ge_u(before2, i8x16.splat(<u8>0xe0))
    const fourth = i8x16.ge_u(before3, i8x16.splat(<u8>0xf0))
    const continues = i8x16.lt_s(bytes, i8x16.splat(-64))
    wrong = v128.or(wrong, v128.xor(continues, v128.or(second, v128.or(third, fourth))))
    // Invalid lead bytes, and U+0000.
    wrong = v128.or(wrong, i8x16.eq(v128.and(bytes, i8x16.splat(<u8>0xfe)), i8x16.splat(<u8>0xc0)))
    wrong = v128.or(wrong, v128.or(i8x16.gt_u(bytes, i8x16.splat(<u8>0xf4)), i8x16.eq(bytes, i8x16.splat(0))))
    // Overlong forms, surrogates, points above U+10FFFF.
    wrong = v128.or(wrong, follows(before, 0xe0, i8x16.lt_u(bytes, i8x16.splat(<u8>0xa0))))
    wrong = v128.or(wrong, follows(before, 0xed, i8x16.gt_u(bytes, i8x16.splat(<u8>0x9f))))
    wrong = v128.or(wrong, follows(before, 0xf0, i8x16.lt_u(bytes, i8x16.splat(<u8>0x90))))
    wrong = v128.or(wrong, follows(before, 0xf4, i8x16.gt_u(bytes, i8x16.splat(<u8>0x8f))))
    if (asTopic) wrong = v128.or(wrong, v128.or(i8x16.eq(bytes, i8x16.splat(0x23)), i8x16.eq(bytes, i8x16.splat(0x2b))))
    last = bytes
  }
  return !v128.any_true(wrong)
}

/**
 * One bit for each byte of [at, at + 16) that is not plain: not ASCII, U+0000, or, with `asTopic`,
 * a wildcard.
 */
@inline function oddBytes(at: u32, asTopic: bool): u32 {
  const bytes = v128.load(at)
  let plain = i8x16.gt_s(bytes, i8x16.splat(0))
  if (asTopic) plain = v128.andnot(plain, v128.or(i8x16.eq(bytes, i8x16.splat(0x23)), i8x16.eq(bytes, i8x16.splat(0x2b))))
  return <u32>i8x16.bitmask(plain) ^ 0xffff
}

/**
 * Whether [at, end) is well-formed UTF-8 without U+0000 and, as a topic name, without wildcards.
 */
@inline function isText(at: u32, end: u32, asTopic: bool): bool {
  while (at + 16 <= end) {
    if (oddBytes(at, asTopic) != 0) return isUnicode(at, end, asTopic)
    at += 16
  }
  if ((oddBytes(at, asTopic) & ((1 << (end - at)) - 1)) == 0) return true
  return isUnicode(at, end, asTopic)
}

/**
 * Hashes every byte, because topics usually differ in few. The products are independent of each
 * other.
 */
@inline function hashOf(at: u32, size: u32): u32 {
  let hash: u64
  if (size >= 8) {
    const last = at + size - 8
    hash = (load<u64>(last) ^ size) * 0xd1b54a32d192ed03
    for (; at < last; at += 8) hash = rotl<u64>(hash, 29) ^ (load<u64>(at) * 0x9e3779b97f4a7c15)
  } else hash = ((load<u64>(at) & (((<u64>1) << (size * 8)) - 1)) ^ size) * 0x9e3779b97f4a7c15
  return <u32>(((hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15) >> 32)
}

@inline function isSame(one: u32, other: u32, size: u32): bool {
  while (size > 16) {
    if (i8x16.bitmask(i8x16.eq(v128.load(one), v128.load(other))) != 0xffff) return false
    one += 16
    other += 16
    size -= 16
  }
  const equal: u32 = i8x16.bitmask(i8x16.eq(v128.load(one), v128.load(other)))
  return ((equal ^ 0xffff) & ((1 << size) - 1)) == 0
}

/**
 * The id of the topic, which is stored if there is room: 0 or above, or NOT_INTERNED. NO_TOPIC for
 * an invalid topic name.
 */
@inline function intern(at: u32, size: u32): i32 {
  const hash = hashOf(at, size)
  let free: u32 = 0
  for (let probe: u32 = 0; probe < MOST_PROBES; probe++) {
    const slot = SLOTS + ((hash + probe) & (SLOT_COUNT - 1)) * SLOT_SIZE
    const id = load<u32>(slot, 12)
    if (id == 0) {
      free = slot
      break
    }
    // Topics in the table were checked when they were added.
    if (load<u32>(slot) == hash && load<u32>(slot, 4) == size && isSame(at, load<u32>(slot, 8), size)) return id - 1
  }
  return remember(at, size, hash, free)
}

function remember(at: u32, size: u32, hash: u32, free: u32): i32 {
  if (!isText(at, at + size, true)) return NO_TOPIC
  if (size > LONGEST_TOPIC) return NOT_INTERNED
  if (free == 0 || topicCount == MOST_TOPICS || arenaUsed + size > ARENA_SIZE) {
    misses += 1
    return NOT_INTERNED
  }
  const copy = ARENA + arenaUsed
  memory.copy(copy, at, size)
  arenaUsed += size
  topicCount += 1
  store<u32>(free, hash)
  store<u32>(free, size, 4)
  store<u32>(free, copy, 8)
  store<u32>(free, topicCount, 12)
  return topicCount - 1
}

/**
 * Clears the topics. Called before a scan, when no rows are in use; the new generation invalidates
 * ids kept elsewhere.
 */
function beginAnew(): void {
  memory.fill(SLOTS, 0, SLOT_SIZE * SLOT_COUNT)
  topicCount = 0
  arenaUsed = 0
  misses = 0
  generation += 1
}

/**
 * The variable byte integer at `at`, of at most four bytes in the shortest form; sets `behind`.
 * 0xffffffff, which is above every valid value, if it is malformed.
 */
@inline function variableByteInteger(at: u32): u32 {
  let byte: u32 = load<u8>(at)
  if (byte < 0x80) {
    behind = at + 1
    return byte
  }
  let value = byte & 0x7f
  let shift: u32 = 7
  do {
    at += 1
    byte = load<u8>(at)
    value |= (byte & 0x7f) << shift
    shift += 7
  } while (byte >= 0x80 && shift < 28)
  behind = at + 1
  return byte >= 0x80 || byte == 0 ? 0xffffffff : value
}

/**
 * The end of the length-prefixed field at `at`; `end` + 1 for a field that does not end by `end`.
 */
@inline function fieldEnd(at: u32, end: u32): u32 {
  if (at + 2 > end) return end + 1
  const next = at + 2 + (((<u32>load<u8>(at)) << 8) | <u32>load<u8>(at, 1))
  return next > end ? end + 1 : next
}

/**
 * Whether the properties in [at, end) are valid in a PUBLISH from a server, with at most one
 * subscription identifier.
 */
function readProperties(at: u32, end: u32): bool {
  let seen: u64 = 0
  while (at < end) {
    const id: u32 = load<u8>(at)
    at += 1
    if (id == 0x26) {
      const middle = fieldEnd(at, end)
      if (middle > end || !isText(at + 2, middle, false)) return false
      const next = fieldEnd(middle, end)
      if (next > end || !isText(middle + 2, next, false)) return false
      userProperties += 1
      at = next
      continue
    }
    // No other property may repeat here. A second subscription identifier is left to TypeScript.
    if (id > 0x23 || ((seen >> id) & 1) != 0) return false
    seen |= (<u64>1) << id
    let next = at
    switch (id) {
      case 0x01:
        next = at + 1
        if (load<u8>(at) > 1) return false
        break
      case 0x02:
        next = at + 4
        break
      case 0x03:
        next = fieldEnd(at, end)
        if (next > end || !isText(at + 2, next, false)) return false
        break
      case 0x08:
        next = fieldEnd(at, end)
        if (next > end || next == at + 2 || !isText(at + 2, next, true)) return false
        break
      case 0x09:
        next = fieldEnd(at, end)
        break
      case 0x0b:
        subscriptionIdentifier = variableByteInteger(at)
        if (subscriptionIdentifier == 0 || subscriptionIdentifier == 0xffffffff) return false
        next = behind
        break
      case 0x23:
        next = at + 2
        topicAlias = ((<u32>load<u8>(at)) << 8) | <u32>load<u8>(at, 1)
        if (topicAlias == 0) return false
        break
      default:
        return false
    }
    if (next > end) return false
    at = next
  }
  return true
}

/**
 * Fills the row with the fields after the fixed header and returns its mark: UNREAD for a packet
 * that is not accepted.
 */
@inline function readPublish(row: u32, first: u32, body: u32, end: u32, version5: bool): u32 {
  const topicEnd = fieldEnd(body, end)
  if (topicEnd > end) return UNREAD
  const topicStart = body + 2
  let topic = NO_TOPIC
  if (topicEnd > topicStart) {
    topic = intern(topicStart, topicEnd - topicStart)
    if (topic == NO_TOPIC) return UNREAD
  }
  let at = topicEnd
  let packetId: u32 = 0
  if ((first & 6) != 0) {
    if (at + 2 > end) return UNREAD
    packetId = ((<u32>load<u8>(at)) << 8) | <u32>load<u8>(at, 1)
    if (packetId == 0) return UNREAD
    at += 2
  }
  let mark: u32 = 0
  let propertiesStart = at
  if (version5) {
    const length = variableByteInteger(at)
    propertiesStart = behind
    if (propertiesStart > end || length > end - propertiesStart) return UNREAD
    at = propertiesStart + length
    if (length > 0) {
      topicAlias = 0
      userProperties = 0
      subscriptionIdentifier = 0
      if (!readProperties(propertiesStart, at)) return UNREAD
      if (topicAlias != 0 && topic == NO_TOPIC) topic = ALIAS_ONLY
      store<u32>(row, topicAlias, 32)
      store<u32>(row, userProperties, 36)
      store<u32>(row, subscriptionIdentifier, 40)
      mark = PROPERTIES
    }
  }
  if (topic == NO_TOPIC) return UNREAD
  store<i32>(row, topic, 12)
  store<u32>(row, topicEnd, 16)
  store<u32>(row, packetId, 20)
  store<u32>(row, propertiesStart, 24)
  store<u32>(row, at, 28)
  return mark
}

/**
 * Fills one row for each packet from `from` on, and returns the number of rows. Stops at a packet
 * that is not complete before `to` or is longer than `maximum`, at one whose flags TypeScript must
 * check, and when the table is full. The cells hold where it stopped.
 */
export function scan(from: u32, to: u32, version5: bool, maximum: u32): u32 {
  if (misses >= MOST_MISSES) beginAnew()
  let at = from
  let row = TABLE
  while (at < to && row < CELLS) {
    const first: u32 = load<u8>(at)
    // A header that goes beyond the end belongs to a packet that does too, so the bytes read there
    // have no effect.
    const length = variableByteInteger(at + 1)
    const body = behind
    if (length > READ_SIZE) break
    const end = body + length
    if (end > to || end - at > maximum) break
    let mark = OTHER
    if (first >> 4 == 3) {
      const flags = first & 0x0e
      if ((flags & 6) == 6 || (flags == 8 && version5)) break
      mark = readPublish(row, first, body, end, version5)
    }
    store<u32>(row, first | mark)
    store<u32>(row, at, 4)
    store<u32>(row, body, 8)
    store<u32>(row, end, 44)
    row += ROW_SIZE
    at = end
  }
  store<u32>(CELLS, at)
  store<u32>(CELLS, generation, 4)
  return (row - TABLE) / ROW_SIZE
}
