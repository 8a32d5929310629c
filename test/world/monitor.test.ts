/**
 * Rules of the monitor, and a rule of the durable world, seen to fail on traces made by hand; and the reader of packets. Those of the planted
 * defects are in `test/support/checkers.test.ts`.
 */
import { expect, test } from 'vitest'
import {
  decodePublish,
  encodePublish,
  type PublishRecord,
  putting,
} from '../../src/client/durable/records.js'
import { bytesOf, readVectors } from '../unit/wire/vector-files.js'
import { History } from './durable/history.js'
import { type DiskView, WireRules } from './durable/wire-rules.js'
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
import { Malformed, readPacket, type Seen, Splitter } from './reader.js'

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

function recordOf(qos: 1 | 2): PublishRecord {
  const body = encodePublish({
    stage: 'sent',
    onSessionLost: undefined,
    taken: 0,
    link: { key: 'q/q/e/1' },
    packet: { topic: 't', qos, retain: false, packetId: 7, properties: undefined },
    payload: 2,
    strikes: 0,
  })
  const put = putting('c/device/o/1', body)
  return decodePublish(put.type === 'put' ? put.value : new Uint8Array(0)) as PublishRecord
}

// Allowed is an entry at QoS 1 whose record the store refused.
test.each([
  ['a refused record, and the entry on the disk', 1, true, 'e1', []],
  ['a record that nobody refused', 1, false, 'e1', ['early']],
  ['QoS 2', 2, true, 'e1', ['early']],
] as const)(
  'a PUBLISH whose record is not on the disk: %s',
  (_name, qos, isRefused, entry, rules) => {
    const history = new History(() => 0)
    const wire = new WireRules({
      history,
      version: 5,
      inbound: true,
      strict: true,
      view: { publishes: [], entryOf: () => entry } as unknown as DiskView,
      refused: (id) => (isRefused && id === 7 ? recordOf(qos) : undefined),
      alive: () => () => true,
      handlePacket: () => undefined,
    })
    wire.connect().sent(packet.publish({ id: 7, qos, payload: 'e1', topic: 't' }))
    expect(history.findings.map(({ rule }) => rule)).toEqual(rules)
  },
)

/** What both know of a packet, of those fields that its kind has. */
const fields: Readonly<Record<string, Readonly<Record<string, keyof Seen>>>> = {
  publish: { qos: 'qos', dup: 'dup', retain: 'retain', topic: 'topic' },
  connect: { cleanStart: 'cleanStart', keepAlive: 'keepAlive', clientId: 'clientId' },
  connack: { sessionPresent: 'sessionPresent', reasonCode: 'reason' },
}

test.each([
  ['../../rules/vectors.json', 5],
  ['./vectors-311.json', 4],
] as const)('every valid vector of %s is read as the vectors say', (file, version) => {
  const valid = readVectors(file).filter(
    ({ valid: isGood, layer, fill, decoded }) =>
      isGood && layer !== 'session' && fill === undefined && !Array.isArray(decoded),
  )
  expect(valid.length).toBeGreaterThan(30)
  for (const vector of valid) {
    const wanted = vector.decoded as Record<string, unknown>
    const seen = readPacket(bytesOf(vector), version)
    expect([seen.kind, seen.id], vector.name).toEqual([wanted['type'], wanted['packetId'] ?? 0])
    for (const [theirs, ours] of Object.entries(fields[seen.kind] ?? {}))
      expect(seen[ours], vector.name).toEqual(wanted[theirs])
  }
})

test.each([
  ['packet identifier 0', [0x62, 2, 0, 0]],
  ['flags of PUBREL', [0x60, 2, 0, 1]],
  ['QoS 3', [0x36, 6, 0, 1, 0x74, 0, 1, 0]],
  ['DUP at QoS 0', [0x38, 4, 0, 1, 0x74, 0]],
  ['a wildcard in a topic', [0x30, 4, 0, 1, 0x23, 0]],
  ['no topic and no alias', [0x30, 3, 0, 0, 0]],
  ['SUBSCRIBE without a filter', [0x82, 3, 0, 1, 0]],
  ['a property of another packet', [0x30, 9, 0, 1, 0x74, 5, 0x11, 0, 0, 0, 1]],
  ['a property twice', [0x30, 10, 0, 1, 0x74, 6, 0x23, 0, 1, 0x23, 0, 1]],
  ['a length that is not minimal', [0xc0, 0x80, 0]],
  ['bytes left over', [0xc0, 1, 0]],
  ['reserved CONNACK flags', [0x20, 3, 2, 0, 0]],
  ['packet type 0', [0x00, 0]],
])('%s is refused', (_name, bytes) => {
  expect(() => readPacket(Uint8Array.from(bytes), 5)).toThrow(Malformed)
})

test('a stream in pieces of any size gives the same packets, and one beyond all bounds is refused at its header', () => {
  const packets = [connect(), publish({ qos: 2, id: 7 }), pubrel(7), publish({ qos: 0 })]
  const all = Uint8Array.from(packets.flatMap((packet) => [...packet]))
  for (let size = 1; size <= all.length; size++) {
    const splitter = new Splitter()
    const got: Uint8Array[] = []
    for (let at = 0; at < all.length; at += size)
      got.push(...splitter.push(all.slice(at, at + size)).map((packet) => packet.slice()))
    expect([got, splitter.pending]).toEqual([packets, 0])
  }
  const huge = Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f)
  expect(() => new Splitter().push(huge)).toThrow(Malformed)
})
