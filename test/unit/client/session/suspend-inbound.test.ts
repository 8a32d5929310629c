/** Incoming messages across connections: what is parked, what its repeat does, and what is never sent where it was not asked for. */
import { describe, expect, it } from 'vitest'
import { REPEAT } from '../../../../src/client/session/receive-window.js'
import type { Session } from '../../../../src/client/session/session.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import { connected, durablyConnected, expectClose, expectQuiet, reconnect, takeAcks, takeActions } from './drive.js'

/** Messages come in; gives their tickets. */
function receive(session: Session, ...messages: (readonly [id: number, qos: number, dup?: boolean])[]): number[] {
  return messages.map(([id, qos, dup]) => session.receiveWindow.handlePublish(id, qos, dup))
}

describe('a QoS 1 message in hand when the connection ends', () => {
  it('is acknowledged in the gap: remembered, and sent only after its repeat', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [7, 1])
    session.suspend()
    expect(session.receiveWindow.settle(ticket, 0)).toBe(true)
    expect(takeAcks(session.acks)).toEqual([])
    reconnect(session)
    expectQuiet(session)
    expect(receive(session, [7, 1, true])).toEqual([REPEAT])
    expect(takeAcks(session.acks)).toEqual([['puback', 7, 0]])
  })

  it('is not delivered again, and acknowledged when it is done, after its repeat', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [7, 1])
    reconnect(session)
    expect(receive(session, [7, 1, true])).toEqual([REPEAT])
    expectQuiet(session)
    expect(session.receiveWindow.settle(ticket, 0x97)).toBe(true)
    expect(takeAcks(session.acks)).toEqual([['puback', 7, 0x97]])
    expect(session.receiveWindow.settle(ticket, 0)).toBe(false)
    expectQuiet(session)
  })

  it('is settled on the next connection, before its repeat: nothing leaves until it comes', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [7, 1])
    reconnect(session)
    expect(session.receiveWindow.settle(ticket, 0)).toBe(true)
    expectQuiet(session)
    receive(session, [7, 1, true])
    expect(takeAcks(session.acks)).toEqual([['puback', 7, 0]])
  })

  it('is settled once, whatever comes between', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [7, 1])
    session.suspend()
    expect(session.receiveWindow.settle(ticket, 0x10)).toBe(true)
    expect(session.receiveWindow.settle(ticket, 0x80)).toBe(false)
    reconnect(session)
    expect(session.receiveWindow.settle(ticket, 0x80)).toBe(false)
    receive(session, [7, 1, true])
    expect(session.receiveWindow.settle(ticket, 0x80)).toBe(false)
    expect(takeAcks(session.acks)).toEqual([['puback', 7, 0x10]])
  })

  it('makes way for another message with its identifier and no DUP: its ticket is stale, nothing is acknowledged for it', () => {
    const session = connected()
    const [old = -9] = receive(session, [7, 1])
    reconnect(session)
    const [fresh = -9] = receive(session, [7, 1, false])
    expect(fresh).toBeGreaterThan(old)
    expect(session.receiveWindow.settle(old, 0)).toBe(false)
    expectQuiet(session)
    expect(session.receiveWindow.settle(fresh, 0)).toBe(true)
    expect(takeAcks(session.acks)).toEqual([['puback', 7, 0]])
  })

  it('makes way for a QoS 2 message with its identifier, and the other way round', () => {
    const session = connected()
    const [one = -9, two = -9] = receive(session, [1, 1], [2, 2])
    reconnect(session)
    const [fresh1 = -9, fresh2 = -9] = receive(session, [1, 2, true], [2, 1, true])
    expect([session.receiveWindow.settle(one, 0), session.receiveWindow.settle(two, 0)]).toEqual([false, false])
    expect([session.receiveWindow.settle(fresh1, 0), session.receiveWindow.settle(fresh2, 0)]).toEqual([true, true])
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 1, 0],
      ['puback', 2, 0],
    ])
  })

  it('whose PUBACK was queued and did not leave: it is not sent on the next connection', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [7, 1])
    session.receiveWindow.settle(ticket, 0)
    reconnect(session)
    expectQuiet(session)
    // The server has no acknowledgement: it sends again, and that is a delivery of its own at QoS 1.
    const [again = -9] = receive(session, [7, 1, true])
    expect(again).toBeGreaterThan(ticket)
    expect(session.receiveWindow.settle(ticket, 0)).toBe(false)
  })

  it('keeps its ticket over any number of connections', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [7, 1])
    for (let round = 0; round < 50; round++) {
      reconnect(session)
      expect([session.receiveWindow.parked, session.receiveWindow.open]).toEqual([1, 0])
      if (round % 2 === 0) expect(receive(session, [7, 1, true])).toEqual([REPEAT])
      expect(session.receiveWindow.open).toBe(round % 2 === 0 ? 1 : 0)
    }
    reconnect(session)
    receive(session, [7, 1, true])
    expect(session.receiveWindow.settle(ticket, 0)).toBe(true)
    expect(takeAcks(session.acks)).toEqual([['puback', 7, 0]])
    expect([session.receiveWindow.parked, session.receiveWindow.open, session.receiveWindow.unsettled]).toEqual([0, 0, 0])
  })
})

describe('a QoS 2 message', () => {
  it('in hand at the drop binds to its repeat, with DUP or without [MQTT-4.3.3-10]', () => {
    const session = connected()
    const [one = -9, two = -9] = receive(session, [1, 2], [2, 2])
    reconnect(session)
    expect(receive(session, [1, 2, true], [2, 2, false])).toEqual([REPEAT, REPEAT])
    expectQuiet(session)
    expect([session.receiveWindow.settle(one, 0), session.receiveWindow.settle(two, 0)]).toEqual([true, true])
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 1, 0],
      ['pubrec', 2, 0],
    ])
  })

  it('that was taken is answered again and not delivered, with DUP 1 or DUP 0 [MQTT-4.3.3-10]', () => {
    const session = connected()
    const tickets = receive(session, [1, 2], [2, 2])
    for (const ticket of tickets) session.receiveWindow.settle(ticket, 0)
    takeAcks(session.acks)
    reconnect(session)
    expectQuiet(session)
    expect(receive(session, [1, 2, true], [2, 2, false], [1, 2, true])).toEqual([REPEAT, REPEAT, REPEAT])
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 1, 0],
      ['pubrec', 2, 0],
      ['pubrec', 1, 0],
    ])
  })

  it('that was taken goes on with PUBREL, without PUBLISH: PUBCOMP, and the identifier is new again [MQTT-4.3.3-11]', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    reconnect(session)
    session.receiveWindow.handlePubrel(1)
    session.receiveWindow.handlePubrel(1)
    expect(takeAcks(session.acks)).toEqual([
      ['pubcomp', 1, 0],
      ['pubcomp', 1, 0x92],
    ])
    expect(session.receiveWindow.open).toBe(0)
    expect(receive(session, [1, 2])[0]).toBeGreaterThan(ticket)
  })

  it('in hand is not released by a PUBREL that comes before its repeat: PUBCOMP 0x92, and it stays in hand', () => {
    for (const settled of [false, true]) {
      const session = connected()
      const [ticket = -9] = receive(session, [1, 2])
      session.suspend()
      if (settled) session.receiveWindow.settle(ticket, 0)
      reconnect(session)
      session.receiveWindow.handlePubrel(1)
      expect(takeAcks(session.acks)).toEqual([['pubcomp', 1, 0x92]])
      expect(receive(session, [1, 2, true])).toEqual([REPEAT])
      if (!settled) session.receiveWindow.settle(ticket, 0)
      expect(takeAcks(session.acks)).toEqual([['pubrec', 1, 0]])
    }
  })

  it('whose repeat came cannot be released before PUBREC: close(0x82)', () => {
    const session = connected()
    receive(session, [1, 2])
    reconnect(session)
    receive(session, [1, 2, true])
    session.receiveWindow.handlePubrel(1)
    expect(takeAcks(session.acks)).toEqual([])
    expectClose(session, 0x82)
  })

  it('that was taken and whose identifier comes back as QoS 1 on a later connection: something new of a server that was set back', () => {
    const { session, port } = durablyConnected()
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    port.grant(0)
    reconnect(session)
    const [fresh = -9] = receive(session, [1, 1, true])
    expect(fresh).toBeGreaterThan(ticket)
    // Or a later process would take the next QoS 2 message with it for a repeat.
    expect(port.requests.slice(1)).toEqual([['delete-inbound', 1]])
    session.receiveWindow.settle(fresh, 0)
    expect(takeAcks(session.acks)).toEqual([['puback', 1, 0]])
    expect(session.receiveWindow.open).toBe(0)
  })

  it('whose repeat came and whose identifier comes as QoS 1 on the same connection: close(0x82)', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    reconnect(session)
    receive(session, [1, 2, true])
    takeAcks(session.acks)
    expect(receive(session, [1, 1, true])).toEqual([FAULT])
    expectClose(session, 0x82)
  })

  it('refused in the gap: its repeat gets the PUBREC with the code, and the exchange is over [MQTT-4.3.3-9]', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [1, 2])
    session.suspend()
    session.receiveWindow.settle(ticket, 0x83)
    reconnect(session)
    receive(session, [1, 2, true])
    expect(takeAcks(session.acks)).toEqual([['pubrec', 1, 0x83]])
    expect(session.receiveWindow.open).toBe(0)
    expect(receive(session, [1, 2])[0]).toBeGreaterThan(ticket)
  })

  it('65,535 times unreleased over as many connections: every identifier is remembered, none costs a place', () => {
    const session = connected({ receiveMaximum: 100 })
    for (let id = 1; id <= 65_535; id++) {
      const [ticket = -9] = receive(session, [id, 2])
      expect(session.receiveWindow.settle(ticket, 0)).toBe(true)
      takeAcks(session.acks)
      if (id % 100 === 0) reconnect(session)
    }
    reconnect(session)
    expect([session.receiveWindow.open, session.receiveWindow.parked]).toEqual([0, 0])
    for (const id of [1, 32_768, 65_535]) expect(receive(session, [id, 2, true])).toEqual([REPEAT])
    expect(takeAcks(session.acks)).toHaveLength(3)
  })
})

describe('the order of acknowledgements after a drop', () => {
  it('is the order in which this connection brought the messages, old and new [MQTT-4.6.0-2] [MQTT-4.6.0-3]', () => {
    const session = connected()
    const [one = -9, two = -9, three = -9] = receive(session, [1, 1], [2, 1], [3, 2])
    reconnect(session)
    // Another order than before, and a new one in the middle.
    const [, fresh = -9] = receive(session, [3, 2, true], [9, 1], [1, 1, true], [2, 1, true])
    for (const ticket of [one, two]) session.receiveWindow.settle(ticket, 0)
    expectQuiet(session)
    session.receiveWindow.settle(three, 0)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 3, 0]])
    session.receiveWindow.settle(fresh, 0)
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 9, 0],
      ['puback', 1, 0],
      ['puback', 2, 0],
    ])
  })

  it('what was settled behind an open one is not acknowledged before its own repeat, and then at once', () => {
    const session = connected()
    const [, two = -9, three = -9] = receive(session, [1, 1], [2, 1], [3, 1])
    session.receiveWindow.settle(three, 0)
    session.receiveWindow.settle(two, 0x80)
    expectQuiet(session)
    reconnect(session)
    expectQuiet(session)
    receive(session, [2, 1, true])
    expect(takeAcks(session.acks)).toEqual([['puback', 2, 0x80]])
    receive(session, [1, 1, true], [3, 1, true])
    expectQuiet(session)
  })

  it('the oldest without acknowledgement is named by its first ticket', () => {
    const session = connected()
    const [one = -9, two = -9] = receive(session, [1, 1], [2, 1])
    reconnect(session)
    receive(session, [2, 1, true], [1, 1, true])
    expect(session.receiveWindow.oldestTicket).toBe(two)
    session.receiveWindow.settle(two, 0)
    expect(session.receiveWindow.oldestTicket).toBe(one)
    session.receiveWindow.settle(one, 0)
    expect(session.receiveWindow.unsettled).toBe(0)
  })

  it('a message that this connection brought first is the oldest, though one of an earlier connection waits for its repeat', () => {
    const session = connected()
    const [parked = -9] = receive(session, [1, 1])
    reconnect(session)
    expect([session.receiveWindow.parked, session.receiveWindow.unsettled]).toEqual([1, 0])
    const [fresh = -9] = receive(session, [2, 1])
    expect([session.receiveWindow.oldestTicket, fresh > parked]).toEqual([fresh, true])
    receive(session, [1, 1, true])
    expect(session.receiveWindow.oldestTicket).toBe(fresh)
    session.receiveWindow.settle(fresh, 0)
    expect(session.receiveWindow.oldestTicket).toBe(parked)
  })
})

describe('Receive Maximum on the next connection', () => {
  it('starts empty: only what this connection brought counts [MQTT-3.3.4-9]', () => {
    const session = connected({ receiveMaximum: 2, receiveMaximumExceeded: 'disconnect' })
    receive(session, [1, 1], [2, 2])
    expect(session.receiveWindow.full).toBe(true)
    reconnect(session)
    expect([session.receiveWindow.open, session.receiveWindow.full, session.receiveWindow.parked]).toEqual([0, false, 2])
    receive(session, [1, 1, true], [3, 1])
    expect(session.receiveWindow.full).toBe(true)
    expect(receive(session, [2, 2, true])).toEqual([FAULT])
    expectClose(session, 0x93)
  })

  it('a repeated PUBREC exchange takes a place until its PUBREL', () => {
    const session = connected({ receiveMaximum: 1 })
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    reconnect(session)
    receive(session, [1, 2, true])
    expect(session.receiveWindow.full).toBe(true)
    session.receiveWindow.handlePubrel(1)
    expect(session.receiveWindow.open).toBe(0)
  })

  it('is what CONNECT announced on this connection', () => {
    const session = connected({ receiveMaximum: 2, receiveMaximumExceeded: 'disconnect' })
    reconnect(session, true, {}, { properties: { receiveMaximum: 1 } })
    receive(session, [1, 1])
    expect(receive(session, [2, 1])).toEqual([FAULT])
    expectClose(session, 0x93)
  })

  it('3.1.1 knows none: 65,535 may be open', () => {
    const session = connected({ receiveMaximum: 2 }, {}, { protocolVersion: 4 })
    const tickets = Array.from({ length: 500 }, (_, index) => session.receiveWindow.handlePublish(index + 1, 1))
    expect(tickets.every((ticket) => ticket >= 0)).toBe(true)
  })
})

describe('Session Present 0', () => {
  it('makes every ticket stale and every identifier new; the loss is told with their number', () => {
    const session = connected()
    const [one = -9, two = -9, three = -9] = receive(session, [1, 1], [2, 2], [3, 2])
    session.receiveWindow.settle(one, 0)
    takeAcks(session.acks)
    session.suspend()
    expect(session.receiveWindow.settle(two, 0)).toBe(true)
    expect(session.receiveWindow.parked).toBe(2)
    expect(reconnect(session, false)).toMatchObject({ lost: true, stale: 2 })
    expect([session.receiveWindow.settle(two, 0), session.receiveWindow.settle(three, 0)]).toEqual([false, false])
    expectQuiet(session)
    expect([session.receiveWindow.parked, session.receiveWindow.unsettled, session.receiveWindow.open]).toEqual([0, 0, 0])
    const fresh = receive(session, [2, 2, true], [3, 2])
    expect(fresh.every((ticket) => ticket > three)).toBe(true)
    session.receiveWindow.handlePubrel(1)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 1, 0x92]])
  })

  it('forgets what was taken: its identifier brings a new message', () => {
    const session = connected()
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    reconnect(session, false)
    expect(receive(session, [1, 2, true])[0]).toBeGreaterThan(ticket)
  })

  it('is no loss on a first connection', () => {
    const session = connected()
    expect(session.known).toBe(true)
    session.suspend()
    session.reset()
    expect(session.known).toBe(false)
    expect(reconnect(session, false)).toMatchObject({ lost: false, stale: 0 })
  })
})

describe('a durable store across connections', () => {
  it('PUBREC of a message that was settled waits for the store, also when that answers in the gap', () => {
    const { session, port } = durablyConnected()
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    session.suspend()
    expect(takeActions(session)).toEqual([])
    expect(port.requests).toEqual([['put-inbound', 1]])
    port.grant(0)
    reconnect(session)
    expect(takeAcks(session.acks)).toEqual([])
    receive(session, [1, 2, true])
    expect(takeAcks(session.acks)).toEqual([['pubrec', 1, 0]])
  })

  it('and when it answers after the repeat', () => {
    const { session, port } = durablyConnected()
    const [ticket = -9] = receive(session, [1, 2])
    session.suspend()
    session.receiveWindow.settle(ticket, 0)
    expect(takeActions(session)).toEqual([])
    expect(port.requests).toEqual([['put-inbound', 1]])
    reconnect(session)
    expect(receive(session, [1, 2, true])).toEqual([REPEAT])
    expect(takeAcks(session.acks)).toEqual([])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 1, 0]])
  })

  it('and not at all for a session that was lost meanwhile', () => {
    const { session, port } = durablyConnected()
    const [ticket = -9] = receive(session, [1, 2])
    session.receiveWindow.settle(ticket, 0)
    reconnect(session, false)
    receive(session, [1, 2])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([])
  })
})

describe('repeats on one connection', () => {
  it('on 3.1.1 QoS 1 with DUP is the same message, and acknowledged once', () => {
    const session = connected({}, {}, { protocolVersion: 4 })
    const [ticket = -9] = receive(session, [1, 1])
    expect(receive(session, [1, 1, true], [1, 1, true])).toEqual([REPEAT, REPEAT])
    expectQuiet(session)
    session.receiveWindow.settle(ticket, 0)
    expect(takeAcks(session.acks)).toEqual([['puback', 1, 0]])
  })

  it('on 3.1.1 QoS 1 without DUP: close', () => {
    const session = connected({}, {}, { protocolVersion: 4 })
    receive(session, [1, 1])
    expect(receive(session, [1, 1, false])).toEqual([FAULT])
    expect(session.state).toBe('closed')
  })

  it('on 5.0 with or without DUP: close(0x82) [MQTT-4.4.0-1]', () => {
    for (const dup of [true, false]) {
      const session = connected()
      receive(session, [1, 1])
      expect(receive(session, [1, 1, dup])).toEqual([FAULT])
      expectClose(session, 0x82)
    }
  })

  it('holds for a message that was bound to its repeat on this connection, too', () => {
    const five = connected()
    receive(five, [1, 1])
    reconnect(five)
    receive(five, [1, 1, true])
    expect(receive(five, [1, 1, true])).toEqual([FAULT])
    const four = connected({}, {}, { protocolVersion: 4 })
    const [ticket = -9] = receive(four, [1, 1])
    reconnect(four, true, {}, { protocolVersion: 4 })
    expect(receive(four, [1, 1, true], [1, 1, true])).toEqual([REPEAT, REPEAT])
    four.receiveWindow.settle(ticket, 0)
    expect(takeAcks(four.acks)).toEqual([['puback', 1, 0]])
  })
})
