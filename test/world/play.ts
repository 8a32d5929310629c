/**
 * What every kind of world has in common: findings and the trace of a run, errors that nobody catches, packets in a line, refusals of single messages.
 */
import type { Defect } from '../support/defective.js'
import { takeOverTime, WorldClock } from './clock.js'
import { printed } from './payloads.js'
import { Random } from './random.js'
import { payloadName, type Seen } from './reader.js'

export interface Finding {
  /** I1 to I9, or what else it is: throw, unhandled, canary, stuck. */
  readonly rule: string
  readonly detail: string
}

export interface Outcome {
  readonly findings: readonly Finding[]
  /** Points at which something could strike, by name. */
  readonly moments: readonly string[]
  readonly events: number
}

/** The records of a run that every kind of world has. Every entry has a number that rises, so that before and after are known within one millisecond. */
export class Findings {
  readonly findings: Finding[] = []
  /** Gets a line for each packet, event, operation and fault, where somebody follows a run. */
  trace: ((line: string) => void) | undefined
  /** The number of the last entry. */
  last = 0
  readonly now: () => number

  constructor(now: () => number) {
    this.now = now
  }

  next(): number {
    this.last += 1
    return this.last
  }

  report(rule: string, detail: string): void {
    // Few lines for each rule are enough: the first is the cause more often than not.
    if (this.findings.filter((finding) => finding.rule === rule).length < 5)
      this.findings.push({ rule, detail: `${detail} [${this.now()} ms]` })
  }

  note(line: string): void {
    this.trace?.(`${this.now().toFixed(1)} ${line}`)
  }
}

/** Virtual milliseconds in which a healed world must come to rest, and in which a client must end. */
export const patience = 120_000
export const endPatience = 15_000

let current: Findings | undefined

/** Sends what nobody catches to the world that runs. To be called once for each thread. */
export function catchStrays(): void {
  process.on('unhandledRejection', (reason) =>
    current?.report('unhandled', printed(reason).slice(0, 300)),
  )
  process.on('uncaughtException', (error) => current?.report('throw', printed(error).slice(0, 300)))
}

/** One run of a kind of world. They run one after another: what nobody handles has no owner, and some take over the timers of the platform. */
export abstract class AnyWorld<S extends { readonly seed: number }, H extends Findings> {
  readonly schedule: S
  readonly clock = new WorldClock()
  readonly random: Random
  readonly history: H
  /** What is wrong with the clients, which has to be found. */
  readonly defect: Defect | undefined
  /** Points at which something could strike, by name. */
  readonly moments: string[] = []

  constructor(schedule: S, Records: new (now: () => number) => H, defect: Defect | undefined) {
    this.schedule = schedule
    this.random = new Random(schedule.seed)
    this.history = new Records(() => this.clock.now())
    this.defect = defect
  }

  /** Runs the schedule to its end, and checks what it left. */
  async run(): Promise<Outcome> {
    const { history, moments, clock } = this
    current = history
    const setTimer = this.setTimer?.bind(this)
    // Of 2023.
    const giveBack =
      setTimer && takeOverTime({ now: () => 1_700_000_000_000 + clock.now(), setTimer })
    try {
      await this.phases()
    } catch (error) {
      history.report(
        'world',
        `the world itself failed: ${error instanceof Error ? error.stack : String(error)}`,
      )
    } finally {
      giveBack?.()
    }
    this.check()
    current = undefined
    return { findings: history.findings, moments, events: clock.events }
  }

  report(rule: string, detail: string): void {
    this.history.report(rule, detail)
  }

  abstract told(): string[]
  protected abstract phases(): Promise<void>
  protected abstract check(): void
  /** In place of that of the platform. */
  protected setTimer?(callback: () => void, delay: number): () => void
}

/** Tells of what a callback of a client threw. */
export function throwing(history: Findings): (where: string, error: unknown) => void {
  return (where, error) => history.report('throw', `${where} threw ${printed(error).slice(0, 300)}`)
}

const eventFields = [
  'state',
  'attempt',
  'delay',
  'sessionPresent',
  'recovered',
  'packetId',
  'topic',
  'error',
  'cause',
]
export function shownEvent(event: unknown): string {
  const fields = eventFields.map(
    (name) => [name, (event as Record<string, unknown>)[name]] as const,
  )
  const shown = (value: unknown): string =>
    value instanceof Error ? String(value) : JSON.stringify(value)
  return fields
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${shown(value)}`]))
    .join(', ')
}

export function packetLine(way: 'up' | 'down', seen: Seen, of: string | number = ''): string {
  const { kind, id, payload, qos, dup, topic, reason, sessionPresent, cleanStart, filters } = seen
  const more = [
    ...(kind === 'publish' ? [`q${qos}${dup ? ' dup' : ''} ${topic}`] : []),
    ...(reason ? [`reason ${reason}`] : []),
    ...(sessionPresent ? ['present'] : []),
    ...(cleanStart ? ['clean'] : []),
    ...filters.map(({ filter }) => filter),
  ]
  return `${way === 'up' ? '->' : '<-'} ${of} ${kind} ${id || ''} ${payload} ${more.join(' ')}`
}

/** How a broker answers the first copies of a message: with this code, so often. */
export interface Refused {
  readonly code: 0x87 | 0x97 | 0x91
  readonly times: number
  /** Number of the only broker that does; all do where it is left out. */
  readonly at?: number
}

/** A broker's say over publishes: `refused` are refusals by the names of messages. */
export function refusing(
  refused: ReadonlyMap<string, Refused>,
): (client: unknown, packet: { readonly payload: Uint8Array }) => number | true {
  const copies = new Map<string, number>()
  return (_client, { payload }) => {
    const name = payloadName(payload)
    const times = copies.get(name) ?? 0
    copies.set(name, times + 1)
    const refusal = refused.get(name)
    return refusal === undefined || times >= refusal.times ? true : refusal.code
  }
}
