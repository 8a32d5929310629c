/** A session that is kept in a store, and the end of a connection and of a session, which nothing follows. */
import { describe, expect, it } from 'vitest'
import { forgetful, type PersistPort } from '../../../../src/client/session/actions.js'
import { QOS2_EARLIER } from '../../../../src/client/session/receive-window.js'
import { MqttError } from '../../../../src/errors.js'
import type { ServerPacket } from '../../../../src/wire/packets.js'
import {
  connackPacket,
  connected,
  connecting,
  connectPacket,
  Driven,
  durablyConnected,
} from './drive.js'

describe('a durable store', () => {
  it('PUBREC waits until the identifier is safe; the message cannot be settled again meanwhile', () => {
    durablyConnected().play(`
      in 9 q2 = 0; settle 0 0x10 = true, put-inbound 9; settle 0 = false; in 9 q2 = repeat
      grant 0 = pubrec 9 0x10`)
  })

  it('what comes behind waits too, QoS 1 included [MQTT-4.6.0-2]', () => {
    durablyConnected().play(`
      in 1 q2 = 0; settle 0 = true, put-inbound 1; in 2 q1 = 1; settle 1 = true; in 3 q2 = 2
      settle 2 = true, put-inbound 3; grant 1; grant 0 = pubrec 1, puback 2, pubrec 3`)
  })

  it('QoS 1, refused QoS 2, final acknowledgements, requests and withdrawn packets need no record', () => {
    durablyConnected().play(`
      in 1 q1 = 0; settle 0 = true, puback 1; in 2 q2 = 1; settle 1 0x80 = true, pubrec 2 0x80
      out q1 q2 = 1 2; puback 1 = done; pubrec 2 0x97 = done; subscribe 1 = 3; suback 3 1 = done
      out q1 = 4; withdraw 4`)
  })

  it('PUBREL waits until the release is safe, however often PUBREC comes', () => {
    durablyConnected().play(`
      out q2 = 1; pubrec 1 = released, put-release 1; pubrec 1 = released; grant 0 = pubrel 1
      pubcomp 1 = done`)
  })

  it('each request is answered by itself, and once', () => {
    durablyConnected().play(`
      in 1 q2 = 0; settle 0 = true, put-inbound 1; in 2 q2 = 1; settle 1 = true, put-inbound 2
      grant -1 2 99; grant 0 = pubrec 1; grant 0; grant 1 = pubrec 2`)
  })

  it('hears of every reset of the session and of PINGRESP, which confirms what was sent before it, and of nothing else', () => {
    const session = durablyConnected().play('next')
    expect(session.port.resets).toBe(0)
    session.play('lost = 0; reset')
    expect([session.port.resets, session.port.confirmed]).toEqual([2, 0])
    session.ask(0)
    session.handlePacket({ type: 'pingresp' }, 0)
    expect(session.port.confirmed).toBe(1)
  })
})

describe('PUBCOMP where the session is kept in a store', () => {
  /** PUBREC was sent for identifier 9. */
  const received = () =>
    durablyConnected().play(`
    in 9 q2 = 0; settle 0 = true, put-inbound 9; grant 0 = pubrec 9`)

  it.each(['', 'next'])('waits until the identifier is forgotten: "%s"', (before) => {
    // A second PUBREL meanwhile is answered with the first; one behind PUBCOMP is unknown, and writes nothing.
    received().play(`
      ${before}; pubrel 9 = delete-inbound 9; pubrel 9; grant 1 = pubcomp 9
      pubrel 9 = pubcomp 9 0x92; read open = 0; in 9 q2 = 1`)
  })

  it('an identifier that is being forgotten brings no new message: the same at QoS 2, broken at QoS 1', () => {
    received().play('pubrel 9 = delete-inbound 9; in 9 q2 dup = repeat; in 9 q1 = fault, close 130')
  })

  it.each([
    'next; pubrel 9 = delete-inbound 9; grant 1',
    'suspend; grant 1; next; pubrel 9 = delete-inbound 9',
  ])(
    'when the connection ends before, PUBREL on the next one asks again, and the late answer sends nothing: %s',
    (rest) => {
      received().play(`pubrel 9 = delete-inbound 9; ${rest}; grant 2 = pubcomp 9`)
    },
  )

  it('when the connection ends before: a repeat of PUBLISH on the next one is not delivered', () => {
    received().play('pubrel 9 = delete-inbound 9; next; in 9 q2 dup = repeat, pubrec 9')
  })

  it('a late answer for an earlier connection does not stand for a later exchange with the same identifier', () => {
    received().play(`
      pubrel 9 = delete-inbound 9; next; pubrel 9 = delete-inbound 9; grant 2 = pubcomp 9
      in 9 q2 = 1; settle 1 = true, put-inbound 9; grant 3 = pubrec 9; pubrel 9 = delete-inbound 9
      grant 1; grant 4 = pubcomp 9`)
  })
})

describe('a store that confirms after a reset all the same', () => {
  it('acknowledges and releases nothing', () => {
    durablyConnected().play(`
      in 1 q2 = 0; settle 0 = true, put-inbound 1; in 2 q2 = 1; settle 1 = true, put-inbound 2
      grant 0 = pubrec 1; pubrel 1 = delete-inbound 1; out q2 = 1
      pubrec 1 = released, put-release 1; reset; grant 1; grant 2; grant 3
      read unsettled open inFlight = 0 0 0`)
  })

  it('and nothing for an identifier that is in use again', () => {
    const session = durablyConnected()
    const { sendWindow } = session
    session.play(`
      in 1 q2 = 0; settle 0 = true, put-inbound 1; out q2 = 1; pubrec 1 = released, put-release 1
      reset`)
    sendWindow.start(10)
    for (let count = 1; count < 65_535; count++) sendWindow.withdraw(sendWindow.publish(1))
    session.play(`
      in 1 q2 = 1; settle 1 = true, put-inbound 1; out q2 = 1; pubrec 1 = released, put-release 1
      grant 0; grant 1; grant 3 = pubrel 1; grant 2 = pubrec 1`)
  })

  it('nor for one that is being forgotten again', () => {
    durablyConnected().play(`
      in 1 q2 = 0; settle 0 = true, put-inbound 1; grant 0 = pubrec 1; pubrel 1 = delete-inbound 1
      lost = 0; in 1 q2 = 1; settle 1 = true, put-inbound 1; grant 2 = pubrec 1
      pubrel 1 = delete-inbound 1; grant 1; grant 3 = pubcomp 1`)
  })
})

describe('an identifier that an earlier process has received', () => {
  /** The first connection of a session that goes on, with identifier 5 restored. */
  function restored(more: Partial<PersistPort> = {}): Driven {
    const session = new Driven({ ownsSession: true })
    session.persistence = Object.assign(session.port, more)
    session.receiveWindow.ids.set(5, QOS2_EARLIER)
    session.connect(connectPacket({ cleanStart: false }))
    session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
    return session.play('read open = 0, send, connected')
  }

  it('PUBLISH at QoS 2 gets PUBREC behind messages before it, and is not delivered; its PUBREL gets PUBCOMP once it is forgotten [MQTT-4.3.3-10] [MQTT-4.6.0-3]', () => {
    restored().play(`
      in 1 q1 = 0; in 5 q2 dup = repeat; settle 0 = true, puback 1, pubrec 5; read open = 1
      pubrel 5 = delete-inbound 5; grant 0 = pubcomp 5; read open = 0; in 5 q2 = 2`)
  })

  it.each(['', 'dup'])('gets a ticket where content tells repeats: "%s"', (dup) => {
    restored({ recognises: true }).play(`in 5 q2 ${dup} = 0`)
  })

  it('PUBREL whose record was not written when the connection ended is answered on the next, once its own is written', () => {
    restored().play(`
      pubrel 5 = delete-inbound 5; next; pubrel 5 = delete-inbound 5; pubrel 5; grant 0
      grant 1 = pubcomp 5`)
  })

  it('and a message with that identifier is a new one', () => {
    restored().play(`
      pubrel 5 = delete-inbound 5; next; in 5 q1 = 0, delete-inbound 5; grant 0
      settle 0 = true, puback 5`)
  })
})

it('a memory store is asked for nothing, for a whole life of every kind of exchange, also when its answers would be the only ones', () => {
  const session = connected()
  expect(session.persistence).toBe(forgetful)
  for (const persistence of [forgetful, Object.assign(session.port, { durable: false })]) {
    const each = connected()
    each.persistence = persistence
    each.play(`
      in 1 q1 = 0; settle 0 = true, puback 1; in 2 q2 = 1; settle 1 = true, pubrec 2
      in 3 q2 = 2; settle 2 0x80 = true, pubrec 3 0x80; pubrel 2 = pubcomp 2
      out q1 q2 q2 = 1 2 3; puback 1 = done; pubrec 2 = released, pubrel 2; pubcomp 2 = done
      pubrec 3 0x97 = done; in 2 q2 = 3; settle 3 = true, pubrec 2; next; in 2 q1 = 4`)
  }
  expect(session.port.requests).toEqual([])
})

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
