/** The queues under everything that waits: a model of each is an array. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { QueuedPublish } from '../../../src/client/publish/queued-publish.js'
import { PublishTable } from '../../../src/client/publish/sent-publishes.js'
import { type Linked, Queue } from '../../../src/common/queue.js'
import { Ring } from '../../../src/common/ring.js'
import { Random } from '../../world/random.js'

it('Ring does what an array does, whatever the order of operations', () => {
  const random = new Random(1)
  const ring = new Ring<number>()
  let model: number[] = []
  const fits = (value: number): boolean => value % 5 === 0
  for (let step = 0; step < 50_000; step++) {
    // Waves, so that it grows above and shrinks below its thresholds.
    const pushes = (step >> 12) % 2 === 0 ? 7 : 3
    const operation = random.below(10)
    if (operation < pushes) {
      ring.push(step)
      model.push(step)
    } else if (operation < 9) expect(ring.shift()).toBe(model.shift())
    else {
      const index = model.findIndex(fits)
      expect(ring.take(fits)).toBe(index < 0 ? undefined : model.splice(index, 1)[0])
    }
    expect(ring.length).toBe(model.length)
    expect(ring.peek()).toBe(model[0])
    if (step % 9973 === 0) {
      expect(ring.drain()).toEqual(model)
      model = []
    }
  }
})

interface Element extends Linked<Element> {
  readonly name: number
}

it('Queue does what an array does, elements taken from anywhere included', () => {
  const random = new Random(3)
  const queue = new Queue<Element>()
  const model: Element[] = []
  for (let step = 0; step < 20_000 || model.length > 0; step++) {
    if (step < 20_000 && random.chance(0.5)) {
      const element: Element = { name: step, previous: undefined, following: undefined }
      queue.push(element)
      model.push(element)
    } else if (model.length > 0) {
      // The first, or any.
      const index = random.chance(0.5) ? 0 : random.below(model.length)
      const [element] = model.splice(index, 1) as [Element]
      queue.remove(element)
      // It may be put into a queue again.
      expect([element.previous, element.following]).toEqual([undefined, undefined])
    }
    expect(queue.length).toBe(model.length)
    expect(queue.first).toBe(model[0])
    expect(queue.last).toBe(model.at(-1))
  }
})

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
