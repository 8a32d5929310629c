/** A random schedule from a seed: a setup, operations, and faults, each chosen as applications and networks choose them. */
import { Random } from './random.js'
import type { Fault, FaultKind, LinkFault, Op, Schedule, Setup, Style } from './schedule.js'
import { commonFaults, linkFaults } from './schedule.js'
import { widen } from './widen.js'

const filters = ['in/a', 'in/+', 'in/#', 'in/b/c', '$share/g/in/a'] as const
const topics = ['in/a', 'in/b', 'in/b/c'] as const
const loops = ['loop', 'loop', 'break', 'batches'] as const
const styles: readonly Style[] = [...loops, 'manual', 'on-receive', 'listen', 'read']
const packets = ['drop-packet', 'double-packet', 'delay-packet'] as const
const dials = ['refuse-dial', 'hang-dial', 'connack-88', 'connack-89'] as const
const kinds: readonly FaultKind[] = [
  ...commonFaults,
  ...packets,
  ...dials,
  'server-busy',
  'jump',
  'takeover',
]

/** Makes the schedule of a seed: a plain one with every fourth, a wide one with the others. */
export function generate(seed: number): Schedule {
  const random = new Random(seed)
  const schedule = plain(seed, random)
  return seed % 4 === 0 ? schedule : widen(schedule, random)
}

export function plain(seed: number, random: Random): Schedule {
  const span = random.pick([1500, 3000, 6000])
  const setup = makeSetup(random)
  const ops = [
    ...makeSubscriptions(random, span),
    ...makePublishes(random, span),
    ...makeFeeds(random, span),
    ...makeRest(random, span, setup),
  ]
  const faults = makeFaults(random, span, ops, setup.pipe?.latency ?? 0)
  return { name: 'random', seed, setup, ops: ops.sort((a, b) => a.at - b.at), faults, span }
}

function makeSetup(random: Random): Partial<Setup> {
  const version = random.chance(0.2) ? 4 : random.chance(0.05) ? 'auto' : 5
  return {
    version,
    clientId: random.chance(0.85) ? 'subject' : '',
    ...(random.chance(0.4) ? { cleanStart: false, clientId: 'subject' } : {}),
    keepAlive: random.pick([0, 2, 5, 30]),
    receiveMaximum: random.pick([1, 2, 5, 256]),
    resubscribe: random.chance(0.15) ? 'always' : 'when-lost',
    endpoints: random.chance(0.2) ? 2 : 1,
    maxQueuedMessages: random.chance(0.15) ? random.between(1, 6) : 10_000,
    overflow: random.pick(['wait', 'wait', 'reject', 'drop-newest', 'drop-oldest']),
    offlineQos0: random.pick(['reject', 'queue']),
    onSessionLost: random.pick([undefined, undefined, 'republish', 'reject']),
    ackTimeout: random.chance(0.1) ? 1500 : undefined,
    ttl: random.chance(0.1) ? 2000 : undefined,
    will: random.chance(0.1),
    auth: version === 5 && random.chance(0.08),
    tokens: random.chance(0.06),
    watch: random.chance(0.03),
    brokerReceiveMaximum: random.pick([1, 2, 3, 20]),
    brokerAliases: random.pick([0, 1, 5]),
    // A limit that 3.1.1 cannot announce would make a message that no connection survives.
    brokerPacketSize: version !== 4 && random.chance(0.1) ? 300 : 100_000,
    narrower: version !== 4 && random.chance(0.08),
    pipe: {
      latency: random.pick([0, 1, 5, 40]),
      pieces: random.pick(['whole', 'whole', 'random', 'bytes', 'joined', 'joined']),
      highWaterMark: random.chance(0.15) ? 24 : 65_536,
      delivery: random.pick(['chunk', 'buffer']),
    },
  }
}

function qosOf(random: Random): 0 | 1 | 2 {
  return random.pick([0, 1, 1, 2, 2] as const)
}

function makeSubscriptions(random: Random, span: number): Op[] {
  const ops: Op[] = []
  for (let s = 1; s <= random.below(4); s++) {
    const at = random.below(random.chance(0.7) ? 200 : span)
    const style = random.pick(styles)
    const [filter, qos, work] = [random.pick(filters), qosOf(random), random.pick([0, 0, 10, 80])]
    const failures = style === 'listen' && random.chance(0.3) ? { failures: 1 } : {}
    const abort = random.chance(0.05) ? { abortAfter: random.below(30) } : {}
    ops.push({ at, do: 'subscribe', s, filter, qos, style, work, ...failures, ...abort })
    if (!random.chance(0.25)) continue
    const later = at + random.below(span)
    ops.push({ at: later, do: random.chance(0.8) ? 'unsubscribe' : 'detach', s })
  }
  return ops
}

// Bursts, as applications publish.
function makePublishes(random: Random, span: number): Op[] {
  const ops: Op[] = []
  let n = 1
  for (let burst = random.below(5); burst > 0; burst--) {
    const at = random.below(span)
    const gap = random.pick([0, 0, 3, 25])
    const qos = random.chance(0.5) ? qosOf(random) : undefined
    for (let count = random.between(1, 6); count > 0; count--, n++)
      ops.push(makePublish(random, at + gap * count, n, qos ?? qosOf(random)))
  }
  return ops
}

function makePublish(random: Random, at: number, n: number, qos: 0 | 1 | 2): Op {
  const topic = random.pick(['out/a', 'out/b', 'in/b'] as const)
  if (random.chance(0.08)) return { at, do: 'abortable', n, topic, qos, after: random.below(60) }
  const size = random.chance(0.1) ? random.pick([200, 400, 40_000]) : 0
  const expiry = random.chance(0.05) ? { expiry: random.between(1, 3) } : {}
  return { at, do: 'publish', n, topic, qos, size, ...expiry }
}

function makeFeeds(random: Random, span: number): Op[] {
  const ops: Op[] = []
  let n = 1
  for (let burst = random.below(5); burst > 0; burst--) {
    const at = random.below(span)
    const gap = random.pick([0, 3, 25])
    const topic = random.pick(topics)
    for (let count = random.between(1, 6); count > 0; count--, n++) {
      const qos = qosOf(random)
      const retain = random.chance(0.04) ? { retain: true } : {}
      ops.push({ at: at + gap * count, do: 'feed', n, topic, qos, ...retain })
    }
  }
  return ops
}

function makeRest(random: Random, span: number, setup: Partial<Setup>): Op[] {
  const ops: Op[] = []
  const at = (): number => random.below(span)
  if (random.chance(0.15)) ops.push({ at: at(), do: 'reconnect', force: random.chance(0.8) })
  if (random.chance(0.06))
    ops.push({ at: at(), do: 'set-brokers', endpoints: random.between(1, 3) })
  if (setup.auth === true && random.chance(0.7)) ops.push({ at: at(), do: 'reauthenticate' })
  if (random.chance(0.1)) ops.push({ at: at(), do: 'flush' })
  if (random.chance(0.05)) ops.push({ at: at(), do: 'clear' })
  if (random.chance(0.1)) ops.push({ at: at(), do: 'post', n: 900, topic: 'out/a' })
  if (random.chance(0.1) && setup.version === 5) {
    ops.push({ at: random.below(100), do: 'respond', s: 50, topic: 'service/echo' })
    for (let n = 1; n <= 3; n++) {
      const [when, qos] = [at(), random.pick([0, 1] as const)]
      ops.push({ at: when, do: 'request', n, topic: 'service/echo', qos, timeout: 4000 })
    }
  }
  if (setup.cleanStart === false && random.chance(0.15))
    ops.push({ at: at(), do: 'restart-process' })
  if (random.chance(0.12)) {
    const how = random.pick(['disconnect', 'drain', 'destroy'] as const)
    ops.push(
      how === 'destroy'
        ? { at: at(), do: how }
        : { at: at(), do: how, timeout: random.pick([0, 300, 5000]) },
    )
  }
  return ops
}

function makeFaults(random: Random, span: number, ops: readonly Op[], latency: number): Fault[] {
  return Array.from({ length: random.below(5) }, () => {
    const kind = random.pick(kinds)
    const k = kind.startsWith('cut')
      ? random.below(60)
      : kind.endsWith('packet')
        ? random.below(3)
        : kind.startsWith('restart')
          ? random.pick([0, 500, 3000])
          : random.pick([3000, 8000, 60_000])
    // Those are worth most that strike while something is under way: right after a link was opened, or after an operation; then early ones.
    if (random.chance(0.3)) {
      const link = random.between(1, 4)
      return { kind, link, after: random.below(random.pick([20, 60, 300])), k }
    }
    const op = random.chance(0.5) && ops.length > 0 ? random.pick(ops) : undefined
    if (op !== undefined) return { kind, at: op.at + random.below(latency * 5 + 2), k }
    return { kind, at: random.below(random.chance(0.5) ? 400 : span), k }
  })
}

/** Numbers operations in the order of their times. */
export function numbered<O extends { readonly at: number }>(ops: O[]): O[] {
  return ops.sort((a, b) => a.at - b.at).map((op, index) => ({ ...op, n: index + 1 }))
}

/** A time at random: what strikes while something is under way is worth most. */
export function troubledTime(
  random: Random,
  span: number,
  ops: readonly { readonly at: number }[],
): number {
  const op = random.chance(0.6) && ops.length > 0 ? random.pick(ops) : undefined
  return op === undefined
    ? random.float() * span
    : op.at + random.float() * random.pick([3, 15, 60, 200])
}

/** A fault of a link or its broker. @param away how long a broker is away */
export function linkFault(
  random: Random,
  away: readonly number[],
): { readonly kind: LinkFault; readonly k: number } {
  const kind = random.pick(linkFaults)
  return {
    kind,
    k: kind.startsWith('cut')
      ? random.below(80)
      : random.pick(kind.startsWith('restart') ? away : [300, 3000]),
  }
}
