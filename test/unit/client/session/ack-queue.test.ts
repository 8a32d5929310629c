import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AckQueue } from '../../../../src/client/session/ack-queue.js'
import { ackId, ackReason, ackType, takeAck } from './drive.js'

type Entry = [type: number, id: number, reasonCode: number]

const unpack = (entry: number): Entry => [ackType(entry), ackId(entry), ackReason(entry)]

describe('acknowledgement queue', () => {
  it('keeps packet type, identifier and reason code at their extremes', () => {
    const queue = new AckQueue()
    const all: Entry[] = []
    for (const type of [4, 5, 6, 7])
      for (const id of [1, 255, 256, 32_768, 65_535]) for (const code of [0, 0x10, 0x80, 0x92, 0xff]) all.push([type, id, code])
    for (const entry of all) queue.push(entry[0], entry[1], entry[2])
    expect(queue.length).toBe(all.length)
    expect(all.map(() => unpack(takeAck(queue)))).toEqual(all)
    expect(queue.length).toBe(0)
  })

  it('grows while its beginning lies in the middle of the ring', () => {
    const queue = new AckQueue()
    for (let id = 1; id <= 16; id++) queue.push(4, id, 0)
    for (let id = 1; id <= 10; id++) expect(ackId(takeAck(queue))).toBe(id)
    for (let id = 17; id <= 100; id++) queue.push(4, id, 0)
    for (let id = 11; id <= 100; id++) expect(ackId(takeAck(queue))).toBe(id)
    expect(queue.length).toBe(0)
  })

  it('is first in, first out, whatever the mix of pushes, shifts and clears', () => {
    const entry = fc.tuple(fc.integer({ min: 4, max: 7 }), fc.integer({ min: 1, max: 65_535 }), fc.integer({ min: 0, max: 255 }))
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.array(entry, { maxLength: 40 }) },
      { weight: 5, arbitrary: fc.integer({ min: 1, max: 40 }) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const queue = new AckQueue()
        let model: Entry[] = []
        for (const one of steps) {
          if (one === 'clear') {
            queue.clear()
            model = []
          } else if (typeof one === 'number') {
            const taken = model.splice(0, one)
            expect(taken.map(() => unpack(takeAck(queue)))).toEqual(taken)
          } else {
            for (const [type, id, code] of one) queue.push(type, id, code)
            model.push(...one)
          }
          expect(queue.length).toBe(model.length)
        }
        expect(model.map(() => unpack(takeAck(queue)))).toEqual(model)
      }),
    )
  })
})
