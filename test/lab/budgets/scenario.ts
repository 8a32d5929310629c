/** What one attack consists of: the two sides that play it, and the figures that it is measured by. */
import type { Bench } from './bench.js'
import type { Link } from './link.js'
import type { Measured } from './meter.js'

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

/** The name by which a scenario is asked for: a row of the acceptance matrix, and what sets it apart from others of the same row. */
export interface Named {
  readonly row: string
  readonly variant: string
}

export function nameOf({ row, variant }: Named): string {
  return `${row} ${variant}`
}

/** One attack. */
export interface Scenario extends Named {
  /** The number of the row, as it is checked. */
  readonly limit: string
  /** What is sent. */
  readonly fed: string
  /** Most bytes that may be in use after a collection. */
  readonly budget: number
  /** What may be in use besides before one. Default `usualGarbage`. */
  readonly garbage?: number | undefined
  readonly way?: Way
  /** Plays one connection in the process of the hostile server; the first thing of it is CONNECT. */
  readonly peer: (link: Link) => Promise<void>
  /** Runs in the process that is measured. */
  readonly run: (bench: Bench) => Promise<void>
}

/** How it ended. */
export interface Result extends Named, Measured {
  readonly limit: string
  readonly fed: string
  readonly budget: number
  readonly garbage: number
  /** What was seen to be as it should. */
  readonly seen: readonly string[]
  /** What was not, memory included. */
  readonly wrong: readonly string[]
}
