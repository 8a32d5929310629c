import { describe, expect, it } from 'vitest'
import { Session } from '../../../../src/client/session/session.js'
import { MqttError } from '../../../../src/errors.js'
import { PUBACK, PUBCOMP } from '../../../../src/wire/constants.js'
import type { ServerPacket } from '../../../../src/wire/packets.js'
import { configuration, connackPacket, connected, connecting, connectPacket, expectClose, takeAcks, takeActions } from './drive.js'

const connectAgain = connectPacket({ clientId: 'again' })

/** Everything that the control plane can be given. */
const packets: ServerPacket[] = [
  connackPacket(),
  { type: 'suback', packetId: 1, properties: {}, reasonCodes: [0] },
  { type: 'unsuback', packetId: 1, properties: {}, reasonCodes: [0] },
  { type: 'pingresp' },
  { type: 'disconnect', reasonCode: 0x8b, properties: {} },
  { type: 'auth', reasonCode: 0x18, properties: {} },
]

/** The ways into `closed`. */
const ends: Record<string, (session: Session) => void> = {
  'our DISCONNECT': (session) => session.disconnect(0, {}),
  'the server’s DISCONNECT': (session) => session.handlePacket({ type: 'disconnect', reasonCode: 0x8b, properties: {} }, 0),
  'a protocol error': (session) => session.fail(0x82, 'test'),
  'a dead link': (session) => {
    session.handleTimeout(30_000)
    session.handleTimeout(40_000)
  },
  'our own reason': (session) => session.close(new MqttError('ERR_CLOSED', 'test'), undefined),
}

describe('the end of a connection', () => {
  it('our DISCONNECT is the last thing sent, with what the caller gave [MQTT-3.14.4-1]', () => {
    const session = connected()
    session.disconnect(0x04, { reasonString: 'bye' })
    expect(takeActions(session)).toEqual([{ type: 'send', packet: { type: 'disconnect', reasonCode: 0x04, properties: { reasonString: 'bye' } } }])
    session.disconnect(0, {})
    expect(takeActions(session)).toEqual([])
    expect(session.state).toBe('closed')
  })

  it('no DISCONNECT before CONNACK, nor before CONNECT', () => {
    for (const session of [connecting(), new Session(configuration)]) {
      session.disconnect(0, {})
      expect(session.state).toBe('closed')
      expect(takeActions(session)).toEqual([])
    }
  })

  it.each([0, 0x80, 0x8b, 0x8e, 0x98, 0x9c])('the server’s DISCONNECT %i is handed on whole', (reasonCode) => {
    const session = connected()
    const packet = { type: 'disconnect', reasonCode, properties: { reasonString: 'why', serverReference: 'there' } } as const
    session.handlePacket(packet, 0)
    expect(takeActions(session)).toEqual([{ type: 'server-disconnect', packet }])
    expect([session.state, session.deadline]).toEqual(['closed', Number.POSITIVE_INFINITY])
  })

  it('our reason goes out as DISCONNECT where one was given, in the order of events', () => {
    const session = connected()
    const error = new MqttError('ERR_CONNECTION_LOST', 'over budget')
    session.handleTimeout(30_000)
    session.close(error, 0x97)
    session.close(new MqttError('ERR_CLOSED', 'later'), 0x80)
    session.fail(0x82, 'later')
    expect(takeActions(session)).toEqual([
      { type: 'send', packet: { type: 'pingreq' } },
      { type: 'close', error, reasonCode: 0x97 },
    ])
  })

  it('a protocol error names its reason code', () => {
    const session = connected()
    session.fail(0x93, 'too much')
    expect(takeActions(session)).toMatchObject([
      {
        type: 'close',
        reasonCode: 0x93,
        error: {
          code: 'ERR_PROTOCOL_ERROR',
          message: 'too much',
          fault: 'remote',
          outcome: 'unknown',
          reasonCode: 0x93,
          reasonName: expect.any(String),
        },
      },
    ])
  })

  it('AUTH that nobody asked for: close(0x82)', () => {
    const session = connected()
    session.handlePacket({ type: 'auth', reasonCode: 0x19, properties: {} }, 0)
    expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it.each(['publish', 'puback', 'pubrec', 'pubrel', 'pubcomp'] as const)('a %s on the control plane is refused by name', (type) => {
    const session = connected()
    const packet =
      type === 'publish'
        ? ({ type, dup: false, qos: 0, retain: false, topic: 't', packetId: undefined, properties: {}, payload: new Uint8Array(0) } as const)
        : ({ type, packetId: 1, reasonCode: 0, properties: {} } as const)
    session.handlePacket(packet, 0)
    expect(takeActions(session)).toMatchObject([
      { type: 'close', reasonCode: 0x82, error: { code: 'ERR_UNEXPECTED_PACKET', message: `${type.toUpperCase()} is not expected here` } },
    ])
  })
})

describe('closed accepts nothing', () => {
  const cases = Object.keys(ends).flatMap((end) => packets.map((packet) => ({ end, packet, type: packet.type })))

  it.each(cases)('after $end: $type', ({ end, packet }) => {
    const session = connected()
    session.sendWindow.request('subscribe', 1)
    ;(ends[end] as (session: Session) => void)(session)
    takeActions(session)
    session.handlePacket(packet, 0)
    session.handleTimeout(1e9)
    session.fail(0x82, 'later')
    expect(session.expectConnected()).toBe(false)
    expect(takeActions(session)).toEqual([])
    expect(session.state).toBe('closed')
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
  })

  it('a new CONNECT leaves it', () => {
    const session = connected()
    session.fail(0x82, 'test')
    takeActions(session)
    session.connect(connectAgain)
    expect(takeActions(session)).toEqual([{ type: 'send', packet: connectAgain }])
    session.handlePacket(connackPacket(), 50_000)
    expect(session.state).toBe('connected')
  })
})

describe('a session that is gone', () => {
  it('nothing in flight counts any more, in either direction', () => {
    const session = connected({ receiveMaximum: 2 }, { receiveMaximum: 2 })
    const { receiveWindow, sendWindow } = session
    receiveWindow.settle(receiveWindow.handlePublish(1, 1), 0)
    receiveWindow.settle(receiveWindow.handlePublish(2, 2), 0)
    const ticket = receiveWindow.handlePublish(3, 1)
    sendWindow.publish(1)
    sendWindow.publish(2)
    sendWindow.request('subscribe', 1)
    session.reset()
    expect(takeAcks(session.acks)).toEqual([])
    expect([receiveWindow.open, receiveWindow.unsettled, sendWindow.inFlight, sendWindow.mayPublish]).toEqual([0, 0, 0, false])
    expect(receiveWindow.settle(ticket, 0)).toBe(false)
    sendWindow.start(2)
    expect(sendWindow.mayPublish).toBe(true)
    session.handlePacket({ type: 'suback', packetId: 3, properties: {}, reasonCodes: [0] }, 0)
    receiveWindow.handlePubrel(2)
    expect([sendWindow.handleAck(PUBACK, 1, 0), sendWindow.handleAck(PUBCOMP, 2, 0), sendWindow.unsolicited]).toEqual([0, 0, 3])
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 2, 0x92]])
    expect(takeActions(session)).toEqual([])
  })
})
