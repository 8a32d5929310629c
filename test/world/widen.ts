/** Makes a schedule wider: what applications and brokers do that nobody thinks of when writing a test. */
import { closedFilter, habitNames, mannersOf, smallPacket } from './habits.js'
import type { Form } from './payloads.js'
import type { PipeOptions } from './pipe.js'
import type { Random } from './random.js'
import type { Limits, Op, Operation, Schedule, Setup } from './schedule.js'

/**
 * Sizes at which the client does something else, each with its neighbours: a copy of small payloads (64), text that is written by hand (256), the
 * window of a quarter (7 KiB pieces), payloads by reference (32 KiB), a read window (64 KiB), and far beyond all.
 */
export const thresholds = [64, 256, 1024, 4096, 7168, 32_768, 65_536] as const
const beyond = [100_000, 300_000] as const

const usual: readonly Form[] = ['text', 'bytes', 'bytes', 'buffer', 'offset', 'offset']
const forms: readonly Form[] = [...usual, 'shared', 'array-buffer', 'data-view']

const byTime = (one: Op, other: Op): number => one.at - other.at

export function widen(schedule: Schedule, random: Random): Schedule {
  const setup: Partial<Setup> = { ...schedule.setup }
  let ops: readonly Op[] = schedule.ops
  const v5 = setup.version === 5
  // A limit that a message cannot keep makes it fail, which is another matter.
  const sized = random.chance(0.5) && setup.brokerPacketSize !== 300
  if (sized) {
    ops = ops.map((op) => sizedOp(random, op))
    // What 3.1.1 cannot announce would make messages that no connection survives.
    Object.assign(setup, { brokerPacketSize: 1_000_000 })
  }
  if (random.chance(0.7)) ops = ops.map((op) => formed(random, op))
  // Where credentials live for seconds, nothing that takes as long gets through.
  if (setup.tokens !== true && random.chance(0.25)) Object.assign(setup, slow(random, setup))
  if (random.chance(0.3)) {
    Object.assign(setup, { habit: random.pick(habitNames) })
    ops = provoked(random, ops, setup, schedule.span)
  }
  if (v5 && random.chance(0.25))
    Object.assign(setup, {
      limits: Array.from({ length: random.between(1, 3) }, () => limits(random, sized)),
    })
  if (random.chance(0.15))
    Object.assign(setup, { maxQueuedBytes: random.pick([200, 2000, 70_000]) })
  if (random.chance(0.1)) Object.assign(setup, { meddling: true })
  if (random.chance(0.5)) ops = ops.map((op) => bufferedOp(random, op))
  if (random.chance(0.3)) ops = ops.map((op) => manyFilters(random, op))
  if (random.chance(0.15)) ops = [...ops, postAll(random, schedule.span)]
  if (random.chance(0.3)) ops = [...ops, ...endings(random, ops)]
  if (random.chance(0.3)) ops = together(random, [...ops].sort(byTime))
  return { ...schedule, setup, ops: [...ops].sort(byTime) }
}

function size(random: Random): number {
  if (random.chance(0.1)) return random.pick(beyond)
  return random.pick(thresholds) + random.between(-24, 2)
}

function sizedOp(random: Random, op: Op): Op {
  if (op.do !== 'publish' && op.do !== 'abortable' && op.do !== 'feed' && op.do !== 'post')
    return op
  return random.chance(0.3) ? { ...op, size: size(random) } : op
}

function formed(random: Random, op: Op): Op {
  return op.do === 'publish' || op.do === 'abortable' || op.do === 'post'
    ? { ...op, form: random.pick(forms) }
    : op
}

// Makes a habit show.
function provoked(
  random: Random,
  ops: readonly Op[],
  setup: Partial<Setup>,
  span: number,
): readonly Op[] {
  const manners = mannersOf(setup.habit ?? 'none')
  const { pipe } = setup
  const at = (): number => random.below(span)
  const made: Op[] = []
  // The packet at which a server closed cannot be known while others of the same write are on their way.
  if (pipe !== undefined && manners.includes('poisoned'))
    Object.assign(setup, { pipe: brisk(pipe) })
  // An exchange has to fit into the life of a connection.
  if (pipe !== undefined && manners.includes('dies-young'))
    Object.assign(setup, { pipe: { ...brisk(pipe), latency: Math.min(pipe.latency, 5) } })
  if (manners.includes('closes-at-filter')) {
    // By itself, or beside others that are to be granted.
    const filters = random.chance(0.5)
      ? { filter: closedFilter }
      : { filter: 'open/a', more: [closedFilter] }
    made.push({ at: at(), do: 'subscribe', s: 60, ...filters, qos: 1, style: 'loop', work: 0 })
  }
  if (manners.includes('few-filters')) {
    const near = at()
    for (let s = 100; s < 125; s++) {
      const qos = random.pick([0, 1, 2] as const)
      made.push({ at: near, do: 'subscribe', s, filter: `few/${s}`, qos, style: 'loop', work: 0 })
    }
  }
  if (manners.includes('only-twenty')) {
    const near = at()
    for (let n = 2000; n < 2060; n++)
      made.push({ at: near, do: 'publish', n, topic: 'out/a', qos: 2 })
  }
  const sizes = [smallPacket - 30, smallPacket, 5000, 70_000]
  const large = manners.includes('ignores-sizes')
  return [
    ...ops.map((op) =>
      large && op.do === 'feed' && random.chance(0.5) ? { ...op, size: random.pick(sizes) } : op,
    ),
    ...made,
  ]
}

function brisk({ rateUp: _up, rateDown: _down, ...pipe }: PipeOptions): PipeOptions {
  return pipe
}

// From a modem to a DSL line.
function slow(random: Random, { pipe, keepAlive = 30 }: Partial<Setup>): Partial<Setup> {
  const rate = (): number => random.pick([20, 100, 1000, 100_000])
  if (pipe === undefined) return {}
  // A slice of 128 KiB has to leave within keep-alive and the wait for an answer: on a link that is slower nothing tells that it lives.
  const least =
    keepAlive === 0
      ? 0
      : 180_000 / (keepAlive * 1000 + Math.max(1000, Math.min(10_000, keepAlive * 500)))
  const [rateUp, rateDown] = [Math.max(rate(), least), rate()]
  return {
    pipe: { ...pipe, rateUp, rateDown, highWaterMark: random.pick([24, 1000, 16_384, 65_536]) },
  }
}

function limits(random: Random, sized: boolean): Limits {
  const made: { -readonly [Name in keyof Limits]: Limits[Name] } = {}
  if (random.chance(0.5)) made.receiveMaximum = random.pick([1, 2, 10])
  if (random.chance(0.2)) made.topicAliasMaximum = random.pick([0, 1, 3])
  if (random.chance(0.2)) made.subscriptionIdentifierAvailable = 0
  if (random.chance(0.1)) made.maximumQoS = random.pick([0, 1] as const)
  if (random.chance(0.1)) made.sharedSubscriptionAvailable = 0
  if (random.chance(0.1)) made.wildcardSubscriptionAvailable = 0
  if (!sized && random.chance(0.3)) made.maximumPacketSize = random.pick([64, 100, 300, 4096])
  return made
}

function bufferedOp(random: Random, op: Op): Op {
  if (op.do !== 'subscribe' || random.chance(0.3)) return op
  return {
    ...op,
    ...(random.chance(0.5) ? { buffer: random.between(1, 6) } : {}),
    ...(random.chance(0.4)
      ? { overflow: random.pick(['backpressure', 'drop-newest', 'drop-oldest'] as const) }
      : {}),
    ...(random.chance(0.4) ? { lifetime: 'borrowed' as const } : {}),
    ...(op.style === 'listen' ? { concurrency: random.pick([1, 2, 8, 100]) } : {}),
  }
}

function manyFilters(random: Random, op: Op): Op {
  if (op.do !== 'subscribe' || op.s === 60 || op.filter.startsWith('$share/')) return op
  return {
    ...op,
    more: Array.from({ length: random.pick([1, 3, 30]) }, (_, index) => `other/${op.s}/${index}`),
  }
}

function postAll(random: Random, span: number): Op {
  const at = random.below(span)
  const topic = random.pick(['out/a', 'out/c'])
  const count = random.between(2, 30)
  return { at, do: 'post-all', n: 1000, topic, count, size: random.pick([0, 100, 5000]) }
}

// Ways to leave and to end, a moment apart at most.
function endings(random: Random, ops: readonly Op[]): Op[] {
  const subscriptions = ops.flatMap((op) => (op.do === 'subscribe' ? [op.s] : []))
  const near = ops.length === 0 ? 500 : random.pick(ops).at
  const at = (): number => near + random.pick([0, 0, 1, 20])
  const made: Op[] = []
  for (const s of subscriptions)
    if (random.chance(0.6))
      made.push({ at: at(), do: random.pick(['dispose', 'unsubscribe', 'detach'] as const), s })
  if (random.chance(0.5)) {
    const timeout = random.pick([0, 300, 5000, 5000])
    made.push({ at: at(), do: random.pick(['disconnect', 'drain'] as const), timeout })
    if (random.chance(0.2))
      made.push({ at: at(), do: random.pick(['disconnect', 'drain'] as const), timeout: 300 })
    if (random.chance(0.15)) made.push({ at: at() + random.below(100), do: 'destroy' })
  }
  return made
}

// Neighbours in time are done in one turn.
function together(random: Random, ops: readonly Op[]): Op[] {
  const made: Op[] = []
  for (let at = 0; at < ops.length; ) {
    const count = random.chance(0.3) ? random.between(2, 5) : 1
    const group = ops.slice(at, at + count)
    at += count
    const [first] = group
    if (first === undefined) break
    const inner = group.map(({ at: _at, ...op }) => op as Operation)
    if (group.length === 1 || group.some((op) => op.do === 'restart-process')) made.push(...group)
    else made.push({ at: first.at, do: 'together', ops: inner })
  }
  return made
}
