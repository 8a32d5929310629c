/** The queues under everything that waits: a model of each is an array. */
import { describe, expect, it } from 'vitest'
import { type Linked, Queue } from '../../../src/client/common/queue.js'
import { Ring } from '../../../src/client/common/ring.js'
import { Random } from '../../world/random.js'

/** A ring that was filled in this order, its head at `offset`. */
function ringOf(values: readonly number[], offset = 0): Ring<number> {
  const ring = new Ring<number>()
  for (let index = 0; index < offset; index++) {
    ring.push(0)
    ring.shift()
  }
  for (const value of values) ring.push(value)
  return ring
}

describe('Ring', () => {
  it('is empty at first', () => {
    const ring = new Ring<number>()
    expect([ring.length, ring.peek(), ring.shift(), ring.take(() => true)]).toEqual([
      0,
      undefined,
      undefined,
      undefined,
    ])
    expect(ring.drain()).toEqual([])
  })

  it('gives back in order across growth and wrap-around', () => {
    const ring = ringOf([1, 2, 3, 4, 5, 6, 7, 8])
    expect([ring.shift(), ring.shift(), ring.shift()]).toEqual([1, 2, 3])
    for (const value of [9, 10, 11, 12, 13]) ring.push(value)
    expect([ring.length, ring.peek()]).toEqual([10, 4])
    expect(ring.drain()).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    expect(ring.length).toBe(0)
  })

  it.each([0, 3, 7])(
    'takes one out of the middle, the oldest of several that fit, with the head at %i',
    (offset) => {
      for (const victim of [1, 2, 3, 4, 5]) {
        const ring = ringOf([1, 2, 3, 4, 5, 11], offset)
        expect(ring.take((value) => value % 10 === victim)).toBe(victim)
        expect(ring.take((value) => value === victim)).toBeUndefined()
        ring.push(6)
        expect(ring.drain()).toEqual([1, 2, 3, 4, 5, 11, 6].filter((value) => value !== victim))
      }
    },
  )

  it('does what an array does, whatever the order of operations', () => {
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
