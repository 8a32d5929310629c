/**
 * What the scanner accepts as text, against the parser in TypeScript: every pair of bytes, and every kind of longer sequence, at every place of a
 * block of 16 bytes, in topics and in properties.
 */
import { describe, expect, it } from 'vitest'
import { FIRST, type Memory, ROW, UNREAD } from '../../../src/wasm/memory.js'
import { HAS_WILDCARD, ILL_FORMED, scanUtf8 } from '../../../src/wire/utf8.js'
import { field, hex, join, packet, variable } from '../../fuzz/build.js'
import { instantiate } from './scanner.js'

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
function compare(memory: Memory, texts: readonly Uint8Array[]): string[] {
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
    wrong.push(...compare(memory, batch))
    batch = []
    if (wrong.length > 10) break
  }
  wrong.push(...compare(memory, batch))
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
      wrong.push(...compare(memory, texts.slice(at, at + 5)))
    expect(wrong).toEqual([])
  })
})
