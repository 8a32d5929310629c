/** Rules of the monitor on the wire, seen to fail on traces made by hand. Those of the planted defects are in `test/support/checkers.test.ts`. */
import { expect, test } from 'vitest'
import { Monitor, type MonitoredConnection } from './monitor.js'
import * as packet from './packets.js'
import {
  auth,
  connect,
  pingreq,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  subscribe,
} from './packets.js'

/** One client, watched. */
interface Watched {
  now: number
  readonly monitor: Monitor
  connection: MonitoredConnection | undefined
}
type Step = (world: Watched) => void
type Settings = Partial<Record<'cleanStart', boolean> & Record<'clientId', string>> & {
  version?: 4
}

/** The rules that these steps break, one after the other. */
function broken(settings: Settings, ...steps: readonly Step[]): string[] {
  const world: Watched = {
    now: 0,
    connection: undefined,
    monitor: new Monitor({
      cleanStart: false,
      version: 5,
      clientId: 'c',
      ...settings,
      now: () => world.now,
      punctual: () => true,
    }),
  }
  for (const step of steps) step(world)
  return world.monitor.violations.map(({ rule }) => rule)
}

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
  (world) => {
    const clean = world.monitor.expect.cleanStart && !world.monitor.accepted
    for (const step of [dial, up(connect({ clean })), down(packet.connack(connack))]) step(world)
  }
const resumed = open({ present: true })
const start = open({ properties: packet.aliasMaximum(2) })

const dup = true
const [a, b] = [
  { id: 1, payload: 'a' },
  { id: 2, payload: 'b' },
]
const two = up(publish({ ...a, qos: 2 }), publish({ ...b, qos: 2 }))
const answered = [up(publish({ qos: 2 })), down(pubrec(1)), up(pubrel(1))]
const identified = Uint8Array.of(0x82, 9, 0, 1, 2, 0x0b, 1, 0, 1, 0x61, 1)

test.each<[rule: string, ...steps: Step[]]>([
  ['first packet: a second CONNECT', up(connect({ clean: false }))],
  ['auth: AUTH without a method', up(auth)],
  ['packet identifier: SUBSCRIBE with that of a PUBLISH', up(publish(), subscribe(1))],
  ['replay: something new before the replay', up(publish(a)), resumed, up(publish(b))],
  [
    'replay: a replay out of order',
    up(publish(a), publish(b)),
    resumed,
    up(publish({ ...b, dup }), publish({ ...a, dup })),
  ],
  ['resend: a PUBLISH after its PUBREC', ...answered, resumed, up(publish({ qos: 2, dup }))],
  ['PUBREL: before PUBREC', up(publish({ qos: 2 }), pubrel(1))],
  ['PUBREL: for nothing', up(pubrel(5))],
  ['PUBREL: another order than PUBREC', two, down(pubrec(2), pubrec(1)), up(pubrel(1), pubrel(2))],
  ['PUBREL: twice on one connection, unasked', ...answered, up(pubrel(1))],
  ['ack: PUBACK for QoS 2', down(publish({ qos: 2 })), up(puback(1))],
  ['ack: PUBACK on another connection', down(publish()), resumed, up(puback(1))],
  ['ack: PUBCOMP without PUBREL', up(pubcomp(1))],
  ['subscription identifier', open({ properties: [0x29, 0] }), up(identified)],
  ['alias: at QoS 1', up(publish({ alias: 1 }))],
  ['alias: above what the server allows', up(publish({ qos: 0, alias: 3 }))],
  ['alias: one that is not known', up(publish({ qos: 0, alias: 1, topic: '' }))],
  ['half a packet', up(publish().slice(0, 4)), ({ connection }) => connection?.end('closed')],
  ['malformed: bytes that are no MQTT', up(Uint8Array.of(0x60, 2, 0, 1))],
  ['broker malformed: a broker that writes no MQTT', down(Uint8Array.of(0x60, 2, 0, 1))],
])('%s', (title, ...steps) => {
  expect(broken({}, start, ...steps)).toContain(title.split(':')[0])
})

test('PUBREL for identifiers that a new process clears breaks no rule, but for those that it has used', () => {
  const steps = [resumed, up(pubrel(1)), down(pubcomp(1)), ...answered, down(pubcomp(1))]
  expect(broken({}, ...steps)).toEqual([])
  expect(broken({}, ...steps, up(pubrel(1)))).toEqual(['PUBREL'])
})

const assigned = { properties: packet.assigned('given') }
test.each<[rule: string, settings: Settings, ...steps: Step[]]>([
  ['first packet', {}, dial, up(pingreq)],
  ['before CONNACK', {}, dial, up(connect({ clean: false }), publish())],
  ['version', { version: 4 }, open()],
  ['clean start', { cleanStart: true }, open(), dial, up(connect())],
  [
    'client identifier',
    { clientId: '', cleanStart: true },
    ...[dial, up(connect({ id: '' })), down(packet.connack(assigned))],
    ...[dial, up(connect({ id: '', clean: false }))],
  ],
])('%s, of a connection that begins', (rule, settings, ...steps) => {
  expect(broken(settings, ...steps)).toEqual([rule])
})
