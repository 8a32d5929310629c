/**
 * What a consumer is told about itself, and which of its fields no console shows.
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

const internal = { writable: true }

/** Fields of a consumer that are for the code of this folder. */
export const internalFields = {
  ready: internal,
  onReadable: internal,
  onRead: internal,
  onClosing: internal,
  onEnd: internal,
  onLeave: internal,
  config: internal,
  mark: internal,
}
