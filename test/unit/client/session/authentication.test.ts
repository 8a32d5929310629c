/** Enhanced authentication as the session sees it: which AUTH packets fit, in which order, and how many (section 4.12). */
import { describe, expect, it } from 'vitest'
import type { Session } from '../../../../src/client/session/session.js'
import { PUBACK } from '../../../../src/wire/constants.js'
import type { AuthPacket, Properties } from '../../../../src/wire/packets.js'
import { connackPacket, connected, connecting, connectPacket, expectClose, expectQuiet, reconnect, takeActions } from './drive.js'

const method: Properties = { authenticationMethod: 'SCRAM' }
const bytes = (text: string) => new TextEncoder().encode(text)
const auth = (reasonCode: number, properties: Properties = method): AuthPacket => ({ type: 'auth', reasonCode, properties })

/** CONNECT with a method has left. */
const begun = () => connecting({}, { properties: method })

/** CONNACK with that method has come. */
const established = () => connected({}, method, { properties: method })

function expectSent(session: Session, reasonCode: number, data: Uint8Array | undefined): void {
  expect(takeActions(session)).toEqual([
    { type: 'send', packet: { type: 'auth', reasonCode, properties: { authenticationMethod: 'SCRAM', authenticationData: data } } },
  ])
}

describe('the exchange before CONNACK', () => {
  it('AUTH is handed on, our answer is AUTH 0x18 with the method of CONNECT, CONNACK ends it [MQTT-4.12.0-2] [MQTT-4.12.0-3]', () => {
    const session = begun()
    const challenge = auth(0x18, { ...method, authenticationData: bytes('nonce') })
    session.handlePacket(challenge, 0)
    expect(takeActions(session)).toEqual([{ type: 'auth', packet: challenge }])
    session.authExchange.authenticate(0x18, bytes('proof'))
    expectSent(session, 0x18, bytes('proof'))
    session.handlePacket(connackPacket(method), 0)
    expect(takeActions(session)).toMatchObject([{ type: 'connected' }])
    expect(session.authExchange.running).toBe(false)
  })

  it('data may be left out', () => {
    const session = begun()
    session.authExchange.authenticate(0x18, undefined)
    expectSent(session, 0x18, undefined)
  })

  it.each([
    ['another method', auth(0x18, { authenticationMethod: 'KERBEROS' })],
    ['no method', auth(0x18, {})],
  ])('AUTH with %s: close(0x82) [MQTT-4.12.0-5]', (_name, packet) => {
    const session = begun()
    session.handlePacket(packet, 0)
    expectClose(session, 0x82)
  })

  it('AUTH although CONNECT named no method: close(0x82), on both versions [MQTT-4.12.0-6]', () => {
    for (const protocolVersion of [4, 5] as const) {
      const session = connecting({}, { protocolVersion })
      session.handlePacket(auth(0x18), 0)
      expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
    }
  })

  it('success instead of CONNACK is no end of it: close(0x82)', () => {
    const session = begun()
    session.handlePacket(auth(0), 0)
    expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it('16 rounds are enough for every mechanism: the 17th closes', () => {
    const session = begun()
    for (let round = 1; round <= 16; round++) {
      session.handlePacket(auth(0x18), 0)
      expect(takeActions(session)).toHaveLength(1)
    }
    session.handlePacket(auth(0x18), 0)
    expectClose(session, 0x82)
  })

  it('rounds are counted for each connection anew', () => {
    const session = begun()
    for (let round = 1; round <= 16; round++) session.handlePacket(auth(0x18), 0)
    session.suspend()
    takeActions(session)
    session.connect(connectPacket({ properties: method }))
    takeActions(session)
    session.handlePacket(auth(0x18), 0)
    expect(takeActions(session)).toMatchObject([{ type: 'auth' }])
    expect(session.state).toBe('connecting')
  })

  it('nothing is sent once the session is closed', () => {
    const session = begun()
    session.handlePacket(auth(0x18), 0)
    session.fail(0x82, 'test')
    takeActions(session)
    session.authExchange.authenticate(0x18, bytes('late'))
    expect(takeActions(session)).toEqual([])
  })
})

describe('re-authentication', () => {
  it('begins with AUTH 0x19 and the method of CONNECT, goes on with 0x18, and ends with success [MQTT-4.12.1-1]', () => {
    const session = established()
    session.authExchange.authenticate(0x19, bytes('first'))
    expectSent(session, 0x19, bytes('first'))
    expect(session.authExchange.running).toBe(true)
    session.handlePacket(auth(0x18), 0)
    expect(takeActions(session)).toMatchObject([{ type: 'auth' }])
    session.authExchange.authenticate(0x18, bytes('second'))
    expectSent(session, 0x18, bytes('second'))
    const success = auth(0, { ...method, authenticationData: bytes('last word') })
    session.handlePacket(success, 0)
    expect(takeActions(session)).toEqual([{ type: 'auth', packet: success }])
    expect([session.authExchange.running, session.state]).toEqual([false, 'connected'])
  })

  it.each([
    ['0x18 with another method', auth(0x18, { authenticationMethod: 'KERBEROS' })],
    ['0x18 without a method', auth(0x18, {})],
    // M19: what Remaining Length 0 would say, if the decoder took it.
    ['success without a method', auth(0, {})],
    ['success with another method', auth(0, { authenticationMethod: 'KERBEROS' })],
  ])('%s: close(0x82)', (_name, packet) => {
    const session = established()
    session.authExchange.authenticate(0x19, undefined)
    takeActions(session)
    session.handlePacket(packet, 0)
    expectClose(session, 0x82)
  })

  it('success that nobody asked for: close(0x82); also a second one', () => {
    const session = established()
    session.handlePacket(auth(0), 0)
    expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
    const again = established()
    again.authExchange.authenticate(0x19, undefined)
    again.handlePacket(auth(0), 0)
    takeActions(again)
    again.handlePacket(auth(0), 0)
    expectClose(again, 0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it('has 16 rounds too, counted for each exchange', () => {
    const session = established()
    for (let exchange = 0; exchange < 3; exchange++) {
      session.authExchange.authenticate(0x19, undefined)
      for (let round = 1; round <= 15; round++) session.handlePacket(auth(0x18), 0)
      session.handlePacket(auth(0), 0)
      expect(session.state).toBe('connected')
      takeActions(session)
    }
    session.authExchange.authenticate(0x19, undefined)
    for (let round = 1; round <= 16; round++) session.handlePacket(auth(0x18), 0)
    takeActions(session)
    session.handlePacket(auth(0x18), 0)
    expectClose(session, 0x82)
  })

  it('may be begun by the server: an exchange of its own, with 16 rounds of its own, and an end', () => {
    const session = established()
    const challenge = auth(0x18, { ...method, authenticationData: bytes('who?') })
    session.handlePacket(challenge, 0)
    expect(takeActions(session)).toEqual([{ type: 'auth', packet: challenge }])
    expect(session.authExchange.running).toBe(true)
    for (let round = 2; round <= 16; round++) session.handlePacket(auth(0x18), 0)
    expect(takeActions(session)).toHaveLength(15)
    session.handlePacket(auth(0x18), 0)
    expectClose(session, 0x82)
    // The rounds before CONNACK are not counted in it, and success ends it.
    const patient = begun()
    for (let round = 1; round <= 16; round++) patient.handlePacket(auth(0x18), 0)
    patient.handlePacket(connackPacket(method), 0)
    takeActions(patient)
    for (let round = 1; round <= 15; round++) patient.handlePacket(auth(0x18), 0)
    patient.handlePacket(auth(0), 0)
    expect([takeActions(patient).length, patient.authExchange.running, patient.state]).toEqual([16, false, 'connected'])
  })

  it('exchanges that the server begins share 16 rounds a minute', () => {
    const session = established()
    const exchange = (now: number): void => {
      session.handlePacket(auth(0x18), now)
      session.authExchange.authenticate(0x18, undefined)
      session.handlePacket(auth(0), now)
      takeActions(session)
    }
    for (let count = 1; count <= 8; count++) exchange(count)
    expect(session.state).toBe('connected')
    // A minute after the first of them it counts anew.
    for (let count = 1; count <= 8; count++) exchange(60_001)
    expect(session.state).toBe('connected')
    session.handlePacket(auth(0x18), 60_002)
    expectClose(session, 0x82)
  })

  it('AUTH and success again and again, without waiting for an answer, is one exchange however long it goes on', () => {
    const session = established()
    for (let round = 1; round <= 16; round += 2) {
      session.handlePacket(auth(0x18), round * 60_000)
      session.handlePacket(auth(0), round * 60_000)
    }
    expect(takeActions(session)).toHaveLength(16)
    session.handlePacket(auth(0x18), 2_000_000)
    expectClose(session, 0x82)
  })

  it('leaves messages alone: publishes and their acknowledgements go on in between', () => {
    const session = established()
    session.authExchange.authenticate(0x19, undefined)
    takeActions(session)
    const id = session.sendWindow.publish(1)
    expect(session.sendWindow.handleAck(PUBACK, id, 0)).toBe(1)
    expect(session.receiveWindow.handlePublish(1, 1)).toBeGreaterThanOrEqual(0)
    expect(session.state).toBe('connected')
  })

  it('ends with the connection', () => {
    const session = established()
    session.authExchange.authenticate(0x19, undefined)
    expect(session.authExchange.running).toBe(true)
    reconnect(session, true, method, { properties: method })
    expect(session.authExchange.running).toBe(false)
    expectQuiet(session)
    session.handlePacket(auth(0), 0)
    expectClose(session, 0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it('needs a connection', () => {
    const session = established()
    session.suspend()
    session.authExchange.authenticate(0x19, undefined)
    expect(takeActions(session)).toEqual([])
  })
})
