import { describe, expect, it } from 'vitest'
import { type TopicRecord, TopicTable, topicRecord } from '../../../src/wire/topic-table.js'

const utf8 = new TextEncoder()
const utf8Text = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * The record of a name as a reader asks for it, with the name somewhere in a chunk, at an odd place:
 * an unknown name comes twice, because a table adds it when it is seen again.
 */
function ask(
  table: TopicTable,
  name: string,
  before = 3,
): { readonly record: TopicRecord; readonly known: boolean } {
  const text = utf8.encode(name)
  const bytes = new Uint8Array(before + text.length + 5).fill(0x78)
  bytes.set(text, before)
  const end = before + text.length
  const look = (): TopicRecord | undefined => table.find(new DataView(bytes.buffer), before, end)
  const found = look()
  if (found !== undefined) return { record: found, known: true }
  table.add(bytes, before, end)
  return { record: look() ?? table.add(bytes, before, end), known: false }
}

const multiplier = 0x9e3779b1
function mix(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, multiplier)
  return product ^ (product >>> 15)
}

/** The hash of a name of 8 bytes. */
function hashOf(name: string): number {
  const data = new DataView(utf8.encode(name).buffer)
  const hash = mix(mix(8, data.getInt32(0, true)), data.getInt32(4, true))
  return hash ^ (hash >>> 20)
}

const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(97 + index))

/** Two names of 8 bytes with one hash: the second word undoes what the first one did. */
function twins(): readonly [string, string] {
  const seen = new Map<number, readonly [string, number]>()
  for (const word of letters.flatMap((a) =>
    letters.flatMap((b) => letters.map((c) => `${a}${b}${c}/`)),
  )) {
    const hash = mix(8, new DataView(utf8.encode(word).buffer).getInt32(0, true))
    // What differs in these bits only leaves letters letters.
    const known = seen.get(hash & ~0x07070707)
    if (known !== undefined) {
      const bytes = utf8.encode('hhhh')
      const data = new DataView(bytes.buffer)
      data.setInt32(0, data.getInt32(0, true) ^ known[1] ^ hash, true)
      return [`${known[0]}hhhh`, `${word}${utf8Text.decode(bytes)}`]
    }
    seen.set(hash & ~0x07070707, [word, hash])
  }
  throw new Error('there are none')
}

/** Two times 3 bytes with one hash. */
function shortTwins(): readonly [Uint8Array, Uint8Array] {
  const seen = new Map<number, readonly [number, number, number]>()
  for (let pair = 0; pair < 65_536; pair++) {
    const [first, second] = [pair >> 8, pair & 255]
    const hash = mix(mix(0, first), second)
    const known = seen.get(hash >> 8)
    if (known !== undefined)
      return [
        Uint8Array.of(known[0], known[1], 1),
        Uint8Array.of(first, second, 1 ^ ((known[2] ^ hash) & 255)),
      ]
    seen.set(hash >> 8, [first, second, hash])
  }
  throw new Error('there are none')
}

/** So many names of 8 bytes that all belong to one place of a table of so many. */
function namesAt(place: number, places: number, count: number): string[] {
  const names: string[] = []
  for (let number = 0; names.length < count; number++) {
    const name = `t${number.toString(36).padStart(7, '0')}`
    if ((hashOf(name) & (places - 1)) === place) names.push(name)
  }
  return names
}

describe('TopicTable', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 1024])(
    'a name of %i bytes has one record, wherever it lies',
    (size) => {
      const table = new TopicTable()
      const name = Array.from({ length: size }, (_, index) =>
        String.fromCharCode(97 + (index % 26)),
      ).join('')
      const first = ask(table, name)
      expect([first.known, first.record.name, first.record.version, first.record.route]).toEqual([
        false,
        name,
        -1,
        undefined,
      ])
      for (const before of [0, 1, 2, 3, 4, 7]) {
        const again = ask(table, name, before)
        expect([again.known, again.record === first.record]).toEqual([true, true])
      }
      expect(table.size).toBe(1)
    },
  )

  it.each([1, 2, 3, 4, 5, 8, 13])(
    'names of %i bytes that differ in one byte anywhere are two',
    (size) => {
      const table = new TopicTable()
      const name = 'a'.repeat(size)
      const { record } = ask(table, name)
      for (let at = 0; at < size; at++) {
        const other = `${name.slice(0, at)}b${name.slice(at + 1)}`
        expect(ask(table, other).record.name).toBe(other)
        expect(ask(table, other)).toMatchObject({ known: true, record: { name: other } })
      }
      expect(ask(table, name).record).toBe(record)
      expect(ask(table, `${name}a`).known).toBe(false)
      if (size > 1) expect(ask(table, name.slice(1)).known).toBe(false)
    },
  )

  it('an empty name is nobody', () => {
    expect(new TopicTable().find(new DataView(new ArrayBuffer(4)), 2, 2)).toBeUndefined()
  })

  it('a name is added when it is seen again, and a name that never repeats takes no room', () => {
    const table = new TopicTable()
    const read = (name: string): TopicRecord => {
      const bytes = utf8.encode(name)
      const { length } = bytes
      const found = table.find(new DataView(bytes.buffer), 0, length)
      return found ?? table.add(bytes, 0, length)
    }
    for (let index = 0; index < 100_000; index++)
      expect(read(`once/${index}`).name).toBe(`once/${index}`)
    // Names with one hash look like one name.
    expect(table.size).toBeLessThan(50)
    table.clear()
    const names = Array.from({ length: 1000 }, (_, index) => `again/${index}`)
    for (let round = 0; round < 6; round++) names.map(read)
    // Of three names with the same two places, one may go on replacing another.
    expect(table.size).toBeGreaterThan(990)
    const first = names.map(read)
    const same = names.map(read).filter((record, index) => record === first[index])
    expect(same.length).toBeGreaterThanOrEqual(table.size)
  })

  it('what its owner notes stays', () => {
    const table = new TopicTable()
    const { record } = ask(table, 'a/b')
    record.version = 7
    record.route = 'somewhere'
    for (let index = 0; index < 1000; index++) ask(table, `other/${index}`)
    expect(ask(table, 'a/b').record).toMatchObject({ version: 7, route: 'somewhere' })
    expect(topicRecord('x')).toMatchObject({ name: 'x', version: -1, route: undefined })
  })

  it('a name of more than 1,024 bytes is read and not remembered', () => {
    const table = new TopicTable()
    const name = 'x'.repeat(1025)
    for (let index = 0; index < 5; index++)
      expect(ask(table, name)).toMatchObject({ known: false, record: { name } })
    expect([table.size, table.bytes]).toEqual([0, 0])
  })

  it('holds 16,384 names at most, and those that it has stay found', () => {
    const table = new TopicTable()
    for (let index = 0; index < 20_000; index++) ask(table, `sensor/${index}`)
    expect(table.size).toBe(16_384)
    expect(table.bytes).toBeLessThan(4 * 1024 * 1024)
    for (let index = 0; index < 16_000; index++)
      expect(ask(table, `sensor/${index}`).known).toBe(true)
  })

  it.each([
    ['sensor/{}', (index: number) => `sensor/${index}`],
    ['devices/{}/temperature', (index: number) => `devices/${index}/temperature`],
    ['t/{} in hexadecimal', (index: number) => `t/${index.toString(16).padStart(8, '0')}`],
  ])('honest names all find a place: %s', (_pattern, nameOf) => {
    const table = new TopicTable()
    const names = Array.from({ length: 4000 }, (_, index) => nameOf(index))
    for (const name of names) ask(table, name)
    expect(names.filter((name) => ask(table, name).known).length).toBeGreaterThanOrEqual(3996)
  })

  it('holds 1 MiB of names at most', () => {
    const table = new TopicTable()
    for (let index = 0; index < 1200; index++) ask(table, `${index}`.padEnd(1000, '.'))
    expect(table.size).toBe(1048)
    expect(table.bytes).toBeLessThan(1024 * 1024 + 1048 * 128 + 8192 * 8 + 1)
    expect(table.bytes).toBeGreaterThan(table.size * 128)
  })

  it.each([0, 1, 1000, 100_000])('takes about what it may, %i bytes', (budget) => {
    const table = new TopicTable(budget)
    for (let index = 0; index < 3000; index++)
      expect(ask(table, `sensor/${index}`).record.name).toBe(`sensor/${index}`)
    expect(table.bytes).toBeLessThanOrEqual(budget * 1.3 + 256)
    if (budget === 100_000) expect(table.size).toBeGreaterThan(300)
  })

  it('begins again after 16,384 names without room: the population of now takes the place', () => {
    const table = new TopicTable()
    for (let index = 0; index < 16_900; index++) ask(table, `old/${index}`)
    let rounds = 0
    while (!ask(table, 'new/0').known && rounds < 50) {
      for (let index = 0; index < 500; index++) ask(table, `new/${index}`)
      rounds += 1
    }
    expect([rounds > 14, rounds < 20]).toEqual([true, true])
    expect(ask(table, 'old/1').known).toBe(false)
    for (let index = 0; index < 500; index++) ask(table, `new/${index}`)
    expect(
      Array.from({ length: 500 }, (_, index) => ask(table, `new/${index}`).known).every(Boolean),
    ).toBe(true)
  })

  it('forgets everything when told', () => {
    const table = new TopicTable()
    for (let index = 0; index < 100; index++) ask(table, `a/${index}`)
    table.clear()
    expect([table.size, table.bytes]).toEqual([0, 0])
    expect(ask(table, 'a/1').known).toBe(false)
    expect(ask(table, 'a/1').known).toBe(true)
  })

  it('names chosen for one place cost no more than others, and the rest stays found', () => {
    const names = namesAt(77, 16_384, 24)
    const table = new TopicTable()
    ask(table, 'honest')
    for (let round = 0; round < 3; round++)
      for (const name of names) expect(ask(table, name).record.name).toBe(name)
    // Those that found a place next to it; the others are unknown each time.
    expect(table.size).toBeLessThanOrEqual(1 + names.length)
    expect(ask(table, 'honest').known).toBe(true)
    for (let index = 0; index < 3500; index++) ask(table, `sensor/${index}`)
    for (const name of names) expect(ask(table, name).record.name).toBe(name)
    const found = names.filter((name) => ask(table, name).known).length
    expect([found > 0, found <= 8]).toEqual([true, true])
    expect(ask(table, 'honest').known).toBe(true)
  })

  it('names with one hash are two', () => {
    const [one, other] = twins()
    const table = new TopicTable()
    const first = ask(table, one).record
    const second = ask(table, other).record
    expect([first.name, second.name]).toEqual([one, other])
    expect([ask(table, one).record, ask(table, other).record]).toEqual([first, second])
    expect(first).not.toBe(second)
  })

  it('so are bytes that are too few for a word', () => {
    const [one, other] = shortTwins()
    const table = new TopicTable()
    const find = (bytes: Uint8Array): TopicRecord | undefined =>
      table.find(new DataView(bytes.buffer), 0, 3)
    expect(find(one)).toBeUndefined()
    table.add(one, 0, 3)
    const record = table.add(one, 0, 3)
    expect([find(other), find(one)]).toEqual([undefined, record])
  })

  it('names that find no place when the table grows are learned again', () => {
    // Those that lie before the end of the smaller table and behind its beginning change their order.
    const names = [...namesAt(10, 128, 5), ...namesAt(60, 128, 8), ...namesAt(63, 128, 3)]
    const table = new TopicTable()
    for (const name of names) ask(table, name)
    expect(table.size).toBe(16)
    ask(table, 'one more')
    expect(table.size).toBe(14)
    for (const name of names) expect(ask(table, name).record.name).toBe(name)
    expect(table.size).toBe(14)
  })

  it('a peer that never repeats itself looks at few places for each name, and takes no more memory than any', () => {
    let looks = 0
    const table = new TopicTable()
    const bytes = new Uint8Array(64)
    const data = new DataView(bytes.buffer)
    data.getInt32 = (at, little) => {
      looks += 1
      return DataView.prototype.getInt32.call(data, at, little)
    }
    let most = 0
    for (let index = 0; index < 30_000; index++) {
      const { written } = utf8.encodeInto(`never/the/same/${index}`, bytes)
      looks = 0
      if (table.find(data, 0, written) === undefined) table.add(bytes, 0, written)
      most = Math.max(most, looks)
      if (index % 1000 === 0) expect(table.bytes).toBeLessThan(1024 * 1024)
    }
    // Its words once for the hash; to compare, only where a hash agrees.
    expect(most).toBeLessThanOrEqual(16)
  })
})
