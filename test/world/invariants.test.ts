/** Each check of a history, seen to fail on one made by hand. */
import { expect, test } from 'vitest'
import { MqttError, type MqttErrorCode } from '../../src/errors.js'
import type { Accepted } from './broker.js'
import { type Call, type Delivered, History, type Subscribed } from './history.js'
import { checkHistory } from './invariants.js'
import type { Checked } from './invariants-tools.js'
import type { Passed } from './monitor.js'
import * as packet from './packets.js'
import { canary, payloadOf } from './payloads.js'
import { readPacket } from './reader.js'
import { defaultSetup, type Fault, type Op, type Setup } from './schedule.js'

class Story {
  now = 0
  readonly history = new History(() => this.now)
  readonly passed: Passed[] = []
  accepted: Accepted[] = []
  readonly violations: { rule: string; detail: string }[] = []
  readonly complaints: string[] = []
  readonly ops: Op[] = []
  readonly faults: Fault[] = []
  setup: Partial<Setup> = {}
  begun = 0
  seed = 1
  wills = 0
  span = 0
  filters: string[] | undefined

  constructor(steps: readonly Step[]) {
    for (const step of steps) step(this)
  }

  get run(): Checked {
    return {
      history: this.history,
      monitor: { violations: this.violations, passed: this.passed },
      broker: {
        accepted: () => this.accepted,
        violations: () => this.complaints,
        wills: () => this.wills,
        filters: () => this.filters,
      },
      setup: { ...defaultSetup, ...this.setup },
      schedule: {
        name: 'by hand',
        seed: this.seed,
        setup: {},
        ops: this.ops,
        faults: this.faults,
        span: this.span,
      },
      network: { begun: this.begun },
    }
  }

  get rules(): string[] {
    return this.history.findings.map(({ rule }) => rule)
  }
}

type Step = (story: Story) => void

function judged(...steps: readonly Step[]): string[] {
  const story = new Story(steps)
  checkHistory(story.run)
  return story.rules
}

const failed = (code: MqttErrorCode, outcome?: 'not-sent' | 'refused' | 'unknown'): MqttError =>
  new MqttError(code, 'failed', outcome === undefined ? {} : { outcome })
const lost = failed('ERR_CONNECTION_LOST', 'unknown')

const settled = (error: unknown): object => ({ error })
const rejected = (code: MqttErrorCode): object => settled(failed(code))

type Values = Partial<
  Pick<Story, 'setup' | 'begun' | 'seed' | 'wills' | 'span' | 'filters' | 'now'>
>
const set =
  (values: Values): Step =>
  (story) =>
    void Object.assign(story, values)
const op =
  (...ops: Op[]): Step =>
  (story) =>
    void story.ops.push(...ops)
const stall: Step = ({ faults }) => void faults.push({ kind: 'stall', at: 1000, k: 100_000 })

const call =
  (what: string, more: object = {}): Step =>
  ({ history, now }) => {
    const last = history.events.findLast(({ type }) => type === 'state')?.event as
      | { state: string }
      | undefined
    const made = history.track(what, Promise.resolve(), { state: last?.state })
    Object.assign(made, { settled: 1, ended: history.next(), endedAt: now, ...more })
  }
/** A publish, which the broker took so often. */
const publish =
  (n: number, qos: 0 | 1 | 2, accepted: number, more: object = {}): Step =>
  (story) => {
    const { history } = story
    const value = { reasonCode: 0, ...(qos > 0 && { packetId: n }) }
    call(`publish p${n}`, { value, ...more })(story)
    const op = { do: 'publish', n, topic: 'out', qos } as const
    history.published.push({ op, payload: `p${n}`, call: history.calls.at(-1) as Call })
    for (let copy = 0; copy < accepted; copy++) take(`p${n}`, qos)(story)
  }
const take =
  (payload: string, qos = 1, more: Partial<Accepted> = {}): Step =>
  ({ accepted }) =>
    void accepted.push({
      topic: 'out',
      payload,
      qos,
      retain: false,
      properties: {},
      bytes: payloadOf(payload),
      ...more,
    })
const subscribe =
  (filter = 'in/#', more: Partial<Subscribed> = {}): Step =>
  ({ history }) => {
    const policy = { drops: false, concurrency: 1, buffer: 99, qos: 2, style: 'loop', process: 1 }
    const life = { live: true, granted: history.next(), grantedAt: 0, grantedQos: 2, left: 0 }
    const end = { dismissed: 0, ended: undefined, size: () => 0 }
    history.subscribed.push({
      s: 1,
      filter,
      filters: [filter],
      ...policy,
      ...life,
      ...end,
      ...more,
    })
  }
const pass =
  (way: 'up' | 'down', bytes: Uint8Array, connection = 1, more: object = {}): Step =>
  ({ passed }) => {
    const seen = Object.assign(readPacket(bytes, 5), more)
    passed.push({ way, connection, at: passed.length, seen })
  }
const arrive = (payload: string, qos = 1, more: object = {}): Step =>
  pass('down', packet.publish({ qos, topic: 'in/a', payload, id: 1 }), 1, more)
const deliver =
  (payload: string, more: Partial<Delivered> = {}): Step =>
  ({ history }) => {
    const base = { s: 1, process: 1, payload, topic: 'in/a', qos: 1, redelivered: false, waits: 0 }
    history.delivered.push({ ...base, seq: history.next(), done: history.next(), ...more })
  }
const event =
  (type: string, value: unknown = {}): Step =>
  ({ history, now }) =>
    void history.events.push({ type, event: value, at: now, seq: history.next(), process: 1 })
const state = (previous: string, now: string): Step => event('state', { state: now, previous })
const closed = state('idle', 'closed')
const dial = event('dial')
const connect = event('connect')
const disconnect = event('disconnect')
const loses = event('disconnect', { cause: lost })
const up: readonly Step[] = [
  state('idle', 'connecting'),
  dial,
  state('connecting', 'connected'),
  connect,
]
const ends =
  (timeout: number, what: 'disconnect' | 'drain' = 'disconnect'): Step =>
  (story) => {
    const begun = story.history.next()
    story.ops.push({ at: 5, do: what, timeout })
    closed(story)
    call(what, { timeout, begun, endedAt: 10 })(story)
  }
const dismiss: Step = ({ history }) => {
  const dismissed = history.next()
  for (const record of history.subscribed) Object.assign(record, { live: false, dismissed })
}
const destroyed: Step = ({ history }) =>
  void Object.assign(history, { destroyedIn: 1, destroyed: history.next() })
const feed = (n: number, at: number, topic = 'in/a', qos: 0 | 1 = 1): Op => ({
  at,
  do: 'feed',
  n,
  topic,
  qos,
})
const got = [subscribe(), arrive('f1')]
const welcome = pass('down', packet.connack())
const opened = [pass('up', packet.connect()), welcome]
const newSession = [welcome, pass('down', packet.connack(), 2)]
const large = [set({ setup: { habit: 'ignores-sizes' } }), arrive('f1', 1, { size: 5000 })]
const tooLarge = { reason: 'too-large', topic: 'in/a', qos: 1 }
const given = { signal: AbortSignal.abort(new Error('no')), abortedAt: 0, abortedBefore: true }
const secret = { password: new TextEncoder().encode(canary) }
const nine = Array.from({ length: 9 }, (_, index) => ({ filter: `${index}`, options: 0 }))
const willing = { will: true, keepAlive: 300 }

test.each<[rule: string, ...steps: Step[]]>([
  ['I3: another order than that of arrival', ...got, arrive('f2'), deliver('f2'), deliver('f1')],
  ['I4: a message that never came', subscribe(), deliver('f1')],
  ['I4: a message with another topic', ...got, op(feed(1, 0, 'in/b')), deliver('f1')],
  ['I4: a message for somebody else', subscribe('in/b'), arrive('f1'), deliver('f1')],
  [
    'I4: an answer to somebody else',
    op({ at: 0, do: 'request', n: 1, topic: 'service', timeout: 1 }),
    call('request', { value: { text: () => 'answer to r2' } }),
  ],
  ['I5: a call that settled twice', publish(1, 0, 0, { settled: 2 })],
  ['I5: an error that is not typed', publish(1, 0, 0, settled(new TypeError('oops')))],
  ['I6: what the monitor saw', (story) => story.violations.push({ rule: 'dup', detail: 'no DUP' })],
  ['I6: what the broker saw', (story) => story.complaints.push('publish: too many')],
  ['I9: a lost session that nobody was told of', ...newSession],
  ['I9: a second dial while the first is under way', dial, dial],
  ['I9: a dial that nobody announced', dial, connect, disconnect, set({ now: 1000 }), dial],
  [
    'will: after a goodbye',
    set({ setup: willing, wills: 1 }),
    ...opened,
    pass('up', packet.disconnect),
  ],
  ['will: none after destroy()', set({ setup: willing }), op({ at: 0, do: 'destroy' }), ...opened],
  [
    'will: although the link came back before the patience of the server was over',
    ...[
      set({ setup: willing, wills: 1 }),
      ...opened,
      op({ at: 2000, do: 'disconnect', timeout: 200_000 }),
      stall,
    ],
  ],
  [
    'canary: a secret in what an error holds, as bytes',
    set({ seed: 8 }),
    publish(1, 0, 0, settled(new MqttError('ERR_TLS', 'no', { cause: secret }))),
  ],
  [
    'bytes: properties that nobody gave',
    publish(1, 1, 0),
    take('p1', 1, { properties: { contentType: 'a' } }),
  ],
  [
    'turn: disconnect() does not wait',
    subscribe('in/#', { left: 99 }),
    deliver('f1', { done: 0 }),
    ends(5000),
  ],
  [
    'peace: renewed credentials that are told as a loss',
    set({ setup: { tokens: true } }),
    ...up,
    loses,
  ],
  [
    'blame: a filter that is given up without a reason',
    call('subscribe in/#', rejected('ERR_SUBSCRIBE_REFUSED')),
  ],
  [
    'blame: a filter at which the broker closes, which ends otherwise',
    set({ setup: { habit: 'closes-at-filter' } }),
    call('subscribe closed/a', rejected('ERR_CONNECTION_LOST')),
  ],
  [
    'blame: more filters in one packet than a call has',
    set({ setup: { habit: 'few-filters' } }),
    pass('up', packet.subscribe(1), 1, { filters: nine }),
  ],
  ['size: told of a message that never came', ...large, event('drop', { ...tooLarge, size: 6000 })],
  ['size: a message that is too large and handed out', ...large, subscribe(), deliver('f1')],
  ['after: a message after destroy()', ...got, destroyed, deliver('f1')],
  ['after: a message after disconnect()', ...got, ends(5000), deliver('f1')],
  ['after: post() that throws', call('post', rejected('ERR_PACKET_TOO_LARGE'))],
  [
    'fleet: a share that is lost with a member',
    subscribe('$share/g/in/#'),
    arrive('f1'),
    ends(10_000, 'drain'),
  ],
  [
    'held: a filter that was left and stays with the broker',
    ...[...opened, subscribe(), dismiss, set({ filters: ['in/#'] }), ends(5000)],
  ],
  ['reason: an error that is not documented for its call', publish(1, 0, 0, rejected('ERR_TLS'))],
  ['reason: a client that is called closed and is not', publish(1, 0, 0, rejected('ERR_CLOSED'))],
  ['reason: an abort that nobody asked for', publish(1, 0, 0, rejected('ERR_ABORTED'))],
  ['closed: a publish that a closed client takes', closed, publish(1, 0, 0)],
  ['closed: connect() on a connected client that is done', ...up, disconnect, call('connect')],
  ['closed: a disconnect() that rejects', closed, call('disconnect', rejected('ERR_TIMEOUT'))],
  [
    'time: an abort that comes late',
    publish(1, 0, 0, { ...given, endedAt: 500, ...rejected('ERR_ABORTED') }),
  ],
  ['time: a call that settles long after the end', call('flush', { endedAt: 500 }), closed],
  ['receipt: a higher QoS than was asked for', subscribe('in/#', { qos: 0 }), deliver('f1')],
  ['brokers: one that is not in the list', event('dial', { endpoint: 'mqtt://broker-1' })],
])('%s', (title, ...steps) => {
  expect(judged(...steps)).toContain(title.split(':')[0])
})
