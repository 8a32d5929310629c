import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DONE } from '../../../src/client/session/numbers.js'
import type { Session } from '../../../src/client/session/session.js'
import { connected, expectQuiet } from './drive.js'

const times = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** Publishes at QoS 1 and has each acknowledged at once. */
function walk({ outbound }: Session, count: number): number[] {
  return times(count).map(() => {
    const id = outbound.publish(1)
    if (outbound.handlePuback(id) !== DONE) throw new Error(`PUBACK ${id} was not expected`)
    return id
  })
}

describe('packet identifiers (section 2.2.1)', () => {
  it('F08 run from 1 to 65,535 and wrap to 1, never 0 [MQTT-2.2.1-3]', () => {
    const session = connected()
    expect(walk(session, 65_535)).toEqual(times(65_535).map((index) => index + 1))
    expect(walk(session, 3)).toEqual([1, 2, 3])
  })

  it('F08 skip those in use after the wrap', () => {
    const session = connected()
    const { outbound } = session
    const held = [outbound.publish(1), outbound.publish(2), outbound.request('subscribe', 1), outbound.publish(1)]
    expect(held).toEqual([1, 2, 3, 4])
    walk(session, 65_531)
    expect(outbound.handlePuback(4)).toBe(DONE)
    expect([outbound.publish(1), outbound.publish(1)]).toEqual([4, 5])
  })

  it('F13 are shared by PUBLISH, SUBSCRIBE and UNSUBSCRIBE [MQTT-2.2.1-3]', () => {
    const { outbound } = connected()
    const ids = times(300).map((index) => {
      if (index % 3 === 0) return outbound.publish(1 + (index % 2))
      return outbound.request(index % 3 === 1 ? 'subscribe' : 'unsubscribe', 1)
    })
    expect(ids).toEqual(times(300).map((index) => index + 1))
  })

  it('F10 are found in random holes, every one of them', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { minLength: 1, maxLength: 60 }), (holes) => {
        const { outbound } = connected()
        for (let id = 1; id <= 65_535; id++) outbound.publish(1)
        for (const id of holes) outbound.handlePuback(id)
        const found = holes.map(() => outbound.publish(1))
        expect(found).toEqual([...holes].sort((a, b) => a - b))
        expect(outbound.mayPublish).toBe(false)
      }),
      { numRuns: 20 },
    )
  })

  it('pain 8: with acknowledgements withheld exactly 65,535 leave, none twice, the rest waits [MQTT-4.9.0-2]', () => {
    const { outbound } = connected()
    const ids = new Set<number>()
    for (let wanted = 70_000; wanted > 0 && outbound.mayPublish; wanted--) ids.add(outbound.publish(1))
    expect([ids.size, Math.min(...ids), Math.max(...ids), outbound.inFlight]).toEqual([65_535, 1, 65_535, 65_535])
    expect(outbound.hasIdentifier).toBe(false)
    expect(outbound.handlePuback(40_000)).toBe(DONE)
    expect([outbound.mayPublish, outbound.hasIdentifier]).toEqual([true, true])
    expect(outbound.publish(2)).toBe(40_000)
    expect([outbound.mayPublish, outbound.hasIdentifier]).toEqual([false, false])
  })

  it('all used by subscriptions: a publish waits although there is quota, and goes on after one answer', () => {
    const { outbound } = connected()
    expect(times(65_535).map(() => outbound.request('subscribe', 1))).toEqual(times(65_535).map((index) => index + 1))
    expect([outbound.inFlight, outbound.mayPublish, outbound.hasIdentifier]).toEqual([0, false, false])
    expect(outbound.handleAnswer('subscribe', 12, 1)).toBe(DONE)
    expect(outbound.mayPublish).toBe(true)
    expect(outbound.publish(1)).toBe(12)
  })

  it('F11 stay in use until their last acknowledgement, whatever the caller gave up [MQTT-4.3.2-1] [MQTT-4.3.3-1]', () => {
    const session = connected()
    const { outbound } = session
    expect([outbound.publish(1), outbound.publish(2)]).toEqual([1, 2])
    outbound.handlePubrec(2, 0)
    walk(session, 65_533)
    expect(walk(session, 2)).toEqual([3, 4])
    expect(outbound.handlePubcomp(2)).toBe(DONE)
    walk(session, 65_535 - 4 - 1)
    expect(walk(session, 2)).toEqual([65_535, 2])
  })

  it('a withdrawn packet gives back its identifier and its quota, and its acknowledgement is nobody’s', () => {
    const session = connected({}, { receiveMaximum: 1 })
    const { outbound } = session
    for (const qos of [1, 2]) {
      const id = outbound.publish(qos)
      expect([outbound.inFlight, outbound.mayPublish]).toEqual([1, false])
      outbound.withdraw(id)
      expect([outbound.inFlight, outbound.mayPublish]).toEqual([0, true])
      expect(outbound.handlePuback(id)).not.toBe(DONE)
    }
    for (const kind of ['subscribe', 'unsubscribe'] as const) {
      const id = outbound.request(kind, 2)
      outbound.withdraw(id)
      expect(outbound.inFlight).toBe(0)
      expect(outbound.handleAnswer(kind, id, 2)).not.toBe(DONE)
    }
    expectQuiet(session)
    for (let id = 0; id < 65_535; id++) outbound.request('subscribe', 1)
    expect(outbound.hasIdentifier).toBe(false)
  })
})
