/** Incoming messages across connections: what is parked, what its repeat does, and what is never sent where it was not asked for. */
import { describe, expect, it } from 'vitest'
import { connected, durablyConnected } from './drive.js'

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

describe('PUBREC of a message that was settled waits for the store', () => {
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
  ])('which answers %s', (_when, rest) => {
    durablyConnected().play(`in 1 q2 = 0; ${rest}`)
  })
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
