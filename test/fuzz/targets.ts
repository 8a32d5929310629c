/**
 * The targets by name, with what the search needs to know of each.
 */
import { run as runClient } from './client.js'
import { setupLength } from './client-setup.js'
import { codecCounters, counters } from './counters.js'
import { headerLength, run as runSession } from './session.js'
import { run as runWire } from './wire.js'

/** One target. */
export interface Target {
  readonly name: 'wire' | 'session' | 'client'
  /** Bytes before the stream. */
  readonly header: number
  /** Counters that tell what an input reaches. */
  counters(): Uint32Array
  /** Raises, or rejects with, an OracleError. */
  run(bytes: Uint8Array): void | Promise<void>
}

/** All of them. */
export const targets: readonly Target[] = [
  { name: 'wire', header: 2, counters: codecCounters, run: runWire },
  { name: 'session', header: headerLength, counters, run: runSession },
  { name: 'client', header: setupLength, counters, run: runClient },
]

/** A target by its name. @throws Error when there is none */
export function targetOf(name: string): Target {
  const target = targets.find((each) => each.name === name)
  if (target === undefined) throw new Error(`there is no target '${name}'; there are: ${targets.map((each) => each.name).join(', ')}`)
  return target
}
