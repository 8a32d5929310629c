/** The send quota (section 4.9). */
import { describe, expect, it } from 'vitest'
import { connackPacket, connected, connectPacket, type Driven } from './drive.js'

/** Publishes while the session lets us, at most `wanted` times: the identifiers that left. */
function send(session: Driven, qos: number, wanted = 9): number[] {
  const ids: number[] = []
  while (ids.length < wanted && session.sendWindow.mayPublish) ids.push(session.publish(qos))
  return ids
}

/** The connection ends, and the same session goes on over the next. */
function goOn(session: Driven, receiveMaximum: number): void {
  session.fail(0x80, 'test')
  session.connect(connectPacket({ cleanStart: false }))
  session.handlePacket(connackPacket({ receiveMaximum }, { sessionPresent: true }), 0)
  expect(session.takeActions().at(-1)?.type).toBe('connected')
}

describe('the send quota', () => {
  it('of 3: never more than 3 at QoS 1, refilled one for one [MQTT-3.3.4-7] [MQTT-4.9.0-1]', () => {
    const session = connected({}, { receiveMaximum: 3 })
    expect(send(session, 1)).toEqual([1, 2, 3])
    session.play('puback 2 = done')
    expect(send(session, 1)).toEqual([4])
    session.play('puback 4 = done; puback 1 = done')
    expect([send(session, 1), session.sendWindow.inFlight]).toEqual([[5, 6], 3])
  })

  it('has a place again after PUBCOMP or a failing PUBREC, not after PUBREC', () => {
    connected({}, { receiveMaximum: 2 }).play(`
      out q2 q2 = 1 2; pubrec 1 = released, pubrel 1; pubrec 2 0x10 = released, pubrel 2
      read mayPublish = false; pubcomp 2 = done; read mayPublish = true; out q2 = 3
      read mayPublish = false; pubrec 3 0x97 = done; read mayPublish = true; out q2 = 4
      read mayPublish = false; pubcomp 1 = done; read inFlight mayPublish = 1 true`)
  })

  it('starts from the new CONNACK on each connection, less what is still in flight, without underflow', () => {
    const session = connected({ ownsSession: true }, { receiveMaximum: 2 })
    expect(send(session, 1)).toEqual([1, 2])
    goOn(session, 5)
    expect([send(session, 1), session.sendWindow.inFlight]).toEqual([[3, 4, 5], 5])
    goOn(session, 2)
    for (const id of [1, 2, 3]) session.play(`read mayPublish = false; puback ${id} = done`)
    session.play('read mayPublish = false; puback 4 = done')
    expect(send(session, 1)).toEqual([6])
  })

  it('is never lifted above its start by acknowledgements of nothing [MQTT-4.9.0-2]', () => {
    const session = connected({}, { receiveMaximum: 2 })
    for (let id = 1; id < 20; id++)
      session.play(`
      puback ${id} = ignored; pubrec ${id} 0x80 = ignored; pubcomp ${id} = ignored`)
    expect(send(session, 1)).toEqual([1, 2])
    session.play('puback 1 = done; puback 1 = ignored')
    expect(send(session, 1)).toEqual([3])
  })

  it.each([
    [{ maximumInflight: 2 }, { receiveMaximum: 4 }, 2],
    [{ maximumInflight: 4 }, { receiveMaximum: 2 }, 2],
    [{ maximumInflight: 3 }, {}, 3],
    [{}, {}, 65_535],
  ])('is the smaller of ours and Receive Maximum: %o, %o', (ours, theirs, expected) => {
    const session = connected(ours, theirs)
    expect(send(session, 1, 70_000)).toHaveLength(expected)
    // There is none before CONNACK.
    session.play('reset; read mayPublish = false')
  })

  it('used up holds back nothing but PUBLISH [MQTT-3.3.4-8] [MQTT-4.9.0-3]', () => {
    const session = connected({}, { receiveMaximum: 1 }).play(`
      out q2 = 1; read mayPublish hasIdentifier = false true; subscribe 1 = 2; unsubscribe 1 = 3
      in 7 q1 = 0; settle 0 = true, puback 7; in 8 q2 = 1; settle 1 = true, pubrec 8
      pubrel 8 = pubcomp 8; pubrec 1 = released, pubrel 1`)
    session.handleTimeout(30_000)
    session.handlePacket({ type: 'suback', packetId: 2, properties: {}, reasonCodes: [0] }, 0)
    expect(session.takeActions()).toMatchObject([
      { type: 'send', packet: { type: 'pingreq' } },
      { type: 'answered', packet: { packetId: 2 } },
    ])
  })
})
