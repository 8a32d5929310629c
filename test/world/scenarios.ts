/** The base scenarios: each one thing that a client does, short, with enough around it that a fault at any step has something to break. */
import type { Fault, Op, Schedule, Setup } from './schedule.js'

/** A scenario and what the enumeration does with it. */
export interface Scenario extends Schedule {
  readonly short: boolean
}

type Settings = Partial<Setup> & Partial<Pick<Scenario, 'span' | 'short' | 'seed' | 'faults'>>
export const short: Settings = { short: true }

export function scenario(
  name: string,
  settings: Settings,
  ops: readonly (Op | readonly Op[])[],
): Scenario {
  const { span = 4000, short = false, seed = 1, faults = [], ...setup } = settings
  return { name, seed, setup, ops: ops.flat(), faults, span, short }
}

// So many of them, one after another.
const several =
  (what: 'publish' | 'feed', start0: number, gap0: number, topic0: string) =>
  (qos: 0 | 1 | 2, count: number, start = start0, gap = gap0, first = 1, topic = topic0): Op[] =>
    Array.from({ length: count }, (_, index) => ({
      at: start + index * gap,
      do: what,
      n: first + index,
      topic,
      qos,
    }))
export const publishes = several('publish', 100, 0, 'out/a')
export const feeds = several('feed', 300, 20, 'in/a')

type Subscribe = Extract<Op, { do: 'subscribe' }>

export function subscribe(s: number, qos: 0 | 1 | 2, more: Partial<Subscribe> = {}): Op {
  return { at: 50, do: 'subscribe', s, filter: 'in/#', qos, style: 'loop', work: 0, ...more }
}

const durable: Partial<Setup> = { cleanStart: false }
const oneByOne: Partial<Setup> = { brokerReceiveMaximum: 1 }

export const scenarios: readonly Scenario[] = [
  scenario('publish QoS 0', { offlineQos0: 'queue', short: true }, publishes(0, 3, 100, 30)),
  scenario('publish QoS 1', short, publishes(1, 3, 100, 30)),
  scenario('publish QoS 2', short, publishes(2, 3, 100, 30)),
  scenario('publish before connect', short, [publishes(1, 2, 0), publishes(2, 2, 0, 0, 3)]),
  scenario('many at once, Receive Maximum 1', oneByOne, [
    publishes(1, 3),
    publishes(2, 3, 100, 0, 4),
  ]),
  scenario('many at once, Receive Maximum 2', { brokerReceiveMaximum: 2 }, [
    publishes(2, 5),
    publishes(1, 2, 100, 0, 6),
  ]),
  scenario('many at once, Receive Maximum 3', { brokerReceiveMaximum: 3 }, [
    publishes(1, 3),
    publishes(2, 3, 120, 0, 4),
    publishes(1, 3, 130, 5, 7),
  ]),
  scenario('mixed QoS', {}, [
    publishes(0, 2, 100, 10),
    publishes(1, 3, 105, 10, 3),
    publishes(2, 3, 108, 10, 6),
  ]),
  scenario('receive QoS 0', short, [subscribe(1, 0), feeds(0, 4), feeds(1, 2, 500, 20, 5)]),
  scenario('receive QoS 1', short, [subscribe(1, 1), feeds(1, 4)]),
  scenario('receive QoS 2', short, [subscribe(1, 2), feeds(2, 4)]),
  scenario('slow consumer', { receiveMaximum: 3 }, [
    subscribe(1, 2, { work: 120 }),
    feeds(2, 4),
    feeds(1, 4, 310, 20, 5),
  ]),
  scenario('batches', {}, [
    subscribe(1, 2, { style: 'batches', work: 60 }),
    feeds(1, 5),
    feeds(2, 4, 310, 15, 6),
  ]),
  scenario('manual acknowledgements out of order', {}, [
    subscribe(1, 2, { style: 'manual', work: 60 }),
    feeds(1, 4),
    feeds(2, 4, 305, 20, 5),
  ]),
  scenario('acknowledge on receive', {}, [
    subscribe(1, 2, { style: 'on-receive', work: 50 }),
    feeds(1, 3),
    feeds(2, 3, 305, 20, 4),
  ]),
  scenario('read without waiting', {}, [subscribe(1, 1, { style: 'read', work: 30 }), feeds(1, 4)]),
  scenario('listen, handler fails', { span: 12_000 }, [
    subscribe(1, 1, { style: 'listen', work: 20, failures: 2 }),
    feeds(1, 3, 300, 20),
  ]),
  scenario('listen QoS 2', {}, [subscribe(1, 2, { style: 'listen', work: 30 }), feeds(2, 4)]),
  scenario('two subscriptions', {}, [
    subscribe(1, 1, { filter: 'in/a' }),
    subscribe(2, 2, { filter: 'in/b/+', work: 20 }),
    feeds(1, 3),
    feeds(2, 3, 310, 20, 4, 'in/b/c'),
  ]),
  scenario('unsubscribe', {}, [
    subscribe(1, 1),
    feeds(1, 2),
    { at: 500, do: 'unsubscribe', s: 1 },
    feeds(1, 1, 700, 0, 9),
    publishes(1, 1, 520),
  ]),
  scenario('subscribe again', {}, [
    subscribe(1, 1),
    feeds(1, 2),
    { at: 500, do: 'unsubscribe', s: 1 },
    subscribe(2, 2, { at: 510 }),
    feeds(2, 3, 900, 20, 5),
  ]),
  scenario('shared subscription', durable, [
    subscribe(1, 1, { filter: '$share/g/in/#' }),
    feeds(1, 4),
  ]),
  scenario('durable session', durable, [
    subscribe(1, 2),
    feeds(2, 3),
    feeds(1, 3, 305, 20, 4),
    publishes(2, 2, 310, 20),
  ]),
  scenario('always subscribe again', { ...durable, resubscribe: 'always' }, [
    subscribe(1, 1),
    feeds(1, 3),
    { at: 400, do: 'reconnect', force: true },
    feeds(1, 2, 900, 20, 4),
  ]),
  scenario('process restarts', durable, [
    subscribe(1, 1),
    feeds(1, 2),
    publishes(1, 2, 310),
    { at: 400, do: 'restart-process' },
    subscribe(2, 1, { at: 400 }),
    feeds(1, 2, 800, 20, 3),
    publishes(2, 2, 600, 10, 3),
  ]),
  scenario('process restarts, QoS 2 in flight', durable, [
    publishes(2, 3, 100),
    { at: 108, do: 'restart-process' },
    publishes(2, 3, 110, 30, 10),
    publishes(1, 1, 150, 0, 20),
  ]),
  scenario('forced reconnect', {}, [
    subscribe(1, 1),
    publishes(2, 3, 195, 5),
    feeds(1, 3, 190, 10),
    { at: 200, do: 'reconnect', force: true },
    { at: 900, do: 'reconnect', force: false },
    publishes(1, 2, 200, 5, 4),
  ]),
  scenario('new list of brokers', {}, [
    publishes(1, 2),
    { at: 300, do: 'set-brokers', endpoints: 2 },
    { at: 310, do: 'reconnect', force: true },
    publishes(2, 2, 320, 10, 3),
  ]),
  scenario('two endpoints', { endpoints: 2 }, [
    subscribe(1, 1),
    feeds(1, 2),
    publishes(2, 2, 200, 20),
  ]),
  scenario('topic aliases', { brokerAliases: 1, offlineQos0: 'queue' }, [
    publishes(0, 6, 100, 20),
    publishes(0, 3, 110, 20, 7, 'out/b'),
    publishes(1, 2, 115, 40, 10),
  ]),
  scenario(
    'no aliases',
    { brokerAliases: 0, offlineQos0: 'queue', short: true },
    publishes(0, 4, 100, 10),
  ),
  scenario('authentication', { auth: true }, [
    publishes(1, 2),
    { at: 300, do: 'reauthenticate' },
    publishes(2, 2, 320, 10, 3),
  ]),
  scenario('tokens that expire', { tokens: true, span: 20_000 }, [
    subscribe(1, 1),
    feeds(1, 2, 16_000),
    publishes(2, 2, 15_000, 20),
  ]),
  scenario('lower limits after a reconnect', { narrower: true }, [
    publishes(1, 4, 195),
    publishes(2, 4, 196, 0, 5),
    { at: 200, do: 'reconnect', force: true },
  ]),
  scenario('leaving the loop', {}, [
    subscribe(1, 1, { style: 'break', work: 20 }),
    feeds(1, 4),
    subscribe(2, 1, { at: 600 }),
    feeds(1, 2, 900, 20, 5),
  ]),
  scenario('will', { will: true }, [publishes(1, 2), { at: 600, do: 'destroy' }]),
  scenario('request and response', {}, [
    { at: 30, do: 'respond', s: 1, topic: 'service/echo' },
    { at: 300, do: 'request', n: 1, topic: 'service/echo', timeout: 3000 },
    { at: 305, do: 'request', n: 2, topic: 'service/echo', qos: 1, timeout: 3000 },
    { at: 900, do: 'request', n: 3, topic: 'service/echo', qos: 1, timeout: 3000 },
  ]),
  scenario('drain', {}, [
    subscribe(1, 1, { work: 30 }),
    feeds(1, 3),
    publishes(2, 4, 340),
    { at: 345, do: 'drain', timeout: 2000 },
  ]),
  scenario('disconnect with work in flight', {}, [
    subscribe(1, 1, { work: 60 }),
    feeds(1, 3),
    publishes(1, 4, 340),
    { at: 342, do: 'disconnect', timeout: 500 },
  ]),
  scenario('disconnect at once', short, [
    publishes(2, 3, 100),
    { at: 106, do: 'disconnect', timeout: 0 },
  ]),
  scenario('offline queue', { offlineQos0: 'queue' }, [
    publishes(1, 4, 0),
    publishes(2, 4, 0, 0, 5),
    publishes(0, 2, 0, 0, 9),
  ]),
  scenario('full queue', { maxQueuedMessages: 4, overflow: 'reject' }, publishes(1, 12, 0)),
  scenario(
    'full queue, oldest goes',
    { maxQueuedMessages: 4, overflow: 'drop-oldest' },
    publishes(1, 12, 0),
  ),
  scenario('clear', oneByOne, [
    publishes(1, 6),
    { at: 101, do: 'clear' },
    publishes(1, 2, 150, 0, 7),
  ]),
  scenario('abort', {}, [
    { at: 100, do: 'abortable', n: 1, topic: 'out/a', qos: 1, after: 2 },
    { at: 100, do: 'abortable', n: 2, topic: 'out/a', qos: 2, after: 0 },
    { at: 100, do: 'abortable', n: 3, topic: 'out/a', qos: 2, after: 12 },
    subscribe(1, 1, { at: 120, abortAfter: 3 }),
    publishes(1, 2, 130, 0, 4),
  ]),
  scenario('expiry', {}, [
    { at: 0, do: 'publish', n: 1, topic: 'out/a', qos: 1, expiry: 1 },
    { at: 0, do: 'publish', n: 2, topic: 'out/a', qos: 1, expiry: 100 },
    publishes(1, 2, 10, 0, 3),
  ]),
  scenario('time to live', { ttl: 1500 }, [publishes(1, 3, 0), publishes(2, 2, 200, 0, 4)]),
  scenario('acknowledgement deadline', { ackTimeout: 800 }, [
    publishes(1, 2),
    publishes(2, 2, 120, 0, 3),
  ]),
  scenario('republish after loss', { onSessionLost: 'republish' }, [
    publishes(1, 3),
    publishes(2, 3, 100, 0, 4),
  ]),
  scenario('reject after loss', { onSessionLost: 'reject' }, [
    publishes(1, 3),
    publishes(2, 3, 100, 0, 4),
  ]),
  scenario('idle', { keepAlive: 4, span: 30_000 }, [subscribe(1, 1), feeds(1, 1, 17_000)]),
  scenario('3.1.1', { version: 4, cleanStart: false }, [
    subscribe(1, 1),
    feeds(1, 3),
    publishes(1, 2, 200, 20),
    publishes(2, 2, 210, 20, 3),
  ]),
  scenario('3.1.1 without a session', { version: 4 }, [
    subscribe(1, 2),
    feeds(2, 3),
    publishes(2, 3, 200, 20),
  ]),
  scenario('either version', { version: 'auto' }, [
    subscribe(1, 1),
    feeds(1, 2),
    publishes(1, 2, 200, 20),
  ]),
  scenario('assigned identifier', { clientId: '' }, [
    subscribe(1, 1),
    feeds(1, 2),
    publishes(2, 2, 200, 20),
  ]),
  scenario('retained', {}, [
    { at: 10, do: 'feed', n: 1, topic: 'in/a', qos: 1, retain: true },
    subscribe(1, 1, { at: 60 }),
    feeds(1, 2, 400, 20, 2),
    subscribe(2, 1, { at: 600 }),
    feeds(1, 1, 900, 0, 5),
  ]),
  scenario(
    'small pieces',
    { pipe: { latency: 5, pieces: 'bytes', highWaterMark: 65_536, delivery: 'buffer' } },
    [subscribe(1, 2), feeds(2, 2), publishes(2, 2, 200, 20)],
  ),
  scenario(
    'a pipe that is soon full',
    {
      offlineQos0: 'queue',
      pipe: { latency: 20, pieces: 'random', highWaterMark: 20, delivery: 'chunk' },
    },
    [publishes(1, 4), publishes(0, 4, 101, 0, 5), subscribe(1, 1, { at: 100 }), feeds(1, 3)],
  ),
]

type Kind = Omit<Fault, 'step' | 'at'>

const everywhere: readonly Kind[] = [
  { kind: 'reset' },
  { kind: 'end' },
  { kind: 'restart-keep', k: 0 },
  { kind: 'restart-keep', k: 2500 },
  { kind: 'restart-lose', k: 0 },
  { kind: 'refuse-dial' },
  { kind: 'connack-89' },
]

/** Tried where bytes are under way or about to be. */
const onTheWire: readonly Kind[] = [
  { kind: 'cut-up', k: 1 },
  { kind: 'cut-up', k: 7 },
  { kind: 'cut-down', k: 1 },
  { kind: 'cut-down', k: 3 },
  { kind: 'drop-packet', k: 0 },
  { kind: 'double-packet', k: 0 },
  { kind: 'delay-packet', k: 0 },
  { kind: 'server-busy' },
]

/** Tried at every fourth step: they take long, and a step earlier or later makes little difference. */
const sometimes: readonly Kind[] = [
  { kind: 'stall', k: 60_000 },
  { kind: 'stall-up', k: 8000 },
  { kind: 'stall-down', k: 60_000 },
  { kind: 'hang-dial' },
  { kind: 'connack-88' },
  { kind: 'restart-lose', k: 2500 },
  { kind: 'takeover' },
  { kind: 'jump', k: 3_600_000 },
]

/** One schedule for each fault at each step that the scenario had without any. */
export function* singleFaults(scenario: Schedule, steps: readonly string[]): Generator<Schedule> {
  for (const [step, name] of steps.entries()) {
    for (const fault of everywhere) yield { ...scenario, faults: [{ ...fault, step }] }
    if (name === 'up' || name === 'down' || name === 'op')
      for (const fault of onTheWire) yield { ...scenario, faults: [{ ...fault, step }] }
    if (step % 4 === 0)
      for (const fault of sometimes) yield { ...scenario, faults: [{ ...fault, step }] }
  }
}

/** A reset at every step: what finds most, and fast. */
export function* resets(scenario: Schedule, steps: readonly string[]): Generator<Schedule> {
  for (let step = 0; step < steps.length; step++)
    yield { ...scenario, faults: [{ kind: 'reset', step }] }
}

const paired: readonly Kind[] = [
  { kind: 'reset' },
  { kind: 'restart-lose', k: 0 },
  { kind: 'cut-down', k: 3 },
]

/** Two faults: the second so many steps after the first, where the client has just begun to recover. */
export function* faultPairs(scenario: Schedule, steps: readonly string[]): Generator<Schedule> {
  for (let step = 0; step < steps.length; step += 1) {
    for (const first of paired) {
      for (const second of paired) {
        for (const gap of [1, 2, 4, 7, 11, 16]) {
          const later = { ...second, step: step + gap }
          yield { ...scenario, faults: [{ ...first, step }, later] }
        }
      }
    }
  }
}
