/**
 * Properties, for every packet that has them: each value at its edges, each property twice, cut, forbidden or unknown, and the Property Length
 * itself.
 */
import {
  type Bytes,
  block,
  fill,
  join,
  prefixed,
  stretched,
  string,
  u16,
  u32,
  vbi,
} from '../bytes.js'
import { type Book, type Meaning, method, shown, step } from '../case.js'
import {
  badTexts,
  goodTexts,
  type PacketName,
  type PropertyFact,
  properties,
  typeNumbers,
  unknownIdentifiers,
  type ValueKind,
} from '../facts.js'
import type { RuleName } from '../rules.js'
import { counts } from '../states.js'

/** What properties tell about a packet, beyond being there. */
export interface Told {
  readonly method?: string
  readonly assigned?: boolean
  readonly limit?: number
  readonly pairs?: number
  readonly identifiers?: number
}

/** A packet with room for a Property Length and properties. */
export interface Shape {
  readonly type: PacketName
  /** Properties that it always has, encoded; left out where the same property is what a case is about. */
  readonly always?: readonly [id: number, property: Bytes]
  /** Bytes behind the properties mean something else (payload, reason codes) instead of being too many. */
  readonly continues?: boolean
  wrap(block: Bytes): Bytes
  mean(told: Told): Meaning
}

const goodNumbers: Readonly<
  Record<Exclude<ValueKind, 'utf8' | 'binary' | 'pair'>, Readonly<Record<string, Bytes>>>
> = {
  flag: { '0': [0], '1': [1] },
  u16: { '1': [0, 1], '256': [1, 0], '65,535': [255, 255] },
  u32: { '1': [0, 0, 0, 1], '2^31': [0x80, 0, 0, 0], '2^32 - 1': [255, 255, 255, 255] },
  varint: {
    '1': [1],
    '127, the last of one byte': vbi(127),
    '128, the first of two': vbi(128),
    '16,383, the last of two': vbi(16_383),
    '16,384, the first of three': vbi(16_384),
    '2,097,151, the last of three': vbi(2_097_151),
    '2,097,152, the first of four': vbi(2_097_152),
    '268,435,455, the last': vbi(268_435_455),
  },
}

const numeric = (kind: ValueKind): kind is keyof typeof goodNumbers => kind in goodNumbers

/** Some value of this kind that is good in every property. */
function usual({ kind, name }: PropertyFact): Bytes {
  if (kind === 'flag' || kind === 'varint') return [1]
  // Small enough for the Topic Alias, large enough for Maximum Packet Size.
  if (kind === 'u16') return u16(name === 'Server Keep Alive' ? 600 : 3)
  if (kind === 'u32') return u32(70_000)
  if (kind === 'binary') return prefixed([0, 255])
  if (kind === 'pair') return [...string('n'), ...string('v')]
  return string(name === 'Authentication Method' ? method : 'x')
}

function told({ name }: PropertyFact, value: Bytes): Told {
  if (name === 'Authentication Method')
    return { method: new TextDecoder().decode(Uint8Array.from(value.slice(2))) }
  if (name === 'Assigned Client Identifier') return { assigned: true }
  if (name === 'Maximum Packet Size')
    return { limit: value.reduce((sum, byte) => sum * 256 + byte, 0) }
  if (name === 'Subscription Identifier') return { identifiers: 1 }
  return name === 'User Property' ? { pairs: 1 } : {}
}

class Suite {
  readonly #book: Book
  readonly #shape: Shape

  constructor(book: Book, shape: Shape) {
    this.#book = book
    this.#shape = shape
  }

  /** What is there besides the property `id`. */
  #always(id?: number): Bytes {
    const { always } = this.#shape
    return always === undefined || always[0] === id ? [] : always[1]
  }

  good(fact: PropertyFact, how: string, value: Bytes): void {
    const { type, wrap, mean } = this.#shape
    const bytes = wrap(block(this.#always(fact.id), [fact.id, ...value]))
    this.#book.add(type, `${fact.name}: ${how}`, step(bytes, mean(told(fact, value))))
  }

  bad(rule: RuleName, how: string, fact: PropertyFact | undefined, ...encoded: Bytes[]): void {
    const { type, wrap } = this.#shape
    this.#book.addBroken(type, rule, how, wrap(block(this.#always(fact?.id), ...encoded)))
  }

  /** Edges of the value, and values that are none. */
  values(fact: PropertyFact): void {
    const { name, kind, id, positive } = fact
    if (numeric(kind)) {
      for (const [how, value] of Object.entries(goodNumbers[kind])) this.good(fact, how, value)
      const zero: Bytes = kind === 'u16' ? u16(0) : kind === 'u32' ? u32(0) : [0]
      if (positive) this.bad('zero where it is forbidden', name, fact, [id, ...zero])
      else if (kind !== 'flag') this.good(fact, '0', zero)
    }
    if (kind === 'flag')
      for (const value of [2, 128, 255])
        this.bad('flag neither 0 nor 1', `${name} ${value}`, fact, [id, value])
    if (kind === 'binary') {
      for (const [how, value] of Object.entries({
        empty: [],
        'not UTF-8': [0xff, 0xc0, 0x80],
        long: fill(300, 7),
      }))
        this.good(fact, how, prefixed(value))
    }
  }

  /** Texts that are UTF-8, and texts that are not; of a pair in the name and in the value. What many packets have gets a third of them in each. */
  texts(fact: PropertyFact): void {
    const { name, kind, id, on } = fact
    let turn = typeNumbers[this.#shape.type]
    const mine = (): boolean => on.length < 3 || turn++ % 3 === 0
    const places: Readonly<Record<string, (value: Bytes) => Bytes>> =
      kind === 'utf8'
        ? { '': prefixed }
        : {
            ' name': (it) => [...prefixed(it), ...string('v')],
            ' value': (it) => [...string('n'), ...prefixed(it)],
          }
    for (const [place, encoded] of Object.entries(places)) {
      for (const [what, value] of Object.entries(badTexts)) {
        if (mine())
          this.bad('string ill-formed', `${name}${place}, ${what}`, fact, [id, ...encoded(value)])
      }
      for (const [what, value] of Object.entries(goodTexts))
        if (mine()) this.good(fact, `${place.trim()} ${what}`.trim(), encoded(value))
      const beyond =
        kind === 'utf8'
          ? [0, 9, 0x61]
          : place === ' name'
            ? [0, 9, 0x61, 0, 1, 0x62]
            : [...string('n'), 0, 9, 0x61]
      this.bad('string beyond its block', `${name}${place}`, fact, [id, ...beyond])
    }
  }

  /** Twice, where it may be there once. */
  repeated(fact: PropertyFact): void {
    const { id, name } = fact
    this.bad(
      'property repeated',
      `${name}, the same`,
      fact,
      [id, ...usual(fact)],
      [id, ...usual(fact)],
    )
    this.bad(
      'property repeated',
      `${name}, a user property between`,
      fact,
      [id, ...usual(fact)],
      [0x26, ...string('a'), ...string('b')],
      [id, ...usual(fact)],
    )
  }

  /** The Property Length ends inside the value. */
  cut(fact: PropertyFact): void {
    const value = usual(fact)
    for (let size = 0; size < value.length; size++) {
      this.bad('property cut off', `${fact.name} after ${size} of ${value.length} bytes`, fact, [
        fact.id,
        ...value.slice(0, size),
      ])
    }
  }

  /** All properties of the packet, in the order of the table and the other way round, and all but one. */
  together(facts: readonly PropertyFact[]): void {
    const { type, always, wrap, mean } = this.#shape
    // What must always be there has the value that it always has.
    const encode = (fact: PropertyFact): Bytes =>
      fact.id === always?.[0] ? always[1] : [fact.id, ...usual(fact)]
    const tell = (list: readonly PropertyFact[]): Meaning =>
      mean(
        Object.assign(
          {},
          ...list.filter((fact) => fact.id !== always?.[0]).map((fact) => told(fact, usual(fact))),
        ),
      )
    const packet = (list: readonly PropertyFact[]): Bytes => wrap(block(...list.map(encode)))
    this.#book.add(type, 'every property', step(packet(facts), tell(facts)))
    this.#book.add(
      type,
      'every property, last one first',
      step(packet(facts.toReversed()), tell(facts)),
    )
    if (facts.length < 4) return
    for (const left of facts) {
      if (left.id === always?.[0]) continue
      const rest = facts.filter((fact) => fact !== left)
      this.#book.add(type, `every property but ${left.name}`, step(packet(rest), tell(rest)))
    }
  }

  /** User properties may be anything, as often as we take them. */
  pairs(): void {
    const { type, wrap, mean } = this.#shape
    const pair = (name: string, value: string): Bytes => [0x26, ...string(name), ...string(value)]
    const many = (count: number): Bytes =>
      Array.from({ length: count }, (_, index) =>
        pair('k', String.fromCharCode(97 + (index % 26))),
      ).flat()
    const add = (how: string, count: number, ...list: Bytes[]): void =>
      this.#book.add(
        type,
        `User Property: ${how}`,
        step(wrap(block(this.#always(), ...list)), mean({ pairs: count })),
      )
    add('empty name', 1, pair('', 'v'))
    add('empty value', 1, pair('n', ''))
    add('nothing in either', 1, pair('', ''))
    add('twice the same', 2, pair('n', 'v'), pair('n', 'v'))
    add('one name, two values', 2, pair('n', 'v'), pair('n', 'w'))
    add('as many as we take', counts.pairs, many(counts.pairs))
    add('one more than we take', counts.pairs + 1, many(counts.pairs + 1))
    add(
      'one more than we take, none with anything in it',
      counts.pairs + 1,
      join(...Array.from({ length: counts.pairs + 1 }, () => pair('', ''))),
    )
    add('ten times as many as we take', counts.pairs * 10, many(counts.pairs * 10))
  }

  /** Properties that this packet does not have, or nobody has. */
  foreign(): void {
    const { type } = this.#shape
    for (const fact of properties) {
      if (fact.on.includes(type)) continue
      const client = type === 'disconnect' && fact.name === 'Session Expiry Interval'
      this.bad(client ? 'property of the client' : 'property of another packet', fact.name, fact, [
        fact.id,
        ...usual(fact),
      ])
    }
    for (const id of unknownIdentifiers)
      this.bad('unknown property', id.map(shown).join(' '), undefined, [...id, 0, 1, 0x61])
    this.bad(
      'unknown property',
      'behind a good one',
      undefined,
      [0x26, ...string('n'), ...string('v')],
      [0x05, 1],
    )
    this.bad('unknown property', 'identifier in two bytes that one would do', undefined, [
      0xa6,
      0x00,
      ...string('n'),
      ...string('v'),
    ])
  }

  lengths(): void {
    const { type, wrap, continues } = this.#shape
    const list = [...this.#always(), 0x26, ...string('n'), ...string('v')]
    const bad = (rule: RuleName, how: string, encoded: Bytes): void =>
      this.#book.addBroken(type, rule, how, wrap(encoded))
    for (const size of [2, 3, 4])
      bad('Property Length not minimal', `${size} bytes for one`, [
        ...stretched(list.length, size),
        ...list,
      ])
    bad('Property Length of five bytes', 'value of one', [...stretched(list.length, 5), ...list])
    bad('Property Length of five bytes', 'the largest', [0xff, 0xff, 0xff, 0xff, 0x7f, ...list])
    bad('Property Length beyond the packet', 'by far', [0xff, 0xff, 0xff, 0x7f, ...list])
    bad('property cut off', 'Property Length one byte short', [...vbi(list.length - 1), ...list])
    bad('property cut off', 'Property Length of one byte', [1, 0x26, ...list])
    if (continues) return
    bad('Property Length beyond the packet', 'by one byte', [...vbi(list.length + 1), ...list])
    bad('Property Length beyond the packet', 'nothing behind it', [...vbi(40)])
    bad('Property Length beyond the packet', 'not complete itself', [0x80])
  }
}

/** A user property that makes a packet as long as wanted; `fixed` bytes of it are there without. */
export function padding(bytes: number): Bytes {
  // A value has at most 65,535 bytes.
  const one = (size: number): Bytes => join([0x26], string('p'), prefixed(fill(size - 6, 0x70)))
  return bytes > 60_000 ? join(one(50_000), one(bytes - 50_000)) : one(bytes)
}

/** Every case about properties of this shape. `skip` names those that the packet's own builder sees to. */
export function addProperties(book: Book, shape: Shape, skip: readonly string[] = []): void {
  const suite = new Suite(book, shape)
  const own = properties.filter((fact) => fact.on.includes(shape.type))
  for (const fact of own) {
    const repeats = fact.kind === 'pair' || fact.kind === 'varint'
    if (!skip.includes(fact.name)) suite.values(fact)
    if (fact.kind === 'utf8' || fact.kind === 'pair') suite.texts(fact)
    if (!repeats) suite.repeated(fact)
    suite.cut(fact)
  }
  suite.together(own.filter((fact) => !skip.includes(fact.name)))
  suite.pairs()
  suite.foreign()
  suite.lengths()
}
