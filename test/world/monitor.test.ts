/** Each rule of the monitor on the wire, seen to hold and seen to fail on a trace made by hand. */
import { describe, expect, test } from 'vitest'
import { Monitor, type MonitoredConnection } from './monitor.js'
import * as packet from './packets.js'
import {
  auth,
  connect,
  disconnect,
  pingreq,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
} from './packets.js'

/** One client, watched. */
class Watched {
  now = 0
  readonly monitor: Monitor
  readonly acks: string[] = []
  connection: MonitoredConnection | undefined

  constructor({ cleanStart = false, version = 5 as 4 | 5, clientId = 'c' } = {}) {
    const gaveUp = (payload: string): boolean => payload === 'given up'
    this.monitor = new Monitor({
      cleanStart,
      version,
      clientId,
      now: () => this.now,
      punctual: () => true,
      gaveUp,
    })
    this.monitor.inbound.onAcknowledged = ({ payload, qos }) => this.acks.push(`${payload} q${qos}`)
  }

  get rules(): string[] {
    return this.monitor.violations.map(({ rule }) => rule)
  }

  does(...steps: readonly Step[]): this {
    for (const step of steps) step(this)
    return this
  }
}

type Step = (world: Watched) => void
type Named = { readonly payload: string; readonly id: number; readonly qos?: 2 }

/** What the client sends, and what reaches it. */
const up =
  (...packets: Uint8Array[]): Step =>
  ({ connection }) => {
    for (const bytes of packets) connection?.sent(bytes)
  }
const down =
  (...packets: Uint8Array[]): Step =>
  ({ connection }) => {
    for (const bytes of packets) connection?.arriving(bytes)
  }
const dial: Step = (world) => {
  world.connection = world.monitor.connect()
}
const open =
  (connack: Parameters<typeof packet.connack>[0] = {}): Step =>
  (world) =>
    void world.does(
      dial,
      up(connect({ clean: world.monitor.expect.cleanStart && !world.monitor.accepted })),
      down(packet.connack(connack)),
    )
const resumed = open({ present: true })
const at =
  (now: number): Step =>
  (world) => {
    world.now = now
  }
const end =
  (how: 'closed' | 'destroyed'): Step =>
  ({ connection }) =>
    connection?.end(how)
const _forsake: Step = ({ monitor }) => {
  monitor.forsaken = 1
}

const [a, b, c, _d] = [1, 2, 3, 4].map((id) => ({ id, payload: 'abcd'.charAt(id - 1) })) as [
  Named,
  Named,
  Named,
  Named,
]

const dup = true
const [a2, b2, _c2] = [a, b, c].map((named) => ({ ...named, qos: 2 as const })) as [
  Named,
  Named,
  Named,
]
const answered = [up(publish({ qos: 2 })), down(pubrec(1)), up(pubrel(1))]
const exchanged = [...answered, down(pubcomp(1))]
const _aliased = up(publish({ qos: 0, alias: 1 }))
const _bare = publish({ qos: 0, alias: 1, topic: '' })

test('PUBREL for identifiers that a new process clears, and only there', () => {
  const world = new Watched().does(resumed, up(pubrel(1)))
  expect(world.rules).toEqual([])
  world.does(down(pubcomp(1)), ...exchanged, up(pubrel(1)))
  expect(world.rules).toEqual(['PUBREL'])
  expect(world.does(open(), up(pubrel(2))).rules).toEqual(['PUBREL', 'PUBREL'])
})

const two = up(publish(a2), publish(b2))
const identified = Uint8Array.of(0x82, 9, 0, 1, 2, 0x0b, 1, 0, 1, 0x61, 1)

test.each<[rule: string, ...steps: Step[]]>([
  ['first packet: a second CONNECT', up(connect({ clean: false }))],
  ['auth: AUTH without a method', up(auth)],
  ['dup: no DUP on a replay', up(publish()), resumed, up(publish())],
  ['resend: a PUBLISH sent twice on one connection', up(publish(), publish({ dup }))],
  ['packet identifier: an identifier in use', up(publish(a), publish({ ...b, id: 1 }))],
  ['replay: something new before the replay', up(publish(a)), resumed, up(publish(b))],
  [
    'replay: a replay out of order',
    up(publish(a), publish(b)),
    resumed,
    up(publish({ ...b, dup }), publish({ ...a, dup })),
  ],
  ['window: more than Receive Maximum', up(publish(a), publish(b), publish(c))],
  ['PUBREL: PUBREL before PUBREC', up(publish({ qos: 2 }), pubrel(1))],
  ['PUBREL: PUBREL for nothing', up(pubrel(5))],
  [
    'PUBREL: PUBRELs that are not in the order of the PUBRECs',
    two,
    down(pubrec(2), pubrec(1)),
    up(pubrel(1), pubrel(2)),
  ],
  ['ack: PUBACK for QoS 2', down(publish({ qos: 2 })), up(puback(1))],
  ['ack: PUBACK on another connection', down(publish()), resumed, up(puback(1))],
  ['ack: PUBCOMP without PUBREL', up(pubcomp(1))],
  ['ack order: PUBACKs out of order', down(publish(a), publish(b)), up(puback(2))],
  [
    'subscription identifier: one where there are none',
    open({ properties: [0x29, 0] }),
    up(identified),
  ],
  ['alias: an alias at QoS 1', up(publish({ alias: 1 }))],
  ['alias: an alias above what the server allows', up(publish({ qos: 0, alias: 3 }))],
  ['packet size: a packet that is too large', up(publish({ payload: 'x'.repeat(60) }))],
  ['maximum QoS: QoS 2', open({ properties: packet.maximumQos(1) }), up(publish({ qos: 2 }))],
  ['retain: RETAIN', open({ properties: packet.noRetain }), up(publish({ retain: true }))],
  ['after DISCONNECT: a packet after DISCONNECT', up(disconnect, pingreq)],
  ['keep-alive: silence until the end', at(46_000), end('destroyed')],
  ['no goodbye: an orderly end without DISCONNECT', end('closed')],
  ['half a packet: an end in the middle of a packet', up(publish().slice(0, 4)), end('closed')],
  ['malformed: bytes that are no MQTT', up(Uint8Array.of(0x60, 2, 0, 1))],
  ['broker malformed: a broker that writes no MQTT', down(Uint8Array.of(0x60, 2, 0, 1))],
])('%s', (title, ...steps) => {
  const world = new Watched().does(
    open({
      properties: [
        ...packet.receiveMaximum(2),
        ...packet.aliasMaximum(2),
        ...packet.packetSize(60),
      ],
    }),
  )
  expect(world.rules).toEqual([])
  expect(world.does(...steps).rules).toContain(title.split(':')[0])
})

describe('of a connection that begins', () => {
  const began = (
    settings: ConstructorParameters<typeof Watched>[0],
    ...steps: readonly Step[]
  ): string[] => new Watched(settings).does(...steps).rules
  const assigned = [
    dial,
    up(connect({ id: '' })),
    down(packet.connack({ properties: packet.assigned('given') })),
  ]

  test.each([
    ['first packet: anything before CONNECT', began({}, dial, up(pingreq)), ['first packet']],
    [
      'before CONNACK: a packet that could not wait',
      began({}, dial, up(connect({ clean: false }), publish())),
      ['before CONNACK'],
    ],
    ['version: another one than was asked for', began({ version: 4 }, open()), ['version']],
    [
      'clean start: 1 again after a CONNACK',
      began({ cleanStart: true }, open(), dial, up(connect())),
      ['clean start'],
    ],
    [
      'clean start: 1 where the session is to be resumed',
      began({}, dial, up(connect())),
      ['clean start'],
    ],
    [
      'client identifier: not the one that the server assigned',
      began(
        { clientId: '', cleanStart: true },
        ...assigned,
        dial,
        up(connect({ id: '', clean: false })),
      ),
      ['client identifier'],
    ],
  ])('%s', (_name, rules, expected) => {
    expect(rules).toEqual(expected)
  })
})
