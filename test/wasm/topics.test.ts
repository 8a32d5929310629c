/**
 * Topics that the scanner knows by number: few, more than it has room for, of every length, chosen to collide, and for many connections at once.
 */
import { describe, expect, it } from 'vitest'
import { WasmFrames } from '../../src/wasm/frames.js'
import type { Memory } from '../../src/wasm/memory.js'
import { PublishView } from '../../src/wire/publish.js'
import { TopicTable } from '../../src/wire/topic-table.js'
import { field, join, packet } from '../fuzz/build.js'
import { compile, readSource } from './compiler.js'
import { topicDefects, weak } from './defects.js'
import { always, differs, instantiate, tellFramer, tellScanner } from './scanner.js'

const setting = { protocolVersion: 5, maximumPacketSize: 1 << 20 } as const
const publish = (topic: string): Uint8Array => packet(0x30, field(topic), 0, 'x')

/** What came in, by the names that the records have. */
function namesOf(memory: Memory, frames: WasmFrames, topics: readonly string[], table: TopicTable): (string | undefined)[] {
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

const numbered = (count: number, from = 0): string[] => Array.from({ length: count }, (_, index) => `plant/line-${from + index}/temperature`)

describe('topics', () => {
  it('have the record of the table of topics, the same one again and again', () => {
    const memory = instantiate()
    const frames = new WasmFrames(memory, setting, always)
    const view = new PublishView()
    const table = new TopicTable()
    const records = ['a', 'b', 'a', 'a', 'b'].map((topic) => {
      frames.push(publish(topic))
      expect(frames.next()).toBe(true)
      frames.read(view, table)
      expect(frames.next()).toBe(false)
      return view.record
    })
    expect(records.map((record) => record?.name)).toEqual(['a', 'b', 'a', 'a', 'b'])
    expect(records[2]).toBe(records[0])
    expect(records[4]).toBe(records[1])
    expect(records[0]).not.toBe(records[1])
  })

  it('have the record of the table that is asked for, when that changes', () => {
    const memory = instantiate()
    const frames = new WasmFrames(memory, setting, always)
    const view = new PublishView()
    const read = (table: TopicTable) => {
      frames.push(publish('a'))
      frames.next()
      frames.read(view, table)
      frames.next()
      return view.record
    }
    const [one, other] = [new TopicTable(), new TopicTable()]
    const first = read(one)
    expect(read(one)).toBe(first)
    expect(read(other)).not.toBe(first)
    expect(read(other)).toBe(read(other))
    expect(read(one)).toBe(first)
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

  it('are right for connections that share the numbers, each with its own table', () => {
    const memory = instantiate()
    const connections = Array.from({ length: 3 }, () => ({ frames: new WasmFrames(memory, setting, always), table: new TopicTable() }))
    for (let round = 0; round < 12; round++) {
      const { frames, table } = connections[round % 3] as (typeof connections)[number]
      const some = [...numbered(900, (round % 5) * 700), ...numbered(40)]
      expect(namesOf(memory, frames, some, table)).toEqual(some)
    }
  })

  it('of every length are told apart', { timeout: 60_000 }, () => {
    const memory = instantiate()
    const lengths = [...Array.from({ length: 70 }, (_, index) => index + 1), 127, 128, 1022, 1023, 1024, 1025, 4000, 16_000, 65_000, 65_535]
    for (let round = 0; round < 3; round++) {
      for (const length of lengths) {
        const text = 'x'.repeat(length)
        const bytes = join(publish(text), publish(`y${text.slice(1)}`), publish(`${text.slice(0, -1)}z`), publish(text))
        for (const inPlace of [true, false]) {
          const deliveries = Array.from({ length: Math.ceil(bytes.length / 60_000) }, (_, index) => ({
            bytes: bytes.slice(index * 60_000, (index + 1) * 60_000),
            inPlace,
          }))
          expect(differs(tellFramer(setting, deliveries), tellScanner(memory, setting, deliveries, always))).toBeUndefined()
        }
      }
    }
  })

  it('that all have one of four hashes are told apart, and cost a bounded number of looks', async () => {
    const source = readSource()
    expect(source.split(weak.find)).toHaveLength(2)
    const memory = instantiate(await compile(source.replace(weak.find, weak.replace), true))
    const frames = new WasmFrames(memory, setting, always)
    const table = new TopicTable()
    const generation = memory.generation
    const topics = [...numbered(300), ...numbered(300), ...numbered(6000)]
    expect(namesOf(memory, frames, topics, table)).toEqual(topics)
    expect(namesOf(memory, frames, numbered(50), table)).toEqual(numbered(50))
    expect(memory.generation).not.toBe(generation)
  })
})

describe('a defect in telling topics apart is found:', () => {
  const alike = ['abc', 'ab', 'abd', `${'x'.repeat(20)}a`, `${'x'.repeat(20)}b`, `y${'x'.repeat(20)}`, `z${'x'.repeat(20)}`]

  it.each(topicDefects.map((defect) => [defect.name, defect] as const))('%s', { timeout: 60_000 }, async (_, { find, replace }) => {
    // One hash for all, which has eight places.
    const source = readSource().replace(weak.find, 'const hash: u32 = 0')
    expect(source.split(find)).toHaveLength(2)
    const read = async (text: string) => {
      const memory = instantiate(await compile(text, true))
      return namesOf(memory, new WasmFrames(memory, setting, always), alike, new TopicTable())
    }
    expect(await read(source)).toEqual(alike)
    expect(await read(source.replace(find, () => replace))).not.toEqual(alike)
  })
})
