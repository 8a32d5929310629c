/** Outgoing exchanges across connections: held until they are replayed, their identifiers and the quota, and sessions of an unknown past. */
import { describe, expect, it } from 'vitest'
import { CLEARED, DONE, RELEASED, UNKNOWN } from '../../../../src/client/session/send-window.js'
import type { Session } from '../../../../src/client/session/session.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import { connackPacket, connected, connecting, durablyConnected, expectClose, expectQuiet, reconnect, takeAcks, takeActions } from './drive.js'

/** Publishes at these levels; gives the identifiers. */
const publish = (session: Session, ...levels: number[]): number[] => levels.map((qos) => session.sendWindow.publish(qos))

describe('publishes in flight when the connection ends', () => {
  it('are held: acknowledgements that come before their replay are ignored and counted, and change nothing', () => {
    const session = connected()
    const [one = 0, two = 0, three = 0] = publish(session, 1, 2, 2)
    session.sendWindow.handleAck(PUBREC, three, 0)
    takeAcks(session.acks)
    reconnect(session)
    const { sendWindow } = session
    expect([
      sendWindow.handleAck(PUBACK, one, 0),
      sendWindow.handleAck(PUBREC, two, 0),
      sendWindow.handleAck(PUBREC, two, 0x80),
      sendWindow.handleAck(PUBCOMP, three, 0),
      sendWindow.handleAck(PUBREC, three, 0),
      // Wrong kinds too: this connection carried none of them.
      sendWindow.handleAck(PUBCOMP, one, 0),
      sendWindow.handleAck(PUBACK, two, 0),
    ]).toEqual([UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN])
    expect(sendWindow.unsolicited).toBe(7)
    expectQuiet(session)
    sendWindow.replayRelease(three)
    sendWindow.replay(one)
    sendWindow.replay(two)
    expect(takeAcks(session.acks)).toEqual([['pubrel', three, 0]])
    expect([
      sendWindow.handleAck(PUBCOMP, three, 0),
      sendWindow.handleAck(PUBACK, one, 0),
      sendWindow.handleAck(PUBREC, two, 0),
      sendWindow.handleAck(PUBCOMP, two, 0),
    ]).toEqual([DONE, DONE, RELEASED, DONE])
  })

  it('keep their identifiers: nothing new gets one of them, before the replay or after [MQTT-2.2.1-3]', () => {
    const session = connected()
    const held = publish(session, 1, 2, 1)
    session.sendWindow.handleAck(PUBREC, held[1] as number, 0)
    wrap(session)
    reconnect(session)
    const fresh = [...publish(session, 1, 2, 1), session.sendWindow.request('subscribe', 1)]
    for (const id of fresh) expect(held).not.toContain(id)
    expect(new Set([...held, ...fresh]).size).toBe(7)
  })

  it('take no quota until they are replayed, and then one each [MQTT-4.9.0-1]', () => {
    const session = connected({}, { receiveMaximum: 5 })
    const ids = publish(session, 1, 1, 1, 1, 1)
    expect(session.sendWindow.mayPublish).toBe(false)
    session.suspend()
    expect([session.sendWindow.inFlight, session.sendWindow.mayReplay, session.sendWindow.mayPublish]).toEqual([0, false, false])
    reconnect(session, true, { receiveMaximum: 2 })
    const sent: number[] = []
    while (session.sendWindow.mayReplay) {
      const id = ids[sent.length] as number
      session.sendWindow.replay(id)
      sent.push(id)
    }
    expect(sent).toEqual(ids.slice(0, 2))
    expect(session.sendWindow.mayPublish).toBe(false)
    session.sendWindow.handleAck(PUBACK, ids[0] as number, 0)
    expect(session.sendWindow.mayReplay).toBe(true)
    session.sendWindow.replay(ids[2] as number)
    expect([session.sendWindow.inFlight, session.sendWindow.mayReplay]).toEqual([2, false])
  })

  it('exchanges that go on with PUBREL are more than the new window: no underflow, nothing else until they are done', () => {
    const session = connected()
    const ids = publish(session, 2, 2, 2)
    for (const id of ids) session.sendWindow.handleAck(PUBREC, id, 0)
    takeAcks(session.acks)
    reconnect(session, true, { receiveMaximum: 1 })
    for (const id of ids) session.sendWindow.replayRelease(id)
    expect(takeAcks(session.acks)).toEqual(ids.map((id) => ['pubrel', id, 0]))
    for (const [index, id] of ids.entries()) {
      expect([session.sendWindow.mayPublish, session.sendWindow.mayReplay, session.sendWindow.inFlight]).toEqual([false, false, 3 - index])
      session.sendWindow.handleAck(PUBCOMP, id, 0)
    }
    expect([session.sendWindow.mayPublish, session.sendWindow.inFlight]).toEqual([true, 0])
    publish(session, 1)
    expect(session.sendWindow.mayPublish).toBe(false)
  })

  it('PUBREL is repeated on every connection until PUBCOMP, PUBLISH never [MQTT-4.3.3-6]', () => {
    const session = connected()
    const [id = 0] = publish(session, 2)
    session.sendWindow.handleAck(PUBREC, id, 0)
    takeAcks(session.acks)
    for (let round = 0; round < 5; round++) {
      reconnect(session)
      session.sendWindow.replayRelease(id)
      expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
    }
    // D12: the server asks again.
    expect(session.sendWindow.handleAck(PUBREC, id, 0)).toBe(RELEASED)
    expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
    expect(session.sendWindow.handleAck(PUBCOMP, id, 0)).toBe(DONE)
  })

  it('PUBREL that was queued and did not leave is not sent by itself on the next connection', () => {
    const session = connected()
    const [id = 0] = publish(session, 2)
    session.sendWindow.handleAck(PUBREC, id, 0)
    reconnect(session)
    expectQuiet(session)
  })

  it('are forgotten with the session: their identifiers are free, late acknowledgements are ignored', () => {
    const session = connected()
    const [one = 0, two = 0] = publish(session, 1, 2)
    reconnect(session, false)
    expect([session.sendWindow.handleAck(PUBACK, one, 0), session.sendWindow.inFlight]).toEqual([UNKNOWN, 0])
    expect(session.sendWindow.handleAck(PUBREC, two, 0)).toBe(UNKNOWN)
    expect(takeAcks(session.acks)).toEqual([['pubrel', two, 0x92]])
  })
})

describe('a publish that is given up between connections', () => {
  it('at QoS 1 frees its identifier; at QoS 2 the server may remember it: it stays taken until the session ends', () => {
    const session = connected()
    const ids = publish(session, 1, 2)
    session.suspend()
    for (const id of ids) session.sendWindow.abandon(id)
    reconnect(session)
    const seen = new Set<number>()
    for (let count = 0; count < 65_534; count++) {
      const [id = 0] = publish(session, 1)
      seen.add(id)
    }
    expect(session.sendWindow.hasIdentifier).toBe(false)
    expect([seen.has(ids[0] as number), seen.has(ids[1] as number)]).toEqual([true, false])
    reconnect(session, false)
    expect(session.sendWindow.hasIdentifier).toBe(true)
    expect(session.sendWindow.handleAck(PUBCOMP, ids[1] as number, 0)).toBe(UNKNOWN)
  })

  it('its late acknowledgement is ignored', () => {
    const session = connected()
    const ids = publish(session, 1, 2)
    session.suspend()
    for (const id of ids) session.sendWindow.abandon(id)
    reconnect(session)
    expect([session.sendWindow.handleAck(PUBACK, ids[0] as number, 0), session.sendWindow.handleAck(PUBREC, ids[1] as number, 0)]).toEqual([
      UNKNOWN,
      UNKNOWN,
    ])
    expect(takeAcks(session.acks)).toEqual([])
    expect(session.state).toBe('connected')
  })
})

describe('SUBSCRIBE and UNSUBSCRIBE in flight when the connection ends', () => {
  it('free their identifiers; a late answer is ignored and counted', () => {
    const session = connected()
    const one = session.sendWindow.request('subscribe', 2)
    const two = session.sendWindow.request('unsubscribe', 1)
    reconnect(session)
    session.handlePacket({ type: 'suback', packetId: one, reasonCodes: [0, 0], properties: {} }, 0)
    session.handlePacket({ type: 'unsuback', packetId: two, reasonCodes: [0], properties: {} }, 0)
    expect(session.sendWindow.unsolicited).toBe(2)
    expectQuiet(session)
  })

  it('the count of filters is that of the request which has the identifier now', () => {
    const session = connected()
    const first = session.sendWindow.request('subscribe', 5)
    reconnect(session)
    let again = 0
    while (again !== first) {
      again = session.sendWindow.request('subscribe', 1)
      if (again !== first) session.sendWindow.withdraw(again)
    }
    session.handlePacket({ type: 'suback', packetId: again, reasonCodes: [0, 0, 0, 0, 0], properties: {} }, 0)
    expectClose(session, 0x82)
  })
})

describe('a durable store across connections', () => {
  it('PUBREL waits for the record, also when the store answers in the gap', () => {
    const { session, port } = durablyConnected()
    const [id = 0] = publish(session, 2)
    session.sendWindow.handleAck(PUBREC, id, 0)
    session.suspend()
    expect(takeActions(session)).toEqual([])
    expect(port.requests).toEqual([['put-release', id]])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([])
    reconnect(session)
    session.sendWindow.replayRelease(id)
    expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
    expect(session.sendWindow.handleAck(PUBCOMP, id, 0)).toBe(DONE)
  })

  it('and when it answers after the next connection is up: PUBREL leaves then, once', () => {
    const { session, port } = durablyConnected()
    const [id = 0] = publish(session, 2)
    session.sendWindow.handleAck(PUBREC, id, 0)
    reconnect(session)
    session.sendWindow.replayRelease(id)
    expect(takeAcks(session.acks)).toEqual([])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
  })
})

describe('a session of an unknown past: first connect with Session Present 1', () => {
  /** First connection of a durable client, Session Present 1. */
  function inherited(receiveMaximum = 65_535): Session {
    const session = connecting({ ownsSession: true }, { cleanStart: false })
    session.handlePacket(connackPacket({ receiveMaximum }, { sessionPresent: true }), 0)
    takeActions(session)
    return session
  }

  it('clears identifiers by PUBREL and PUBCOMP before a QoS 2 publish uses them, whatever PUBCOMP says', () => {
    const session = inherited()
    expect(session.sendWindow.prepare(2)).toBe(false)
    const cleared = takeAcks(session.acks)
    expect(cleared.length).toBeGreaterThan(0)
    expect(cleared.length).toBeLessThanOrEqual(16)
    for (const [type, , code] of cleared) expect([type, code]).toEqual(['pubrel', 0])
    // Asked again, it does not ask the server again.
    expect(session.sendWindow.prepare(2)).toBe(false)
    expectQuiet(session)
    const [first = ['pubrel', 0, 0] as const] = cleared
    expect(session.sendWindow.handleAck(PUBCOMP, first[1], 0)).toBe(CLEARED)
    expect(session.sendWindow.prepare(2)).toBe(true)
    expect(session.sendWindow.publish(2)).toBe(first[1])
  })

  it('clears no more identifiers at a time than the server takes', () => {
    const session = inherited(3)
    session.sendWindow.prepare(2)
    expect(takeAcks(session.acks)).toHaveLength(3)
  })

  it('lets QoS 1 go at once, with identifiers that are not being cleared', () => {
    const session = inherited()
    session.sendWindow.prepare(2)
    const cleared = takeAcks(session.acks).map(([, id]) => id)
    const ids = publish(session, 1, 1, 1)
    expect(ids.filter((id) => cleared.includes(id))).toEqual([])
    expect(session.sendWindow.inFlight).toBe(3)
  })

  it('never gives QoS 2 an identifier that was not cleared, over many publishes', () => {
    const session = inherited()
    const cleared = new Set<number>()
    for (let count = 0; count < 200; count++) {
      while (!session.sendWindow.prepare(2)) {
        for (const [type, id] of takeAcks(session.acks)) {
          expect(type).toBe('pubrel')
          cleared.add(id)
          session.sendWindow.handleAck(PUBCOMP, id, 0)
        }
      }
      const id = session.sendWindow.publish(2)
      expect(cleared.has(id)).toBe(true)
      if (count % 3 === 0) publish(session, 1)
      if (count % 2 === 0) continue
      session.sendWindow.handleAck(PUBREC, id, count % 5 === 0 ? 0x97 : 0)
      takeAcks(session.acks)
      if (count % 5 !== 0) session.sendWindow.handleAck(PUBCOMP, id, 0)
    }
  })

  it('an identifier that was used once here needs no second clearing', () => {
    const session = inherited(1)
    session.sendWindow.prepare(2)
    const [[, id] = ['pubrel', 0, 0] as const] = takeAcks(session.acks)
    session.sendWindow.handleAck(PUBCOMP, id, 0)
    for (let round = 0; round < 20; round++) {
      expect(session.sendWindow.prepare(2)).toBe(true)
      expect(session.sendWindow.publish(2)).toBe(id)
      session.sendWindow.handleAck(PUBREC, id, 0)
      expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
      expect(session.sendWindow.handleAck(PUBCOMP, id, 0)).toBe(DONE)
    }
  })

  it('goes on clearing on the next connection when this one ended before PUBCOMP', () => {
    const session = inherited()
    session.sendWindow.prepare(2)
    const first = takeAcks(session.acks).map(([, id]) => id)
    reconnect(session)
    expectQuiet(session)
    expect(session.sendWindow.handleAck(PUBCOMP, first[0] as number, 0)).toBe(UNKNOWN)
    expect(session.sendWindow.prepare(2)).toBe(false)
    const [[, again] = ['pubrel', 0, 0] as const] = takeAcks(session.acks)
    expect(session.sendWindow.handleAck(PUBCOMP, again, 0)).toBe(CLEARED)
    expect(session.sendWindow.publish(2)).toBe(again)
  })

  it('what was cleared stays so across connections', () => {
    const session = inherited()
    session.sendWindow.prepare(2)
    const ids = takeAcks(session.acks).map(([, id]) => id)
    for (const id of ids) session.sendWindow.handleAck(PUBCOMP, id, 0)
    reconnect(session)
    expect(session.sendWindow.prepare(2)).toBe(true)
    expect(session.sendWindow.publish(2)).toBe(ids[0])
    expectQuiet(session)
  })

  it('on 3.1.1, which cannot say that an identifier is in use, QoS 1 takes cleared ones too', () => {
    const session = connecting({ ownsSession: true }, { cleanStart: false, protocolVersion: 4 })
    session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
    takeActions(session)
    expect(session.sendWindow.prepare(1)).toBe(false)
    const cleared = takeAcks(session.acks).map(([, id]) => id)
    expect(cleared.length).toBeGreaterThan(0)
    for (const id of cleared) session.sendWindow.handleAck(PUBCOMP, id, 0)
    const used = Array.from({ length: cleared.length }, () => {
      expect(session.sendWindow.prepare(1)).toBe(true)
      return session.sendWindow.publish(1)
    })
    expect(used).toEqual(cleared)
    expect(session.sendWindow.prepare(1)).toBe(false)
    for (const id of used) expect(session.sendWindow.handleAck(PUBACK, id, 0)).toBe(DONE)
    expect(session.sendWindow.prepare(1)).toBe(true)
  })

  it('on 5.0 an identifier that the server says is in use (0x91) is not used again in this session', () => {
    const session = inherited()
    const [id = 0] = publish(session, 1)
    expect(session.sendWindow.handleAck(PUBACK, id, 0)).toBe(DONE)
    expect(session.sendWindow.disown(id)).toBe(true)
    wrap(session)
    expect(publish(session, 1)).not.toContain(id)
    reconnect(session)
    wrap(session)
    expect(publish(session, 1, 1)).not.toContain(id)
    expect(session.sendWindow.handleAck(PUBACK, id, 0)).toBe(UNKNOWN)
    reconnect(session, false)
    wrap(session)
    expect(publish(session, 1)).toEqual([id])
  })

  it('in a session that is known 0x91 is about the message, not about the identifier', () => {
    const session = connected()
    const [id = 0] = publish(session, 1)
    session.sendWindow.handleAck(PUBACK, id, 0)
    expect(session.sendWindow.disown(id)).toBe(false)
  })

  it('ends with the session: after Session Present 0 every identifier is free and nothing is cleared', () => {
    const session = inherited()
    session.sendWindow.prepare(2)
    reconnect(session, false)
    expect(session.sendWindow.prepare(2)).toBe(true)
    expectQuiet(session)
  })

  it('is none on a clean start, nor for a session that this process knows', () => {
    const clean = connected()
    expect(clean.sendWindow.prepare(2)).toBe(true)
    reconnect(clean)
    expect(clean.sendWindow.prepare(2)).toBe(true)
    expectQuiet(clean)
  })
})

// Walks through the identifiers, so that the next one is the lowest that is free.
function wrap(session: Session): void {
  for (let id = 0; id !== 65_535; ) {
    id = session.sendWindow.request('subscribe', 1)
    session.sendWindow.withdraw(id)
  }
}
