/**
 * Topic aliases that we give: an economy, which must not cost more than it saves.
 */
import { expect, test } from 'vitest'
import { accepting, connected } from './harness.js'

async function bytesFor(topicAliasMaximum: number, topics: number): Promise<number> {
  const world = await connected({ keepAlive: false }, accepting(topicAliasMaximum === 0 ? {} : { topicAliasMaximum }))
  const before = world.peer.bytes.length
  for (let count = 0; count < 1000; count++) world.client.post(`sensors/room/${String(count % topics).padStart(4, '0')}`, 'x')
  await world.settle()
  return world.peer.bytes.length - before
}

test('J03 more topics than aliases, in turn: no more bytes than without aliases', async () => {
  const [plain, aliased] = [await bytesFor(0, 40), await bytesFor(10, 40)]
  expect(aliased).toBeLessThanOrEqual(plain + 10 * 4)
})

test('J03 topics that are used once are sent as they are', async () => {
  const [plain, aliased] = [await bytesFor(0, 1000), await bytesFor(10, 1000)]
  expect(aliased).toBeLessThanOrEqual(plain + 10 * 4)
})
