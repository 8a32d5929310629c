/** What is done to valid packets: longer forms that mean the same, and faults of one kind each. A fault may leave the packet valid. */
import { fromHex, join, variable } from '../../fuzz/build.js'
import { mutate, mutationKinds, packetsIn, tokens } from '../../fuzz/mutate.js'
import type { Random } from '../../world/random.js'

/** What is left over: the first two are valid where a Reason Code and a Property Length were left out. */
const more: readonly number[][] = [[0], [0, 0], [0, 1, 97], [255], [0xd0, 0], [0xc0, 0]]

/** A packet taken apart: its first byte, and what follows its Remaining Length. */
interface Parts {
  readonly first: number
  readonly body: Uint8Array
}

function partsOf(bytes: Uint8Array): Parts {
  return { first: bytes[0] ?? 0, body: bytes.subarray(packetsIn(bytes, 0)[0]?.[1] ?? 2) }
}

function whole({ first, body }: Parts): Uint8Array {
  return join(first, variable(body.length), body)
}

const typeOf = ({ first }: Parts): number => first >> 4

/** Where the Property Length lies in the body of a valid packet of MQTT 5.0; beyond the end where it was left out. */
function propertiesAt({ first, body }: Parts): number {
  const type = first >> 4
  if (type === 1) return 10
  if (type === 2 || (type > 7 && type < 12)) return 2
  if (type === 3) return 2 + (body[0] ?? 0) * 256 + (body[1] ?? 0) + ((first & 6) > 0 ? 2 : 0)
  return type < 8 ? 3 : type > 13 ? 1 : body.length
}

/** Where the Reason Code lies, or the first of several; beyond the end where there is none. */
function codeAt(parts: Parts): number {
  const type = typeOf(parts)
  if (type === 2) return 1
  if (type > 3 && type < 8) return 2
  if (type > 13) return 0
  return type === 9 || type === 11 ? parts.body.length - 1 : parts.body.length
}

function identifierAt(parts: Parts): number {
  const type = typeOf(parts)
  if (type === 3)
    return (parts.first & 6) > 0
      ? 2 + (parts.body[0] ?? 0) * 256 + (parts.body[1] ?? 0)
      : parts.body.length
  return (type > 3 && type < 8) || (type > 7 && type < 12) ? 0 : parts.body.length
}

/** Says a Reason Code of 0 and a Property Length of 0 where they may be left out (sections 3.4.2.1, 3.14.2.1). */
export function prolonged(bytes: Uint8Array, random: Random): Uint8Array {
  const parts = partsOf(bytes)
  const type = typeOf(parts)
  const before = type === 14 ? 0 : 2
  if (type !== 14 && (type < 4 || type > 7)) return bytes
  const { length } = parts.body
  if (length > before + 1) return bytes
  const added = length === before ? random.pick(more.slice(0, 2)) : [0]
  return whole({ ...parts, body: join(parts.body, added) })
}

function put(body: Uint8Array, at: number, ...values: readonly number[]): Uint8Array {
  const changed = body.slice()
  values.forEach((value, index) => {
    if (at + index < changed.length) changed[at + index] = value
  })
  return changed
}

/** A property more, with its lengths right. */
function withProperty(parts: Parts, random: Random): Parts {
  const at = propertiesAt(parts)
  const { body } = parts
  const length = body[at] ?? 0
  // Longer blocks stay as they are.
  if (at > body.length || length > 90) return parts
  const token = random.pick(properties)
  const added = random.chance(0.5) ? join(token, token) : token
  const longer = put(at === body.length ? join(body, 0) : body, at, length + added.length)
  const place = at + 1 + (random.chance(0.5) ? 0 : length)
  return { ...parts, body: join(longer.subarray(0, place), added, longer.subarray(place)) }
}

/** The same number in more bytes than it needs [MQTT-1.5.5-1], or in five. */
function overlong(value: number, random: Random): number[] {
  const shortest = variable(value)
  const bytes = shortest.map((byte) => byte | 128)
  while (bytes.length < 3 && random.chance(0.3)) bytes.push(128)
  return random.chance(0.2) ? [128, 128, 128, 128, 0] : [...bytes, 0]
}

const properties = tokens.slice(0, 34)
const badText = ['eda080', 'c080', 'e080af', 'efbbbf'].map(fromHex)

type Fault = (parts: Parts, version: 4 | 5, random: Random) => Uint8Array

/** Values put over the body, from a place on. */
const over =
  (
    place: (parts: Parts, random: Random) => number,
    values: (random: Random, parts: Parts) => Iterable<number>,
  ): Fault =>
  (parts, _version, random) => {
    const at = place(parts, random)
    return whole({ ...parts, body: put(parts.body, at, ...values(random, parts)) })
  }

const anywhere = ({ body }: Parts, random: Random): number => random.below(body.length + 1)
const any = (random: Random): number[] => [random.below(256)]

const faults: readonly Fault[] = [
  // Packet identifier 0 [MQTT-2.2.1-3].
  over(identifierAt, () => [0, 0]),
  // Any Reason Code.
  over(codeAt, any),
  // Flags of the fixed header (section 2.1.3).
  (parts, _version, random) => whole({ ...parts, first: (parts.first & 0xf0) | random.below(16) }),
  // Another type with this body.
  (parts, _version, random) =>
    whole({ ...parts, first: (random.below(16) << 4) | random.pick([parts.first & 15, 0, 2]) }),
  (parts, version, random) => whole(version === 5 ? withProperty(parts, random) : parts),
  (parts, version, random) =>
    whole(version === 5 ? withProperty(withProperty(parts, random), random) : parts),
  // A Remaining Length in more bytes than it needs, or in five.
  (parts, _version, random) => join(parts.first, overlong(parts.body.length, random), parts.body),
  // A Property Length in more bytes than it needs.
  (parts, version, random) => {
    const at = propertiesAt(parts)
    const length = parts.body[at] ?? 128
    if (version === 4 || length > 127) return whole(parts)
    return whole({
      ...parts,
      body: join(parts.body.subarray(0, at), overlong(length, random), parts.body.subarray(at + 1)),
    })
  },
  // A Property Length that is too long or too short.
  over(propertiesAt, (random, parts) => [
    ((parts.body[propertiesAt(parts)] ?? 0) + random.between(-3, 3)) & 255,
  ]),
  // Bytes that strings must not hold, or that topics must not.
  over(anywhere, (random) => [
    random.pick([0, 0xff, 0xc0, 0xed, 0x80, 0x2b, 0x23, 0x2f, random.below(256)]),
  ]),
  // Surrogates, overlong forms and U+0000 inside of strings: three bytes, whose lengths are left alone.
  over(anywhere, (random) => random.pick(badText)),
  // Cut off, or with bytes left over, inside and behind.
  (parts, _version, random) =>
    whole({ ...parts, body: parts.body.subarray(0, anywhere(parts, random)) }),
  (parts, _version, random) => whole({ ...parts, body: join(parts.body, random.pick(more)) }),
  (parts, _version, random) => whole(parts).slice(0, random.below(parts.body.length + 2)),
  (parts, _version, random) => join(whole(parts), random.pick(more)),
  // Flags of a CONNECT or of a CONNACK, and the last options of a SUBSCRIBE.
  over((parts) => (typeOf(parts) === 1 ? 7 : 0), any),
  over(({ body }) => body.length - 1, any),
  // Another protocol name or version.
  over(
    (parts, random) => (typeOf(parts) === 1 ? 2 + random.below(5) : 0),
    (random) => [random.pick([3, 4, 5, 6, 0x84, 77])],
  ),
  // No body.
  (parts) => whole({ ...parts, body: new Uint8Array(0) }),
]

/** The packet with a fault, or with up to three changes of the fuzzer. Large ones lose a byte at most. */
export function faulty(bytes: Uint8Array, version: 4 | 5, random: Random): Uint8Array {
  const parts = partsOf(bytes)
  if (random.chance(0.7) || bytes.length > 2000) return random.pick(faults)(parts, version, random)
  let changed = bytes
  for (let count = random.between(1, 3); count > 0; count--) {
    const kind = random.pick(mutationKinds)
    changed = mutate(changed, 0, {
      kind,
      at: random.below(4096),
      value: random.below(65_536),
      size: random.below(256),
    })
  }
  return changed
}
