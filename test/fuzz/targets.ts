/**
 * The targets by name, with what the search needs to know of each.
 */
import { codecCounters, countCopies, counters } from './counters.js'
import { headerLength, run as runSession } from './session.js'
import { run as runWire } from './wire.js'

/** One target. */
export interface Target {
  readonly name: 'wire' | 'session'
  /** Bytes before the stream. */
  readonly header: number
  /** Counters that tell what an input reaches. */
  counters(): Uint32Array
  /** @throws OracleError */
  run(bytes: Uint8Array): void
}

export { countCopies }

/** All of them. */
export const targets: readonly Target[] = [
  { name: 'wire', header: 2, counters: codecCounters, run: runWire },
  { name: 'session', header: headerLength, counters, run: runSession },
]

/** A target by its name. @throws Error when there is none */
export function targetOf(name: string): Target {
  const target = targets.find((each) => each.name === name)
  if (target === undefined)
    throw new Error(
      `there is no target '${name}'; there are: ${targets.map((each) => each.name).join(', ')}`,
    )
  return target
}
