/**
 * What happened in one run of the durable world, over all processes: what was published and what became of it, what was fed and who handled it,
 * findings. A record only.
 */
import type { MqttError } from '../../../src/errors.js'
import type { BrokerSession, MemoryBroker } from '../../../src/testing/broker/index.js'
import { Findings } from '../play.js'
import { type Op, type Schedule, type Setup, storeRefuses } from './schedule.js'

export interface Outgoing {
  readonly op: Extract<Op, { do: 'publish' | 'enqueue' }>
  readonly name: string
  /** Number of the client that took it. */
  readonly client: number
  state: 'pending' | 'fulfilled' | 'rejected'
  error: MqttError | undefined
  restored: boolean
  /** Whoever asked was told that it is given up, in this or a later process. */
  told: string | undefined
}

export interface Fed {
  readonly op: Extract<Op, { do: 'feed' }>
  readonly name: string
  /** The broker had a session that wanted it, when so many sessions had been lost; undefined: it had none. */
  readonly losses: number | undefined
  /** Ids under which it was handed out. */
  readonly ids: Set<string>
  handed: number
  handled: number
}

export class History extends Findings {
  readonly outgoing = new Map<string, Outgoing>()
  readonly fed = new Map<string, Fed>()
  /** Which message each id was given to. */
  readonly named = new Map<string, string>()
  /** Connections whose CONNACK never came, where the one that came after it cannot know what it said. */
  unanswered = 0
}

interface Checked {
  readonly history: History
  readonly setup: Setup
  readonly schedule: Schedule
  readonly losses: number
  readonly accepted: readonly string[]
  readonly broker: Pick<MemoryBroker, 'violations'> & {
    readonly sessions: ReadonlyMap<string, BrokerSession>
  }
}

/** True while this message has to be handled: the broker took it for a session that lives on. */
export function owed({ losses }: Pick<Checked, 'losses'>, fed: Fed): boolean {
  return fed.handled === 0 && fed.losses === losses
}

export function checkHistory(run: Checked): void {
  const { history, accepted, setup, schedule } = run
  const times = new Map<string, number>()
  for (const name of accepted) times.set(name, (times.get(name) ?? 0) + 1)
  for (const one of history.outgoing.values()) checkOutgoing(run, one, times.get(one.name) ?? 0)
  for (const name of times.keys())
    if (!history.outgoing.has(name))
      history.report('invented', `the broker took ${name}, which nobody published`)
  for (const fed of history.fed.values()) {
    if (fed.ids.size > 1)
      history.report('id', `${fed.name} has the ids ${[...fed.ids].join(' and ')}`)
    if (owed(run, fed)) history.report('lost', `${fed.name} was never handled`)
  }
  // What could not be stored is tried again behind what could.
  if (setup.onSessionLost === undefined && !storeRefuses(schedule)) checkOrder(run)
  // Silence may be the network's.
  for (const { packet, text } of run.broker.violations)
    if (packet !== undefined) history.report('broker', `${packet}: ${text}`)
}

function checkOutgoing(
  { history, losses, setup, schedule }: Checked,
  { op, name, state, error, restored, told }: Outgoing,
  times: number,
): void {
  const safe = op.do === 'enqueue' ? state === 'fulfilled' || restored : restored
  if (safe && times === 0 && told === undefined && state !== 'rejected')
    history.report('lost', `${name} was stored, and neither arrived nor was given up`)
  if (op.do === 'publish' && state === 'fulfilled' && times === 0)
    history.report('lost', `${name} is said to have arrived`)
  const strict = setup.onSessionLost !== 'republish' && !storeRefuses(schedule)
  if (op.qos === 2 && times > 1 && (losses === 0 || (strict && history.unanswered === 0)))
    history.report('twice', `${name} arrived ${times} times`)
  const outcome = error?.outcome
  // Whoever died before it could forget what was refused, sends it again.
  if (times > 0 && (outcome === 'not-sent' || (outcome === 'refused' && !restored)))
    history.report('arrived', `${name} arrived, and is said to be ${outcome}`)
  if (error?.code === 'ERR_STORE' && outcome === undefined)
    history.report('arrived', `${name} could not be stored, and nobody said whether it may arrive`)
}

// Of those to one topic at one QoS the first copies arrive in the order of the calls: entries of the queue, and publishes of one client.
function checkOrder({ history, accepted }: Checked): void {
  const latest = new Map<string, Outgoing>()
  const seen = new Set<string>()
  for (const name of accepted) {
    const one = history.outgoing.get(name)
    if (seen.has(name) || one === undefined || one.op.refused !== undefined) continue
    seen.add(name)
    const line = `${one.op.do} ${one.op.topic}${one.op.do === 'publish' ? ` ${one.client}` : ''}`
    const before = latest.get(line)
    if (before !== undefined && before.op.n > one.op.n)
      history.report('order', `${name} arrived after ${before.name}`)
    latest.set(line, one)
  }
}
