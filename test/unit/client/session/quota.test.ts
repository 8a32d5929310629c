import { describe, expect, it } from 'vitest'
import type { Session } from '../../../../src/client/session/session.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import { connackPacket, connected, connectPacket, takeAcks, takeActions } from './drive.js'

/** Publishes while the session lets us, at most `wanted` times: the identifiers that left. */
function send({ sendWindow }: Session, qos: number, wanted: number): number[] {
  const ids: number[] = []
  while (ids.length < wanted && sendWindow.mayPublish) ids.push(sendWindow.publish(qos))
  return ids
}

/** The connection ends, and the same session goes on over the next. */
function reconnect(session: Session, receiveMaximum: number): void {
  session.fail(0x80, 'test')
  session.connect(connectPacket({ cleanStart: false }))
  session.handlePacket(connackPacket({ receiveMaximum }, { sessionPresent: true }), 0)
  expect(takeActions(session).at(-1)?.type).toBe('connected')
}

describe('send quota (section 4.9)', () => {
  it('Receive Maximum 3: never more than 3 at QoS 1, refilled one for one [MQTT-3.3.4-7] [MQTT-4.9.0-1]', () => {
    const session = connected({}, { receiveMaximum: 3 })
    expect(send(session, 1, 6)).toEqual([1, 2, 3])
    session.sendWindow.handleAck(PUBACK, 2, 0)
    expect(send(session, 1, 3)).toEqual([4])
    session.sendWindow.handleAck(PUBACK, 4, 0)
    session.sendWindow.handleAck(PUBACK, 1, 0)
    expect(send(session, 1, 2)).toEqual([5, 6])
    expect(session.sendWindow.inFlight).toBe(3)
  })

  it('Receive Maximum 1: one QoS 2 exchange at a time', () => {
    const session = connected({}, { receiveMaximum: 1 })
    for (let id = 1; id <= 5; id++) {
      expect(send(session, 2, 5)).toEqual([id])
      session.sendWindow.handleAck(PUBREC, id, 0)
      expect(send(session, 2, 5)).toEqual([])
      session.sendWindow.handleAck(PUBCOMP, id, 0)
    }
    expect(session.sendWindow.inFlight).toBe(0)
  })

  it('a place is free after PUBCOMP or a failing PUBREC, not after PUBREC', () => {
    const session = connected({}, { receiveMaximum: 2 })
    expect(send(session, 2, 5)).toEqual([1, 2])
    session.sendWindow.handleAck(PUBREC, 1, 0)
    session.sendWindow.handleAck(PUBREC, 2, 0x10)
    expect(send(session, 2, 3)).toEqual([])
    session.sendWindow.handleAck(PUBCOMP, 2, 0)
    expect(send(session, 2, 3)).toEqual([3])
    session.sendWindow.handleAck(PUBREC, 3, 0x97)
    expect(send(session, 2, 2)).toEqual([4])
    expect(session.sendWindow.mayPublish).toBe(false)
  })

  it('starts from the new CONNACK on each connection, less what is still in flight', () => {
    const session = connected({ ownsSession: true }, { receiveMaximum: 2 })
    expect(send(session, 1, 9)).toEqual([1, 2])
    reconnect(session, 5)
    expect(send(session, 1, 9)).toEqual([3, 4, 5])
    expect(session.sendWindow.inFlight).toBe(5)
  })

  it('a smaller window than what is in flight holds everything back and does not underflow', () => {
    const session = connected({ ownsSession: true }, { receiveMaximum: 5 })
    expect(send(session, 1, 9)).toEqual([1, 2, 3, 4, 5])
    reconnect(session, 2)
    for (const id of [1, 2, 3]) {
      expect(session.sendWindow.mayPublish).toBe(false)
      session.sendWindow.handleAck(PUBACK, id, 0)
    }
    expect(session.sendWindow.mayPublish).toBe(false)
    session.sendWindow.handleAck(PUBACK, 4, 0)
    expect(send(session, 1, 9)).toEqual([6])
  })

  it('is never lifted above its start by acknowledgements of nothing [MQTT-4.9.0-2]', () => {
    const session = connected({}, { receiveMaximum: 2 })
    for (let id = 1; id < 20; id++) {
      session.sendWindow.handleAck(PUBACK, id, 0)
      session.sendWindow.handleAck(PUBREC, id, 0x80)
      session.sendWindow.handleAck(PUBCOMP, id, 0)
    }
    expect(send(session, 1, 9)).toEqual([1, 2])
    session.sendWindow.handleAck(PUBACK, 1, 0)
    session.sendWindow.handleAck(PUBACK, 1, 0)
    expect(send(session, 1, 9)).toEqual([3])
  })

  it('is the smaller of Receive Maximum and our own limit, and 65,535 without either', () => {
    expect(send(connected({ maximumInflight: 2 }, { receiveMaximum: 4 }), 1, 9)).toHaveLength(2)
    expect(send(connected({ maximumInflight: 4 }, { receiveMaximum: 2 }), 1, 9)).toHaveLength(2)
    expect(send(connected({ maximumInflight: 3 }), 1, 9)).toHaveLength(3)
    expect(send(connected(), 1, 70_000)).toHaveLength(65_535)
  })

  it('used up, it holds back nothing but PUBLISH [MQTT-3.3.4-8] [MQTT-4.9.0-3]', () => {
    const session = connected({}, { receiveMaximum: 1 })
    const { receiveWindow, sendWindow } = session
    expect(send(session, 2, 2)).toEqual([1])
    expect(sendWindow.hasIdentifier).toBe(true)
    expect([sendWindow.request('subscribe', 1), sendWindow.request('unsubscribe', 1)]).toEqual([2, 3])
    receiveWindow.settle(receiveWindow.handlePublish(7, 1), 0)
    receiveWindow.settle(receiveWindow.handlePublish(8, 2), 0)
    receiveWindow.handlePubrel(8)
    sendWindow.handleAck(PUBREC, 1, 0)
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 7, 0],
      ['pubrec', 8, 0],
      ['pubcomp', 8, 0],
      ['pubrel', 1, 0],
    ])
    session.handleTimeout(30_000)
    expect(takeActions(session)).toEqual([{ type: 'send', packet: { type: 'pingreq' } }])
    session.handlePacket({ type: 'suback', packetId: 2, properties: {}, reasonCodes: [0] }, 0)
    expect(takeActions(session)).toMatchObject([{ type: 'answered', packet: { packetId: 2 } }])
  })

  it('there is none before CONNACK', () => {
    const session = connected()
    session.reset()
    expect(session.sendWindow.mayPublish).toBe(false)
  })
})
