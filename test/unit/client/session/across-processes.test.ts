/** Identifiers of a session that is kept in a store: what an earlier process left, and what the store has not written yet. */
import { describe, expect, it } from 'vitest'
import { AckQueue } from '../../../../src/client/session/ack-queue.js'
import { QOS2_EARLIER, REPEAT, ReceiveWindow } from '../../../../src/client/session/receive-window.js'
import { SendWindow } from '../../../../src/client/session/send-window.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'

/** Windows over a store that grants when it is told to. */
function windows(recognises = false) {
  const acks = new AckQueue()
  const grants: (() => void)[] = []
  const faults: number[] = []
  const persistence = {
    durable: true,
    recognises,
    request: (_operation: string, _id: number, grant: () => void) => void grants.push(grant),
    confirm: () => undefined,
    reset: () => undefined,
  }
  const host = { acks, actions: [], persistence, fail: (code: number) => void faults.push(code) }
  const taken = (): [number, number, number][] => {
    const all = acks.entries
      .slice(acks.head, acks.tail)
      .map((entry): [number, number, number] => [entry >>> 24, entry & 0xffff, (entry >>> 16) & 0xff])
    acks.clear()
    return all
  }
  return { inbound: new ReceiveWindow(host, 10, true), outbound: new SendWindow(host, 100), grants, faults, taken }
}

describe('a QoS 2 message that an earlier process had received', () => {
  it('gets its PUBREC behind messages that came before it [MQTT-4.6.0-3]', () => {
    const { inbound, taken } = windows()
    inbound.ids.set(2, QOS2_EARLIER)
    const first = inbound.handlePublish(1, 1)
    expect(inbound.handlePublish(2, 2, true)).toBe(REPEAT)
    expect(taken()).toEqual([])
    inbound.settle(first, 0)
    expect(taken()).toEqual([
      [PUBACK, 1, 0],
      [PUBREC, 2, 0],
    ])
  })

  it('gets it at once where nothing waits, and PUBREL ends it', () => {
    const { inbound, taken, grants } = windows()
    inbound.ids.set(2, QOS2_EARLIER)
    expect(inbound.handlePublish(2, 2, true)).toBe(REPEAT)
    inbound.handlePubrel(2)
    grants[0]?.()
    expect(taken()).toEqual([
      [PUBREC, 2, 0],
      [PUBCOMP, 2, 0],
    ])
  })

  it('is released without PUBLISH, too', () => {
    const { inbound, taken, grants, faults } = windows()
    inbound.ids.set(2, QOS2_EARLIER)
    inbound.handlePubrel(2)
    grants[0]?.()
    expect([taken(), faults]).toEqual([[[PUBCOMP, 2, 0]], []])
  })
})

describe('an identifier that an earlier process had received', () => {
  it('gets a ticket where repeats are found by their content, with DUP or without', () => {
    for (const dup of [false, true]) {
      const { inbound, grants } = windows(true)
      inbound.ids.set(2, QOS2_EARLIER)
      expect(inbound.handlePublish(2, 2, dup)).toBeGreaterThanOrEqual(0)
      expect(grants).toEqual([])
    }
  })
})

describe('PUBREL whose record was not written when the connection ended', () => {
  function interrupted() {
    const all = windows()
    all.inbound.ids.set(2, QOS2_EARLIER)
    all.inbound.handlePubrel(2)
    all.inbound.suspend()
    return all
  }

  it('is answered on the next connection, once, when it comes again and its own record is written', () => {
    const { inbound, grants, taken } = interrupted()
    inbound.handlePubrel(2)
    inbound.handlePubrel(2)
    grants[0]?.()
    expect([grants.length, taken()]).toEqual([2, []])
    grants[1]?.()
    expect(taken()).toEqual([[PUBCOMP, 2, 0]])
  })

  it('and a message with that identifier is a new one', () => {
    const { inbound, grants, taken } = interrupted()
    const ticket = inbound.handlePublish(2, 1)
    grants[0]?.()
    inbound.settle(ticket, 0)
    expect(taken()).toEqual([[PUBACK, 2, 0]])
  })
})
