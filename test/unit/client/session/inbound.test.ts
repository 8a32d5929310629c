import { describe, expect, it } from 'vitest'
import { REPEAT } from '../../../../src/client/session/receive-window.js'
import type { Session } from '../../../../src/client/session/session.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import {
  type Ack,
  connackPacket,
  connected,
  connectPacket,
  durablyConnected,
  expectClose,
  expectQuiet,
  type RecordingPort,
  takeAcks,
  takeActions,
} from './drive.js'

const id = 5

/** Brings identifier 5 into a state and takes what was queued on the way. */
const states: Record<string, () => Session> = {
  'not in use': () => open(() => undefined),
  'QoS 1 in hand': () => open(({ receiveWindow }) => receiveWindow.handlePublish(id, 1)),
  'QoS 1 settled behind another': () =>
    open(({ receiveWindow }) => {
      receiveWindow.handlePublish(9, 1)
      receiveWindow.settle(receiveWindow.handlePublish(id, 1), 0)
    }),
  'QoS 1 acknowledged': () => open(({ receiveWindow }) => receiveWindow.settle(receiveWindow.handlePublish(id, 1), 0)),
  'QoS 2 in hand': () => open(({ receiveWindow }) => receiveWindow.handlePublish(id, 2)),
  'QoS 2 settled behind another': () =>
    open(({ receiveWindow }) => {
      receiveWindow.handlePublish(9, 2)
      receiveWindow.settle(receiveWindow.handlePublish(id, 2), 0)
    }),
  'QoS 2 being stored': () => open(({ receiveWindow }) => receiveWindow.settle(receiveWindow.handlePublish(id, 2), 0), true),
  'PUBREC sent': () => open(({ receiveWindow }) => receiveWindow.settle(receiveWindow.handlePublish(id, 2), 0)),
  'PUBREL came, being forgotten': () =>
    open((session) => {
      const port = session.persistence as RecordingPort
      session.receiveWindow.settle(session.receiveWindow.handlePublish(id, 2), 0)
      port.grant(0)
      session.receiveWindow.handlePubrel(id)
    }, true),
  'PUBREC 0x80 sent': () => open(({ receiveWindow }) => receiveWindow.settle(receiveWindow.handlePublish(id, 2), 0x80)),
  'PUBCOMP sent': () =>
    open(({ receiveWindow }) => {
      receiveWindow.settle(receiveWindow.handlePublish(id, 2), 0)
      receiveWindow.handlePubrel(id)
    }),
}

function open(prepare: (session: Session) => void, durable = false): Session {
  const session = durable ? durablyConnected().session : connected()
  prepare(session)
  takeAcks(session.acks)
  takeActions(session)
  return session
}

const NEW = 'new message'
const SAME = 'no second delivery'
const CLOSE = 'close(0x82)'
const receive = (session: Session, qos: number): string => {
  const verdict = session.receiveWindow.handlePublish(id, qos)
  return verdict === REPEAT ? SAME : verdict === FAULT ? CLOSE : NEW
}
const receipt: Ack[] = [['pubrec', id, 0]]

/** state, what a PUBLISH at QoS 1 and 2 with that identifier is, the answer to the latter, the answer to PUBREL. */
const table: [state: string, qos1: string, qos2: string, answer: Ack[], pubrel: Ack[] | typeof CLOSE][] = [
  ['not in use', NEW, NEW, [], [['pubcomp', id, 0x92]]],
  ['QoS 1 in hand', CLOSE, CLOSE, [], CLOSE],
  ['QoS 1 settled behind another', CLOSE, CLOSE, [], CLOSE],
  ['QoS 1 acknowledged', NEW, NEW, [], [['pubcomp', id, 0x92]]],
  ['QoS 2 in hand', CLOSE, SAME, [], CLOSE],
  ['QoS 2 settled behind another', CLOSE, SAME, [], CLOSE],
  ['QoS 2 being stored', CLOSE, SAME, [], CLOSE],
  ['PUBREC sent', CLOSE, SAME, receipt, [['pubcomp', id, 0]]],
  ['PUBREL came, being forgotten', CLOSE, SAME, [], []],
  ['PUBREC 0x80 sent', NEW, NEW, [], [['pubcomp', id, 0x92]]],
  ['PUBCOMP sent', NEW, NEW, [], [['pubcomp', id, 0x92]]],
]

describe('PUBLISH and PUBREL in every state of their identifier', () => {
  it.each(table)('%s: QoS 1 is %s', (state, qos1) => {
    const session = (states[state] as () => Session)()
    expect(receive(session, 1)).toBe(qos1)
    if (qos1 === CLOSE) expectClose(session, 0x82)
    else expectQuiet(session)
  })

  it.each(table)('%s, QoS 1 is %s: QoS 2 is %s', (state, _qos1, qos2, answer) => {
    const session = (states[state] as () => Session)()
    expect(receive(session, 2)).toBe(qos2)
    expect(takeAcks(session.acks)).toEqual(answer)
    if (qos2 === CLOSE) expectClose(session, 0x82)
    else expectQuiet(session)
  })

  it.each(table)('%s: PUBREL', (state, _qos1, _qos2, _answer, pubrel) => {
    const session = (states[state] as () => Session)()
    session.receiveWindow.handlePubrel(id)
    if (pubrel === CLOSE) {
      expect(takeAcks(session.acks)).toEqual([])
      expectClose(session, 0x82)
    } else {
      expect(takeAcks(session.acks)).toEqual(pubrel)
      expectQuiet(session)
    }
  })
})

describe('incoming QoS 1 (section 4.3.2)', () => {
  it('nothing is acknowledged before it is settled, then once [MQTT-4.3.2-4]', () => {
    const session = connected()
    const ticket = session.receiveWindow.handlePublish(0x1234, 1)
    expectQuiet(session)
    expect([session.receiveWindow.settle(ticket, 0), session.receiveWindow.settle(ticket, 0)]).toEqual([true, false])
    expect(takeAcks(session.acks)).toEqual([['puback', 0x1234, 0]])
    expect([session.receiveWindow.open, session.receiveWindow.unsettled]).toEqual([0, 0])
  })

  it('an identifier after its PUBACK is a new message, also twice in one read [MQTT-4.3.2-5]', () => {
    const session = connected()
    const first = session.receiveWindow.handlePublish(5, 1)
    session.receiveWindow.settle(first, 0)
    const second = session.receiveWindow.handlePublish(5, 1)
    expect(second).toBe(first + 1)
    session.receiveWindow.settle(second, 0)
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 5, 0],
      ['puback', 5, 0],
    ])
  })

  it('carries the reason code that the application chose', () => {
    const session = connected()
    for (const [index, code] of [0x10, 0x80, 0x83, 0x87, 0x97, 0x99].entries())
      session.receiveWindow.settle(session.receiveWindow.handlePublish(index + 1, 1), code)
    expect(takeAcks(session.acks)).toEqual([0x10, 0x80, 0x83, 0x87, 0x97, 0x99].map((code, index) => ['puback', index + 1, code]))
    expect(session.receiveWindow.open).toBe(0)
  })
})

describe('incoming QoS 2 (section 4.3.3)', () => {
  it('PUBREC, then PUBREL, PUBCOMP; then the identifier is new again [MQTT-4.3.3-8] [MQTT-4.3.3-11] [MQTT-4.3.3-12]', () => {
    const session = connected()
    for (let round = 0; round < 3; round++) {
      const ticket = session.receiveWindow.handlePublish(0xffff, 2)
      expect(ticket).toBe(round)
      session.receiveWindow.settle(ticket, 0)
      expect(takeAcks(session.acks)).toEqual([['pubrec', 0xffff, 0]])
      expect(session.receiveWindow.open).toBe(1)
      session.receiveWindow.handlePubrel(0xffff)
      expect(takeAcks(session.acks)).toEqual([['pubcomp', 0xffff, 0]])
      expect(session.receiveWindow.open).toBe(0)
    }
  })

  it('a repeat before PUBREL is answered again and delivered once [MQTT-4.3.3-10]', () => {
    const session = connected()
    const ticket = session.receiveWindow.handlePublish(7, 2)
    expect(session.receiveWindow.handlePublish(7, 2)).toBe(REPEAT)
    expectQuiet(session)
    session.receiveWindow.settle(ticket, 0)
    expect(session.receiveWindow.handlePublish(7, 2)).toBe(REPEAT)
    expect(session.receiveWindow.handlePublish(7, 2)).toBe(REPEAT)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 7, 0],
      ['pubrec', 7, 0],
      ['pubrec', 7, 0],
    ])
    expect(session.receiveWindow.open).toBe(1)
  })

  it('PUBREL repeated: PUBCOMP each time', () => {
    const session = connected()
    session.receiveWindow.settle(session.receiveWindow.handlePublish(7, 2), 0)
    for (let round = 0; round < 3; round++) session.receiveWindow.handlePubrel(7)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 7, 0],
      ['pubcomp', 7, 0],
      ['pubcomp', 7, 0x92],
      ['pubcomp', 7, 0x92],
    ])
    expect(session.receiveWindow.open).toBe(0)
  })

  it('an error code ends the exchange at PUBREC [MQTT-4.3.3-9]', () => {
    const session = connected({ receiveMaximum: 1 })
    session.receiveWindow.settle(session.receiveWindow.handlePublish(6, 2), 0x87)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 6, 0x87]])
    expect([session.receiveWindow.open, session.receiveWindow.full]).toEqual([0, false])
    expect(session.receiveWindow.handlePublish(6, 2)).toBe(1)
  })

  it('a code below 0x80 does not', () => {
    const session = connected()
    session.receiveWindow.settle(session.receiveWindow.handlePublish(6, 2), 0x10)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 6, 0x10]])
    session.receiveWindow.handlePubrel(6)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 6, 0]])
  })
})

describe('our Receive Maximum (section 3.1.2.11.3)', () => {
  it.each([
    [1, 1],
    [1, 2],
    [3, 1],
    [3, 2],
    [256, 2],
    [65_535, 1],
  ])("'disconnect': %i open at QoS %i are taken, one more is close(0x93) [MQTT-3.3.4-9]", (receiveMaximum, qos) => {
    const session = connected({ receiveMaximum, receiveMaximumExceeded: 'disconnect' })
    for (let one = 1; one <= receiveMaximum; one++) {
      expect(session.receiveWindow.full).toBe(false)
      expect(session.receiveWindow.handlePublish(one, qos)).toBe(one - 1)
    }
    expect([session.receiveWindow.full, session.receiveWindow.open, session.receiveWindow.unsettled]).toEqual([true, receiveMaximum, receiveMaximum])
    expectQuiet(session)
    // An identifier beyond the range stands for one that is free: all 65,535 may be in use.
    expect(session.receiveWindow.handlePublish(receiveMaximum === 65_535 ? 0 : receiveMaximum + 1, qos)).toBe(FAULT)
    expectClose(session, 0x93)
  })

  it('a repeat at the limit is no further message', () => {
    const session = connected({ receiveMaximum: 1, receiveMaximumExceeded: 'disconnect' })
    session.receiveWindow.handlePublish(1, 2)
    expect(session.receiveWindow.handlePublish(1, 2)).toBe(REPEAT)
    expectQuiet(session)
  })

  it.each([1, 2])('all 65,535 identifiers may be open at QoS %i beyond it: told once a connection, counted, acknowledged in order', (qos) => {
    const session = connected({ receiveMaximum: 3, ownsSession: true }, {}, { clientId: 'me', cleanStart: false })
    const { receiveWindow } = session
    const arrive = (from: number, to: number): number[] => {
      const tickets: number[] = []
      for (let one = from; one <= to; one++) tickets.push(receiveWindow.handlePublish(one, qos))
      return tickets
    }
    const tickets = arrive(1, 65_535)
    expect(tickets.every((ticket, index) => ticket === index)).toBe(true)
    expect([receiveWindow.open, receiveWindow.unsettled, receiveWindow.excess, receiveWindow.full]).toEqual([65_535, 65_535, 65_532, true])
    expect(takeActions(session)).toEqual([{ type: 'exceeded' }])
    for (const ticket of tickets.reverse()) receiveWindow.settle(ticket, 0)
    expect(takeAcks(session.acks).map(([, one]) => one)).toEqual(Array.from({ length: 65_535 }, (_, index) => index + 1))
    if (qos === 2) for (let one = 1; one <= 65_535; one++) receiveWindow.handlePubrel(one)
    takeAcks(session.acks)
    expect([receiveWindow.open, receiveWindow.unsettled, receiveWindow.full]).toEqual([0, 0, false])
    // What grew for it goes on as before.
    expect(arrive(1, 4)).toEqual([65_535, 65_536, 65_537, 65_538])
    expect(takeActions(session)).toEqual([])
    for (const ticket of [65_536, 65_535]) receiveWindow.settle(ticket, 0)
    expect(takeAcks(session.acks).map(([, one]) => one)).toEqual([1, 2])
    session.suspend()
    session.connect(connectPacket({ cleanStart: false }))
    session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
    takeActions(session)
    arrive(11, 15)
    expect([takeActions(session), receiveWindow.excess]).toEqual([[{ type: 'exceeded' }], 65_535])
  })

  it('QoS 2 occupies its place until PUBCOMP, QoS 1 until PUBACK', () => {
    const session = connected({ receiveMaximum: 2 })
    const { receiveWindow } = session
    receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
    receiveWindow.settle(receiveWindow.handlePublish(2, 1), 0)
    expect([receiveWindow.open, receiveWindow.unsettled, receiveWindow.full]).toEqual([1, 0, false])
    receiveWindow.handlePublish(3, 1)
    expect([receiveWindow.open, receiveWindow.unsettled, receiveWindow.full]).toEqual([2, 1, true])
    receiveWindow.handlePubrel(1)
    expect([receiveWindow.open, receiveWindow.full]).toEqual([1, false])
  })

  it('a message settled behind an open one still counts', () => {
    const session = connected({ receiveMaximum: 2 })
    const { receiveWindow } = session
    receiveWindow.handlePublish(1, 1)
    receiveWindow.settle(receiveWindow.handlePublish(2, 1), 0)
    expect([receiveWindow.full, receiveWindow.unsettled, receiveWindow.oldestTicket]).toEqual([true, 2, 0])
    receiveWindow.settle(0, 0)
    expect([receiveWindow.full, receiveWindow.unsettled, receiveWindow.oldestTicket]).toEqual([false, 0, 2])
  })
})

describe('tickets', () => {
  it('that were never given are refused', () => {
    const session = connected()
    session.receiveWindow.handlePublish(1, 1)
    expect([-2, -1, 1, 2, 1000].map((ticket) => session.receiveWindow.settle(ticket, 0))).toEqual([false, false, false, false, false])
    expectQuiet(session)
  })

  it('settled but not yet acknowledged are refused the second time, and keep their first code', () => {
    const session = connected()
    session.receiveWindow.handlePublish(1, 1)
    session.receiveWindow.handlePublish(2, 1)
    expect([session.receiveWindow.settle(1, 0x10), session.receiveWindow.settle(1, 0x80)]).toEqual([true, false])
    session.receiveWindow.settle(0, 0)
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 1, 0],
      ['puback', 2, 0x10],
    ])
  })

  it('of a session that was reset are stale, and its identifiers and places are free', () => {
    const session = connected({ receiveMaximum: 3 })
    const { receiveWindow } = session
    const old = [receiveWindow.handlePublish(1, 1), receiveWindow.handlePublish(2, 2), receiveWindow.handlePublish(3, 2)]
    receiveWindow.settle(1, 0)
    session.reset()
    expect([receiveWindow.open, receiveWindow.unsettled, receiveWindow.full, receiveWindow.oldestTicket]).toEqual([0, 0, false, 3])
    expect(old.map((ticket) => receiveWindow.settle(ticket, 0))).toEqual([false, false, false])
    const fresh = receiveWindow.handlePublish(2, 2)
    expect(fresh).toBe(3)
    expect(receiveWindow.settle(fresh, 0)).toBe(true)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 2, 0]])
  })
})
