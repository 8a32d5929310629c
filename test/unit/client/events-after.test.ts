/** Events are told after the fact: a listener finds the transition complete, and what it does to the client is told next, to everybody in the same order. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import { agreeable, connected, World } from './harness.js'

type Name = keyof ClientEvents

const told: readonly Name[] = ['state', 'reconnecting', 'connect', 'disconnect', 'sessionlost', 'late']

/** What a second listener sees, in order, when the first one acts at the given line. */
function ordered(world: World, at: string, act: () => void): string[] {
  const lines: string[] = []
  const lineOf = (type: Name, event: ClientEvents[Name]): string => (type === 'state' ? `state ${(event as ClientEvents['state']).state}` : type)
  for (const type of told) {
    world.client.on(type, (event) => {
      if (lineOf(type, event) === at) act()
    })
    world.client.on(type, (event) => void lines.push(lineOf(type, event)))
  }
  return lines
}

function agreeableWorld(): World {
  const world = new World()
  world.answer = agreeable
  return world
}

describe('events after the fact', () => {
  it('destroy() in `state` connecting: the second listener sees closed after connecting, and no transport is opened', async () => {
    const world = agreeableWorld()
    const lines = ordered(world, 'state connecting', () => world.client.destroy())
    await expect(world.client.connect()).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    await world.settle()
    expect(lines).toEqual(['state connecting', 'state closed'])
  })

  it('destroy() in `state` connected: `connect` is told, then the end', async () => {
    const world = agreeableWorld()
    const lines = ordered(world, 'state connected', () => world.client.destroy())
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(lines).toEqual(['state connecting', 'state connected', 'connect', 'state closed', 'disconnect'])
  })

  it('in `state` connected what waited has left, and the session is in use', async () => {
    const world = agreeableWorld()
    const seen: unknown[] = []
    world.client.on('state', ({ state }) => {
      if (state === 'connected') seen.push(world.client.outbound.size, world.client.negotiated?.receiveMaximum !== undefined)
    })
    const published = world.client.publish('t', 'a', { qos: 1 })
    const connecting = world.client.connect()
    await world.settle()
    await Promise.all([connecting, published])
    expect(seen).toEqual([0, true])
  })

  it('in `state` closed everything has settled: nothing is queued, and no timer is left', async () => {
    const world = await connected({ sessionExpiryInterval: 0, reconnect: false })
    world.client.publish('t', 'a', { qos: 1 }).catch(() => undefined)
    const seen: unknown[] = []
    world.client.on('state', ({ state }) => {
      if (state === 'closed') seen.push(world.client.outbound.size, world.clock.pending)
    })
    world.peer.cut()
    await world.settle()
    expect(seen).toEqual([0, 0])
  })

  it('disconnect() in `disconnect`: reconnecting is told before closed, and nothing is dialled', async () => {
    const world = await connected({ reconnect: { backoff: () => 1000 } })
    const lines = ordered(world, 'disconnect', () => void world.client.disconnect())
    world.peer.cut()
    await world.settle()
    await world.clock.advance(60_000)
    expect(lines).toEqual(['state reconnecting', 'disconnect', 'reconnecting', 'state closed'])
    expect(world.clock.pending).toBe(0)
  })

  it('reconnect() in `state` reconnecting: the wait that was decided on is cut short', async () => {
    const world = await connected({ reconnect: { backoff: () => 30_000 } }, agreeable)
    const lines = ordered(world, 'state reconnecting', () => void world.client.reconnect())
    world.peer.cut()
    await world.settle()
    await world.clock.advance(10)
    expect(lines).toEqual(['state reconnecting', 'disconnect', 'reconnecting', 'state connected', 'connect', 'sessionlost'])
  })
})
