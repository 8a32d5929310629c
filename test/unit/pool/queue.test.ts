/** A queue over a pool: a connection that leaves with something in flight is not the end of the pool. */
import { expect, it } from 'vitest'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import { openQueue } from '../../../src/queue/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'

it('goes on where a connection was taken out of the pool before the server had answered', async () => {
  const world = new VirtualWorld()
  const texts = new Set<string>()
  const reader = await world.connect('mqtt://b', { clientId: 'reader' })
  await reader.listen('#', (message) => void texts.add(message.text()), { qos: 1 })
  const pool = poolOf((at, given) => new world.Client(at, given), 'mqtt://b', {
    size: 2,
    clientId: 'p',
  })
  await pool.connect()
  await world.pass(1)
  const queue = await openQueue(pool, { store: memoryStore(), backoff: () => 1 })
  world.cut('p-pub-2', { silently: true })
  await Promise.all(['1', '2', '3', '4'].map((text) => queue.publish(`to/${text}`, text)))
  await expect.poll(() => texts.size).toBe(2)
  await Promise.all([pool.resize(1, { timeout: 1000 }), world.pass(5000)])
  await queue.publish('to/5', '5')
  // The queue has the time of the platform.
  const size = async (): Promise<number> => {
    await world.pass(100)
    return queue.size
  }
  await expect.poll(size, { timeout: 5000 }).toBe(0)
  expect([...texts].sort()).toEqual(['1', '2', '3', '4', '5'])
  await queue.close()
  await world.close()
})
