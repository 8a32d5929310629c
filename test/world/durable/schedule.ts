/**
 * What one run of the durable world is made of, as plain data: a setup, what the application does, and what goes wrong; at random from a seed,
 * crashes among it.
 */
import { linkFault, numbered, troubledTime } from '../generate.js'
import type { HabitName } from '../habits.js'
import type { PipeOptions } from '../pipe.js'
import type { Refused } from '../play.js'
import { Random } from '../random.js'
import type { LinkFault, ScheduleOf } from '../schedule.js'

/** How the device, its disk, the broker and the network are set up. */
export const defaultSetup = {
  version: 5 as 4 | 5,
  /** In the store of the session, or none. */
  queue: 'shared' as 'shared' | 'none',
  /** Entries under way at a time. */
  concurrency: 64,
  durability: 'sync' as 'sync' | 'os',
  /** False: incoming messages are not kept. */
  inbound: true,
  letters: false,
  /** Least and most milliseconds of a step of the disk. */
  disk: [0, 0] as readonly [least: number, most: number],
  /** Seconds. */
  keepAlive: 10,
  /** Of the device, and of the broker. */
  receiveMaximum: 256,
  brokerReceiveMaximum: 20,
  onSessionLost: undefined as 'republish' | 'reject' | undefined,
  /** Milliseconds that the handler takes for a message; how many messages it takes at a time. */
  work: 0,
  handlers: 1,
  /** Of messages that are refused by the handler once before it takes them: each so many-th. */
  failing: 0,
  habit: 'none' as HabitName,
  /** The broker uses the lowest identifier that is free, over and over. */
  lowIdentifiers: false,
  pipe: { latency: 1, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' } as PipeOptions,
}
export type Setup = Readonly<typeof defaultSetup>

export type Op =
  /** Straight to the client, or into the queue. */
  | {
      readonly at: number
      readonly do: 'publish' | 'enqueue'
      readonly n: number
      readonly topic: string
      readonly qos: 1 | 2
      readonly size?: number
      readonly refused?: Refused
    }
  /** Another client publishes to the device. */
  | {
      readonly at: number
      readonly do: 'feed'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly size?: number
    }
  | { readonly at: number; readonly do: 'reconnect' }
  /** The client is closed in order, or at once, and another one takes its place in the same process. */
  | {
      readonly at: number
      readonly do: 'replace'
      readonly how: 'disconnect' | 'destroy'
      readonly delay: number
    }

export type Fault =
  | { readonly kind: LinkFault; readonly at: number; readonly k?: number }
  /** The process dies, and another one starts `delay` milliseconds later. */
  | {
      readonly kind: 'crash'
      readonly at?: number
      readonly moment?: number
      readonly delay: number
      /** Share of what was not synced that outlives it, and, at an append, of what is being appended that gets through. */
      readonly kept?: number
      readonly through?: number
      /** What was written to the network still arrives. */
      readonly arrives?: boolean
    }
  /** Each step of the disk fails with this probability, for `k` milliseconds. */
  | {
      readonly kind: 'store-fails'
      readonly at: number
      readonly k: number
      readonly code: 'ENOSPC' | 'EIO'
      readonly p: number
    }
  /** Each step of the disk takes so long, for `k` milliseconds. */
  | { readonly kind: 'store-slow'; readonly at: number; readonly k: number; readonly step: number }

  /** For `k` milliseconds the store takes nothing but deletions, as a quota that is used up does. */
  | { readonly kind: 'store-full'; readonly at: number; readonly k: number }

export type Crash = Extract<Fault, { kind: 'crash' }>

export type Schedule = ScheduleOf<Setup, Op, Fault>

/** True where the store refuses some of what it is given. */
export function storeRefuses({ faults }: Schedule): boolean {
  return faults.some(({ kind }) => kind === 'store-fails' || kind === 'store-full')
}

const usual = ['none', 'none', 'none', 'gathered', 'late', 'releases-late'] as const
const odd = ['unknown-releases', 'excessive', 'mosquitto', 'acknowledges-zero'] as const
const rude = ['foreign-properties', 'dies-young', 'poisoned', 'few-filters'] as const
const habits: readonly HabitName[] = [...usual, ...odd, ...rude]

export function generate(seed: number): Schedule {
  const random = new Random(seed)
  const span = random.pick([600, 2000, 4000])
  const setup = makeSetup(random)
  const ops = [
    ...makePublishes(random, span, setup),
    ...makeFeeds(random, span),
    ...makeRest(random, span),
  ].sort((a, b) => a.at - b.at)
  const faults = [
    ...makeCrashes(random, span, ops),
    ...makeTroubles(random, span, ops),
    ...makeStoreFaults(random, span),
  ]
  return { name: 'random', seed, setup, ops, faults, span }
}

function makeSetup(random: Random): Partial<Setup> {
  const setup: Partial<Setup> & Pick<Setup, 'pipe'> = {
    version: random.chance(0.12) ? 4 : 5,
    queue: random.chance(0.7) ? 'shared' : 'none',
    concurrency: random.pick([1, 2, 8, 64]),
    durability: random.chance(0.8) ? 'sync' : 'os',
    inbound: random.chance(0.9),
    letters: random.chance(0.3),
    disk: random.pick([
      [0, 0],
      [0, 1],
      [0.5, 3],
      [0, 20],
    ] as const),
    keepAlive: random.pick([3, 10, 30]),
    receiveMaximum: random.pick([1, 2, 5, 256]),
    brokerReceiveMaximum: random.pick([1, 2, 3, 20]),
    ...(random.chance(0.15)
      ? { onSessionLost: random.pick(['republish', 'reject'] as const) }
      : {}),
    work: random.pick([0, 0, 5, 40]),
    handlers: random.pick([1, 1, 4]),
    ...(random.chance(0.15) ? { failing: random.between(1, 3) } : {}),
    habit: random.pick(habits),
    lowIdentifiers: random.chance(0.6),
    pipe: {
      latency: random.pick([0, 1, 5, 40]),
      pieces: random.pick(['whole', 'whole', 'random', 'joined', 'joined'] as const),
      highWaterMark: random.chance(0.1) ? 24 : 65_536,
      delivery: random.pick(['chunk', 'buffer'] as const),
    },
  }
  const { pipe } = setup
  // An exchange has to fit into the life of a connection.
  return setup.habit === 'dies-young'
    ? { ...setup, pipe: { ...pipe, latency: Math.min(pipe.latency, 5) } }
    : setup
}

// Bursts, straight or through the queue.
function makePublishes(random: Random, span: number, { queue }: Partial<Setup>): Op[] {
  const ops: Op[] = []
  for (let burst = random.between(0, 4); burst > 0; burst--) {
    const at = random.below(random.chance(0.4) ? 100 : span)
    const gap = random.pick([0, 0, 3, 25])
    const through = queue === 'shared' && random.chance(0.6) ? 'enqueue' : 'publish'
    for (let count = random.between(1, 6); count > 0; count--) {
      const refused = random.chance(0.08)
        ? {
            refused: {
              code: random.pick([0x87, 0x97, 0x91] as const),
              times: random.pick([1, 2, 20]),
            },
          }
        : {}
      const size = random.chance(0.05) ? { size: random.pick([200, 3000]) } : {}
      const topic = random.pick(['out/a', 'out/b'])
      const qos = random.pick([1, 2, 2] as const)
      ops.push({ at: at + gap * count, do: through, n: 0, topic, qos, ...size, ...refused })
    }
  }
  return numbered(ops)
}

function makeFeeds(random: Random, span: number): Op[] {
  const ops: Op[] = []
  for (let burst = random.below(5); burst > 0; burst--) {
    const at = random.below(span)
    const gap = random.pick([0, 3, 25])
    for (let count = random.between(1, 5); count > 0; count--) {
      const topic = random.pick(['in/a', 'in/b'])
      ops.push({
        at: at + gap * count,
        do: 'feed',
        n: 0,
        topic,
        qos: random.pick([0, 1, 1, 2, 2] as const),
      })
    }
  }
  return numbered(ops)
}

function makeRest(random: Random, span: number): Op[] {
  const ops: Op[] = []
  if (random.chance(0.1)) ops.push({ at: random.below(span), do: 'reconnect' })
  if (random.chance(0.15)) {
    const at = random.below(span)
    const how = random.pick(['disconnect', 'destroy'] as const)
    ops.push({ at, do: 'replace', how, delay: random.pick([0, 0, 30]) })
  }
  return ops
}

function makeCrashes(random: Random, span: number, ops: readonly Op[]): Fault[] {
  return Array.from({ length: random.between(0, 3) }, () => {
    const how = {
      kind: 'crash' as const,
      delay: random.pick([0, 1, 20, 300]),
      kept: random.pick([0, 1, random.float()]),
      through: random.pick([0, 1, random.float()]),
      arrives: random.chance(0.5),
    }
    return random.chance(0.5)
      ? { ...how, moment: random.below(random.pick([60, 200, 500])) }
      : { ...how, at: troubledTime(random, span, ops) }
  })
}

function makeTroubles(random: Random, span: number, ops: readonly Op[]): Fault[] {
  return Array.from({ length: random.below(4) }, () => ({
    ...linkFault(random, [0, 200]),
    at: troubledTime(random, span, ops),
  }))
}

function makeStoreFaults(random: Random, span: number): Fault[] {
  const faults: Fault[] = []
  const early = () => ({ at: random.float() * span * 0.7, k: random.pick([50, 400, 2500]) })
  if (random.chance(0.3)) {
    const when = early()
    const code = random.pick(['ENOSPC', 'EIO'] as const)
    faults.push({ kind: 'store-fails', ...when, code, p: random.pick([0.2, 0.5, 1]) })
  }
  if (random.chance(0.15)) {
    const at = random.float() * span
    faults.push({
      kind: 'store-slow',
      at,
      k: random.pick([200, 1000]),
      step: random.pick([10, 100]),
    })
  }
  // Drawn last: the rest of the schedule of a seed stays as it was.
  if (random.chance(0.15)) faults.push({ kind: 'store-full', ...early() })
  return faults
}
