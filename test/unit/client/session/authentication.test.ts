/** Enhanced authentication as the session sees it: which AUTH packets fit, in which order, and how many (section 4.12). */
import { describe, expect, it } from 'vitest'
import type { AuthPacket, Properties } from '../../../../src/wire/packets.js'
import { connackPacket, connected, connecting, connectPacket, type Driven } from './drive.js'

const method: Properties = { authenticationMethod: 'SCRAM' }
const bytes = (text: string) => new TextEncoder().encode(text)
const auth = (reasonCode: number, properties: Properties = method): AuthPacket => ({
  type: 'auth',
  reasonCode,
  properties,
})

/** CONNECT with a method has left. */
const begun = () => connecting({}, { properties: method })

/** CONNACK with that method has come. */
const established = () => connected({}, method, { properties: method })

/** AUTH comes in, so many times. */
function hear(session: Driven, packet: AuthPacket, count = 1, now = 0): void {
  for (let round = 0; round < count; round++) session.handlePacket(packet, now)
}

/** Sends AUTH, and nothing else leaves. */
function say(session: Driven, reasonCode: 0x18 | 0x19, data?: Uint8Array<ArrayBuffer>): void {
  session.authExchange.authenticate(reasonCode, data)
  const properties = { authenticationMethod: 'SCRAM', authenticationData: data }
  expect(session.takeActions()).toEqual([
    { type: 'send', packet: { type: 'auth', reasonCode, properties } },
  ])
}

describe('the exchange before CONNACK', () => {
  it('AUTH is handed on, our answer is AUTH 0x18 with the method of CONNECT, CONNACK ends it [MQTT-4.12.0-2] [MQTT-4.12.0-3]', () => {
    const session = begun()
    const challenge = auth(0x18, { ...method, authenticationData: bytes('nonce') })
    hear(session, challenge)
    expect(session.takeActions()).toEqual([{ type: 'auth', packet: challenge }])
    say(session, 0x18, bytes('proof'))
    // Data may be left out.
    say(session, 0x18)
    session.handlePacket(connackPacket(method), 0)
    expect(session.takeActions()).toMatchObject([{ type: 'connected' }])
    expect(session.authExchange.running).toBe(false)
  })

  it.each([
    ['another method', auth(0x18, { authenticationMethod: 'KERBEROS' }), begun],
    ['no method', auth(0x18, {}), begun],
    ['success instead of CONNACK', auth(0), begun, 'ERR_UNEXPECTED_PACKET'],
    [
      'a method although CONNECT named none [MQTT-4.12.0-6]',
      auth(0x18),
      connecting,
      'ERR_UNEXPECTED_PACKET',
    ],
    [
      'the same on 3.1.1',
      auth(0x18),
      () => connecting({}, { protocolVersion: 4 }),
      'ERR_UNEXPECTED_PACKET',
    ],
  ])('AUTH with %s: close(0x82) [MQTT-4.12.0-5]', (_name, packet, open, code?: string) => {
    const session = open()
    hear(session, packet)
    session.expectClose(0x82, code)
  })

  it('16 rounds are enough for every mechanism, on each connection: the 17th closes', () => {
    const session = begun()
    hear(session, auth(0x18), 16)
    expect(session.takeActions()).toHaveLength(16)
    session.suspend()
    session.connect(connectPacket({ properties: method }))
    hear(session, auth(0x18), 16)
    expect([session.takeActions().length, session.state]).toEqual([17, 'connecting'])
    hear(session, auth(0x18))
    session.expectClose(0x82)
  })
})

describe('re-authentication', () => {
  it('begins with AUTH 0x19 and the method of CONNECT, goes on with 0x18, and ends with success [MQTT-4.12.1-1]', () => {
    const session = established()
    say(session, 0x19, bytes('first'))
    expect(session.authExchange.running).toBe(true)
    hear(session, auth(0x18))
    expect(session.takeActions()).toMatchObject([{ type: 'auth' }])
    say(session, 0x18, bytes('second'))
    const success = auth(0, { ...method, authenticationData: bytes('last word') })
    hear(session, success)
    expect(session.takeActions()).toEqual([{ type: 'auth', packet: success }])
    expect([session.authExchange.running, session.state]).toEqual([false, 'connected'])
    // A second success was not asked for.
    hear(session, auth(0))
    session.expectClose(0x82, 'ERR_UNEXPECTED_PACKET')
  })

  it.each([
    ['0x18 with another method', auth(0x18, { authenticationMethod: 'KERBEROS' })],
    ['0x18 without a method', auth(0x18, {})],
    // M19: what Remaining Length 0 would say, if the decoder took it.
    ['success without a method', auth(0, {})],
    ['success with another method', auth(0, { authenticationMethod: 'KERBEROS' })],
  ])('%s: close(0x82)', (_name, packet) => {
    const session = established()
    say(session, 0x19)
    hear(session, packet)
    session.expectClose(0x82)
  })

  it('sends nothing without a connection', () => {
    const session = established()
    session.suspend()
    session.takeActions()
    session.authExchange.authenticate(0x19, undefined)
    expect(session.takeActions()).toEqual([])
  })

  it('has 16 rounds too, counted for each exchange', () => {
    const session = established()
    for (let exchange = 0; exchange < 3; exchange++) {
      say(session, 0x19)
      hear(session, auth(0x18), 15)
      hear(session, auth(0))
      expect([session.state, session.takeActions().length]).toEqual(['connected', 16])
    }
    say(session, 0x19)
    hear(session, auth(0x18), 16)
    expect(session.takeActions()).toHaveLength(16)
    hear(session, auth(0x18))
    session.expectClose(0x82)
  })

  it('may be begun by the server: an exchange of its own, with 16 rounds of its own, and an end', () => {
    const session = established()
    const challenge = auth(0x18, { ...method, authenticationData: bytes('who?') })
    hear(session, challenge)
    expect(session.takeActions()).toEqual([{ type: 'auth', packet: challenge }])
    expect(session.authExchange.running).toBe(true)
    hear(session, auth(0x18), 15)
    expect(session.takeActions()).toHaveLength(15)
    hear(session, auth(0x18))
    session.expectClose(0x82)
    // The rounds before CONNACK are not counted in it, and success ends it.
    const patient = begun()
    hear(patient, auth(0x18), 16)
    patient.handlePacket(connackPacket(method), 0)
    patient.takeActions()
    hear(patient, auth(0x18), 15)
    hear(patient, auth(0))
    expect([patient.takeActions().length, patient.state]).toEqual([16, 'connected'])
    expect(patient.authExchange.running).toBe(false)
  })

  it('exchanges that the server begins share 16 rounds a minute', () => {
    const session = established()
    // A minute after the first of them it counts from none again.
    for (const now of [1, 2, 3, 4, 5, 6, 7, 8, ...Array(8).fill(60_001)]) {
      hear(session, auth(0x18), 1, now)
      session.authExchange.authenticate(0x18, undefined)
      hear(session, auth(0), 1, now)
      session.takeActions()
    }
    expect(session.state).toBe('connected')
    hear(session, auth(0x18), 1, 60_002)
    session.expectClose(0x82)
  })

  it('AUTH and success again and again, without waiting for an answer, is one exchange however long it goes on', () => {
    const session = established()
    for (let round = 1; round <= 16; round++)
      hear(session, auth(round % 2 === 1 ? 0x18 : 0), 1, round * 60_000)
    expect(session.takeActions()).toHaveLength(16)
    hear(session, auth(0x18), 1, 2_000_000)
    session.expectClose(0x82)
  })
})
