/**
 * What stands on top of clients asks of them besides their public side, under one symbol: typed topics.
 */
import type { ClientEvents } from '../api/index.js'

/** The name of the method; the same in every copy of the package. */
export const inside: unique symbol = Symbol.for('mqwire.inside') as never

/** What it gives. */
export interface Inside {
  /** True where MQTT 5.0 is spoken, or may be. */
  readonly modern: boolean
  /** Tells of a payload that is none; the first of a channel is a line of the log too. */
  tell(event: ClientEvents['invalid'], first: boolean): void
  /** Writes a line of the log; not in copies of the package from before. */
  log?(level: 'error', ...parts: readonly unknown[]): void
}
