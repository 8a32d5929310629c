/**
 * What a consumer is told about itself. Types only.
 */
import type { AckMode, Overflow } from '../api.js'
import type { Message } from './message.js'

/** How one subscription behaves; every default filled in. */
export interface ConsumerConfig {
  readonly ack: AckMode
  readonly onExit: 'unsubscribe' | 'detach'
  readonly buffer: number
  readonly bufferBytes: number
  readonly overflow: Overflow
  readonly lifetime: 'owned' | 'borrowed'
  readonly onDrop: ((message: Message) => void) | undefined
  /** Messages of one key are handled one after the other; undefined where there are no keys. */
  readonly keyOf?: ((message: Message) => unknown) | undefined
}
