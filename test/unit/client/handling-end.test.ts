/** Whatever ends a subscription first: `done` of its handling settles when the client is over. */
import { expect, it } from 'vitest'
import type { Handling } from '../../../src/client/api/index.js'
import { agreeable, connected, type World } from './harness.js'
import { publish } from './incoming.js'

const never = (): Promise<never> => new Promise(() => undefined)

async function busy(): Promise<{ world: World; handling: Handling }> {
  const world = await connected({}, agreeable)
  const listening = world.client.listen('t', never)
  await world.settle()
  const handling = await listening
  await world.send(publish('t', 'x'))
  return { world, handling }
}

it.each<[string, (world: World, handling: Handling) => unknown]>([
  ['client.unsubscribe()', (world) => world.client.unsubscribe('t')],
  ['handling.unsubscribe()', (_world, handling) => handling.unsubscribe()],
  ['handling.detach()', (_world, handling) => handling.detach()],
])('`done` settles at the end of the client when %s came before it and a handler never returns', async (_name, leave) => {
  const { world, handling } = await busy()
  Promise.resolve(leave(world, handling)).catch(() => undefined)
  await world.settle()
  expect(await world.outcome(handling.done)).toEqual({ state: 'pending' })
  world.client.destroy()
  expect((await world.outcome(handling.done)).state).not.toBe('pending')
})

it('`done` settles when the last handler of a subscription that ended returns, and is told no more after it', async () => {
  const world = await connected({}, agreeable)
  let finish = (): void => undefined
  const listening = world.client.listen(
    't',
    () =>
      new Promise<void>((resolve) => {
        finish = resolve
      }),
  )
  await world.settle()
  const handling = await listening
  await world.send(publish('t', 'x'))
  world.client.unsubscribe('t').catch(() => undefined)
  await world.settle()
  finish()
  expect(await world.outcome(handling.done)).toEqual({ state: 'fulfilled', value: undefined })
  world.client.destroy()
})

it('`done` settles when a handler of borrowed messages ends its own subscription, and acknowledges what it was in', async () => {
  const world = await connected({}, agreeable)
  const listening = world.client.listen('t', () => handling.detach(), { lifetime: 'borrowed', qos: 1 })
  await world.settle()
  const handling = await listening
  await world.send(publish('t', 'x', 1), publish('t', 'y', 2))
  expect(await world.outcome(handling.done)).toEqual({ state: 'fulfilled', value: undefined })
})

it('a message that waits for its next attempt is let go with the client: no timer stays, no handler runs', async () => {
  const world = await connected({}, agreeable)
  let calls = 0
  const failing = (): void => {
    calls += 1
    throw new Error('made up')
  }
  const listening = world.client.listen('t', failing, { qos: 1 })
  await world.settle()
  const handling = await listening
  await world.send(publish('t', 'x', 1))
  handling.detach()
  world.client.destroy()
  await world.settle()
  expect([calls, world.clock.pending]).toEqual([1, 0])
  expect((await world.outcome(handling.done)).state).not.toBe('pending')
})
