import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Ack, connected, durablyConnected, takeAcks } from './drive.js'

interface Arrival {
  readonly qos: 1 | 2
  readonly code: number
  /** When the application settles it: lowest first. */
  readonly rank: number
}

const arrival: fc.Arbitrary<Arrival> = fc.record({
  qos: fc.constantFrom(1 as const, 2 as const),
  code: fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x97),
  rank: fc.nat(),
})

const ackOf = ({ qos, code }: Arrival, index: number): Ack => [qos === 1 ? 'puback' : 'pubrec', index + 1, code]

describe('acknowledgements leave in the order of arrival (section 4.6)', () => {
  it('two messages, only the second settled: neither is acknowledged until the first is', () => {
    const session = connected()
    const tickets = [session.receiveWindow.handlePublish(1, 1), session.receiveWindow.handlePublish(2, 1)]
    session.receiveWindow.settle(tickets[1] as number, 0)
    expect(takeAcks(session.acks)).toEqual([])
    session.receiveWindow.settle(tickets[0] as number, 0)
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 1, 0],
      ['puback', 2, 0],
    ])
  })

  it.each([
    [1, 'puback', 'MQTT-4.6.0-2'],
    [2, 'pubrec', 'MQTT-4.6.0-3'],
  ])('QoS %i, ids 5, 3, 9, settled backwards: %s 5, 3, 9 [%s]', (qos, name) => {
    const session = connected()
    const tickets = [5, 3, 9].map((id) => session.receiveWindow.handlePublish(id, qos))
    for (const ticket of tickets.reverse()) session.receiveWindow.settle(ticket, 0)
    expect(takeAcks(session.acks)).toEqual([5, 3, 9].map((id) => [name, id, 0]))
  })

  it('for any messages settled in any order: at each moment the settled beginning, nothing else [MQTT-4.6.0-2] [MQTT-4.6.0-3]', () => {
    fc.assert(
      fc.property(fc.array(arrival, { minLength: 1, maxLength: 80 }), (arrivals) => {
        const session = connected({ receiveMaximum: 100 })
        const tickets = arrivals.map(({ qos }, index) => session.receiveWindow.handlePublish(index + 1, qos))
        const order = arrivals.map((_, index) => index).sort((a, b) => (arrivals[a] as Arrival).rank - (arrivals[b] as Arrival).rank)
        const settled = new Set<number>()
        const seen: Ack[] = []
        for (const index of order) {
          expect(session.receiveWindow.settle(tickets[index] as number, (arrivals[index] as Arrival).code)).toBe(true)
          settled.add(index)
          seen.push(...takeAcks(session.acks))
          const beginning = arrivals.findIndex((_, at) => !settled.has(at))
          expect(seen).toEqual(arrivals.slice(0, beginning < 0 ? arrivals.length : beginning).map(ackOf))
        }
        expect(seen).toHaveLength(arrivals.length)
        expect(session.receiveWindow.unsettled).toBe(0)
      }),
    )
  })

  it('with a store that confirms in any order it is the same', () => {
    fc.assert(
      fc.property(fc.array(arrival, { minLength: 1, maxLength: 30 }), (arrivals) => {
        const { session, port } = durablyConnected({ receiveMaximum: 100 })
        const tickets = arrivals.map(({ qos }, index) => session.receiveWindow.handlePublish(index + 1, qos))
        const safe = new Set<number>()
        for (const [index, { qos, code }] of arrivals.entries()) {
          session.receiveWindow.settle(tickets[index] as number, code)
          if (qos === 1 || code >= 0x80) safe.add(index)
        }
        expect(session.actions).toEqual([])
        const requests = new Map(port.requests.map(([, id], place) => [place, id - 1]))
        expect(requests.size).toBe(arrivals.length - safe.size)
        const seen = takeAcks(session.acks)
        const order = [...requests].sort((a, b) => (arrivals[a[1]] as Arrival).rank - (arrivals[b[1]] as Arrival).rank)
        for (const [place, index] of order) {
          port.grant(place)
          safe.add(index)
          seen.push(...takeAcks(session.acks))
          const beginning = arrivals.findIndex((_, at) => !safe.has(at))
          expect(seen).toEqual(arrivals.slice(0, beginning < 0 ? arrivals.length : beginning).map(ackOf))
        }
        expect(seen).toHaveLength(arrivals.length)
      }),
    )
  })

  it('holds over thousands of messages with a few always open', () => {
    const session = connected({ receiveMaximum: 20 })
    const open: number[] = []
    const acked: number[] = []
    for (let count = 0; count < 5000; count++) {
      open.push(session.receiveWindow.handlePublish((count % 65_535) + 1, 1))
      if (open.length < 17) continue
      for (const ticket of open.splice(count % 5, 12).reverse()) expect(session.receiveWindow.settle(ticket, 0)).toBe(true)
      for (const ticket of open.splice(0).reverse()) expect(session.receiveWindow.settle(ticket, 0)).toBe(true)
      for (const [, id] of takeAcks(session.acks)) acked.push(id)
    }
    expect(acked).toEqual(Array.from(acked, (_, index) => index + 1))
    expect(acked.length).toBeGreaterThan(4900)
  })
})
