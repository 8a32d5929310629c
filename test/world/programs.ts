/**
 * Schedules whose application makes calls that no sensible one makes: any call of the public API at any time, in any state, given up at any moment,
 * with options of its own, from listeners too.
 */
import { plain } from './generate.js'
import { Random } from './random.js'
import type { Abort, Op, Operation, Schedule, Setup } from './schedule.js'

const filters = ['in/a', 'in/+', 'in/#', 'in/b/c', '$share/g/in/a'] as const
const links = ['state', 'connect', 'disconnect', 'reconnecting', 'dial', 'connecterror'] as const
const events = [...links, 'drop', 'sessionlost', 'packet', 'error'] as const
const on = ['on', 'on', 'on'] as const
const calls = ['connect', 'connect', 'unsubscribe-from', ...on, 'request', 'rest', 'rest'] as const
const anyTime = ['reauthenticate', 'flush', 'clear', 'connect', 'end'] as const
const others = ['unsubscribe', 'dispose', 'reconnect', 'set-brokers', ...anyTime] as const
const aborts: readonly Abort[] = ['before', 0, 0, 1, 2, 5, 30]

export function generate(seed: number): Schedule {
  const random = new Random(seed * 7919 + 17)
  const given = plain(seed, random)
  const { span } = given
  const setup = { ...given.setup, ...moreSetup(random, given.setup) }
  const ops: Op[] = given.ops.map((op) => changed(random, op, setup))
  const at = (): number => random.below(random.chance(0.5) ? 150 : span)
  for (let count = random.between(3, 12); count > 0; count--)
    ops.push({ at: at(), ...call(random) })
  if (setup.idle) ops.push({ at: random.below(100), do: 'connect', ...givenUp(random, 0.15) })
  return { ...given, setup, ops: ops.sort((a, b) => a.at - b.at) }
}

const givenUp = (random: Random, chance: number): { readonly abort?: Abort } =>
  random.chance(chance) ? { abort: random.pick(aborts) } : {}

function moreSetup(random: Random, { version }: Partial<Setup>): Partial<Setup> {
  const more: Record<string, unknown> = {}
  const maybe = (name: string, chance: number, values: readonly unknown[]): void => {
    if (random.chance(chance)) more[name] = random.pick(values)
  }
  maybe('connectTimeout', 0.2, [300, 1000])
  maybe('maxFiltersPerSubscribe', 0.15, [1, 2])
  if (version === 5) {
    maybe('topicAliasMaximum', 0.15, [0, 5])
    maybe('userProperties', 0.1, [[['name', 'value']]])
    maybe('requestResponseInformation', 0.1, [true])
  }
  return {
    more,
    outbound: random.chance(0.3) ? { maxInflight: random.pick([1, 2]) } : {},
    retries: {
      ...(random.chance(0.25) ? { maxAttempts: random.between(1, 4) } : {}),
      ...(random.chance(0.3) ? { stableAfter: random.pick([0, 30, 200]) } : {}),
    },
    idle: random.chance(0.5),
    firstConnect: random.chance(0.3) ? 'reject' : 'wait',
    reconnect: random.chance(0.9),
  }
}

function changed(random: Random, op: Op, { version }: Partial<Setup>): Op {
  if (op.do === 'subscribe') {
    const style = random.chance(0.2) ? 'next' : op.style
    return {
      ...op,
      style,
      ...(random.chance(0.1) ? { until: random.below(500) } : {}),
      ...(random.chance(0.1) ? { abortAfter: random.below(30) } : {}),
    }
  }
  if (op.do !== 'publish') return op
  const options: Record<string, unknown> = {}
  const maybe = (name: string, chance: number, values: readonly unknown[]): void => {
    if (random.chance(chance)) options[name] = random.pick(values)
  }
  if (op.topic.startsWith('out/')) maybe('retain', 0.15, [true])
  if (version === 5 && op.expiry === undefined)
    maybe('properties', 0.15, [{ userProperties: [['n', 'v']], contentType: 'text/plain' }])
  maybe('flush', 0.1, [true])
  maybe('ackTimeout', 0.08, [5, 50, 500])
  maybe('ttl', 0.08, [1, 30])
  maybe('offline', 0.12, ['queue', 'reject'])
  maybe('overflow', 0.1, ['wait', 'reject', 'drop-newest', 'drop-oldest'])
  return { ...op, options, ...givenUp(random, 0.15) }
}

function call(random: Random): Operation {
  const kind = random.pick(calls)
  if (kind === 'connect') return { do: 'connect', ...givenUp(random, 0.25) }
  if (kind === 'unsubscribe-from')
    return { do: kind, filter: random.pick(filters), ...givenUp(random, 0.15) }
  if (kind === 'request') {
    const n = random.between(10, 1000)
    return { do: kind, n, topic: 'service/nobody', timeout: random.pick([50, 300, 1000]) }
  }
  if (kind === 'on')
    return {
      do: kind,
      event: random.pick(events),
      ...(random.chance(0.7) ? { does: rest(random) } : {}),
      ...(random.chance(0.2) ? { throws: true } : {}),
    }
  return rest(random)
}

function rest(random: Random): Operation {
  const kind = random.pick(others)
  if (kind === 'unsubscribe' || kind === 'dispose') return { do: kind, s: random.between(1, 3) }
  if (kind === 'reconnect') return { do: kind, force: random.chance(0.5) }
  if (kind === 'set-brokers') return { do: kind, endpoints: random.between(1, 3) }
  if (kind !== 'end') return { do: kind }
  return random.chance(0.3)
    ? { do: 'destroy' }
    : { do: random.pick(['disconnect', 'drain'] as const), timeout: random.pick([0, 50, 1000]) }
}
