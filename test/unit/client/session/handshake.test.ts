/** CONNECT and CONNACK (sections 3.1, 3.2), and a session before them. */
import { describe, expect, it } from 'vitest'
import type { SessionConfig } from '../../../../src/client/session/session.js'
import { MqttError } from '../../../../src/errors.js'
import type { ConnectPacket, ServerPacket } from '../../../../src/wire/packets.js'
import { connackPacket, connected, connecting, connectPacket, Driven } from './drive.js'

describe('a session without a connection', () => {
  it('speaks 5.0 until a CONNECT says otherwise, and says what the last CONNECT did', () => {
    const session = new Driven()
    expect(session.version).toBe(5)
    session.connect(connectPacket({ protocolVersion: 4, properties: {} }))
    expect(session.version).toBe(4)
    session.suspend()
    expect(session.version).toBe(4)
  })

  it('is opened for what its CONNECT will say, then for what it said; absent is 0 (section 3.1.2.11.2) [MQTT-3.14.2-2]', () => {
    expect(new Driven().openedFor).toBe(0)
    const session = new Driven({ sessionExpiryInterval: 300 })
    expect(session.openedFor).toBe(300)
    session.connect(connectPacket({ properties: { sessionExpiryInterval: 60 } }))
    expect(session.openedFor).toBe(60)
    session.suspend()
    session.connect(connectPacket({ properties: {} }))
    expect(session.openedFor).toBe(0)
  })

  it('stays idle when the transport is lost before CONNECT, times and probes nothing, and can still connect', () => {
    const session = new Driven()
    session.suspend()
    session.handleTimeout(1e9)
    session.probe(1e9)
    expect([session.state, session.takeActions()]).toEqual(['idle', []])
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    session.connect(connectPacket())
    expect([session.state, session.takeActions().length]).toEqual(['connecting', 1])
    // One that was begun is over.
    session.suspend()
    expect(session.state).toBe('closed')
  })
})

describe('CONNACK', () => {
  it('makes the connection, after CONNECT as the first thing asked for [MQTT-3.1.0-1]', () => {
    const session = new Driven()
    expect([session.state, session.takeActions()]).toEqual(['idle', []])
    expect(session.negotiated).toBeUndefined()
    const packet = connectPacket()
    session.connect(packet)
    expect(session.state).toBe('connecting')
    expect(session.takeActions()).toEqual([{ type: 'send', packet }])
    const connack = connackPacket({ receiveMaximum: 7 })
    session.handlePacket(connack, 0)
    expect(session.takeActions()).toEqual([{ type: 'connected', connack, lost: false, stale: 0 }])
    expect([session.state, session.negotiated?.receiveMaximum]).toEqual(['connected', 7])
    expect(Object.isFrozen(session.negotiated)).toBe(true)
  })

  it.each([0x80, 0x84, 0x86, 0x87, 0x8a, 0x95, 0x9c, 0x9d, 0x9f, 1, 5])(
    '%i: refused, closed, nothing sent, nothing heard; a new attempt starts afresh',
    (reasonCode) => {
      const session = connecting()
      const properties = { reasonString: 'no', serverReference: 'there' }
      const connack = connackPacket(properties, { reasonCode })
      session.handlePacket(connack, 0)
      expect(session.takeActions()).toEqual([{ type: 'refused', connack }])
      expect([session.state, session.negotiated, session.deadline]).toEqual([
        'closed',
        undefined,
        Number.POSITIVE_INFINITY,
      ])
      session.handlePacket(connackPacket(), 0)
      session.close(new MqttError('ERR_CLOSED', 'too late'), 0x82)
      expect([session.takeActions(), session.state]).toEqual([[], 'closed'])
      const packet = connectPacket({ clientId: 'again' })
      session.connect(packet)
      expect(session.takeActions()).toEqual([{ type: 'send', packet }])
      session.handlePacket(connackPacket(), 1000)
      expect([session.state, session.deadline]).toEqual(['connected', 31_000])
      expect(session.negotiated?.clientId).toBe('again')
      session.takeActions()
      session.expectQuiet()
    },
  )

  // The server took us in: DISCONNECT 0x82 goes first (section 4.13.1).
  it.each(['other', 'me', ''])(
    'a client id "%s" that is not ours: close',
    (assignedClientIdentifier) => {
      const session = connecting()
      session.handlePacket(connackPacket({ assignedClientIdentifier }), 0)
      expect(session.actions).toMatchObject([{ reasonCode: 0x82 }])
      session.expectClose(0x82)
      expect(session.negotiated).toBeUndefined()
    },
  )

  it.each<[Partial<ConnectPacket>, Partial<SessionConfig>, boolean]>([
    [{ cleanStart: true }, {}, false],
    [{ cleanStart: true }, { ownsSession: true }, false],
    [{ cleanStart: false }, {}, false],
    [{ cleanStart: false }, { ownsSession: true }, true],
  ])(
    'Session Present 1 after %o by a client with %o: welcome %s; 0 always is [MQTT-3.2.2-2] [MQTT-3.2.2-4]',
    (connect, config, welcome) => {
      const session = connecting(config, connect)
      session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
      if (welcome)
        expect(session.takeActions()).toMatchObject([
          { type: 'connected', connack: { sessionPresent: true } },
        ])
      else expect(session.actions).toMatchObject([{ reasonCode: 0x82 }])
      if (welcome) expect(session.negotiated?.sessionPresent).toBe(true)
      else session.expectClose(0x82)
      expect(connected(config, {}, connect).negotiated?.sessionPresent).toBe(false)
    },
  )

  it.each([
    [undefined, 'SCRAM', false],
    ['SCRAM', undefined, false],
    ['SCRAM', 'KERBEROS', false],
    ['SCRAM', 'SCRAM', true],
  ])('CONNECT with method %s, CONNACK with %s: welcome %s', (ours, theirs, welcome) => {
    const session = connecting({}, { properties: { authenticationMethod: ours } })
    session.handlePacket(connackPacket({ authenticationMethod: theirs }), 0)
    expect(session.actions).toMatchObject([welcome ? { type: 'connected' } : { reasonCode: 0x82 }])
    if (!welcome) session.expectClose(0x82)
  })

  it.each([0, 0x87])('a second one, with %i: close(0x82) [MQTT-3.2.0-2]', (reasonCode) => {
    const session = connected()
    session.handlePacket(connackPacket({}, { reasonCode }), 0)
    expect(session.actions).toMatchObject([{ reasonCode: 0x82 }])
    session.expectClose(0x82)
  })

  it('before CONNECT: close, and no DISCONNECT', () => {
    const session = new Driven()
    session.handlePacket(connackPacket(), 0)
    expect(session.actions).toMatchObject([{ reasonCode: undefined }])
    session.expectClose(0x82)
  })
})

describe('packets before CONNACK', () => {
  const packets: ServerPacket[] = [
    { type: 'suback', packetId: 1, properties: {}, reasonCodes: [0] },
    { type: 'unsuback', packetId: 1, properties: {}, reasonCodes: [0] },
    { type: 'pingresp' },
    { type: 'disconnect', reasonCode: 0x8b, properties: {} },
    { type: 'auth', reasonCode: 0x18, properties: {} },
  ]

  it.each(packets)('$type: close(0x82), nothing handed on [MQTT-3.2.0-1]', (packet) => {
    const session = connecting()
    session.sendWindow.request('subscribe', 1)
    session.handlePacket(packet, 0)
    expect(session.actions).toMatchObject([{ reasonCode: undefined }])
    session.expectClose(0x82, 'ERR_UNEXPECTED_PACKET')
  })
})
