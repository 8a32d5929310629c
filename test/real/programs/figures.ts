/**
 * What one run of an ordinary program shows: every message with its fate, every connection with its end.
 *
 * It counts and judges; it must never wait, and it knows neither client nor broker.
 */
import { verdictOf } from './expectations.js'
import type { Result } from './run.js'

export interface Figures {
  /** Messages whose publish was fulfilled. */
  readonly sent: number
  /** Messages that should have arrived, counted for each receiver. */
  readonly due: number
  readonly delivered: number
  readonly lost: number
  /** Arrivals beyond the first, at a receiver that was to get the message once. */
  readonly twice: number
  /** Connections that were accepted. */
  readonly connections: number
  /** Connections that our side ended by its own decision, with the error code and reason code. */
  readonly endedByUs: Readonly<Record<string, number>>
  /** Connections that the other side ended. */
  readonly endedByPeer: Readonly<Record<string, number>>
  /** What was not as it should be; empty means passed. */
  readonly failures: readonly string[]
  readonly milliseconds: number
  /** Messages a second and the like, where the program measures something. */
  readonly measured?: Readonly<Record<string, number>>
}

type Ends = Record<string, number>

function count(ends: Ends, cause: string): void {
  ends[cause] = (ends[cause] ?? 0) + 1
}

export class Tally {
  connections = 0
  sent = 0
  /** Arrivals beyond the first that are as it should be: QoS 1 across a kill. */
  allowedTwice = 0
  /** When the last message arrived. */
  lastArrival = 0
  readonly endedByUs: Ends = {}
  readonly endedByPeer: Ends = {}
  readonly failures: string[] = []
  readonly measured: Record<string, number> = {}
  /** Receiver and message, with the number of arrivals. */
  readonly #arrivals = new Map<string, number>()
  readonly #due = new Set<string>()
  readonly #allowedEnds = new Set<string>()

  expect(message: string, receiver = ''): void {
    this.#due.add(`${receiver}|${message}`)
  }

  arrived(message: string, receiver = ''): void {
    this.lastArrival = performance.now()
    const key = `${receiver}|${message}`
    this.#arrivals.set(key, (this.#arrivals.get(key) ?? 0) + 1)
  }

  /** From now on connections may be ended by us with this code: that is what the program is about. */
  allowEnds(code: string): void {
    this.#allowedEnds.add(code)
  }

  endedByUsBecause(cause: string): void {
    if ([...this.#allowedEnds].some((code) => cause.startsWith(code))) return
    count(this.endedByUs, cause)
  }

  endedByPeerBecause(cause: string): void {
    count(this.endedByPeer, cause)
  }

  /** Something that should not be. The first few of each kind are kept. */
  fail(what: string): void {
    if (this.failures.length < 20 && !this.failures.includes(what)) this.failures.push(what)
  }

  get due(): number {
    return this.#due.size
  }

  get delivered(): number {
    let found = 0
    for (const key of this.#due) if (this.#arrivals.has(key)) found += 1
    return found
  }

  get lost(): number {
    return this.due - this.delivered
  }

  get twice(): number {
    let more = 0
    for (const times of this.#arrivals.values()) more += times - 1
    return more
  }

  get stray(): number {
    let found = 0
    for (const key of this.#arrivals.keys()) if (!this.#due.has(key)) found += 1
    return found
  }

  /** Some of what did not arrive. */
  missing(limit = 5): string[] {
    return [...this.#due].filter((key) => !this.#arrivals.has(key)).slice(0, limit)
  }
}

export function conclude(tally: Tally, began: number): Figures {
  if (tally.lost > 0)
    tally.fail(`${tally.lost} of ${tally.due} lost, such as ${tally.missing(3).join(', ')}`)
  if (tally.twice > tally.allowedTwice) tally.fail(`${tally.twice} arrived twice`)
  if (tally.stray > 0) tally.fail(`${tally.stray} arrived where nobody was to get them`)
  for (const [cause, times] of Object.entries(tally.endedByUs))
    tally.fail(`${times} connections ended by us: ${cause}`)
  return {
    sent: tally.sent,
    due: tally.due,
    delivered: tally.delivered,
    lost: tally.lost,
    twice: tally.twice,
    connections: tally.connections,
    endedByUs: tally.endedByUs,
    endedByPeer: tally.endedByPeer,
    failures: tally.failures,
    milliseconds: Math.round(performance.now() - began),
    measured: tally.measured,
  }
}

function sums(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, times]) => `${times} × ${what}`)
    .join('; ')
}

const marks = { passes: 'ok  ', fails: 'FAIL', broker: 'brkr', absent: 'none' } as const

/** One cell in a few lines. */
export function lineOf(result: Result): string {
  const { program, broker, transport, window, figures, seen } = result
  const verdict = verdictOf(result)
  const where = `${broker} ${transport} window ${window ?? 'default'}`
  const counts = `sent ${figures.sent}, delivered ${figures.delivered}/${figures.due}, lost ${figures.lost}, twice ${figures.twice}, connections ${figures.connections}`
  const measured = Object.entries(figures.measured ?? {}).map(
    ([what, value]) => ` · ${what} ${value}`,
  )
  const lines = [
    `${marks[verdict.word]} ${program} · ${where} · ${counts} · ${figures.milliseconds} ms${measured.join('')}`,
  ]
  if ('reason' in verdict) lines.push(`       ${verdict.reason}`)
  if (figures.failures.length > 0) {
    lines.push(...figures.failures.slice(0, 6).map((failure) => `       ${failure}`))
    lines.push(
      `       by us ${sums(figures.endedByUs) || 'none'} | by peer ${sums(figures.endedByPeer) || 'none'}`,
      `       wire: ${JSON.stringify(seen)}`,
    )
  }
  return lines.join('\n')
}
