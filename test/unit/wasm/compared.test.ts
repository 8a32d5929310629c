/** The scanner against the parser in TypeScript: every shared vector, text, topics, and several connections that share a window, in every kind of pieces. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WasmFrames, type Worth } from '../../../src/wasm/frames.js'
import { FIRST, type Memory, ROW, UNREAD } from '../../../src/wasm/memory.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { HAS_WILDCARD, ILL_FORMED, scanUtf8 } from '../../../src/wire/utf8.js'
import { field, hex, join, packet, variable } from '../../fuzz/build.js'
import { transportForms } from '../wire/byte-forms.js'
import { bytesOf, drip, readVectors, splits, type Vector } from '../wire/vector-files.js'
import {
  always,
  differs,
  instantiate,
  type Setting,
  sizeLimit,
  tellFramer,
  tellScanner,
} from './scanner.js'
import { type Delivery, type Story, type Telling, tellStepwise } from './story.js'
import { type Stream, streams } from './streams.js'

const memory = instantiate()

function compare(setting: Setting, chunks: () => Iterable<Uint8Array>): void {
  for (const inPlace of [true, false]) {
    const deliveries = Array.from(chunks(), (bytes, index): Delivery => {
      return {
        bytes: bytes.slice(),
        inPlace,
        form: transportForms[index % transportForms.length] as string,
      }
    })
    const story = tellScanner(memory, setting, deliveries, always)
    expect(differs(tellFramer(setting, deliveries), story)).toBeUndefined()
  }
}

function compareVector(vector: Vector, protocolVersion: 4 | 5): void {
  const bytes = bytesOf(vector)
  for (const maximumPacketSize of [268_435_460, bytes.length, bytes.length - 1]) {
    const setting = { protocolVersion, maximumPacketSize }
    compare(setting, () => [bytes])
    compare(setting, () => drip(bytes))
  }
  for (const chunks of splits(bytes))
    compare({ protocolVersion, maximumPacketSize: 1 << 20 }, () => chunks)
}

describe.each([
  ['5.0', 5, '../../rules/vectors.json'],
  ['3.1.1', 4, './vectors-311.json'],
] as const)('shared vectors of %s', (_name, version, file) => {
  const vectors = readVectors(file).filter((vector) => vector.fill === undefined)

  it.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    compareVector(vector, version)
    compareVector(vector, version === 5 ? 4 : 5)
  })
})

const places = [0, 13, 14, 15, 29]
const followers = [0x00, 0x23, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xff]

/** Sequences of up to four bytes: all pairs, and all leads with what makes a difference behind them. */
function* sequences(): Generator<number[]> {
  for (let pair = 0; pair < 0x10000; pair++) yield [pair >> 8, pair & 255]
  for (let lead = 0xc0; lead < 0x100; lead++) {
    for (const second of followers) {
      for (const third of followers) {
        yield [lead, second, third]
        for (const fourth of lead < 0xf0 ? [] : followers) yield [lead, second, third, fourth]
      }
    }
  }
}

function accepted(memory: Memory, packets: readonly Uint8Array[]): boolean[] {
  const all = join(...packets)
  memory.window.bytes.set(all)
  const rows = memory.scan(0, all.length, true, 65_536)
  expect(rows).toBe(packets.length)
  return packets.map((_, index) => (memory.table[index * ROW + FIRST] as number) < UNREAD)
}

/** Compares in batches: as a value of a user property, and as a topic. */
function compareTexts(memory: Memory, texts: readonly Uint8Array[]): string[] {
  const found = texts.map((text) => scanUtf8(text, 0, text.length))
  const shown = (index: number) => hex(texts[index] as Uint8Array)
  const inValue = (text: Uint8Array) =>
    packet(0x30, field('t'), variable(5 + text.length), 38, field(''), field(text))
  const values = accepted(memory, texts.map(inValue))
  const topics = accepted(
    memory,
    texts.map((text) => packet(0x30, field(text), 0)),
  )
  return found.flatMap((is, index) => [
    ...(values[index] === (is !== ILL_FORMED) ? [] : [`value ${shown(index)}`]),
    ...(topics[index] === (is !== ILL_FORMED && is !== HAS_WILDCARD)
      ? []
      : [`topic ${shown(index)}`]),
  ])
}

/** What is wrong with sequences behind so many bytes, and how many were looked at. */
function look(memory: Memory, place: number): { readonly wrong: string[]; readonly count: number } {
  const before = new Uint8Array(place).fill(0x61)
  let batch: Uint8Array[] = []
  const wrong: string[] = []
  let count = 0
  for (const sequence of sequences()) {
    batch.push(join(before, sequence, count % 3 === 0 ? [0x62] : []))
    count += 1
    if (batch.length < 200) continue
    wrong.push(...compareTexts(memory, batch))
    batch = []
    if (wrong.length > 10) break
  }
  wrong.push(...compareTexts(memory, batch))
  return { wrong, count }
}

describe('text', () => {
  const memory = instantiate()

  it.each(places)('is accepted exactly where it is well-formed, behind %i bytes', (place) => {
    const { wrong, count } = look(memory, place)
    expect(wrong).toEqual([])
    expect(count).toBeGreaterThan(100_000)
  })

  it('of any length ends where it ends: the byte behind it is not looked at, the last one is', () => {
    const texts = Array.from({ length: 130 }, (_, length) => length).flatMap((length) =>
      [[], [0x00], [0x2b], [0xc3, 0xa4], [0xc3]].map((last) =>
        join(new Uint8Array(length).fill(0x61), last),
      ),
    )
    const wrong: string[] = []
    for (let at = 5; at < texts.length; at += 5)
      wrong.push(...compareTexts(memory, texts.slice(at, at + 5)))
    expect(wrong).toEqual([])
  })
})

const setting = { protocolVersion: 5, maximumPacketSize: 1 << 20 } as const
const publish = (topic: string): Uint8Array => packet(0x30, field(topic), 0, 'x')

function namesOf(
  memory: Memory,
  frames: WasmFrames,
  topics: readonly string[],
  table: TopicTable,
): (string | undefined)[] {
  const { window } = memory
  const view = new PublishView()
  const names: (string | undefined)[] = []
  for (let at = 0; at < topics.length; at += 500) {
    const bytes = join(...topics.slice(at, at + 500).map(publish))
    window.bytes.set(bytes)
    frames.push(window.bytes, bytes.length, window.data)
    while (frames.next()) {
      frames.read(view, table)
      names.push(view.record?.name)
    }
  }
  return names
}

const numbered = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `plant/line-${from + index}/temperature`)

describe('topics', () => {
  it('have the record of the table that is asked for, the same one again and again', () => {
    const frames = new WasmFrames(instantiate(), setting, always)
    const view = new PublishView()
    const [one, other] = [new TopicTable(), new TopicTable()]
    const read = (topic: string, table = one) => {
      frames.push(publish(topic))
      expect(frames.next()).toBe(true)
      frames.read(view, table)
      expect(frames.next()).toBe(false)
      return view.record
    }
    const records = ['a', 'b', 'a', 'a', 'b'].map((topic) => read(topic))
    expect(records.map((record) => record?.name)).toEqual(['a', 'b', 'a', 'a', 'b'])
    expect([records[2], records[3], records[4]]).toEqual([records[0], records[0], records[1]])
    expect([records[2] === records[0], records[4] === records[1]]).toEqual([true, true])
    const elsewhere = read('a', other)
    expect(elsewhere).not.toBe(records[0])
    expect(read('a', other)).toBe(elsewhere)
    expect(read('a')).toBe(records[0])
  })

  it('are right when there are more than have room, and when the numbers begin anew', () => {
    const memory = instantiate()
    const frames = new WasmFrames(memory, setting, always)
    const table = new TopicTable()
    const first = memory.generation
    const few = numbered(100)
    expect(namesOf(memory, frames, few, table)).toEqual(few)
    const generation = memory.generation
    expect(generation).not.toBe(first)
    for (let round = 0; round < 4; round++) {
      const many = numbered(5000, round * 5000)
      expect(namesOf(memory, frames, many, table)).toEqual(many)
      expect(namesOf(memory, frames, few, table)).toEqual(few)
    }
    expect(memory.generation).toBeGreaterThan(generation)
  })

  it('that have one hash, or one place, are told apart, and cost a bounded number of looks', () => {
    const memory = instantiate()
    const frames = new WasmFrames(memory, setting, always)
    const table = new TopicTable()
    const generation = memory.generation
    const hashes = new Map<number, string>()
    const places = new Map<number, string[]>()
    const twins: string[] = []
    for (let n = 0; n < 200_000; n++) {
      const topic = `t/${n.toString(36).padStart(5, '0')}`
      const hash = hashOf(topic)
      const other = hashes.get(hash)
      if (other !== undefined) twins.push(other, topic)
      hashes.set(hash, topic)
      places.set(hash & 255, [...(places.get(hash & 255) ?? []), topic])
    }
    const crowded = [...places.values()][0] as string[]
    // A look at the test itself: with 32 bits, some of so many have one hash.
    expect(twins.length).toBeGreaterThan(2)
    expect(crowded.length).toBeGreaterThan(500)
    for (const topics of [[...twins, ...twins], crowded, numbered(6000), crowded.slice(0, 50)])
      expect(namesOf(memory, frames, topics, table)).toEqual(topics)
    expect(memory.generation).not.toBe(generation)
  })
})

const mask = 2n ** 64n - 1n

/** The hash of the scanner for text of less than eight bytes: only to choose topics by it. With another hash in the scanner this has to follow. */
function hashOf(topic: string): number {
  const bytes = [...topic].reduceRight(
    (sum, character) => (sum << 8n) | BigInt(character.charCodeAt(0)),
    0n,
  )
  const hash = ((bytes ^ BigInt(topic.length)) * 0x9e3779b97f4a7c15n) & mask
  return Number((((hash ^ (hash >> 32n)) * 0x9e3779b97f4a7c15n) & mask) >> 32n)
}

const seconds = Number(process.env['MQWIRE_FUZZ_SECONDS'] ?? 8)

/** One connection on its way, with the number of deliveries that have begun. */
interface Connection {
  readonly telling: Telling
  readonly deliveries: readonly Delivery[]
  begun: number
  state: 'begins' | 'reads' | 'keeps' | 'ends' | 'is over'
  story: Story
}

/** A read into the window is whole before the next begins: nobody is in the midst of a walk then. */
function mayStep(connection: Connection, all: readonly Connection[]): boolean {
  if (connection.state === 'is over') return false
  if (connection.state !== 'begins' || connection.deliveries[connection.begun]?.inPlace !== true)
    return true
  return all.every(({ state }) => state !== 'reads')
}

function step(connection: Connection): void {
  const { done, value } = connection.telling.next()
  if (done === true) {
    connection.state = 'is over'
    connection.story = value
  } else {
    if (connection.state === 'begins') connection.begun += 1
    connection.state = value
  }
}

/** Runs them in an order drawn from `turns`, and gives their stories. */
function interleave(
  memory: ReturnType<typeof instantiate>,
  given: readonly Stream[],
  turns: readonly number[],
  worth: Worth | undefined,
): Story[] {
  const all = given.map(({ setting, deliveries }): Connection => {
    const telling = tellStepwise(
      new WasmFrames(memory, { ...setting, sizeLimit }, worth),
      deliveries,
      memory.window,
    )
    // Up to where the first delivery begins.
    const { done } = telling.next()
    return { telling, deliveries, begun: 0, state: done === true ? 'is over' : 'begins', story: [] }
  })
  for (let turn = 0; ; turn++) {
    const able = all.filter((connection) => mayStep(connection, all))
    if (able.length === 0) break
    step(able[(turns[turn % turns.length] as number) % able.length] as Connection)
  }
  expect(all.every(({ state }) => state === 'is over')).toBe(true)
  return all.map(({ story }) => story)
}

it('connections that share a scanner: tell what each tells alone', { timeout: 60_000 }, () => {
  const memory = instantiate()
  let count = 0
  const several = fc.array(streams, { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(
      several,
      fc.array(fc.nat(11), { minLength: 1, maxLength: 20 }),
      fc.constantFrom(always, undefined),
      (given, turns, worth) => {
        count += 1
        interleave(memory, given, turns, worth).forEach((story, index) => {
          const { setting, deliveries } = given[index] as Stream
          expect(differs(tellFramer(setting, deliveries), story)).toBeUndefined()
        })
        expect([memory.owner === undefined, memory.broken]).toEqual([true, false])
      },
    ),
    {
      numRuns: 1_000_000,
      interruptAfterTimeLimit: (seconds * 1000) / 2,
      markInterruptAsFailure: false,
    },
  )
  expect(count, 'inputs').toBeGreaterThan(30)
})
