/** What entries cost that are taken out: four times as many, at most six times the work. Work is counted, not timed. */

import { openQueue } from '../../../src/queue/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { costsEvenly } from '../client/cost-worlds.js'
import { FakePublisher } from './rig.js'

costsEvenly('a queue', {
  async 'remove() of all at once'(count) {
    const queue = await openQueue(new FakePublisher(true, false), { store: memoryStore() })
    // More than are read ahead: what comes behind them is not read.
    await Promise.all(Array.from({ length: 2400 }, () => queue.publish('a', '')))
    const all = await Promise.all(
      Array.from({ length: count }, (_, at) => queue.publish('a', `${at}`)),
    )
    return async () => {
      await Promise.all(all.map(({ id }) => queue.remove(id)))
      await queue.close({ timeout: 0 })
    }
  },
})
