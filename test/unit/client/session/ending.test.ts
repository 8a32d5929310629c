/** The end of a connection and of a session, and that nothing follows it. */
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../../src/errors.js'
import type { ServerPacket } from '../../../../src/wire/packets.js'
import { connackPacket, connected, connecting, connectPacket, Driven } from './drive.js'

const packet = {
  type: 'disconnect',
  reasonCode: 0x8b,
  properties: { reasonString: 'why', serverReference: 'there' },
} as const

/** Everything that the control plane can be given. */
const packets: ServerPacket[] = [
  connackPacket(),
  { type: 'suback', packetId: 1, properties: {}, reasonCodes: [0] },
  { type: 'unsuback', packetId: 1, properties: {}, reasonCodes: [0] },
  { type: 'pingresp' },
  packet,
  { type: 'auth', reasonCode: 0x18, properties: {} },
]

/** The ways into `closed`. */
const ends: [string, (session: Driven) => unknown][] = [
  ['our DISCONNECT', (session) => session.disconnect(0, {})],
  ['the server’s DISCONNECT', (session) => session.handlePacket(packet, 0)],
  ['a protocol error', (session) => session.fail(0x82, 'test')],
  ['a dead link', (session) => [session.handleTimeout(30_000), session.handleTimeout(40_000)]],
  ['our own reason', (session) => session.close(new MqttError('ERR_CLOSED', 'test'), undefined)],
]

describe('the end of a connection', () => {
  it('our DISCONNECT is the last thing sent, with what the caller gave [MQTT-3.14.4-1]', () => {
    const session = connected()
    const properties = { reasonString: 'bye' }
    const ours = { type: 'disconnect', reasonCode: 0x04, properties } as const
    session.disconnect(ours.reasonCode, ours.properties)
    session.disconnect(0, {})
    expect(session.takeActions()).toEqual([{ type: 'send', packet: ours }])
    expect(session.state).toBe('closed')
  })

  it('no DISCONNECT before CONNACK, nor before CONNECT', () => {
    for (const session of [connecting(), new Driven()]) {
      session.disconnect(0, {})
      expect([session.state, session.takeActions()]).toEqual(['closed', []])
    }
  })

  it.each([0, 0x80, 0x8b, 0x8e, 0x98, 0x9c])('a DISCONNECT %i is handed on whole', (reasonCode) => {
    const session = connected()
    session.handlePacket({ ...packet, reasonCode }, 0)
    expect(session.takeActions()).toEqual([
      { type: 'server-disconnect', packet: { ...packet, reasonCode } },
    ])
    expect([session.state, session.deadline]).toEqual(['closed', Number.POSITIVE_INFINITY])
  })

  it('our reason goes out as DISCONNECT where one was given, in the order of events, and the first counts', () => {
    const session = connected()
    const error = new MqttError('ERR_CONNECTION_LOST', 'over budget')
    session.handleTimeout(30_000)
    session.close(error, 0x97)
    session.close(new MqttError('ERR_CLOSED', 'later'), 0x80)
    session.fail(0x82, 'later')
    expect(session.takeActions()).toEqual([
      { type: 'send', packet: { type: 'pingreq' } },
      { type: 'close', error, reasonCode: 0x97 },
    ])
  })

  it.each(['auth', 'publish', 'puback', 'pubrec', 'pubrel', 'pubcomp'] as const)(
    'a %s on the control plane is refused by name',
    (type) => {
      const session = connected()
      session.handlePacket(
        {
          type,
          packetId: 1,
          reasonCode: 0x19,
          topic: 't',
          qos: 0,
          payload: new Uint8Array(0),
          properties: {},
        } as never,
        0,
      )
      const message = `${type.toUpperCase()} is not expected here`
      const error = { code: 'ERR_UNEXPECTED_PACKET', message }
      expect(session.takeActions()).toMatchObject([{ type: 'close', reasonCode: 0x82, error }])
    },
  )
})

describe('closed accepts nothing', () => {
  const cases = ends.flatMap(([end, close]) =>
    packets.map((heard) => ({ end, close, heard, type: heard.type })),
  )

  it.each(cases)('after $end: $type; a new CONNECT leaves it', ({ close, heard }) => {
    const session = connected()
    session.sendWindow.request('subscribe', 1)
    close(session)
    session.takeActions()
    session.handlePacket(heard, 0)
    session.handleTimeout(1e9)
    session.fail(0x82, 'later')
    expect([session.expectConnected(), session.takeActions()]).toEqual([false, []])
    expect(session.state).toBe('closed')
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    const again = connectPacket({ clientId: 'again' })
    session.connect(again)
    expect(session.takeActions()).toEqual([{ type: 'send', packet: again }])
    session.handlePacket(connackPacket(), 50_000)
    expect(session.state).toBe('connected')
  })
})

it('of a session that is gone nothing in flight counts any more, in either direction', () => {
  const session = connected({ receiveMaximum: 2 }, { receiveMaximum: 2 }).play(`
    in 1 q1 = 0; settle 0 = true, puback 1; in 2 q2 = 1; settle 1 = true, pubrec 2; in 3 q1 = 2
    out q1 q2 = 1 2; subscribe 1 = 3; reset; read open unsettled inFlight mayPublish = 0 0 0 false
    settle 2 = false`)
  session.sendWindow.start(2)
  session.play(
    'read mayPublish = true; suback 3 1 = ignored; puback 1 = ignored; pubcomp 2 = ignored; read unsolicited = 3; pubrel 2 = pubcomp 2 0x92',
  )
})
