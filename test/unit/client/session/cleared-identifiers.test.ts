/**
 * Identifiers in a session whose past this process does not know: cleared by PUBREL before their first use at QoS 2.
 *
 * An identifier that was cleared is not in use: what is said about it is said about nothing.
 */
import { describe, expect, it } from 'vitest'
import { CLEARED, DONE, RELEASED, UNKNOWN } from '../../../../src/client/session/send-window.js'
import type { Session } from '../../../../src/client/session/session.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import type { Ack } from './drive.js'
import { connackPacket, connecting, expectClose, expectQuiet, takeAcks, takeActions } from './drive.js'

const id = 1

/** A first connection to a session that an earlier process left behind. One message at a time, so that one identifier is cleared at a time. */
function foreign(): Session {
  const session = connecting({ ownsSession: true }, { cleanStart: false })
  session.handlePacket(connackPacket({ receiveMaximum: 1 }, { sessionPresent: true }), 0)
  takeActions(session)
  return session
}

function clearing(): Session {
  const session = foreign()
  expect(session.sendWindow.prepare(2)).toBe(false)
  expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
  return session
}

function cleared(): Session {
  const session = clearing()
  expect(session.sendWindow.handleAck(PUBCOMP, id, 0)).toBe(CLEARED)
  return session
}

/** Cleared, used for a message at QoS 2, and free for the next one. */
function usedOnce(): Session {
  const session = cleared()
  expect([session.sendWindow.prepare(2), session.sendWindow.publish(2)]).toEqual([true, id])
  session.sendWindow.handleAck(PUBREC, id, 0)
  takeAcks(session.acks)
  expect(session.sendWindow.handleAck(PUBCOMP, id, 0)).toBe(DONE)
  return session
}

const inputs: Record<string, (session: Session) => number> = {
  PUBACK: ({ sendWindow }) => sendWindow.handleAck(PUBACK, id, 0),
  PUBREC: ({ sendWindow }) => sendWindow.handleAck(PUBREC, id, 0),
  'PUBREC 0x80': ({ sendWindow }) => sendWindow.handleAck(PUBREC, id, 0x80),
  PUBCOMP: ({ sendWindow }) => sendWindow.handleAck(PUBCOMP, id, 0),
  SUBACK: ({ sendWindow }) => sendWindow.handleAnswer('subscribe', id, 1),
  UNSUBACK: ({ sendWindow }) => sendWindow.handleAnswer('unsubscribe', id, 1),
}

type Row = readonly [input: string, verdict: number, acks?: Ack[]]

const notInUse: Row[] = [
  ['PUBACK', UNKNOWN],
  ['PUBREC', UNKNOWN, [['pubrel', id, 0x92]]],
  ['PUBREC 0x80', UNKNOWN],
  ['PUBCOMP', UNKNOWN],
  ['SUBACK', UNKNOWN],
  ['UNSUBACK', UNKNOWN],
]

const table: [state: string, open: () => Session, rows: Row[]][] = [
  [
    'being cleared',
    clearing,
    [
      ['PUBACK', FAULT],
      ['PUBREC', UNKNOWN, [['pubrel', id, 0x92]]],
      ['PUBREC 0x80', UNKNOWN],
      ['PUBCOMP', CLEARED],
      ['SUBACK', FAULT],
      ['UNSUBACK', FAULT],
    ],
  ],
  ['cleared', cleared, notInUse],
  ['used once, and free again', usedOnce, notInUse],
]

const names = new Map([
  [UNKNOWN, 'ignored'],
  [CLEARED, 'cleared'],
  [FAULT, 'close(0x82)'],
])

const cases = table.flatMap(([state, open, rows]) =>
  rows.map(([input, verdict, acks = []]) => ({ state, open, input, verdict, acks, name: names.get(verdict) })),
)

describe('every acknowledgement for an identifier of a foreign session', () => {
  it.each(cases)('$state, $input: $name', ({ open, input, verdict, acks }) => {
    const session = open()
    expect((inputs[input] as (session: Session) => number)(session)).toBe(verdict)
    expect(takeAcks(session.acks)).toEqual(acks)
    if (verdict === FAULT) expectClose(session, 0x82)
    else expectQuiet(session)
    expect(session.sendWindow.unsolicited).toBe(verdict === UNKNOWN ? 1 : 0)
  })

  it('a PUBREC that came twice is answered twice, and the second PUBCOMP ends nothing', () => {
    const session = cleared()
    expect(session.sendWindow.publish(2)).toBe(id)
    expect([session.sendWindow.handleAck(PUBREC, id, 0), session.sendWindow.handleAck(PUBREC, id, 0)]).toEqual([RELEASED, RELEASED])
    expect(takeAcks(session.acks)).toEqual([
      ['pubrel', id, 0],
      ['pubrel', id, 0],
    ])
    expect([session.sendWindow.handleAck(PUBCOMP, id, 0), session.sendWindow.handleAck(PUBCOMP, id, 0)]).toEqual([DONE, UNKNOWN])
    expectQuiet(session)
  })

  it('is still cleared by the PUBCOMP that follows an unexpected PUBREC, and then used', () => {
    const session = clearing()
    session.sendWindow.handleAck(PUBREC, id, 0)
    takeAcks(session.acks)
    expect(session.sendWindow.prepare(2)).toBe(false)
    expect(session.sendWindow.handleAck(PUBCOMP, id, 0)).toBe(CLEARED)
    expect([session.sendWindow.prepare(2), session.sendWindow.publish(2)]).toEqual([true, id])
    expectQuiet(session)
  })
})
