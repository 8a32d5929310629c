/**
 * `mqwire/queue`: publishes that survive the process. They are stored first and sent whenever there
 * is a connection.
 *
 * @module
 */
import type { Publisher } from '../client/options/index.js'
import { openStoredQueue } from './stored-queue.js'
import type { Queue, QueueOptions } from './types.js'

export type {
  DeadLetter,
  DeadLetterBox,
  KeptLetter,
  Queue,
  QueueDrop,
  Queued,
  QueueEntry,
  QueueEvents,
  QueueFailure,
  QueueOptions,
  QueueOverflow,
  QueuePublishOptions,
  QueueStatus,
  QueueStoreFault,
} from './types.js'

/**
 * Opens a queue in a store, and publishes what is in it whenever the publisher has a connection.
 *
 * QoS 1 arrives at least once. QoS 2 arrives exactly once if the queue and its client share one
 * store; an entry that had been sent when the session was lost becomes a dead letter. With any
 * other publisher or store, an entry whose acknowledgement was lost with the process is published
 * again, so QoS 2 is refused there unless `duplicates: 'allowed'` is set.
 * @throws MqttError ERR_INVALID_OPTION, ERR_EVICTION_NOT_SUPPORTED, ERR_STORE, ERR_STORE_LOCKED
 * when this queue is already open
 */
export function openQueue(publisher: Publisher<unknown>, options: QueueOptions): Promise<Queue> {
  return openStoredQueue(publisher, options)
}
