/** Short scenarios of what the wider world is for: one for each thing that users' programs showed and no suite had seen. */
import { closedFilter } from './habits.js'
import type { Form } from './payloads.js'
import { feeds, publishes, type Scenario, scenario, short, subscribe } from './scenarios.js'
import type { FaultKind, Op, Operation, Setup } from './schedule.js'

const pipe = { latency: 5, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' } as const
const slow: Partial<Setup> = {
  keepAlive: 5,
  brokerPacketSize: 1_000_000,
  pipe: { ...pipe, highWaterMark: 1000, rateUp: 40 },
}

const stuck: Partial<Setup> = {
  ...slow,
  will: true,
  keepAlive: 60,
  pipe: { ...pipe, highWaterMark: 1000, rateUp: 1000 },
}
const fewFilters = { habit: 'few-filters', span: 5000 } as const
const closesAtFilter = { habit: 'closes-at-filter', span: 12_000 } as const

const fault = (kind: FaultKind, at: number, k?: number) => ({
  faults: [{ kind, at, ...(k === undefined ? {} : { k }) }],
})
const sized = (n: number, at: number, size: number, form: Form, qos: 0 | 1 | 2) =>
  ({ at, do: 'publish', n, topic: 'out/a', qos, size, form }) as const
const together = (at: number, ...ops: readonly Operation[]): Op => ({ at, do: 'together', ops })
const many = (count: number, qos: 0 | 1 | 2, at = 300, topic = 'in/a'): Op[] =>
  feeds(qos, count, at, 0, 1, topic)

export const wideScenarios: readonly Scenario[] = [
  scenario('more than Receive Maximum', { receiveMaximum: 3, habit: 'excessive', short: true }, [
    subscribe(1, 1, { work: 10 }),
    many(30, 1),
  ]),
  scenario('answers that were thought over', { habit: 'second-thoughts' }, [
    publishes(2, 3),
    { at: 105, do: 'reconnect', force: true },
  ]),
  scenario('an alias of an earlier connection', { habit: 'stale-aliases', span: 9000 }, [
    subscribe(1, 1),
    many(2, 1),
    { at: 600, do: 'reconnect', force: true },
    many(2, 0, 3000),
    feeds(1, 2, 8000, 0, 5),
  ]),
  scenario('a member of a fleet leaves', short, [
    subscribe(1, 0, { filter: '$share/g/in/a', style: 'loop', work: 30 }),
    many(8, 0),
    { at: 320, do: 'disconnect', timeout: 5000 },
  ]),
  scenario('memory that is written over', { ...slow, span: 30_000 }, [
    sized(1, 100, 300_000, 'bytes', 1),
    { ...sized(2, 100, 300_000, 'offset', 1), do: 'abortable', after: 900 },
    { ...sized(3, 100, 200_000, 'buffer', 0), topic: 'out/b', do: 'abortable', after: 4000 },
    { at: 12_000, do: 'post', n: 4, topic: 'out/a', size: 300_000, form: 'data-view' },
    [64, 256, 7168, 32_768, 65_536].map((size, index) =>
      sized(10 + index, 25_000 + index, size, 'array-buffer', 1),
    ),
  ]),
  scenario('acknowledged too late for whoever waits', { ...slow, ackTimeout: 300, span: 30_000 }, [
    sized(1, 100, 100, 'bytes', 1),
    sized(2, 101, 300_000, 'shared', 1),
    sized(3, 102, 20_000, 'buffer', 2),
  ]),
  scenario(
    'more bytes than the quota has',
    { maxQueuedBytes: 2000, offlineQos0: 'queue', short: true },
    [
      publishes(1, 3, 100),
      sized(5, 101, 1500, 'bytes', 0),
      sized(6, 101, 3000, 'bytes', 0),
      sized(7, 102, 1500, 'bytes', 1),
    ],
  ),
  scenario(
    'large QoS 0 payloads that fill the quota',
    { ...slow, maxQueuedBytes: 70_000, offlineQos0: 'queue', span: 9000 },
    [
      sized(1, 100, 40_000, 'bytes', 0),
      sized(2, 100, 60_000, 'bytes', 0),
      sized(3, 100, 50_000, 'offset', 0),
    ],
  ),
  scenario('many filters, small packets', { cleanStart: false, brokerPacketSize: 300 }, [
    subscribe(1, 1, {
      more: Array.from({ length: 30 }, (_, index) => `other/level/of/some/length/${index}`),
    }),
    feeds(1, 2),
    { at: 600, do: 'unsubscribe', s: 1 },
  ]),
  scenario('left and ended in one turn', { cleanStart: false, short: true }, [
    subscribe(1, 1),
    feeds(1, 2),
    together(700, { do: 'unsubscribe', s: 1 }, { do: 'disconnect', timeout: 5000 }),
  ]),
  scenario('disposed and drained in one turn', { cleanStart: false, short: true }, [
    subscribe(1, 1),
    feeds(1, 2),
    together(700, { do: 'dispose', s: 1 }, { do: 'drain', timeout: 5000 }),
  ]),
  scenario('a large upload over a slow link', { ...slow, span: 20_000 }, [
    sized(1, 100, 300_000, 'bytes', 1),
  ]),
  scenario(
    'a huge upload over a slow link',
    { ...slow, brokerPacketSize: 1_000_000, span: 40_000 },
    [sized(1, 100, 900_000, 'bytes', 2), publishes(1, 2, 101, 0, 2)],
  ),
  scenario('a small buffer that nobody reads', { receiveMaximum: 8 }, [
    subscribe(1, 1, { style: 'idle', buffer: 5, overflow: 'drop-oldest' }),
    many(20, 1),
  ]),
  scenario('a small buffer, the newest goes', { receiveMaximum: 8 }, [
    subscribe(1, 1, { style: 'idle', buffer: 5, overflow: 'drop-newest' }),
    many(20, 1),
  ]),
  scenario('a poisoned publish', { habit: 'poisoned', span: 9000 }, publishes(1, 5)),
  scenario('a link that dies again and again', { habit: 'short-lived', brokerReceiveMaximum: 20 }, [
    publishes(1, 5),
    publishes(2, 2, 101, 0, 6),
  ]),
  scenario('a hundred handlers at a time', { span: 6000 }, [
    subscribe(1, 0, { style: 'listen', work: 600, hurry: 5, concurrency: 100, filter: 'in/#' }),
    Array.from({ length: 100 }, (_, index) => feeds(0, 1, 300, 0, index + 1, `in/${index}`)).flat(),
    { at: 340, do: 'disconnect', timeout: 5000 },
  ]),
  scenario('handlers of one topic', short, [
    subscribe(1, 1, { style: 'listen', work: 20, concurrency: 8, filter: 'in/+' }),
    many(4, 1),
    feeds(1, 4, 300, 0, 5, 'in/b'),
  ]),
  scenario('posting while there is no connection', { offlineQos0: 'queue' }, [
    { at: 0, do: 'post-all', n: 1, topic: 'out/a', count: 10 },
  ]),
  scenario('posting offline, QoS 0 refused', short, [
    { at: 0, do: 'post-all', n: 1, topic: 'out/a', count: 10, size: 100 },
  ]),
  scenario(
    'listeners that report what is lost',
    { maxQueuedMessages: 2, overflow: 'reject', meddling: true },
    publishes(1, 12, 0),
  ),
  scenario('destroyed with a full buffer', short, [
    subscribe(1, 1, { work: 20 }),
    many(6, 1),
    { at: 340, do: 'destroy' },
  ]),
  scenario('destroyed with messages that wait for a handler', short, [
    subscribe(1, 0, { style: 'listen', work: 20 }),
    many(6, 0),
    { at: 340, do: 'destroy' },
  ]),
  scenario('a responder that throws', short, [
    { at: 30, do: 'respond', s: 1, topic: 'service/echo', fails: true },
    { at: 300, do: 'request', n: 1, topic: 'service/echo', timeout: 3000 },
    { at: 301, do: 'request', n: 2, topic: 'service/echo', timeout: 3000, careless: true },
  ]),
  scenario('tokens, and nothing wrong', { tokens: true, span: 40_000 }, [
    subscribe(1, 1),
    feeds(1, 1, 17_000),
  ]),
  scenario('a dead link', { keepAlive: 4, span: 30_000, ...fault('stall', 5000, 60_000) }, [
    subscribe(1, 1),
  ]),
  scenario(
    'a goodbye over a stuck link',
    { ...stuck, span: 20_000, ...fault('stall', 1500, 3500) },
    [sized(1, 1400, 300_000, 'bytes', 0), { at: 2000, do: 'disconnect', timeout: 9000 }],
  ),
  scenario('the connection is lost while handlers end', { span: 6000, ...fault('reset', 400) }, [
    subscribe(1, 0, { style: 'listen', work: 500 }),
    many(1, 0),
    { at: 340, do: 'disconnect', timeout: 5000 },
  ]),
  scenario('a transport that throws', fault('throw-write', 320), [
    publishes(1, 4, 300, 50),
    subscribe(1, 1),
    feeds(1, 4, 300, 50),
  ]),
  scenario('acknowledgements in batches, windows full', { habit: 'mosquitto' }, [
    publishes(1, 40),
    publishes(2, 10, 101, 0, 50),
  ]),
  scenario('retained messages before SUBACK', { habit: 'retained-first' }, [
    { at: 10, do: 'feed', n: 1, topic: 'in/a', qos: 1, retain: true },
    subscribe(1, 1, { at: 60 }),
    feeds(1, 2, 400, 20, 2),
  ]),
  scenario(
    'more filters than the broker takes in one packet',
    { ...fewFilters, ...fault('restart-lose', 500) },
    [
      Array.from({ length: 25 }, (_, index) => subscribe(index + 1, 1, { filter: `few/${index}` })),
      feeds(1, 4, 2500, 20, 1, 'few/24'),
    ],
  ),
  // The seed decides which.
  ...['closes', 'says DISCONNECT'].map((what, index) =>
    scenario(`a filter at which the broker ${what}`, { ...closesAtFilter, seed: index + 1 }, [
      subscribe(1, 1),
      subscribe(2, 1, { at: 200, filter: closedFilter }),
      publishes(1, 20, 220, 500),
      feeds(1, 20, 230, 500),
    ]),
  ),
  scenario(
    'messages that are larger than the client takes',
    { habit: 'ignores-sizes', short: true },
    [
      subscribe(1, 2),
      feeds(1, 2),
      ([0, 1, 2] as const).map(
        (qos): Op => ({ at: 320, do: 'feed', n: 10 + qos, topic: 'in/a', qos, size: 5000 + qos }),
      ),
      feeds(2, 2, 330, 0, 3),
    ],
  ),
  scenario('a property of a will in a message', { habit: 'foreign-properties' }, [
    subscribe(1, 2),
    feeds(0, 2),
    feeds(1, 3, 300, 20, 3),
    feeds(2, 3, 310, 20, 6),
  ]),
  scenario('every connection dies young', { habit: 'dies-young', span: 9000 }, [
    subscribe(1, 1, { work: 20 }),
    subscribe(2, 2, { at: 3000, filter: 'late/#' }),
    publishes(2, 30, 100, 100),
    feeds(1, 20, 300, 100),
  ]),
  scenario(
    'twenty exchanges and no more',
    { habit: 'only-twenty', version: 4, cleanStart: false, short: true },
    publishes(2, 60),
  ),
  scenario('acknowledgements of identifier 0', { habit: 'acknowledges-zero', short: true }, [
    publishes(2, 2, 0),
    publishes(1, 2, 100, 0, 3),
  ]),
]
