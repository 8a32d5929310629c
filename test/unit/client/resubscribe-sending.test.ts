/** SUBSCRIBE and UNSUBSCRIBE whose sending ends the connection, as a listener of `packet` may: they go again on the next one, each once. */
import { describe, expect, it } from 'vitest'
import { agreeable, connected, type World } from './harness.js'

/** A client that replaces its connection when the first packet of a type leaves. */
async function replacing(type: 'subscribe' | 'unsubscribe'): Promise<World> {
  const world = await connected({ maxFiltersPerSubscribe: 2, reconnect: { backoff: () => 100 } }, agreeable)
  let calls = 0
  world.client.on('packet', ({ direction, packet }) => {
    if (direction === 'out' && packet.type === type && calls++ === 0) void world.client.reconnect({ force: true }).catch(() => undefined)
  })
  return world
}

describe('a connection that is replaced while a request is sent', () => {
  it('SUBSCRIBE: every filter is granted', async () => {
    const world = await replacing('subscribe')
    const subscription = world.client.subscription(['a', 'b', 'c', 'd', 'e'])
    await world.settle()
    await world.clock.advance(1000)
    expect((await subscription.ready).granted.map(({ filter }) => filter)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(world.client.state).toBe('connected')
  })

  it('UNSUBSCRIBE: every filter has its answer', async () => {
    const world = await replacing('unsubscribe')
    const answer = world.client.unsubscribe(['a', 'b', 'c', 'd', 'e'])
    await world.settle()
    await world.clock.advance(1000)
    expect((await answer).map(({ filter, reasonCode }) => [filter, reasonCode])).toEqual(['a', 'b', 'c', 'd', 'e'].map((filter) => [filter, 0]))
    expect(world.client.state).toBe('connected')
  })
})
