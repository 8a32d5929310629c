/** Outgoing exchanges across connections: held until they are replayed, their identifiers and the quota, and sessions of an unknown past. */
import { describe, expect, it } from 'vitest'
import { connected, type Driven, durablyConnected, inherited } from './drive.js'

// Walks through the identifiers, so that the next one is the lowest that is free.
function wrap({ sendWindow }: Driven): void {
  for (let id = 0; id !== 65_535; ) {
    id = sendWindow.request('subscribe', 1)
    sendWindow.withdraw(id)
  }
}

describe('publishes in flight when the connection ends', () => {
  it('are held: acknowledgements that come before their replay, of wrong kinds too, are ignored and counted, and change nothing', () => {
    connected().play(`
      out q1 q2 q2 = 1 2 3; pubrec 3 = released, pubrel 3; next; puback 1 = ignored
      pubrec 2 = ignored; pubrec 2 0x80 = ignored; pubcomp 3 = ignored; pubrec 3 = ignored
      pubcomp 1 = ignored; puback 2 = ignored; read unsolicited = 7; release 3 = pubrel 3
      replay 1; replay 2; pubcomp 3 = done; puback 1 = done; pubrec 2 = released, pubrel 2
      pubcomp 2 = done`)
  })

  it('keep their identifiers: nothing new gets one of them, before the replay or after [MQTT-2.2.1-3]', () => {
    const session = connected().play('out q1 q2 q1 = 1 2 3; pubrec 2 = released, pubrel 2')
    wrap(session)
    session.play('next; out q1 q2 q1 = 4 5 6; subscribe 1 = 7')
  })

  it('take no quota until they are replayed, and then one each [MQTT-4.9.0-1]', () => {
    connected({}, { receiveMaximum: 5 }).play(`
      out q1 q1 q1 q1 q1 = 1 2 3 4 5; read mayPublish = false; suspend
      read inFlight mayReplay mayPublish = 0 false false; next 2; read mayReplay = true; replay 1
      read mayReplay = true; replay 2; read mayReplay mayPublish = false false; puback 1 = done
      read mayReplay = true; replay 3; read inFlight mayReplay = 2 false`)
  })

  it('exchanges that go on with PUBREL are more than the new window: no underflow, nothing else until they are done', () => {
    const session = connected().play('out q2 q2 q2 = 1 2 3')
    for (const id of [1, 2, 3]) session.play(`pubrec ${id} = released, pubrel ${id}`)
    session.play('next 1')
    for (const id of [1, 2, 3]) session.play(`release ${id} = pubrel ${id}`)
    for (const id of [1, 2, 3])
      session.play(`
      read mayPublish mayReplay inFlight = false false ${4 - id}; pubcomp ${id} = done`)
    session.play('read mayPublish inFlight = true 0; out q1 = 4; read mayPublish = false')
  })

  it('PUBREL is repeated on every connection until PUBCOMP, though not by itself, PUBLISH never [MQTT-4.3.3-6]', () => {
    const session = connected().play('out q2 = 1')
    // It was queued, and did not leave.
    session.got('pubrec', 1)
    for (let round = 0; round < 5; round++) session.play('next; release 1 = pubrel 1')
    // D12: the server asks again.
    session.play('pubrec 1 = released, pubrel 1; pubcomp 1 = done')
  })

  it('are forgotten with the session: their identifiers are free, late acknowledgements are ignored', () => {
    connected().play(`
      out q1 q2 = 1 2; lost = 0; puback 1 = ignored; read inFlight = 0
      pubrec 2 = ignored, pubrel 2 0x92`)
  })

  it.each([
    ['in the gap', 'suspend; grant 0; next; release 1 = pubrel 1'],
    ['after the next connection is up', 'next; release 1; grant 0 = pubrel 1'],
  ])('PUBREL waits for the store, which answers %s, and leaves once', (_when, rest) => {
    durablyConnected().play(`
      out q2 = 1; pubrec 1 = released, put-release 1; ${rest}; grant 0; pubcomp 1 = done`)
  })
})

it('given up between connections, a publish at QoS 1 frees its identifier; at QoS 2 it stays taken until the session ends, as the server may remember it', () => {
  const session = connected().play(`
    out q1 q2 = 1 2; suspend; abandon 1; abandon 2; next; puback 1 = ignored; pubrec 2 = ignored`)
  const seen = new Set(Array.from({ length: 65_534 }, () => session.publish(1)))
  expect([seen.size, seen.has(1), seen.has(2)]).toEqual([65_534, true, false])
  session.play(`
    read hasIdentifier = false; lost = 0; read hasIdentifier = true; pubcomp 2 = ignored`)
})

it('SUBSCRIBE and UNSUBSCRIBE in flight free their identifiers when the connection ends; a late answer is ignored and counted', () => {
  const session = connected().play(`
    subscribe 5 = 1; unsubscribe 1 = 2; next; suback 1 5 = ignored; unsuback 2 1 = ignored
    read unsolicited = 2`)
  // The count of filters is that of the request which has the identifier now.
  wrap(session)
  session.play('subscribe 1 = 1; suback 1 5 = fault, close 130')
})

describe('a session of an unknown past: first connect with Session Present 1', () => {
  /** Asks for identifiers at QoS 2 (or this level): those that are being cleared. */
  function clearing(session: Driven, qos = 2): number[] {
    expect(session.sendWindow.prepare(qos)).toBe(false)
    const acks = session.takeAcks()
    expect(acks.map(([type, , code]) => [type, code])).toEqual(acks.map(() => ['pubrel', 0]))
    expect(acks.length).toBeGreaterThan(0)
    return acks.map(([, id]) => id)
  }

  it('clears identifiers by PUBREL and PUBCOMP before a QoS 2 publish uses them; QoS 1 goes at once, with others', () => {
    const session = inherited()
    const cleared = clearing(session)
    expect(cleared.length).toBeLessThanOrEqual(16)
    // Asked again, it does not ask the server again.
    session.play('prepare 2 = false')
    for (const id of [session.publish(1), session.publish(1), session.publish(1)])
      expect(cleared).not.toContain(id)
    session.play(`
      read inFlight = 3; pubcomp ${cleared[0]} = cleared; prepare 2 = true; out q2 = ${cleared[0]}`)
  })

  it('clears no more identifiers at a time than the server takes', () =>
    expect(clearing(inherited(3))).toHaveLength(3))

  it('goes on clearing on the next connection when this one ended before PUBCOMP; what was cleared stays so', () => {
    const session = inherited()
    const [first] = clearing(session)
    session.play(`next; pubcomp ${first} = ignored`)
    const ids = clearing(session)
    for (const id of ids) session.play(`pubcomp ${id} = cleared`)
    session.play(`next; prepare 2 = true; out q2 = ${ids[0]}`)
  })

  it('on 3.1.1, which cannot say that an identifier is in use, QoS 1 takes cleared ones too', () => {
    const session = inherited(65_535, { protocolVersion: 4 })
    const cleared = clearing(session, 1)
    for (const id of cleared) session.play(`pubcomp ${id} = cleared`)
    for (const id of cleared) session.play(`prepare 1 = true; out q1 = ${id}`)
    clearing(session, 1)
    for (const id of cleared) session.play(`puback ${id} = done`)
    session.play('prepare 1 = true')
  })

  it('on 5.0 an identifier that the server says is in use (0x91) is not used again in this session', () => {
    const session = inherited().play('out q1 = 1; puback 1 = done; disown 1 = true')
    for (let round = 0; round < 2; round++) {
      wrap(session)
      expect([session.publish(1), session.publish(1)]).not.toContain(1)
      session.play('next')
    }
    session.play('puback 1 = ignored; lost = 0')
    wrap(session)
    session.play('out q1 = 1')
  })

  it('ends with the session: after Session Present 0 every identifier is free and nothing is cleared', () => {
    const session = inherited()
    clearing(session)
    session.play('lost = 0; prepare 2 = true')
  })

  it('is none on a clean start, nor for a session that this process knows, where 0x91 is about the message', () => {
    connected().play(`
      prepare 2 = true; next; prepare 2 = true; out q1 = 1; puback 1 = done; disown 1 = false`)
  })
})
