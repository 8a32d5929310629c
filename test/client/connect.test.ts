import { expect, it } from 'vitest'
import { agreeable, connected, World } from './harness.js'

it('A01 connects and says goodbye', async () => {
  const world = await connected({ clientId: 'a' }, agreeable)
  expect(world.client.state).toBe('connected')
  const done = world.client.disconnect()
  await world.settle()
  await done
  expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'disconnect'])
  expect(world.peer.ended).toEqual({ cause: undefined })
  expect(world.client.state).toBe('closed')
  expect(await world.client.closed).toBeUndefined()
  expect(world.clock.pending).toBe(0)
})

it('A26 gives up without CONNACK', async () => {
  const world = new World()
  const connecting = world.client.connect()
  connecting.catch(() => undefined)
  await world.clock.advance(10_000)
  await expect(connecting).rejects.toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
  expect(world.clock.pending).toBe(0)
})
