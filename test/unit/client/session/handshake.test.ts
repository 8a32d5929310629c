import { describe, expect, it } from 'vitest'
import { Session, type SessionConfig } from '../../../../src/client/session/session.js'
import { MqttError } from '../../../../src/errors.js'
import type { ConnectPacket, Properties, ServerPacket } from '../../../../src/wire/packets.js'
import { configuration, connackPacket, connected, connecting, connectPacket, expectClose, expectQuiet, takeActions } from './drive.js'

describe('CONNECT and CONNACK (sections 3.1, 3.2)', () => {
  it('CONNECT is the first thing asked for, CONNACK makes the connection [MQTT-3.1.0-1]', () => {
    const session = new Session(configuration)
    expect([session.state, session.negotiated, session.actions.shift()]).toEqual(['idle', undefined, undefined])
    const packet = connectPacket()
    session.connect(packet)
    expect(session.state).toBe('connecting')
    expect(takeActions(session)).toEqual([{ type: 'send', packet }])
    const connack = connackPacket({ receiveMaximum: 7 })
    session.handlePacket(connack, 0)
    expect(takeActions(session)).toEqual([{ type: 'connected', connack, lost: false, stale: 0 }])
    expect([session.state, session.negotiated?.receiveMaximum]).toEqual(['connected', 7])
    expect(Object.isFrozen(session.negotiated)).toBe(true)
  })

  it.each([0x80, 0x84, 0x86, 0x87, 0x8a, 0x95, 0x9c, 0x9d, 0x9f, 1, 5])(
    'CONNACK %i: refused, closed, nothing sent, nothing heard after it',
    (reasonCode) => {
      const session = connecting()
      const connack = connackPacket({ reasonString: 'no', serverReference: 'there' }, { reasonCode })
      session.handlePacket(connack, 0)
      expect(takeActions(session)).toEqual([{ type: 'refused', connack }])
      expect([session.state, session.negotiated, session.deadline]).toEqual(['closed', undefined, Number.POSITIVE_INFINITY])
      session.handlePacket(connackPacket(), 0)
      session.close(new MqttError('ERR_CLOSED', 'too late'), 0x82)
      expect(takeActions(session)).toEqual([])
      expect(session.state).toBe('closed')
    },
  )

  it('an empty client id takes the one that the server assigns', () => {
    const session = connected({}, { assignedClientIdentifier: 'auto-7' }, { clientId: '' })
    expect(session.negotiated).toMatchObject({ clientId: 'auto-7', assignedClientIdentifier: 'auto-7' })
  })

  it('an assigned client id although we sent one: close(0x82)', () => {
    for (const assignedClientIdentifier of ['other', 'me', '']) {
      const session = connecting()
      session.handlePacket(connackPacket({ assignedClientIdentifier }), 0)
      expectClose(session, 0x82)
      expect(session.negotiated).toBeUndefined()
    }
  })

  it.each([
    [{ cleanStart: true }, {}, false],
    [{ cleanStart: true }, { ownsSession: true }, false],
    [{ cleanStart: false }, {}, false],
    [{ cleanStart: false }, { ownsSession: true }, true],
  ] as [Partial<ConnectPacket>, Partial<SessionConfig>, boolean][])(
    'Session Present 1 after %o by a client with %o: welcome %s [MQTT-3.2.2-2] [MQTT-3.2.2-4]',
    (connect, config, welcome) => {
      const session = connecting(config, connect)
      session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
      if (welcome) {
        expect(takeActions(session)).toMatchObject([{ type: 'connected', connack: { sessionPresent: true } }])
        expect(session.negotiated?.sessionPresent).toBe(true)
      } else expectClose(session, 0x82)
    },
  )

  it('Session Present 0 is always welcome', () => {
    for (const cleanStart of [true, false]) {
      for (const ownsSession of [true, false]) expect(connected({ ownsSession }, {}, { cleanStart }).negotiated?.sessionPresent).toBe(false)
    }
  })

  it.each([
    [undefined, 'SCRAM', false],
    ['SCRAM', undefined, false],
    ['SCRAM', 'KERBEROS', false],
    ['SCRAM', 'SCRAM', true],
  ])('CONNECT with method %s, CONNACK with %s: welcome %s', (ours, theirs, welcome) => {
    const session = connecting({}, { properties: { authenticationMethod: ours } })
    session.handlePacket(connackPacket({ authenticationMethod: theirs }), 0)
    if (welcome) expect(takeActions(session)).toMatchObject([{ type: 'connected' }])
    else expectClose(session, 0x82)
  })

  it.each([
    ['with a client identifier that we did not ask for', { assignedClientIdentifier: 'x' }, false],
    ['with a session that we did not ask for', {}, true],
    ['with a method that we did not name', { authenticationMethod: 'x' }, false],
  ] as [string, Properties, boolean][])(
    '%s: the server took us in, DISCONNECT 0x82 goes first (section 4.13.1)',
    (_name, properties, sessionPresent) => {
      const session = connecting()
      session.handlePacket(connackPacket(properties, { sessionPresent }), 0)
      expect(takeActions(session)).toMatchObject([{ type: 'close', reasonCode: 0x82 }])
    },
  )

  it('a second CONNACK: close(0x82) [MQTT-3.2.0-2]', () => {
    for (const reasonCode of [0, 0x87]) {
      const session = connected()
      session.handlePacket(connackPacket({}, { reasonCode }), 0)
      expect(session.state).toBe('closed')
      expect(takeActions(session)).toMatchObject([{ type: 'close', reasonCode: 0x82, error: { code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 } }])
    }
  })

  it('a CONNACK before CONNECT: close, and no DISCONNECT', () => {
    const session = new Session(configuration)
    session.handlePacket(connackPacket(), 0)
    expect(takeActions(session)).toMatchObject([{ type: 'close', reasonCode: undefined, error: { code: 'ERR_PROTOCOL_ERROR' } }])
  })

  it('a new attempt after a refusal starts afresh', () => {
    const session = connecting()
    session.handlePacket(connackPacket({}, { reasonCode: 0x88 }), 0)
    takeActions(session)
    const packet = connectPacket({ clientId: 'again' })
    session.connect(packet)
    expect(takeActions(session)).toEqual([{ type: 'send', packet }])
    session.handlePacket(connackPacket(), 1000)
    expect([session.state, session.negotiated?.clientId, session.deadline]).toEqual(['connected', 'again', 31_000])
    takeActions(session)
    expectQuiet(session)
  })
})

/** What a server may send, but CONNACK. */
const packets: ServerPacket[] = [
  { type: 'suback', packetId: 1, properties: {}, reasonCodes: [0] },
  { type: 'unsuback', packetId: 1, properties: {}, reasonCodes: [0] },
  { type: 'pingresp' },
  { type: 'disconnect', reasonCode: 0x8b, properties: {} },
  { type: 'auth', reasonCode: 0x18, properties: {} },
]

describe('packets before CONNACK', () => {
  it.each(packets)('$type: close(0x82), nothing handed on [MQTT-3.2.0-1]', (packet) => {
    const session = connecting()
    session.sendWindow.request('subscribe', 1)
    session.handlePacket(packet, 0)
    expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it('the data plane asks first, and is told no, once', () => {
    const session = connecting()
    expect(session.expectConnected()).toBe(false)
    expect(session.expectConnected()).toBe(false)
    expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it('and yes after it', () => {
    const session = connected()
    expect(session.expectConnected()).toBe(true)
    expectQuiet(session)
  })
})
