/** State and events of a client without reconnecting, and what a listener finds. More of both in the files `lifecycle*`. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { agreed, quiet } from './incoming.js'
import { settled } from './steps.js'

const states = (world: World): string[] =>
  world.seen('state').map(({ previous, state }) => `${previous} → ${state}`)
const lineOf = (type: keyof ClientEvents, event: unknown): string =>
  type === 'state' ? `state ${(event as ClientEvents['state']).state}` : type
const order = (world: World): string[] => world.events.map(({ type, event }) => lineOf(type, event))

const up = ['idle → connecting', 'connecting → connected']
const left = ['connected → disconnecting', 'disconnecting → closed']

function agreeableWorld(): World {
  const world = new World()
  world.answer = agreeable
  return world
}

describe('transitions, each exactly once', () => {
  /** How a connection ends, the transitions that follow, and the code of the cause. */
  it.each<[string, (world: World) => unknown, string?]>([
    ['disconnect()', ({ client }) => client.disconnect()],
    ['disconnect() twice', ({ client }) => Promise.all([client.disconnect(), client.disconnect()])],
    ['disconnect({ timeout: 0 })', ({ client }) => client.disconnect({ timeout: 0 })],
    ['destroy() during disconnect()', ({ client }) => [client.disconnect(), client.destroy()]],
    ['destroy()', ({ client }) => client.destroy()],
    ['the stream is cut', ({ peer }) => peer.cut(), 'ERR_CONNECTION_LOST'],
    ['the stream ends', ({ peer }) => peer.end(), 'ERR_CONNECTION_LOST'],
    ['a server DISCONNECT', ({ peer }) => peer.sendBytes('e0 02 8b 00'), 'ERR_SERVER_DISCONNECT'],
    ['bad bytes', ({ peer }) => peer.sendBytes('00 00'), 'ERR_MALFORMED_PACKET'],
    ['silence', ({ clock }) => clock.advance(60_000), 'ERR_KEEPALIVE_TIMEOUT'],
  ])('connected, then %s', async (name, end, code) => {
    const world = await connected({ sessionExpiryInterval: 0 })
    const ended = end(world)
    await world.settle()
    await ended
    const transitions = [
      ...up,
      ...(name.includes('disconnect()') || name.includes('disconnect({')
        ? left
        : ['connected → closed']),
    ]
    expect(states(world)).toEqual(transitions)
    const cause = await world.client.closed
    expect(cause?.code).toBe(code)
    expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
    expect(order(world).slice(-2)).toEqual(['state closed', 'disconnect'])
    await world.clock.advance(3_600_000)
    expect(states(world).length).toEqual(transitions.length)
    expect(world.seen('disconnect').length).toBe(1)
    expect(world.clock.pending).toBe(0)
  })

  it.each(['disconnect', 'destroy'] as const)('not connected yet, then %s()', async (how) => {
    const idle = new World()
    await idle.client[how]()
    expect([states(idle), order(idle)]).toEqual([['idle → closed'], ['state closed']])
    for (const dial of [() => new Promise<never>(() => undefined), undefined]) {
      const world = new World({}, {}, 1, dial)
      const connecting = failure(world.client.connect())
      await world.settle()
      await world.client[how]()
      expect((await settled(world, connecting)).code).toBe('ERR_CLOSED')
      expect(states(world)).toEqual(['idle → connecting', 'connecting → closed'])
      expect(await world.client.closed).toBeUndefined()
      expect(world.seen('disconnect')).toEqual([])
      expect(world.seen('connecterror')).toEqual([])
      expect(world.clock.pending).toBe(0)
      for (const peer of world.peers) expect(peer.ended).toBeDefined()
    }
  })

  it('events of a whole life, in order, with what they carry', async () => {
    const world = await connected({ clientId: 'a' }, accepting({ reasonString: 'hi' }))
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
    const life = [
      'state connecting',
      'dial',
      'state connected',
      'connect',
      'serverdisconnect',
      'state closed',
      'disconnect',
    ]
    expect(order(world)).toEqual(life)
    const properties = expect.objectContaining({ reasonString: 'hi' }) as unknown
    const connack = { type: 'connack', sessionPresent: false, reasonCode: 0, properties }
    const { negotiated } = world.client
    const endpoint = 'memory://peer-0'
    expect(world.seen('connect')).toEqual([
      { connack, negotiated, sessionPresent: false, endpoint, dropped: [] },
    ])
    expect(world.seen('dial')).toEqual([{ attempt: 1, endpoint }])
  })
})

describe('connect()', () => {
  it('while connecting joins: one attempt, all settle together', async () => {
    const world = new World()
    const calls = [world.client.connect(), world.client.connect()]
    await world.settle()
    calls.push(world.client.connect())
    await world.send({ type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} })
    await Promise.all(calls)
    expect(world.peers.length).toBe(1)
    expect(world.peer.all('connect').length).toBe(1)
    expect(states(world)).toEqual(up)
  })

  it('when connected, disconnecting and closed', async () => {
    const world = await agreed()
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_ALREADY_CONNECTED' })
    const stopping = world.client.disconnect()
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_CLOSED' })
    await settled(world, stopping)
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_CLOSED' })
    expect(world.peers).toHaveLength(1)
  })

  it('a failed round is the end: ERR_CLOSED afterwards', async () => {
    const world = new World({}, {}, 1, () => Promise.reject(new Error('no')))
    await failure(world.client.connect())
    expect(world.client.state).toBe('closed')
    for (const call of [world.client.connect(), world.client.publish('a', 'b', { qos: 1 })])
      expect(await failure(call)).toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('the signal of the first caller ends the attempt', async () => {
    const world = new World()
    const controller = new AbortController()
    const calls = [
      failure(world.client.connect({ signal: controller.signal })),
      failure(world.client.connect()),
    ]
    await world.settle()
    const cause = new Error('changed my mind')
    controller.abort(cause)
    const [own, joined] = await settled(world, Promise.all(calls))
    expect(own).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', cause })
    expect([joined, await world.client.closed]).toMatchObject([
      { code: 'ERR_ABORTED' },
      { code: 'ERR_ABORTED' },
    ])
    expect(world.client.state).toBe('closed')
    expect(world.peer.ended !== undefined).toBe(true)
    expect(world.clock.pending).toBe(0)
  })

  it('the signal of a joiner drops only the joiner', async () => {
    const world = new World()
    const controller = new AbortController()
    const first = world.client.connect()
    const joined = failure(world.client.connect({ signal: controller.signal }))
    await world.settle()
    controller.abort()
    expect(await joined).toMatchObject({ code: 'ERR_ABORTED' })
    expect(world.client.state).toBe('connecting')
    await world.send({ type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} })
    await first
    expect(world.client.state).toBe('connected')
  })

  it('an aborted signal starts nothing, and an abort after CONNACK does nothing', async () => {
    const world = agreeableWorld()
    expect(await failure(world.client.connect({ signal: AbortSignal.abort() }))).toMatchObject({
      code: 'ERR_ABORTED',
    })
    expect([world.client.state, world.peers.length]).toEqual(['idle', 0])
    const controller = new AbortController()
    await settled(world, world.client.connect({ signal: controller.signal }))
    controller.abort()
    await world.settle()
    expect(world.client.state).toBe('connected')
  })
})

describe('events come after the fact, to every listener in the same order', () => {
  /** What a second listener sees, in order, when the first one acts at the given line. */
  function ordered(world: World, at: string, act: () => void): string[] {
    const lines: string[] = []
    for (const type of [
      'state',
      'reconnecting',
      'connect',
      'disconnect',
      'sessionlost',
      'late',
    ] as const) {
      world.client.on(type, (event) => {
        if (lineOf(type, event) === at) act()
      })
      world.client.on(type, (event) => void lines.push(lineOf(type, event)))
    }
    return lines
  }

  it('destroy() in `state` connecting: the second listener sees closed after connecting, and no transport is opened', async () => {
    const world = agreeableWorld()
    const lines = ordered(world, 'state connecting', () => world.client.destroy())
    expect(await settled(world, failure(world.client.connect()))).toMatchObject({
      code: 'ERR_CLOSED',
    })
    expect(lines).toEqual(['state connecting', 'state closed'])
  })

  it('destroy() in `state` connected: `connect` comes, then the end', async () => {
    const world = agreeableWorld()
    const lines = ordered(world, 'state connected', () => world.client.destroy())
    await settled(world, world.client.connect())
    expect(lines).toEqual([
      'state connecting',
      'state connected',
      'connect',
      'state closed',
      'disconnect',
    ])
  })

  it('in `state` it is the new one: connected, what waited has left; closed, everything has settled', async () => {
    const world = agreeableWorld()
    const seen: unknown[] = []
    world.client.on('state', ({ state }) => {
      const { client } = world
      if (state === 'connected')
        seen.push(client.outbound.size, client.negotiated?.receiveMaximum !== undefined)
      if (state === 'closed') seen.push(client.outbound.size, world.clock.pending)
      seen.push(client.state === state)
    })
    const published = world.client.publish('t', 'a', { qos: 1 })
    await settled(world, Promise.all([world.client.connect(), published]))
    world.answer = undefined
    quiet(world.client.publish('t', 'a', { qos: 1 }))
    world.peer.cut()
    await world.settle()
    expect(seen).toEqual([true, 0, true, true, 0, 0, true])
  })

  it('disconnect() in `disconnect`: reconnecting comes before closed, and nothing is dialled', async () => {
    const world = await connected({ reconnect: { backoff: () => 1000 } })
    const lines = ordered(world, 'disconnect', () => void world.client.disconnect())
    world.peer.cut()
    await world.clock.advance(60_000)
    expect(lines).toEqual(['state reconnecting', 'disconnect', 'reconnecting', 'state closed'])
    expect(world.clock.pending).toBe(0)
  })

  it('reconnect() in `state` reconnecting: the wait that was decided on is cut short', async () => {
    const world = await connected({ reconnect: { backoff: () => 30_000 } }, agreeable)
    const lines = ordered(world, 'state reconnecting', () => void world.client.reconnect())
    world.peer.cut()
    await world.clock.advance(10)
    expect(lines).toEqual([
      'state reconnecting',
      'disconnect',
      'reconnecting',
      'state connected',
      'connect',
      'sessionlost',
    ])
  })
})
