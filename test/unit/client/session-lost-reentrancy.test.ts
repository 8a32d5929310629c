/** Listeners that act while a loss is being accounted for: nothing comes back to life, nothing settles twice. */
import { describe, expect, it } from 'vitest'
import { again, carried, comeBack, forgets, lose, pause, send, steady, willing } from './across.js'
import { failure, type World } from './harness.js'
import { quiet, subscribe } from './incoming.js'

/** Two QoS 2 messages and one at QoS 1 in flight; the server forgets, and `act` runs in the first event of this type. */
async function losing(
  type: 'drop' | 'sessionlost' | 'state' | 'connect' | 'disconnect',
  act: (world: World) => void,
): Promise<{ world: World; errors: Promise<unknown>[] }> {
  const world = await steady()
  const errors = ['a', 'b'].map((text) => failure(world.client.publish('t', text, { qos: 2 })))
  send(world, 1, 'c')
  await world.settle()
  world.client.on(type, () => act(world), { once: true })
  await lose(world)
  world.answer = forgets()
  await world.clock.advance(pause)
  return { world, errors }
}

describe('a listener that ends the client', () => {
  it.each(['drop', 'sessionlost', 'state', 'connect', 'disconnect'] as const)(
    'on `%s`: it stays closed, everything settles, no timer is left',
    async (type) => {
      const { world, errors } = await losing(type, ({ client }) => client.destroy())
      await world.clock.advance(60_000)
      expect(world.client.state).toBe('closed')
      expect(world.seen('state').at(-1)?.state).toBe('closed')
      for (const error of errors) expect(await error).toMatchObject({ outcome: 'unknown' })
      expect(world.client.outbound.size).toBe(0)
      expect(world.clock.pending).toBe(0)
      expect(world.seen('connect').length).toBe(world.seen('disconnect').length)
    },
  )

  it.each(['drop', 'sessionlost', 'connect'] as const)('on `%s`, with a goodbye: the same', async (type) => {
    const { world, errors } = await losing(type, ({ client }) => {
      quiet(client.disconnect({ timeout: 0 }))
    })
    await world.clock.advance(60_000)
    expect(world.client.state).toBe('closed')
    for (const error of errors) expect(await error).toMatchObject({ outcome: 'unknown' })
    expect(world.clock.pending).toBe(0)
    expect(world.seen('connect').length).toBe(world.seen('disconnect').length)
  })

  it('on `drop` of a session that expires', async () => {
    const world = await steady({ sessionExpiryInterval: 0 })
    const error = failure(world.client.publish('t', 'a', { qos: 2 }))
    await world.settle()
    world.client.on('drop', () => world.client.destroy(), { once: true })
    await lose(world)
    await world.clock.advance(60_000)
    expect(await error).toMatchObject({ outcome: 'unknown' })
    expect([world.client.state, world.peers.length, world.clock.pending]).toEqual(['closed', 1, 0])
  })

  it('on `error` of a filter that is refused while it is brought back', async () => {
    const world = await steady({}, willing(false))
    await subscribe(world, 'a')
    await subscribe(world, 'b')
    world.client.on('error', () => world.client.destroy(), { once: true })
    await lose(world)
    world.answer = (packet) =>
      packet.type === 'subscribe'
        ? { type: 'suback', packetId: packet.packetId, reasonCodes: packet.subscriptions.map(() => 0x87), properties: {} }
        : willing(false)(packet)
    await world.clock.advance(pause)
    await world.clock.advance(60_000)
    expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
  })
})

describe('a listener that goes on', () => {
  it.each(['drop', 'sessionlost'] as const)('publishing and subscribing on `%s` works: each on the wire once', async (type) => {
    const { world } = await losing(type, ({ client }) => {
      quiet(client.publish('t', 'new', { qos: 1 }))
      quiet(client.subscribe('s'))
    })
    const lines = carried(world.peer).map((line) => line.replace(/ #\d+/, ''))
    expect(lines.filter((line) => line === 'publish t=new q1')).toHaveLength(1)
    expect(lines.filter((line) => line === 'publish t=c q1')).toHaveLength(1)
    expect(lines.filter((line) => line === 'subscribe s')).toHaveLength(1)
    expect(lines).toHaveLength(3)
  })

  it('publishing the rejected messages again, on `drop`: one connection carries each once, no loop', async () => {
    const world = await steady()
    quiet(world.client.publish('t', 'a', { qos: 2 }))
    await world.settle()
    let count = 0
    world.client.on('drop', () => {
      count += 1
      quiet(world.client.publish('t', 'a', { qos: 2 }))
    })
    for (let round = 1; round <= 3; round++) {
      const peer = await again(world, forgets())
      expect(carried(peer).map((line) => line.replace(/ #\d+/, ''))).toEqual(['publish t=a q2'])
      expect(count).toBe(round)
    }
  })

  it('`reconnect({ force: true })` on `sessionlost` gives one more connection, which knows the session', async () => {
    const world = await steady()
    send(world, 1, 'c')
    await world.settle()
    world.client.on(
      'sessionlost',
      () => {
        world.answer = willing(true)
        quiet(world.client.reconnect({ force: true }))
      },
      { once: true },
    )
    await lose(world)
    await comeBack(world, forgets()).catch(() => undefined)
    await world.clock.advance(1000)
    expect(world.client.state).toBe('connected')
    expect(world.peers).toHaveLength(3)
    expect(carried(world.peer)[0]).toMatch(/^publish t=c q1 #\d+( dup)?$/)
  })

  it('a listener that throws is logged, and changes nothing', async () => {
    const { world, errors } = await losing('drop', () => {
      throw new Error('listener')
    })
    for (const error of errors) expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST' })
    expect(world.client.state).toBe('connected')
    expect(world.peer.all('publish')).toHaveLength(1)
  })
})
