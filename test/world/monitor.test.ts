/**
 * Each rule of the monitor on the wire, seen to hold and seen to fail on a trace made by hand.
 */
import { describe, expect, test } from 'vitest'
import { Monitor, type MonitoredConnection } from './monitor.js'
import * as packet from './packets.js'

/** One client, watched; `up` is what it sends, `down` what reaches it. */
function watched({ cleanStart = false, version = 5 as 4 | 5, clientId = 'c', gaveUp = (payload: string) => payload === 'given up' } = {}) {
  const clock = { now: 0 }
  const monitor = new Monitor({ cleanStart, version, clientId, now: () => clock.now, punctual: () => true, gaveUp })
  const link = { connection: undefined as unknown as MonitoredConnection }
  const acks: string[] = []
  monitor.inbound.onAcknowledged = ({ payload, qos }) => acks.push(`${payload} q${qos}`)
  const up = (...packets: Uint8Array[]): void => {
    for (const bytes of packets) link.connection.sent(bytes)
  }
  const down = (...packets: Uint8Array[]): void => {
    for (const bytes of packets) link.connection.arriving(bytes)
  }
  const open = (connack: Parameters<typeof packet.connack>[0] = {}): void => {
    link.connection = monitor.connect()
    up(packet.connect({ clean: cleanStart && !monitor.accepted }))
    down(packet.connack(connack))
  }
  const rules = (): string[] => monitor.violations.map(({ rule }) => rule)
  return { clock, monitor, link, up, down, open, rules, acks }
}

type Watched = ReturnType<typeof watched>

describe('the monitor sees nothing wrong in', () => {
  const good: readonly (readonly [string, (world: Watched) => void])[] = [
    [
      'a link that stalls under DISCONNECT: nothing may be sent any more',
      ({ clock, up, link }) => {
        up(packet.disconnect)
        clock.now = 46_000
        link.connection.end('destroyed')
      },
    ],
    [
      'QoS 1 with its acknowledgement, the identifier used again',
      ({ up, down }) => {
        up(packet.publish())
        down(packet.puback(1))
        up(packet.publish({ payload: 'other' }))
      },
    ],
    [
      'QoS 2 to its end',
      ({ up, down }) => {
        up(packet.publish({ qos: 2 }))
        down(packet.pubrec(1))
        up(packet.pubrel(1))
        down(packet.pubcomp(1))
        up(packet.publish({ qos: 2, payload: 'other' }))
      },
    ],
    [
      'a message that is sent again although its acknowledgement came, where nobody reads that connection any more',
      ({ monitor, up, down, open }) => {
        up(packet.publish({ payload: 'a' }))
        monitor.forsaken = 1
        down(packet.puback(1))
        open({ present: true })
        up(packet.publish({ payload: 'a', dup: true }))
      },
    ],
    [
      'a message that was given up and is not sent again',
      ({ up, open }) => {
        up(packet.publish({ payload: 'given up' }))
        open({ present: true })
        up(packet.publish({ id: 2, payload: 'b' }))
      },
    ],
    [
      'a replay with DUP in order, then something new',
      ({ up, down, open }) => {
        up(packet.publish({ qos: 2, id: 1, payload: 'a' }), packet.publish({ id: 2, payload: 'b' }), packet.publish({ qos: 2, id: 3, payload: 'c' }))
        down(packet.pubrec(1))
        up(packet.pubrel(1))
        open({ present: true })
        up(packet.pubrel(1), packet.publish({ id: 2, payload: 'b', dup: true }), packet.publish({ qos: 2, id: 3, payload: 'c', dup: true }))
        up(packet.publish({ id: 4, payload: 'd' }))
      },
    ],
    [
      'everything new after the session was lost',
      ({ up, open }) => {
        up(packet.publish({ payload: 'a' }))
        open()
        up(packet.publish({ payload: 'b' }))
      },
    ],
    [
      'acknowledgements in the order of arrival, kind by kind',
      ({ up, down }) => {
        down(packet.publish({ id: 1, payload: 'a' }), packet.publish({ id: 2, qos: 2, payload: 'b' }), packet.publish({ id: 3, payload: 'c' }))
        up(packet.pubrec(2), packet.puback(1), packet.puback(3))
        down(packet.pubrel(2))
        up(packet.pubcomp(2))
      },
    ],
    [
      'a second PUBREC, answered by a second PUBREL',
      ({ up, down }) => {
        up(packet.publish({ qos: 2 }))
        down(packet.pubrec(1))
        up(packet.pubrel(1))
        down(packet.pubrec(1))
        up(packet.pubrel(1))
      },
    ],
    [
      'PUBREL 0x92 for a PUBREC that nobody waits for',
      ({ up, down }) => {
        down(packet.pubrec(9))
        up(packet.pubrel(9, 0x92))
      },
    ],
    [
      'what comes behind a message whose alias nobody knows is not read',
      ({ up, down, open }) => {
        up(packet.publish({ qos: 2, payload: 'a' }))
        down(packet.publish({ qos: 0, alias: 1, topic: '' }), packet.pubrec(1))
        open({ present: true })
        up(packet.publish({ qos: 2, payload: 'a', dup: true }))
      },
    ],
    ['an alias that is set and then used', ({ up }) => up(packet.publish({ qos: 0, alias: 1 }), packet.publish({ qos: 0, alias: 1, topic: '' }))],
  ]
  test.each(good)('%s', (_name, act) => {
    const world = watched()
    world.open({ properties: [...packet.aliasMaximum(2), ...packet.receiveMaximum(5)] })
    act(world)
    expect(world.monitor.violations).toEqual([])
  })

  test('PUBREL for identifiers that a new process clears, and only there', () => {
    const world = watched()
    world.open({ present: true })
    world.up(packet.pubrel(1))
    expect(world.rules()).toEqual([])
    world.down(packet.pubcomp(1))
    world.up(packet.publish({ id: 1, qos: 2 }))
    world.down(packet.pubrec(1))
    world.up(packet.pubrel(1))
    world.down(packet.pubcomp(1))
    world.up(packet.pubrel(1))
    expect(world.rules()).toEqual(['PUBREL'])
    world.open()
    world.up(packet.pubrel(2))
    expect(world.rules()).toEqual(['PUBREL', 'PUBREL'])
  })
})

describe('the monitor is seen to fail on', () => {
  const bad: readonly (readonly [rule: string, name: string, act: (world: Watched) => void])[] = [
    ['first packet', 'a second CONNECT', ({ up }) => up(packet.connect({ clean: false }))],
    ['auth', 'AUTH without a method', ({ up }) => up(packet.auth)],
    ['dup', 'DUP on a first transmission', ({ up }) => up(packet.publish({ dup: true }))],
    [
      'dup',
      'no DUP on a replay',
      ({ up, open }) => {
        up(packet.publish())
        open({ present: true })
        up(packet.publish())
      },
    ],
    [
      'resend',
      'a PUBLISH sent twice on one connection',
      ({ up }) => {
        up(packet.publish(), packet.publish({ dup: true }))
      },
    ],
    [
      'resend',
      'a PUBLISH after its PUBREC',
      ({ up, down, open }) => {
        up(packet.publish({ qos: 2 }))
        down(packet.pubrec(1))
        open({ present: true })
        up(packet.publish({ qos: 2, dup: true }))
      },
    ],
    ['packet identifier', 'an identifier in use', ({ up }) => up(packet.publish({ payload: 'a' }), packet.publish({ payload: 'b' }))],
    ['packet identifier', 'SUBSCRIBE with that of a PUBLISH', ({ up }) => up(packet.publish(), packet.subscribe(1))],
    ['packet identifier', 'PUBLISH with that of a SUBSCRIBE', ({ up }) => up(packet.subscribe(1), packet.publish())],
    [
      'replay',
      'something new before the replay',
      ({ up, open }) => {
        up(packet.publish({ payload: 'a' }))
        open({ present: true })
        up(packet.publish({ id: 2, payload: 'b' }))
      },
    ],
    [
      'replay',
      'a replay out of order',
      ({ up, open }) => {
        up(packet.publish({ id: 1, payload: 'a' }), packet.publish({ id: 2, payload: 'b' }))
        open({ present: true })
        up(packet.publish({ id: 2, payload: 'b', dup: true }), packet.publish({ id: 1, payload: 'a', dup: true }))
      },
    ],
    ['window', 'more than Receive Maximum', ({ up }) => up(...[1, 2, 3].map((id) => packet.publish({ id, payload: `m${id}` })))],
    [
      'window',
      'a slot freed at PUBREC',
      ({ up, down }) => {
        up(packet.publish({ id: 1, qos: 2, payload: 'a' }), packet.publish({ id: 2, qos: 2, payload: 'b' }))
        down(packet.pubrec(1))
        up(packet.pubrel(1), packet.publish({ id: 3, payload: 'c' }))
      },
    ],
    ['PUBREL', 'PUBREL before PUBREC', ({ up }) => up(packet.publish({ qos: 2 }), packet.pubrel(1))],
    ['PUBREL', 'PUBREL for nothing', ({ up }) => up(packet.pubrel(5))],
    ['ack', 'PUBACK of identifier 0', ({ up }) => up(packet.puback(0))],
    [
      'subscription identifier',
      'a Subscription Identifier where there are none',
      ({ up, open }) => {
        open({ properties: [0x29, 0] })
        up(Uint8Array.of(0x82, 9, 0, 1, 2, 0x0b, 1, 0, 1, 0x61, 1))
      },
    ],
    [
      'PUBREL',
      'PUBRELs that are not in the order of the PUBRECs',
      ({ up, down }) => {
        up(packet.publish({ id: 1, qos: 2, payload: 'a' }), packet.publish({ id: 2, qos: 2, payload: 'b' }))
        down(packet.pubrec(2), packet.pubrec(1))
        up(packet.pubrel(1), packet.pubrel(2))
      },
    ],
    [
      'PUBREL',
      'PUBREL twice on one connection, unasked',
      ({ up, down }) => {
        up(packet.publish({ qos: 2 }))
        down(packet.pubrec(1))
        up(packet.pubrel(1), packet.pubrel(1))
      },
    ],
    ['ack', 'PUBACK before the PUBLISH', ({ up }) => up(packet.puback(1))],
    [
      'ack',
      'PUBACK for QoS 2',
      ({ up, down }) => {
        down(packet.publish({ qos: 2 }))
        up(packet.puback(1))
      },
    ],
    [
      'ack',
      'PUBREC for QoS 1',
      ({ up, down }) => {
        down(packet.publish())
        up(packet.pubrec(1))
      },
    ],
    [
      'ack',
      'PUBACK twice',
      ({ up, down }) => {
        down(packet.publish())
        up(packet.puback(1), packet.puback(1))
      },
    ],
    [
      'ack',
      'PUBACK on another connection',
      ({ up, down, open }) => {
        down(packet.publish())
        open({ present: true })
        up(packet.puback(1))
      },
    ],
    ['ack', 'PUBCOMP without PUBREL', ({ up }) => up(packet.pubcomp(1))],
    [
      'ack order',
      'PUBACKs out of order',
      ({ up, down }) => {
        down(packet.publish({ id: 1, payload: 'a' }), packet.publish({ id: 2, payload: 'b' }))
        up(packet.puback(2))
      },
    ],
    [
      'ack order',
      'PUBRECs out of order',
      ({ up, down }) => {
        down(packet.publish({ id: 1, qos: 2, payload: 'a' }), packet.publish({ id: 2, qos: 2, payload: 'b' }))
        up(packet.pubrec(2))
      },
    ],
    ['alias', 'an alias at QoS 1', ({ up }) => up(packet.publish({ alias: 1 }))],
    ['alias', 'an alias above what the server allows', ({ up }) => up(packet.publish({ qos: 0, alias: 3 }))],
    [
      'alias',
      'an alias of an earlier connection',
      ({ up, open }) => {
        up(packet.publish({ qos: 0, alias: 1 }))
        open({ present: true, properties: packet.aliasMaximum(2) })
        up(packet.publish({ qos: 0, alias: 1, topic: '' }))
      },
    ],
    ['packet size', 'a packet that is too large', ({ up }) => up(packet.publish({ payload: 'x'.repeat(60) }))],
    [
      'maximum QoS',
      'QoS 2',
      ({ up, open }) => {
        open({ properties: packet.maximumQos(1) })
        up(packet.publish({ qos: 2 }))
      },
    ],
    [
      'retain',
      'RETAIN',
      ({ up, open }) => {
        open({ properties: packet.noRetain })
        up(packet.publish({ retain: true }))
      },
    ],
    ['after DISCONNECT', 'a packet after DISCONNECT', ({ up }) => up(packet.disconnect, packet.pingreq)],
    [
      'keep-alive',
      'silence above one and a half keep-alive',
      ({ clock, up }) => {
        clock.now = 46_000
        up(packet.pingreq)
      },
    ],
    [
      'keep-alive',
      'silence until the end',
      ({ clock, link }) => {
        clock.now = 46_000
        link.connection.end('destroyed')
      },
    ],
    ['no goodbye', 'an orderly end without DISCONNECT', ({ link }) => link.connection.end('closed')],
    [
      'half a packet',
      'an end in the middle of a packet',
      ({ link, up }) => {
        up(packet.publish().slice(0, 4))
        link.connection.end('closed')
      },
    ],
    ['malformed', 'bytes that are no MQTT', ({ up }) => up(Uint8Array.of(0x60, 2, 0, 1))],
    ['broker malformed', 'a broker that writes no MQTT', ({ down }) => down(Uint8Array.of(0x60, 2, 0, 1))],
  ]
  test.each(bad)('%s: %s', (rule, _name, act) => {
    const world = watched()
    world.open({ properties: [...packet.receiveMaximum(2), ...packet.aliasMaximum(2), ...packet.packetSize(60)] })
    expect(world.rules()).toEqual([])
    act(world)
    expect(world.rules()).toContain(rule)
  })

  test('first packet: anything before CONNECT', () => {
    const world = watched()
    world.link.connection = world.monitor.connect()
    world.up(packet.pingreq)
    expect(world.rules()).toEqual(['first packet'])
  })

  test('before CONNACK: a packet that could not wait', () => {
    const world = watched()
    world.link.connection = world.monitor.connect()
    world.up(packet.connect({ clean: false }), packet.publish())
    expect(world.rules()).toEqual(['before CONNACK'])
  })

  test('version: another one than was asked for', () => {
    const world = watched({ version: 4 })
    world.open()
    expect(world.rules()).toContain('version')
  })

  test('clean start: 1 again after a CONNACK, or at once where the session is to be resumed', () => {
    const again = watched({ cleanStart: true })
    again.open()
    expect(again.rules()).toEqual([])
    again.link.connection = again.monitor.connect()
    again.up(packet.connect({ clean: true }))
    expect(again.rules()).toEqual(['clean start'])
    const durable = watched({ cleanStart: false })
    durable.link.connection = durable.monitor.connect()
    durable.up(packet.connect({ clean: true }))
    expect(durable.rules()).toEqual(['clean start'])
  })

  test('client identifier: not the one that the server assigned', () => {
    const world = watched({ clientId: '', cleanStart: true })
    world.link.connection = world.monitor.connect()
    world.up(packet.connect({ id: '' }))
    world.down(packet.connack({ properties: packet.assigned('given') }))
    expect(world.rules()).toEqual([])
    world.link.connection = world.monitor.connect()
    world.up(packet.connect({ id: '', clean: false }))
    expect(world.rules()).toEqual(['client identifier'])
  })

  test('what it says of acknowledgements is what was acknowledged', () => {
    const world = watched()
    world.open()
    world.down(packet.publish({ id: 5, payload: 'hello' }))
    world.up(packet.puback(5))
    expect(world.acks).toEqual(['hello q1'])
  })
})
