/**
 * Topics that the scanner knows by number: few, more than it has room for, of every length, chosen to collide, and for many connections at once.
 */
import { describe, expect, it } from 'vitest'
import { WasmFrames } from '../../../src/wasm/frames.js'
import type { Memory } from '../../../src/wasm/memory.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { field, join, packet } from '../../fuzz/build.js'
import { always, instantiate } from './scanner.js'

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
