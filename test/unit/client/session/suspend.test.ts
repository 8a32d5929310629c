/** Exchanges across connections: held until they are replayed, what their repeat does, their identifiers and the quota, and sessions of an unknown past. */
import { describe, expect, it } from 'vitest'
import { connected, type Driven, durablyConnected, inherited } from './drive.js'

describe('a QoS 1 message in hand when the connection ends', () => {
  it.each([
    [
      'in the gap',
      'suspend; settle 0 0x97 = true; settle 0 0x80 = false; next; in 7 q1 dup = repeat, puback 7 0x97',
    ],
    [
      'before its repeat',
      'next; settle 0 0x97 = true; settle 0 = false; in 7 q1 dup = repeat, puback 7 0x97',
    ],
    ['after its repeat', 'next; in 7 q1 dup = repeat; settle 0 0x97 = true, puback 7 0x97'],
  ])('is acknowledged %s: settled once, sent after its repeat', (_when, rest) => {
    connected().play(`in 7 q1 = 0; ${rest}; settle 0 = false`)
  })

  it('makes way for another message with its identifier and no DUP: its ticket is stale, nothing is acknowledged for it', () => {
    connected().play('in 7 q1 = 0; next; in 7 q1 = 1; settle 0 = false; settle 1 = true, puback 7')
  })

  it('makes way for a QoS 2 message with its identifier, and the other way round', () => {
    connected().play(`
      in 1 q1 = 0; in 2 q2 = 1; next; in 1 q2 dup = 2; in 2 q1 dup = 3; settle 0 = false
      settle 1 = false; settle 2 = true, pubrec 1; settle 3 = true, puback 2`)
  })

  it('whose PUBACK was queued and did not leave: it is not sent on the next connection, and the repeat is a delivery of its own', () => {
    const session = connected()
    session.take(7, 1)
    session.play('next; in 7 q1 dup = 1; settle 0 = false')
  })
})

describe('a QoS 2 message', () => {
  it('in hand at the drop binds to its repeat, with DUP or without [MQTT-4.3.3-10]', () => {
    connected().play(`
      in 1 q2 = 0; in 2 q2 = 1; next; in 1 q2 dup = repeat; in 2 q2 = repeat
      settle 0 = true, pubrec 1; settle 1 = true, pubrec 2`)
  })

  /** PUBREC has left for identifier 1. */
  const received = () => connected().play('in 1 q2 = 0; settle 0 = true, pubrec 1')

  it('that was taken is answered again and not delivered, with DUP 1 or DUP 0 [MQTT-4.3.3-10]', () => {
    received().play(`
      next; in 1 q2 dup = repeat, pubrec 1; in 1 q2 = repeat, pubrec 1
      in 1 q2 dup = repeat, pubrec 1`)
    received().play('next; in 1 q2 = repeat, pubrec 1')
  })

  it('that was taken goes on with PUBREL, without PUBLISH: PUBCOMP, and the identifier is new again [MQTT-4.3.3-11]', () => {
    received().play(`
      next; pubrel 1 = pubcomp 1; pubrel 1 = pubcomp 1 0x92; read open = 0; in 1 q2 = 1`)
  })

  it.each([
    'suspend; settle 0 = true; next; pubrel 1 = pubcomp 1 0x92; in 1 q2 dup = repeat, pubrec 1',
    'next; pubrel 1 = pubcomp 1 0x92; in 1 q2 dup = repeat; settle 0 = true, pubrec 1',
  ])('in hand is not released by a PUBREL before its repeat: %s', (rest) => {
    connected().play(`in 1 q2 = 0; ${rest}`)
  })

  it('whose repeat came cannot be released before PUBREC: close(0x82)', () => {
    connected().play('in 1 q2 = 0; next; in 1 q2 dup = repeat; pubrel 1 = close 130')
  })

  it('that was taken and whose identifier comes back as QoS 1 on a later connection: something new of a server that was set back', () => {
    // Without the request a later process would take the next QoS 2 message with it for a repeat.
    durablyConnected().play(`
      in 1 q2 = 0; settle 0 = true, put-inbound 1; grant 0 = pubrec 1; next
      in 1 q1 dup = 1, delete-inbound 1; settle 1 = true, puback 1; read open = 0`)
  })

  it('refused in the gap: its repeat gets the PUBREC with the code, and the exchange is over [MQTT-4.3.3-9]', () => {
    connected().play(`
      in 1 q2 = 0; suspend; settle 0 0x83 = true; next; in 1 q2 dup = repeat, pubrec 1 0x83
      read open = 0; in 1 q2 = 2`)
  })

  it('65,535 times unreleased over as many connections: every identifier is remembered, none costs a place', () => {
    const session = connected({ receiveMaximum: 100 })
    for (let id = 1; id <= 65_535; id++) {
      session.take(id, 2)
      if (id % 100 === 0) session.reconnect()
    }
    session.play('next; read open parked = 0 0')
    for (const id of [1, 32_768, 65_535]) session.play(`in ${id} q2 dup = repeat, pubrec ${id}`)
  })
})

describe('the order of acknowledgements after a drop', () => {
  it('is the order in which this connection brought the messages, old and new [MQTT-4.6.0-2] [MQTT-4.6.0-3]', () => {
    // Another order than before, and a new one in the middle.
    connected().play(`
      in 1 q1 = 0; in 2 q1 = 1; in 3 q2 = 2; next; in 3 q2 dup = repeat; in 9 q1 = 4
      in 1 q1 dup = repeat; in 2 q1 dup = repeat; settle 0 = true; settle 1 = true
      settle 2 = true, pubrec 3; settle 4 = true, puback 9, puback 1, puback 2`)
  })

  it('the oldest without acknowledgement is the one that this connection brought first, by its first ticket', () => {
    connected().play(`
      in 1 q1 = 0; in 2 q1 = 1; in 3 q1 = 2; next; read parked unsettled = 3 0; in 9 q1 = 3
      read oldestTicket = 3; in 2 q1 dup = repeat; in 1 q1 dup = repeat; read oldestTicket = 3
      settle 3 = true, puback 9; read oldestTicket = 1; settle 1 = true, puback 2
      read oldestTicket = 0; settle 0 = true, puback 1; read unsettled = 0`)
  })
})

describe('Receive Maximum on the next connection', () => {
  const strict = { receiveMaximum: 2, receiveMaximumExceeded: 'disconnect' } as const

  it('starts empty: only what this connection brought counts [MQTT-3.3.4-9]', () => {
    connected(strict).play(`
      in 1 q1 = 0; in 2 q2 = 1; read full = true; next; read open full parked = 0 false 2
      in 1 q1 dup = repeat; in 3 q1 = 3; read full = true; in 2 q2 dup = fault, close 147`)
  })

  it('is what CONNECT announced on this connection; 3.1.1 knows none: 65,535 may be open', () => {
    const session = connected(strict)
    session.reconnect(true, {}, { properties: { receiveMaximum: 1 } })
    session.play('in 1 q1 = 0; in 2 q1 = fault, close 147')
    const old = connected(strict, {}, { protocolVersion: 4 })
    for (let id = 1; id <= 500; id++) expect(old.receive(id, 1)).toBe(id - 1)
  })
})

describe('Session Present 0', () => {
  it('makes every ticket stale and every identifier new; the loss is told with their number', () => {
    connected().play(`
      in 1 q1 = 0; in 2 q2 = 1; in 3 q2 = 2; settle 0 = true, puback 1; suspend; settle 1 = true
      read parked = 2; lost = 2; settle 1 = false; settle 2 = false
      read parked unsettled open = 0 0 0; in 2 q2 dup = 3; in 3 q2 = 4; pubrel 1 = pubcomp 1 0x92`)
  })

  it('is no loss on a first connection', () => {
    const session = connected()
    expect(session.known).toBe(true)
    session.play('suspend; reset')
    expect(session.known).toBe(false)
    session.play('lost = not lost')
  })
})

it.each([
  [
    'in the gap',
    'settle 0 = true, put-inbound 1; suspend; grant 0; next; in 1 q2 dup = repeat, pubrec 1',
  ],
  [
    'after the repeat',
    'suspend; settle 0 = true, put-inbound 1; next; in 1 q2 dup = repeat; grant 0 = pubrec 1',
  ],
  [
    'for a session that was lost meanwhile',
    'settle 0 = true, put-inbound 1; lost = 1; in 1 q2 = 1; grant 0',
  ],
])('PUBREC of a message that was settled waits for the store which answers %s', (_when, rest) => {
  durablyConnected().play(`in 1 q2 = 0; ${rest}`)
})

describe('repeats on one connection, also of a message that was bound to its repeat there', () => {
  it.each([false, true])('on 3.1.1 QoS 1 with DUP is the same (bound: %s)', (bound) => {
    const session = connected({}, {}, { protocolVersion: 4 }).play('in 1 q1 = 0')
    if (bound) session.reconnect(true, {}, { protocolVersion: 4 })
    session.play(`
      in 1 q1 dup = repeat; in 1 q1 dup = repeat; settle 0 = true, puback 1; in 2 q1 = ${bound ? 2 : 1}
      in 2 q1 = fault, close 130`)
    expect(session.state).toBe('closed')
  })

  it.each(['in 1 q1 dup', 'in 1 q1', 'next; in 1 q1 dup = repeat; in 1 q1 dup'])(
    'on 5.0 it is close(0x82): %s [MQTT-4.4.0-1]',
    (rest) => {
      connected().play(`in 1 q1 = 0; ${rest} = fault, close 130`)
    },
  )
})

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
