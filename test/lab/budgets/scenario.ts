/**
 * What one attack consists of: the two sides that play it, and the figures that it is measured by. Types, and the units of the figures.
 *
 * `peer` runs in the process of the hostile server, `run` in the process that is measured.
 */
import type { Bench } from './bench.js'
import type { Link } from './link.js'

export const KiB = 1024
export const MiB = 1024 * 1024

/** What a connection may hold unless its options say otherwise. */
export const memoryBudget = 32 * MiB
/** What V8 may leave lying around before it collects: its young generation. */
export const usualGarbage = 24 * MiB
/** The same where hundreds of megabytes go through: external memory too, of which it lets this much gather before it looks. */
export const muchGarbage = 64 * MiB

/** How the two processes are joined. */
export type Way = 'tcp' | 'ws'

/** One attack on one row of the acceptance matrix. */
export interface Scenario {
  /** `T01`. */
  readonly row: string
  /** What tells it from others of the same row. */
  readonly variant: string
  /** The number of the row, as it is checked. */
  readonly limit: string
  /** What is sent. */
  readonly fed: string
  /** Most bytes that may be in use after a collection. */
  readonly budget: number
  /** What may be in use besides before one. Default `usualGarbage`. */
  readonly garbage?: number
  readonly way?: Way
  /** It waits most of the time: good company for one that measures time. */
  readonly idle?: boolean
  /** Scheme of the URL, where it is not that of the way. */
  readonly scheme?: string
  /** Plays one connection, the first thing of which is CONNECT. */
  readonly peer?: (link: Link) => Promise<void>
  readonly run: (bench: Bench) => Promise<void>
}

/** How it ended. */
export interface Result {
  readonly row: string
  readonly variant: string
  readonly limit: string
  readonly fed: string
  readonly budget: number
  readonly garbage: number
  readonly held: number
  readonly peak: number
  readonly resident: number
  readonly samples: number
  /** What was seen to be as it should. */
  readonly seen: readonly string[]
  /** What was not, memory included. */
  readonly wrong: readonly string[]
  readonly seconds: number
}

/** The name by which a scenario is asked for. */
export function nameOf({
  row,
  variant,
}: {
  readonly row: string
  readonly variant: string
}): string {
  return `${row} ${variant}`
}
