/**
 * Fixed runs of the durable world, small enough to let the process die at every single moment of each.
 */
import type { Crash, Op, Schedule } from './schedule.js'

const span = 400

const publishes = (verb: 'publish' | 'enqueue', qos: readonly (1 | 2)[], at = 10): Op[] =>
  qos.map((each, index) => ({ at: at + (index >> 1) * 4, do: verb, n: index + 1, topic: `out/${index % 2 === 0 ? 'a' : 'b'}`, qos: each }))

const feeds = (qos: readonly (1 | 2)[], at = 12): Op[] =>
  qos.map((each, index) => ({ at: at + index * 2, do: 'feed', n: index + 1, topic: 'in/a', qos: each }))

/** All of them. */
export const scenarios: readonly Schedule[] = [
  {
    name: 'publishes, straight',
    seed: 1,
    span,
    setup: { queue: 'none' },
    ops: publishes('publish', [1, 2, 2, 1]),
    faults: [],
  },
  {
    name: 'entries of a queue',
    seed: 2,
    span,
    setup: {},
    ops: publishes('enqueue', [2, 1, 2, 2]),
    faults: [],
  },
  {
    name: 'incoming messages, a handler that takes its time',
    seed: 3,
    span,
    setup: { queue: 'none', work: 3, lowIdentifiers: true },
    ops: feeds([1, 2, 2, 1]),
    faults: [],
  },
  {
    name: 'both ways, a slow disk, windows of one',
    seed: 4,
    span,
    setup: { disk: [0.5, 2], receiveMaximum: 1, brokerReceiveMaximum: 1, lowIdentifiers: true },
    ops: [...publishes('enqueue', [2, 1, 2]), ...feeds([2, 1, 2])],
    faults: [],
  },
  {
    name: 'a link that is cut, and a broker that says no',
    seed: 5,
    span,
    setup: { letters: true, disk: [0, 1] },
    ops: [
      { at: 10, do: 'enqueue', n: 1, topic: 'out/a', qos: 2, refused: { code: 0x97, times: 1 } },
      { at: 10, do: 'enqueue', n: 2, topic: 'out/a', qos: 2 },
      { at: 11, do: 'enqueue', n: 3, topic: 'out/b', qos: 1, refused: { code: 0x87, times: 9 } },
      { at: 12, do: 'publish', n: 4, topic: 'out/c', qos: 2 },
      ...feeds([2, 1], 13),
    ],
    faults: [{ kind: 'reset', at: 16 }],
  },
  {
    name: 'a session that the broker loses',
    seed: 6,
    span,
    setup: { disk: [0, 1] },
    ops: [...publishes('enqueue', [2, 1, 2]), { at: 15, do: 'publish', n: 8, topic: 'out/c', qos: 1 }, ...feeds([2, 1])],
    faults: [{ kind: 'restart-lose', at: 17, k: 0 }],
  },
  {
    name: 'a disk that is full for a while',
    seed: 7,
    span: 1500,
    setup: { disk: [0, 1] },
    ops: [...publishes('enqueue', [2, 1, 2]), { at: 15, do: 'publish', n: 8, topic: 'out/c', qos: 2 }, ...feeds([2, 1])],
    faults: [{ kind: 'store-fails', at: 13, k: 60, code: 'ENOSPC', p: 0.6 }],
  },
]

/** The process dies at every moment: at a step of the disk with all, nothing and a part of it, at others with what was written lost and kept. */
export function* crashes(scenario: Schedule, moments: readonly string[]): Generator<Schedule> {
  for (const [moment, name] of moments.entries()) {
    const each = { kind: 'crash', moment, delay: 5 } as const
    const ways: Crash[] = name.startsWith('disk')
      ? [0, 0.7, 1].flatMap((through) => [0, 1].map((kept) => ({ ...each, through, kept })))
      : [
          { ...each, kept: 0 },
          { ...each, kept: 1, arrives: true },
        ]
    for (const crash of ways) yield { ...scenario, faults: [...scenario.faults, crash] }
  }
}
