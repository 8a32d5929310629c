/**
 * When a command that receives ends: after so many messages, so long, or such a silence.
 */
import type { Command } from 'commander'
import { option } from './connection.js'
import { Ending } from './ending.js'
import { duration, whole } from './values.js'

/** What the options of this file become. */
export interface LimitValues {
  readonly count?: number
  readonly for?: number
  readonly quietFor?: number
}

/** Adds the options. */
export function withLimits(command: Command): Command {
  return command
    .addOption(
      option(
        '-n, --count <number>',
        'end after so many messages',
        whole(1, Number.MAX_SAFE_INTEGER),
      ),
    )
    .addOption(
      option(
        '--for <time>',
        'end after this time; with --count, exit code 4 if fewer came',
        duration,
      ),
    )
    .addOption(
      option(
        '--quiet-for <time>',
        'end after such a time without a message; with --count, as --for',
        duration,
      ),
    )
}

/** Counts messages, and aborts its signal when a limit is reached. */
export class Limits {
  readonly #values: LimitValues
  readonly #end = new AbortController()
  readonly signal: AbortSignal
  readonly #timer: NodeJS.Timeout | undefined
  readonly #silence: NodeJS.Timeout | undefined
  #received = 0

  /** @param signal ends it as well */
  constructor(values: LimitValues, signal: AbortSignal) {
    this.#values = values
    this.signal = AbortSignal.any([this.#end.signal, signal])
    const over = (): void => this.#end.abort()
    if (values.for !== undefined) this.#timer = setTimeout(over, values.for)
    if (values.quietFor !== undefined) this.#silence = setTimeout(over, values.quietFor)
  }

  /** Messages that have come. */
  get received(): number {
    return this.#received
  }

  /** Messages that are still wanted. */
  get left(): number {
    return (this.#values.count ?? Number.POSITIVE_INFINITY) - this.#received
  }

  /** True when a limit is reached. */
  get over(): boolean {
    return this.left <= 0 || this.#end.signal.aborted
  }

  /** A message has come. Returns true when it was the last one that is wanted. */
  add(): boolean {
    this.#received += 1
    this.#silence?.refresh()
    return this.left <= 0
  }

  /** Stops the clocks. */
  stop(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#silence)
  }

  /** @throws Ending when fewer messages came than were asked for */
  conclude(): void {
    const { count } = this.#values
    if (count !== undefined && this.left > 0 && this.#end.signal.aborted)
      throw new Ending('deadline', `${this.#received} of ${count} messages came in time`)
  }
}
