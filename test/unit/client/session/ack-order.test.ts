/** Acknowledgements leave in the order of arrival (section 4.6); and the queue in which they wait. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AckQueue } from '../../../../src/client/session/ack-queue.js'
import { type Ack, connected, type Driven, durablyConnected } from './drive.js'

interface Arrival {
  readonly qos: 1 | 2
  readonly code: number
  /** When the application settles it, or the store has it: lowest first. */
  readonly rank: number
}

const arrival: fc.Arbitrary<Arrival> = fc.record({
  qos: fc.constantFrom(1 as const, 2 as const),
  code: fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x97),
  rank: fc.nat(),
})

/** Finishes these by rank: at each moment the finished beginning of all has left, and nothing else. */
function expectInOrder(
  session: Driven,
  all: readonly Arrival[],
  last: number[],
  end: (at: number) => void,
): void {
  const expected = all.map(
    ({ qos, code }, at): Ack => [qos === 1 ? 'puback' : 'pubrec', at + 1, code],
  )
  const open = new Set(last)
  const seen = session.takeAcks()
  for (const at of last.sort((a, b) => (all[a]?.rank ?? 0) - (all[b]?.rank ?? 0))) {
    end(at)
    open.delete(at)
    seen.push(...session.takeAcks())
    expect(seen).toEqual(expected.slice(0, Math.min(all.length, ...open)))
  }
  expect([seen.length, session.receiveWindow.unsettled]).toEqual([all.length, 0])
}

it.each([
  [1, 'puback 5, puback 3, puback 9', 'MQTT-4.6.0-2'],
  [2, 'pubrec 5, pubrec 3, pubrec 9', 'MQTT-4.6.0-3'],
])('QoS %i, ids 5, 3, 9, settled backwards: %s [%s]', (qos, answers) => {
  const session = connected()
  const [five = -9, three = -9, nine = -9] = [5, 3, 9].map((id) => session.receive(id, qos))
  session.settle(nine)
  session.settle(three)
  expect([session.answers(), session.settle(five), session.answers()]).toEqual(['', true, answers])
})

it('for any messages settled in any order: at each moment the settled beginning, nothing else [MQTT-4.6.0-2] [MQTT-4.6.0-3]', () => {
  fc.assert(
    fc.property(fc.array(arrival, { minLength: 1, maxLength: 80 }), (all) => {
      const session = connected({ receiveMaximum: 100 })
      const tickets = all.map(({ qos }, at) => session.receive(at + 1, qos))
      expectInOrder(session, all, [...all.keys()], (at) => {
        expect(session.settle(tickets[at] as number, all[at]?.code)).toBe(true)
      })
    }),
  )
})

it('with a store that confirms in any order it is the same', () => {
  fc.assert(
    fc.property(fc.array(arrival, { minLength: 1, maxLength: 30 }), (all) => {
      const session = durablyConnected({ receiveMaximum: 100 })
      const tickets = all.map(({ qos }, at) => session.receive(at + 1, qos))
      for (const [at, { code }] of all.entries()) session.settle(tickets[at] as number, code)
      const stored = [...all.keys()].filter(
        (at) => all[at]?.qos === 2 && (all[at]?.code ?? 0) < 0x80,
      )
      expect(session.port.requests.map(([, id]) => id - 1)).toEqual(stored)
      fc.pre(stored.length > 0)
      expectInOrder(session, all, [...stored], (at) => session.port.grant(stored.indexOf(at)))
    }),
  )
})

it('holds over thousands of messages with a few always open', () => {
  const session = connected({ receiveMaximum: 20 })
  const open: number[] = []
  const acked: number[] = []
  for (let count = 1; count <= 5000; count++) {
    open.push(session.receive(count, 1))
    if (open.length < 17) continue
    const order = [...open.splice(count % 5, 12).reverse(), ...open.splice(0).reverse()]
    for (const ticket of order) expect(session.settle(ticket)).toBe(true)
    acked.push(...session.takeAcks().map(([, id]) => id))
  }
  expect(acked).toEqual(Array.from(acked, (_, index) => index + 1))
  expect(acked.length).toBeGreaterThan(4900)
})

it('the queue keeps type, identifier and reason code, first in, first out, whatever the mix of pushes, shifts and clears', () => {
  const id = fc.oneof(
    fc.integer({ min: 1, max: 65_535 }),
    fc.constantFrom(1, 255, 256, 32_768, 65_535),
  )
  const entry = fc.tuple(fc.integer({ min: 4, max: 7 }), id, fc.integer({ min: 0, max: 255 }))
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.array(entry, { maxLength: 40 }) },
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 40 }) },
    { weight: 1, arbitrary: fc.constant('clear' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const queue = new AckQueue()
      let model: [number, number, number][] = []
      const expectNext = (taken: typeof model): void => {
        for (const [type, packetId, code] of taken) {
          const next = queue.entries[queue.head++] ?? 0
          expect([next >>> 24, next & 0xffff, (next >>> 16) & 0xff]).toEqual([type, packetId, code])
        }
      }
      for (const one of [...steps, 100_000]) {
        if (typeof one === 'number') expectNext(model.splice(0, one))
        else if (one === 'clear') {
          queue.clear()
          model = []
        } else {
          for (const [type, packetId, code] of one) queue.push(type, packetId, code)
          model.push(...one)
        }
        expect(queue.length).toBe(model.length)
      }
    }),
  )
})
