/** A random schedule of the world of many connections from a seed: a pool or a group, what its application does, and what goes wrong. */
import { linkFault, numbered, troubledTime } from '../generate.js'
import { Random } from '../random.js'
import type { Fault, Op, Schedule, Setup } from './schedule.js'

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
