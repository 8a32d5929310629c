/**
 * What one run of the world of many connections is made of, as plain data: a pool or a group, what its application does, and what goes wrong; at
 * random from a seed.
 */
import { linkFault, numbered, troubledTime } from '../generate.js'
import type { PipeOptions } from '../pipe.js'
import type { Refused } from '../play.js'
import { Random } from '../random.js'
import type { LinkFault, ScheduleOf } from '../schedule.js'

/** How the pool or the group, its brokers and the network are set up. */
export const defaultSetup = {
  subject: 'pool' as 'pool' | 'group',
  /** Of a pool all but `'broadcast'`, of a group all but `'least-in-flight'`. */
  routing: 'round-robin' as 'round-robin' | 'hash' | 'least-in-flight' | 'broadcast',
  onLost: 'wait' as 'wait' | 'move',
  /** Connections of the pool, or members of the group, at the start. */
  size: 2,
  /** What a publisher of the application does with what it gets while no connection of the pool is up. */
  fallback: 'none' as 'none' | 'takes' | 'refuses',
  /** Of the group. */
  offline: 'reject' as 'reject' | 'queue',
  stalledAfter: 1000,
  /** Seconds. */
  keepAlive: 10,
  cleanStart: true,
  brokerReceiveMaximum: 20,
  onSessionLost: undefined as 'republish' | 'reject' | undefined,
  /** How the application reads from the group. */
  reading: 'none' as 'none' | 'loop' | 'manual' | 'listen',
  /** Milliseconds that it takes for a message. */
  work: 0,
  deduplicate: undefined as { readonly window: number; readonly limit: number } | undefined,
  /** The broker answers at once, in batches, or late. */
  habit: 'none' as 'none' | 'gathered' | 'late',
  /** How it ends, and within how many milliseconds. */
  end: 'disconnect' as 'drain' | 'disconnect',
  endTimeout: 5000,
  pipe: { latency: 1, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' } as PipeOptions,
}
export type Setup = Readonly<typeof defaultSetup>

/** What the application does, and other clients of the brokers. */
export type Op =
  | { readonly at: number; readonly do: 'connect' }
  | {
      readonly at: number
      readonly do: 'publish'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly size?: number
      readonly refused?: Refused
      /** The caller gives it up after so many milliseconds. */
      readonly abort?: number
      /** In a group, another routing than the group's. */
      readonly routing?: 'round-robin' | 'hash' | 'broadcast'
      /** In a broadcast, only to that many of the members. */
      readonly few?: number
    }
  /** Of a pool. */
  | { readonly at: number; readonly do: 'resize'; readonly size: number; readonly timeout: number }
  /** Of a group: one more member, or one less, by its place. */
  | { readonly at: number; readonly do: 'add' }
  | { readonly at: number; readonly do: 'remove'; readonly place: number; readonly timeout: number }
  /** Another client publishes to the group, the same message at each of these brokers by number, so many milliseconds later at each next one. */
  | {
      readonly at: number
      readonly do: 'feed'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly brokers: readonly number[]
      readonly later: number
    }
  /** The end, before the time. */
  | { readonly at: number; readonly do: 'drain' | 'disconnect'; readonly timeout: number }

export type PublishOp = Extract<Op, { do: 'publish' }>

/** What goes wrong with one connection, by its place, or with the broker that it leads to. */
export interface Fault {
  readonly kind: LinkFault
  readonly at: number
  readonly place: number
  readonly k?: number
}

export type Schedule = ScheduleOf<Setup, Op, Fault>

const topics = ['out/a', 'out/b', 'out/c', 'out/d', 'out/e'] as const

/** Makes the schedule of a seed: of every eighth one a departure. */
export function generate(seed: number): Schedule {
  const random = new Random(seed)
  if (seed % 8 === 0) return departure(random, seed)
  const span = random.pick([600, 2000, 4000])
  const setup = makeSetup(random)
  const changes = makeChanges(random, span, setup)
  const ops = [
    ...makePublishes(random, span, setup, changes),
    ...makeFeeds(random, span, setup),
    ...changes,
  ]
  if (setup.subject === 'group' || random.chance(0.7))
    ops.push({ at: random.chance(0.8) ? 0 : random.below(300), do: 'connect' })
  if (random.chance(0.15)) ops.push(makeEnd(random, span, ops))
  ops.sort((a, b) => a.at - b.at)
  return { name: 'random', seed, setup, ops, faults: makeFaults(random, span, ops), span }
}

// Members go while much of a few topics is in flight, and more comes; perhaps all ends before they have gone.
function departure(random: Random, seed: number): Schedule {
  const setup: Setup = {
    ...makeSetup(random),
    ...(random.chance(0.7) ? { routing: 'hash', onLost: 'wait' } : {}),
    size: 3,
    habit: random.pick(['none', 'gathered', 'late'] as const),
    reading: 'none',
  }
  const at = 200 + random.below(100)
  const gap = random.pick([0, 1, 5])
  const few = topics.slice(0, random.between(1, 3))
  const isGroup = setup.subject === 'group'
  const publishes = Array.from({ length: 16 }, (_, index) =>
    makePublish(random, at + index * gap, random.pick(few), isGroup),
  )
  const timeout = random.pick([300, 5000, 5000])
  const going = at + gap * random.between(3, 8) + random.float()
  const ops: Op[] = [...numbered(publishes), { at: 0, do: 'connect' }]
  if (isGroup) ops.push({ at: going, do: 'remove', place: random.below(3), timeout })
  else ops.push({ at: going, do: 'resize', size: random.between(1, 2), timeout })
  if (random.chance(0.6))
    ops.push({
      at: going + gap * random.between(1, 8),
      do: 'drain',
      timeout: random.pick([200, 5000, 8000]),
    })
  ops.sort((a, b) => a.at - b.at)
  const faults = random.chance(0.5) ? [] : makeFaults(random, 1000, ops)
  return { name: 'random', seed, setup, ops, faults, span: 1000 }
}

// While somebody leaves an end has most to do.
function makeEnd(random: Random, span: number, ops: readonly Op[]): Op {
  const changes = ops.filter(({ do: what }) => what === 'resize' || what === 'remove')
  const at =
    changes.length > 0 && random.chance(0.7)
      ? random.pick(changes).at + random.float() * random.pick([1, 30, 200])
      : troubledTime(random, span, ops)
  return {
    at,
    do: random.chance(0.7) ? 'drain' : 'disconnect',
    timeout: random.pick([0, 200, 5000, 8000]),
  }
}

function makeSetup(random: Random): Setup {
  const subject = random.chance(0.5) ? 'pool' : 'group'
  const isPool = subject === 'pool'
  return {
    subject,
    routing: random.pick(
      isPool
        ? (['round-robin', 'hash', 'hash', 'least-in-flight'] as const)
        : (['broadcast', 'broadcast', 'round-robin', 'hash'] as const),
    ),
    onLost: random.chance(0.7) ? 'wait' : 'move',
    size: isPool ? random.between(1, 4) : random.between(2, 3),
    fallback: random.pick(['none', 'none', 'takes', 'refuses'] as const),
    offline: random.chance(0.5) ? 'queue' : 'reject',
    stalledAfter: random.pick([50, 1000]),
    keepAlive: random.pick([3, 10, 30]),
    cleanStart: random.chance(0.7),
    brokerReceiveMaximum: random.pick([1, 2, 3, 20]),
    onSessionLost: random.chance(0.15) ? random.pick(['republish', 'reject'] as const) : undefined,
    reading: isPool ? 'none' : random.pick(['none', 'loop', 'manual', 'listen'] as const),
    work: random.pick([0, 0, 3, 40]),
    deduplicate: random.chance(0.6)
      ? { window: random.pick([20, 300, 1500]), limit: random.pick([1, 3, 10_000]) }
      : undefined,
    habit: random.pick(['none', 'none', 'gathered', 'late'] as const),
    end: random.pick(['drain', 'disconnect'] as const),
    endTimeout: random.pick([0, 5000]),
    pipe: {
      latency: random.pick([0, 1, 5, 40]),
      pieces: random.pick(['whole', 'whole', 'random', 'joined'] as const),
      highWaterMark: random.chance(0.1) ? 24 : 65_536,
      delivery: random.pick(['chunk', 'buffer'] as const),
      ...(random.chance(0.1) ? { rateUp: random.pick([2, 20]) } : {}),
    },
  }
}

// Bursts, of one topic or of many, some of them around a change.
function makePublishes(
  random: Random,
  span: number,
  { subject }: Setup,
  changes: readonly Op[],
): Op[] {
  const ops: Op[] = []
  for (let burst = random.between(1, 5); burst > 0; burst--) {
    const change = changes.length > 0 && random.chance(0.5) ? random.pick(changes) : undefined
    const gap = random.pick(change === undefined ? [0, 0, 3, 25] : [1, 3, 25])
    const at =
      change === undefined
        ? random.below(random.chance(0.4) ? 100 : span)
        : Math.max(0, change.at - gap * random.between(1, 8))
    const topic = random.chance(0.5) ? random.pick(topics) : undefined
    for (let count = random.between(1, 8); count > 0; count--)
      ops.push(
        makePublish(random, at + gap * count, topic ?? random.pick(topics), subject === 'group'),
      )
  }
  return numbered(ops)
}

function makePublish(random: Random, at: number, topic: string, isGroup: boolean): Op {
  const code = random.pick([0x87, 0x97] as const)
  const refused = {
    code,
    times: random.pick([1, 2, 20]),
    ...(isGroup && random.chance(0.6) ? { at: random.below(3) } : {}),
  }
  return {
    at,
    do: 'publish',
    n: 0,
    topic,
    qos: random.pick([0, 1, 1, 1, 2] as const),
    ...(random.chance(0.05) ? { size: random.pick([200, 3000]) } : {}),
    ...(random.chance(0.1) ? { refused } : {}),
    ...(random.chance(0.05) ? { abort: random.pick([0, 3, 50, 1000]) } : {}),
    ...(isGroup && random.chance(0.1)
      ? { routing: random.pick(['round-robin', 'hash', 'broadcast'] as const) }
      : {}),
    ...(isGroup && random.chance(0.1) ? { few: random.between(1, 2) } : {}),
  }
}

function makeChanges(random: Random, span: number, { subject }: Setup): Op[] {
  const timeout = (): number => random.pick([0, 300, 5000, 5000])
  return Array.from({ length: random.pick([0, 0, 1, 2, 3]) }, (): Op => {
    const at = random.below(span)
    if (subject === 'pool')
      return { at, do: 'resize', size: random.between(1, 5), timeout: timeout() }
    return random.chance(0.5)
      ? { at, do: 'add' }
      : { at, do: 'remove', place: random.below(3), timeout: timeout() }
  })
}

// The same message at several brokers, at once or as late as the window is long.
function makeFeeds(random: Random, span: number, { reading, deduplicate }: Setup): Op[] {
  if (reading === 'none') return []
  const ops: Op[] = []
  for (let burst = random.between(1, 4); burst > 0; burst--) {
    const at = random.below(span)
    const gap = random.pick([0, 3, 25])
    for (let count = random.between(1, 6); count > 0; count--) {
      const window = deduplicate?.window ?? 20
      const later = random.pick([0, 0, 1, window - 1, window, window + 1])
      const brokers = random.pick([[0], [1], [0, 1], [1, 0], [0, 1, 2], [2, 0]])
      const topic = random.pick(['in/a', 'in/b'])
      ops.push({
        at: at + gap * count,
        do: 'feed',
        n: 0,
        topic,
        qos: random.pick([0, 1, 1, 2] as const),
        brokers,
        later,
      })
    }
  }
  return numbered(ops)
}

function makeFaults(random: Random, span: number, ops: readonly Op[]): Fault[] {
  return Array.from({ length: random.below(7) }, () => ({
    ...linkFault(random, [0, 200, 3000]),
    at: troubledTime(random, span, ops),
    place: random.below(4),
  }))
}
