/** The table of messages in flight, against a Map. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PublishTable } from '../../../src/client/publishing/publish-table.js'
import type { QueuedPublish } from '../../../src/client/publishing/queued-publish.js'

function itemOf(packetId: number, order: number, released = 0): QueuedPublish {
  return { packetId, order, released } as QueuedPublish
}

describe('messages in flight', () => {
  it('are found as a Map finds them, whatever identifiers are in use', () => {
    const steps = fc.array(
      fc.tuple(
        fc.boolean(),
        fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 65_535 })),
      ),
      { maxLength: 120 },
    )
    fc.assert(
      fc.property(steps, (list) => {
        const table = new PublishTable()
        const map = new Map<number, QueuedPublish>()
        list.forEach(([add, id], order) => {
          expect(table.get(id)).toBe(map.get(id))
          if (add && !map.has(id)) {
            const item = itemOf(id, order)
            table.add(item)
            map.set(id, item)
          } else if (!add && map.has(id)) {
            table.delete(id)
            map.delete(id)
          }
          expect(table.size).toBe(map.size)
        })
        expect(table.all()).toEqual([...map.values()])
      }),
    )
  })

  it('hold all identifiers at once, and none of them when they are done', () => {
    const table = new PublishTable()
    for (let id = 1; id <= 65_535; id++) table.add(itemOf(id, id))
    expect(table.size).toBe(65_535)
    expect(table.get(65_535)?.order).toBe(65_535)
    for (let id = 1; id <= 65_535; id++) table.delete(id)
    expect(table.size).toBe(0)
    expect(table.all()).toEqual([])
    table.add(itemOf(3, 1))
    expect(table.get(3)?.order).toBe(1)
  })

  it('are told apart by PUBREC, each in their order', () => {
    const table = new PublishTable()
    for (const item of [itemOf(5, 3), itemOf(6, 1), itemOf(7, 2, 9), itemOf(8, 4, 8)])
      table.add(item)
    expect(table.unreleased().map(({ packetId }) => packetId)).toEqual([6, 5])
    expect(table.released().map(({ packetId }) => packetId)).toEqual([8, 7])
    expect(table.all().map(({ packetId }) => packetId)).toEqual([6, 7, 5, 8])
    table.clear()
    expect([table.size, table.get(5)]).toEqual([0, undefined])
  })
})
