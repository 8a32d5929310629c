import { onTestFinished } from 'vitest'
import { openQueue, type Queue, type QueueOptions } from '../../../src/queue/index.js'
import { FakePublisher, MapStore } from './rig.js'

/** A queue that is closed with its test, and what it stands on. */
export async function opened<S extends MapStore = MapStore>(
  options: Partial<QueueOptions> & { store?: S; publisher?: FakePublisher } = {},
) {
  const { store = new MapStore() as S, publisher = new FakePublisher(), ...rest } = options
  const queue: Queue = await openQueue(publisher, { store, ...rest })
  onTestFinished(() => queue.close({ timeout: 0 }))
  return { store, publisher, queue }
}
