import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { IdTable, maximumPacketIdentifier } from '../../../../src/client/session/id-table.js'

/** What a table says when asked for everything. */
function entries(table: IdTable): [number, number][] {
  const all: [number, number][] = []
  for (let id = 0; id <= maximumPacketIdentifier; id++) if (table.get(id) !== 0) all.push([id, table.get(id)])
  return all
}

describe('packet identifier table (section 2.2.1)', () => {
  it('is empty at first, for every identifier', () => {
    const table = new IdTable()
    expect(table.size).toBe(0)
    expect([0, 1, 255, 256, 65_535].map((id) => table.get(id))).toEqual([0, 0, 0, 0, 0])
    expect(entries(table)).toEqual([])
  })

  it('tells neighbours apart across its pages', () => {
    const table = new IdTable()
    for (const id of [1, 255, 256, 257, 511, 512, 65_279, 65_280, 65_535]) table.set(id, (id % 6) + 1)
    expect(entries(table)).toEqual([1, 255, 256, 257, 511, 512, 65_279, 65_280, 65_535].map((id) => [id, (id % 6) + 1]))
    expect([2, 254, 258, 510, 513, 65_278, 65_281, 65_534].map((id) => table.get(id))).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  it('counts an identifier once, however often its state changes', () => {
    const table = new IdTable()
    table.set(7, 1)
    table.set(7, 2)
    table.set(7, 2)
    expect([table.size, table.get(7)]).toEqual([1, 2])
    table.set(7, 0)
    table.set(7, 0)
    table.set(9, 0)
    expect([table.size, table.get(7)]).toEqual([0, 0])
  })

  it('holds all 65,535 identifiers, and none after they are freed', () => {
    const table = new IdTable()
    for (let id = 1; id <= maximumPacketIdentifier; id++) table.set(id, 3)
    expect(table.size).toBe(65_535)
    expect(entries(table)).toHaveLength(65_535)
    for (let id = 1; id <= maximumPacketIdentifier; id++) table.set(id, 0)
    expect(table.size).toBe(0)
    expect(entries(table)).toEqual([])
  })

  it('finds nothing of the past in a page that it uses again', () => {
    const table = new IdTable()
    for (let id = 256; id < 512; id++) table.set(id, 4)
    for (let id = 256; id < 512; id++) table.set(id, 0)
    table.set(1024, 1)
    expect(entries(table)).toEqual([[1024, 1]])
    expect(table.size).toBe(1)
  })

  it('forgets everything on clear', () => {
    const table = new IdTable()
    table.set(1, 1)
    table.set(60_000, 2)
    table.clear()
    expect([table.size, table.get(1), table.get(60_000)]).toEqual([0, 0, 0])
    expect(entries(table)).toEqual([])
    table.set(60_000, 5)
    expect(entries(table)).toEqual([[60_000, 5]])
  })

  it('behaves like a map, whatever is written in whatever order', () => {
    const id = fc.oneof(fc.integer({ min: 1, max: 65_535 }), fc.integer({ min: 250, max: 260 }), fc.integer({ min: 65_530, max: 65_535 }))
    const change = fc.oneof({ weight: 20, arbitrary: fc.tuple(id, fc.integer({ min: 0, max: 6 })) }, { weight: 1, arbitrary: fc.constant(undefined) })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 120 }), (changes) => {
        const table = new IdTable()
        const model = new Map<number, number>()
        for (const one of changes) {
          if (one === undefined) {
            table.clear()
            model.clear()
          } else {
            table.set(one[0], one[1])
            model.set(one[0], one[1])
            if (one[1] === 0) model.delete(one[0])
          }
          expect(table.size).toBe(model.size)
        }
        expect(entries(table)).toEqual([...model].sort((a, b) => a[0] - b[0]))
      }),
    )
  })
})
