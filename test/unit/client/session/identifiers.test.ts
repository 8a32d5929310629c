import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DONE } from '../../../../src/client/session/send-window.js'
import type { Session } from '../../../../src/client/session/session.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import { connected, expectQuiet } from './drive.js'

const times = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** Publishes at QoS 1 and has each acknowledged at once. */
function walk({ sendWindow }: Session, count: number): number[] {
  return times(count).map(() => {
    const id = sendWindow.publish(1)
    if (sendWindow.handleAck(PUBACK, id, 0) !== DONE) throw new Error(`PUBACK ${id} was not expected`)
    return id
  })
}

describe('packet identifiers (section 2.2.1)', () => {
  it('run from 1 to 65,535 and wrap to 1, never 0 [MQTT-2.2.1-3]', () => {
    const session = connected()
    expect(walk(session, 65_535)).toEqual(times(65_535).map((index) => index + 1))
    expect(walk(session, 3)).toEqual([1, 2, 3])
  })

  it('skip those in use after the wrap', () => {
    const session = connected()
    const { sendWindow } = session
    const held = [sendWindow.publish(1), sendWindow.publish(2), sendWindow.request('subscribe', 1), sendWindow.publish(1)]
    expect(held).toEqual([1, 2, 3, 4])
    walk(session, 65_531)
    expect(sendWindow.handleAck(PUBACK, 4, 0)).toBe(DONE)
    expect([sendWindow.publish(1), sendWindow.publish(1)]).toEqual([4, 5])
  })

  it('are shared by PUBLISH, SUBSCRIBE and UNSUBSCRIBE [MQTT-2.2.1-3]', () => {
    const { sendWindow } = connected()
    const ids = times(300).map((index) => {
      if (index % 3 === 0) return sendWindow.publish(1 + (index % 2))
      return sendWindow.request(index % 3 === 1 ? 'subscribe' : 'unsubscribe', 1)
    })
    expect(ids).toEqual(times(300).map((index) => index + 1))
  })

  it('are found in random holes, every one of them', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { minLength: 1, maxLength: 60 }), (holes) => {
        const { sendWindow } = connected()
        for (let id = 1; id <= 65_535; id++) sendWindow.publish(1)
        for (const id of holes) sendWindow.handleAck(PUBACK, id, 0)
        const found = holes.map(() => sendWindow.publish(1))
        expect(found).toEqual([...holes].sort((a, b) => a - b))
        expect(sendWindow.mayPublish).toBe(false)
      }),
      { numRuns: 20 },
    )
  })

  it('with acknowledgements withheld exactly 65,535 leave, none twice, the rest waits [MQTT-4.9.0-2]', () => {
    const { sendWindow } = connected()
    const ids = new Set<number>()
    for (let wanted = 70_000; wanted > 0 && sendWindow.mayPublish; wanted--) ids.add(sendWindow.publish(1))
    expect([ids.size, Math.min(...ids), Math.max(...ids), sendWindow.inFlight]).toEqual([65_535, 1, 65_535, 65_535])
    expect(sendWindow.hasIdentifier).toBe(false)
    expect(sendWindow.handleAck(PUBACK, 40_000, 0)).toBe(DONE)
    expect([sendWindow.mayPublish, sendWindow.hasIdentifier]).toEqual([true, true])
    expect(sendWindow.publish(2)).toBe(40_000)
    expect([sendWindow.mayPublish, sendWindow.hasIdentifier]).toEqual([false, false])
  })

  it('all used by subscriptions: a publish waits although there is quota, and goes on after one answer', () => {
    const { sendWindow } = connected()
    expect(times(65_535).map(() => sendWindow.request('subscribe', 1))).toEqual(times(65_535).map((index) => index + 1))
    expect([sendWindow.inFlight, sendWindow.mayPublish, sendWindow.hasIdentifier]).toEqual([0, false, false])
    expect(sendWindow.handleAnswer('subscribe', 12, 1)).toBe(DONE)
    expect(sendWindow.mayPublish).toBe(true)
    expect(sendWindow.publish(1)).toBe(12)
  })

  it('stay in use until their last acknowledgement, whatever the caller gave up [MQTT-4.3.2-1] [MQTT-4.3.3-1]', () => {
    const session = connected()
    const { sendWindow } = session
    expect([sendWindow.publish(1), sendWindow.publish(2)]).toEqual([1, 2])
    sendWindow.handleAck(PUBREC, 2, 0)
    walk(session, 65_533)
    expect(walk(session, 2)).toEqual([3, 4])
    expect(sendWindow.handleAck(PUBCOMP, 2, 0)).toBe(DONE)
    walk(session, 65_535 - 4 - 1)
    expect(walk(session, 2)).toEqual([65_535, 2])
  })

  it('a withdrawn packet gives back its identifier and its quota, and its acknowledgement is nobody’s', () => {
    const session = connected({}, { receiveMaximum: 1 })
    const { sendWindow } = session
    for (const qos of [1, 2]) {
      const id = sendWindow.publish(qos)
      expect([sendWindow.inFlight, sendWindow.mayPublish]).toEqual([1, false])
      sendWindow.withdraw(id)
      expect([sendWindow.inFlight, sendWindow.mayPublish]).toEqual([0, true])
      expect(sendWindow.handleAck(PUBACK, id, 0)).not.toBe(DONE)
    }
    for (const kind of ['subscribe', 'unsubscribe'] as const) {
      const id = sendWindow.request(kind, 2)
      sendWindow.withdraw(id)
      expect(sendWindow.inFlight).toBe(0)
      expect(sendWindow.handleAnswer(kind, id, 2)).not.toBe(DONE)
    }
    expectQuiet(session)
    for (let id = 0; id < 65_535; id++) sendWindow.request('subscribe', 1)
    expect(sendWindow.hasIdentifier).toBe(false)
  })
})
