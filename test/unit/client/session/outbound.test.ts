import { describe, expect, it } from 'vitest'
import { DONE, RELEASED, UNKNOWN } from '../../../../src/client/session/send-window.js'
import type { Session } from '../../../../src/client/session/session.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import { type Ack, connected, durablyConnected, expectClose, expectQuiet, takeAcks, takeActions } from './drive.js'

const id = 1

/** Brings identifier 1 into a state and takes what was queued on the way. */
const states: Record<string, () => Session> = {
  'not in use': () => connected(),
  'PUBLISH QoS 1 sent': () => open((session) => session.sendWindow.publish(1)),
  'PUBLISH QoS 2 sent': () => open((session) => session.sendWindow.publish(2)),
  'PUBREL being stored': () =>
    open((session) => {
      session.sendWindow.publish(2)
      session.sendWindow.handleAck(PUBREC, id, 0)
    }, true),
  'PUBREL sent': () =>
    open((session) => {
      session.sendWindow.publish(2)
      session.sendWindow.handleAck(PUBREC, id, 0)
    }),
  'SUBSCRIBE sent': () => open((session) => session.sendWindow.request('subscribe', 2)),
  'UNSUBSCRIBE sent': () => open((session) => session.sendWindow.request('unsubscribe', 2)),
  'QoS 1 done': () =>
    open(({ sendWindow }) => {
      sendWindow.publish(1)
      sendWindow.handleAck(PUBACK, id, 0)
    }),
  'QoS 2 done': () =>
    open(({ sendWindow }) => {
      sendWindow.publish(2)
      sendWindow.handleAck(PUBREC, id, 0)
      sendWindow.handleAck(PUBCOMP, id, 0)
    }),
}

function open(prepare: (session: Session) => void, durable = false): Session {
  const session = durable ? durablyConnected().session : connected()
  prepare(session)
  takeAcks(session.acks)
  takeActions(session)
  return session
}

const inputs: Record<string, (session: Session) => number> = {
  PUBACK: ({ sendWindow }) => sendWindow.handleAck(PUBACK, id, 0),
  PUBREC: ({ sendWindow }) => sendWindow.handleAck(PUBREC, id, 0),
  'PUBREC 0x10': ({ sendWindow }) => sendWindow.handleAck(PUBREC, id, 0x10),
  'PUBREC 0x80': ({ sendWindow }) => sendWindow.handleAck(PUBREC, id, 0x80),
  'PUBREC 0x97': ({ sendWindow }) => sendWindow.handleAck(PUBREC, id, 0x97),
  PUBCOMP: ({ sendWindow }) => sendWindow.handleAck(PUBCOMP, id, 0),
  SUBACK: ({ sendWindow }) => sendWindow.handleAnswer('subscribe', id, 2),
  UNSUBACK: ({ sendWindow }) => sendWindow.handleAnswer('unsubscribe', id, 2),
}

type Row = readonly [input: string, verdict: number, acks?: Ack[]]

const release: Ack[] = [['pubrel', id, 0]]
const unknown: Row[] = [
  ['PUBACK', UNKNOWN],
  ['PUBREC', UNKNOWN, [['pubrel', id, 0x92]]],
  ['PUBREC 0x10', UNKNOWN, [['pubrel', id, 0x92]]],
  ['PUBREC 0x80', UNKNOWN],
  ['PUBREC 0x97', UNKNOWN],
  ['PUBCOMP', UNKNOWN],
  ['SUBACK', UNKNOWN],
  ['UNSUBACK', UNKNOWN],
]
/** All rows broken but those given. */
const otherwiseBroken = (...rows: Row[]): Row[] =>
  Object.keys(inputs).map((input) => rows.find((row) => row[0] === input) ?? ([input, FAULT] as const))

/** What each acknowledgement means in each state: D04 D07 D09 D12 D14 to D19. */
const table: Record<string, Row[]> = {
  'not in use': unknown,
  'PUBLISH QoS 1 sent': otherwiseBroken(['PUBACK', DONE]),
  'PUBLISH QoS 2 sent': otherwiseBroken(
    ['PUBREC', RELEASED, release],
    ['PUBREC 0x10', RELEASED, release],
    ['PUBREC 0x80', DONE],
    ['PUBREC 0x97', DONE],
  ),
  // An error PUBREC answers a copy that was sent again: the server has the message.
  'PUBREL sent': otherwiseBroken(
    ['PUBREC', RELEASED, release],
    ['PUBREC 0x10', RELEASED, release],
    ['PUBREC 0x80', UNKNOWN],
    ['PUBREC 0x97', UNKNOWN],
    ['PUBCOMP', DONE],
  ),
  'PUBREL being stored': otherwiseBroken(['PUBREC', RELEASED], ['PUBREC 0x10', RELEASED], ['PUBREC 0x80', UNKNOWN], ['PUBREC 0x97', UNKNOWN]),
  'SUBSCRIBE sent': otherwiseBroken(['SUBACK', DONE]),
  'UNSUBSCRIBE sent': otherwiseBroken(['UNSUBACK', DONE]),
  'QoS 1 done': unknown,
  'QoS 2 done': unknown,
}

const verdicts = new Map([
  [UNKNOWN, 'ignored'],
  [DONE, 'done'],
  [RELEASED, 'released'],
  [FAULT, 'close(0x82)'],
])

const cases = Object.entries(table).flatMap(([state, rows]) =>
  rows.map(([input, verdict, acks = []]) => ({ state, input, verdict, acks, name: verdicts.get(verdict) })),
)

describe('every acknowledgement in every state of its identifier', () => {
  it.each(cases)('$state, $input: $name', ({ state, input, verdict, acks }) => {
    const session = (states[state] as () => Session)()
    const before = session.sendWindow.inFlight
    expect((inputs[input] as (session: Session) => number)(session)).toBe(verdict)
    expect(takeAcks(session.acks)).toEqual(acks)
    if (verdict === FAULT) expectClose(session, 0x82)
    else expectQuiet(session)
    const publishing = state.startsWith('PUB')
    expect(session.sendWindow.inFlight).toBe(verdict === DONE && publishing ? 0 : before)
    expect(session.sendWindow.unsolicited).toBe(verdict === UNKNOWN ? 1 : 0)
  })

  it('an acknowledgement with id 0 is never one of ours', () => {
    const session = connected()
    session.sendWindow.publish(1)
    session.sendWindow.publish(2)
    expect([session.sendWindow.handleAck(PUBACK, 0, 0), session.sendWindow.handleAck(PUBCOMP, 0, 0)]).toEqual([UNKNOWN, UNKNOWN])
    expect(session.sendWindow.inFlight).toBe(2)
  })
})

describe('outgoing exchanges (section 4.3)', () => {
  it('QoS 1 ends with PUBACK, once [MQTT-4.3.2-3]', () => {
    const session = connected()
    expect(session.sendWindow.publish(1)).toBe(1)
    expect([session.sendWindow.handleAck(PUBACK, 1, 0), session.sendWindow.handleAck(PUBACK, 1, 0)]).toEqual([DONE, UNKNOWN])
    expectQuiet(session)
  })

  it('QoS 2: PUBREC, PUBREL, PUBCOMP [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5]', () => {
    const session = connected()
    const { sendWindow } = session
    expect(sendWindow.publish(2)).toBe(1)
    expect(sendWindow.handleAck(PUBREC, 1, 0)).toBe(RELEASED)
    expect(takeAcks(session.acks)).toEqual([['pubrel', 1, 0]])
    expect(sendWindow.inFlight).toBe(1)
    expect(sendWindow.handleAck(PUBCOMP, 1, 0)).toBe(DONE)
    expect(sendWindow.inFlight).toBe(0)
    expectQuiet(session)
  })

  it('a second PUBREC asks for PUBREL again and settles nothing [MQTT-4.3.3-6]', () => {
    const session = connected()
    const { sendWindow } = session
    sendWindow.publish(2)
    for (let round = 0; round < 3; round++) expect(sendWindow.handleAck(PUBREC, 1, 0)).toBe(RELEASED)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrel', 1, 0],
      ['pubrel', 1, 0],
      ['pubrel', 1, 0],
    ])
    expect([sendWindow.handleAck(PUBCOMP, 1, 0), sendWindow.handleAck(PUBCOMP, 1, 0)]).toEqual([DONE, UNKNOWN])
  })

  it('ten at once complete in any order; PUBREL leaves in the order of PUBREC [MQTT-4.6.0-4]', () => {
    const session = connected()
    const { sendWindow } = session
    const ids = Array.from({ length: 10 }, () => sendWindow.publish(2))
    expect(new Set(ids).size).toBe(10)
    const order = [7, 2, 9, 1, 10, 4, 3, 8, 6, 5]
    for (const one of order) sendWindow.handleAck(PUBREC, one, 0)
    expect(takeAcks(session.acks)).toEqual(order.map((one) => ['pubrel', one, 0]))
    for (const one of [...order].reverse()) expect(sendWindow.handleAck(PUBCOMP, one, 0)).toBe(DONE)
    expect(sendWindow.inFlight).toBe(0)
  })

  it('acknowledgements of nobody’s are counted and leave nothing behind', () => {
    const session = connected()
    for (let one = 1; one <= 65_535; one++) {
      session.sendWindow.handleAck(PUBACK, one, 0)
      session.sendWindow.handleAck(PUBCOMP, one, 0)
    }
    expect(session.sendWindow.unsolicited).toBe(131_070)
    expect([session.sendWindow.inFlight, session.sendWindow.mayPublish]).toEqual([0, true])
    expectQuiet(session)
    expect(session.sendWindow.publish(1)).toBe(1)
  })
})

describe('SUBACK and UNSUBACK (sections 3.9, 3.11)', () => {
  it('are handed on once, and free the identifier', () => {
    const session = connected()
    expect(session.sendWindow.request('subscribe', 2)).toBe(1)
    expect(session.sendWindow.request('unsubscribe', 1)).toBe(2)
    const suback = { type: 'suback', packetId: 1, properties: {}, reasonCodes: [0, 0x87] } as const
    const unsuback = { type: 'unsuback', packetId: 2, properties: {}, reasonCodes: [0x11] } as const
    session.handlePacket({ ...unsuback, reasonCodes: [0x11] }, 0)
    session.handlePacket({ ...suback, reasonCodes: [0, 0x87] }, 0)
    expect(takeActions(session)).toEqual([
      { type: 'answered', packet: unsuback },
      { type: 'answered', packet: suback },
    ])
  })

  it.each([
    ['subscribe', 'suback'],
    ['unsubscribe', 'unsuback'],
  ] as const)('%s with fewer or more codes than filters: close(0x82), nothing handed on', (kind, type) => {
    for (const reasonCodes of [[], [0], [0, 0, 0]]) {
      const session = connected()
      const packetId = session.sendWindow.request(kind, 2)
      session.handlePacket({ type, packetId, properties: {}, reasonCodes }, 0)
      expectClose(session, 0x82)
    }
  })

  it('answers to nobody’s request are ignored and counted', () => {
    const session = connected()
    session.handlePacket({ type: 'suback', packetId: 5, properties: {}, reasonCodes: [0] }, 0)
    session.handlePacket({ type: 'unsuback', packetId: 5, properties: {}, reasonCodes: [0] }, 0)
    expect(session.sendWindow.unsolicited).toBe(2)
    expectQuiet(session)
  })

  it('on 3.1.1 an UNSUBACK has no codes to count, a SUBACK has', () => {
    const session = connected({}, {}, { protocolVersion: 4 })
    const packetId = session.sendWindow.request('unsubscribe', 3)
    session.handlePacket({ type: 'unsuback', packetId, properties: {}, reasonCodes: [] }, 0)
    expect(takeActions(session)).toMatchObject([{ type: 'answered', packet: { packetId } }])
    session.handlePacket({ type: 'suback', packetId: session.sendWindow.request('subscribe', 3), properties: {}, reasonCodes: [0] }, 0)
    expectClose(session, 0x82)
  })

  it('an UNSUBACK for a SUBSCRIBE ends the connection', () => {
    const session = connected()
    const packetId = session.sendWindow.request('subscribe', 1)
    session.handlePacket({ type: 'unsuback', packetId, properties: {}, reasonCodes: [0] }, 0)
    expectClose(session, 0x82)
  })
})
