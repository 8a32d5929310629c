/**
 * Defects that are planted in the AssemblyScript source to see the comparison fail. None of them is in the product.
 *
 * Each accepts or tells something else than the TypeScript parser. One whose text does not occur exactly once has to follow the source.
 */

/** One planted defect. */
export interface Defect {
  readonly name: string
  readonly find: string
  readonly replace: string
}

/** What makes hashes collide. */
export const weak = { find: 'const hash = hashOf(at, size)', replace: 'const hash = hashOf(at, size) & 3' }

const defect = (name: string, find: string, replace: string): Defect => ({ name, find, replace })

/** Those in how packets are taken apart. */
export const defects: readonly Defect[] = [
  defect('a length in more bytes than it needs', 'byte >= 0x80 || byte == 0 ?', 'byte >= 0x80 ?'),
  defect('a field that runs over the end', 'return next > end ? end + 1 : next', 'return next > end ? end : next'),
  defect('user properties are not counted', 'userProperties += 1', 'userProperties += 0'),
  defect('the value of a user property is not looked at', 'if (next > end || !isText(middle + 2, next, false))', 'if (next > end)'),
  defect('a property may repeat', '|| ((seen >> id) & 1) != 0', ''),
  defect('packet identifier 0', 'if (packetId == 0) return UNREAD', ''),
  defect('the alias of the packet before', '      topicAlias = 0\n', ''),
  defect('no topic and no alias', 'if (topicAlias != 0 && topic == NO_TOPIC)', 'if (topic == NO_TOPIC)'),
  defect('QoS 3', '(flags & 6) == 6 ||', ''),
  defect('packets that are too large by a byte', 'end - at > maximum', 'end - at > maximum + 1'),
  defect('packets that lack a byte', 'end > to ||', 'end > to + 1 ||'),
  defect('properties in 3.1.1', 'if (version5) {\n    const length', 'if (true) {\n    const length'),
]

/** Those in the judgement of text. */
export const textDefects: readonly Defect[] = [
  defect('U+0000 in ASCII', 'i8x16.gt_s(bytes, i8x16.splat(0))', 'i8x16.ge_s(bytes, i8x16.splat(0))'),
  defect('U+0000 elsewhere', ', i8x16.eq(bytes, i8x16.splat(0))))', ', i8x16.splat(0)))'),
  defect('the last byte is not looked at', '((1 << (end - at)) - 1)', '((1 << (end - at - 1)) - 1)'),
  defect('a character that is not complete', 'for (; at <= end; at += 16) {', 'for (; at < end; at += 16) {'),
  defect('what is behind the end', 'if (room < 16) {', 'if (false) {'),
  defect('leads that there are not', 'i8x16.splat(<u8>0xfe)', 'i8x16.splat(<u8>0xff)'),
  defect('leads above the last', 'i8x16.splat(<u8>0xf4)', 'i8x16.splat(<u8>0xf5)'),
  defect('overlong forms of three bytes', 'i8x16.lt_u(bytes, i8x16.splat(<u8>0xa0))', 'i8x16.lt_u(bytes, i8x16.splat(<u8>0x9f))'),
  defect('surrogates', 'follows(before, 0xed', 'follows(before, 0xee'),
  defect('overlong forms of four bytes', 'i8x16.lt_u(bytes, i8x16.splat(<u8>0x90))', 'i8x16.lt_u(bytes, i8x16.splat(<u8>0x8f))'),
  defect('points above U+10FFFF', 'i8x16.gt_u(bytes, i8x16.splat(<u8>0x8f))', 'i8x16.gt_u(bytes, i8x16.splat(<u8>0x90))'),
  defect('a third byte that continues nothing', 'v128.or(second, v128.or(third, fourth))', 'v128.or(second, fourth)'),
  defect('a fourth byte that continues nothing', 'v128.or(second, v128.or(third, fourth))', 'v128.or(second, third)'),
  defect('the block before', '    last = bytes\n', ''),
  defect('wildcards behind text that is not ASCII', 'if (asTopic) wrong', 'if (false) wrong'),
]

/** Those in telling topics apart, which show where hashes collide. */
export const topicDefects: readonly Defect[] = [
  defect('the last byte is not looked at', '((equal ^ 0xffff) & ((1 << size) - 1)) == 0', '((equal ^ 0xffff) & ((1 << (size - 1)) - 1)) == 0'),
  defect('the first sixteen bytes are not looked at', 'v128.load(other))) != 0xffff) return false', 'v128.load(other))) != 0xffff) return true'),
  defect('bytes are not looked at', 'isSame(at, load<u32>(slot, 8), size)', 'true'),
  defect('the length is not looked at', 'load<u32>(slot, 4) == size', 'load<u32>(slot, 4) >= size'),
]
