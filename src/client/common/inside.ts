/**
 * What stands on top of clients asks of them besides their public side, under one symbol: typed topics.
 */
import type { MqttError } from '../../errors.js'
import type { Bytes } from '../../wire/packets.js'

/** The name of the method; the same in every copy of the package. */
export const inside: unique symbol = Symbol.for('mqwire.inside') as never

/** What it gives. */
export interface Inside {
  /** True where MQTT 5.0 is spoken, or may be. */
  readonly modern: boolean
  /** Tells of a payload that is none; the first of a channel is a line of the log too. */
  tell(event: { readonly topic: string; readonly error: MqttError; readonly start: Bytes }, first: boolean): void
}
