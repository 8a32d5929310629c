import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import type { BaseClient } from '../../../src/client/client.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'

const states = (world: World): string[] => world.seen('state').map(({ previous, state }) => `${previous} → ${state}`)
const order = (world: World): string[] =>
  world.events.map(({ type, event }) => (type === 'state' ? `state ${(event as ClientEvents['state']).state}` : type))

const up = ['idle → connecting', 'connecting → connected']

/** How a connection ends, and the transitions that follow, each exactly once. */
const endings: readonly (readonly [name: string, end: (world: World) => unknown, transitions: readonly string[], code: string | undefined])[] = [
  ['disconnect()', (world) => world.client.disconnect(), ['connected → disconnecting', 'disconnecting → closed'], undefined],
  [
    'disconnect() twice',
    (world) => [world.client.disconnect(), world.client.disconnect()],
    ['connected → disconnecting', 'disconnecting → closed'],
    undefined,
  ],
  [
    'disconnect({ timeout: 0 })',
    (world) => world.client.disconnect({ timeout: 0 }),
    ['connected → disconnecting', 'disconnecting → closed'],
    undefined,
  ],
  ['destroy()', (world) => world.client.destroy(), ['connected → closed'], undefined],
  [
    'destroy() during disconnect()',
    (world) => {
      world.client.disconnect()
      world.client.destroy()
    },
    ['connected → disconnecting', 'disconnecting → closed'],
    undefined,
  ],
  ['the stream is cut', (world) => world.peer.cut(), ['connected → closed'], 'ERR_CONNECTION_LOST'],
  ['the stream ends', (world) => world.peer.end(), ['connected → closed'], 'ERR_CONNECTION_LOST'],
  ['a server DISCONNECT', (world) => world.peer.sendBytes('e0 02 8b 00'), ['connected → closed'], 'ERR_SERVER_DISCONNECT'],
  ['bad bytes', (world) => world.peer.sendBytes('00 00'), ['connected → closed'], 'ERR_MALFORMED_PACKET'],
  ['silence', (world) => world.clock.advance(60_000), ['connected → closed'], 'ERR_KEEPALIVE_TIMEOUT'],
]

describe('transitions, each exactly once', () => {
  it.each(endings)('connected, then %s', async (_name, end, transitions, code) => {
    const world = await connected({ sessionExpiryInterval: 0 })
    const ended = end(world)
    await world.settle()
    await ended
    expect(states(world)).toEqual([...up, ...transitions])
    const cause = await world.client.closed
    expect(cause?.code).toBe(code)
    expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
    for (const event of world.seen('disconnect')) expect(event.error).toBe(event.cause)
    expect(order(world).slice(-2)).toEqual(['state closed', 'disconnect'])
    await world.clock.advance(3_600_000)
    expect(states(world)).toHaveLength(2 + transitions.length)
    expect(world.seen('disconnect')).toHaveLength(1)
    expect(world.clock.pending).toBe(0)
  })

  it('idle, then disconnect() or destroy()', async () => {
    for (const how of ['disconnect', 'destroy'] as const) {
      const world = new World()
      await world.client[how]()
      expect(states(world)).toEqual(['idle → closed'])
      expect(order(world)).toEqual(['state closed'])
    }
  })

  it.each(['disconnect', 'destroy'] as const)('%s while dialling, and while CONNACK is awaited', async (how) => {
    for (const dial of [() => new Promise<never>(() => undefined), undefined]) {
      const world = dial === undefined ? new World() : new World({}, {}, 1, dial)
      const connecting = failure(world.client.connect())
      await world.settle()
      await world.client[how]()
      await world.settle()
      expect((await connecting).code).toBe('ERR_CLOSED')
      expect(states(world)).toEqual(['idle → connecting', 'connecting → closed'])
      expect(await world.client.closed).toBeUndefined()
      expect(world.seen('disconnect')).toEqual([])
      expect(world.seen('connecterror')).toEqual([])
      for (const peer of world.peers) expect(peer.ended).toBeDefined()
      expect(world.clock.pending).toBe(0)
    }
  })

  it('events of a whole life, in order, with what they carry', async () => {
    const world = await connected({ clientId: 'a' }, accepting({ reasonString: 'hi' }))
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
    expect(order(world)).toEqual(['state connecting', 'dial', 'state connected', 'connect', 'serverdisconnect', 'state closed', 'disconnect'])
    expect(world.seen('connect')).toEqual([
      {
        connack: { type: 'connack', sessionPresent: false, reasonCode: 0, properties: expect.objectContaining({ reasonString: 'hi' }) as unknown },
        negotiated: world.client.negotiated,
        sessionPresent: false,
        endpoint: 'memory://peer-0',
        dropped: [],
      },
    ])
    expect(world.seen('dial')).toEqual([{ attempt: 1, endpoint: 'memory://peer-0' }])
  })

  it('state is already the new one in its event', async () => {
    const world = new World()
    world.answer = agreeable
    const seen: boolean[] = []
    world.client.on('state', ({ state }) => seen.push(world.client.state === state))
    await Promise.all([world.client.connect(), world.settle()])
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(seen).toEqual([true, true, true, true])
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
    expect(world.peers).toHaveLength(1)
    expect(world.peer.all('connect')).toHaveLength(1)
    expect(states(world)).toEqual(up)
  })

  it('when connected, disconnecting and closed', async () => {
    const world = await connected({}, agreeable)
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_ALREADY_CONNECTED' })
    expect(world.peers).toHaveLength(1)
    const stopping = world.client.disconnect()
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_CLOSED' })
    await world.settle()
    await stopping
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_CLOSED' })
    expect(world.peers).toHaveLength(1)
  })

  it('a failed round is the end: ERR_CLOSED afterwards', async () => {
    const world = new World({}, {}, 1, () => Promise.reject(new Error('no')))
    await failure(world.client.connect())
    expect(world.client.state).toBe('closed')
    expect(await failure(world.client.connect())).toMatchObject({ code: 'ERR_CLOSED' })
    expect(await failure(world.client.publish('a', 'b', { qos: 1 }))).toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('the signal of whoever began ends the attempt', async () => {
    const world = new World()
    const controller = new AbortController()
    const calls = [failure(world.client.connect({ signal: controller.signal })), failure(world.client.connect())]
    await world.settle()
    const reason = new Error('changed my mind')
    controller.abort(reason)
    await world.settle()
    const [own, joined] = await Promise.all(calls)
    expect(own).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', cause: reason })
    expect(joined).toMatchObject({ code: 'ERR_ABORTED' })
    expect(world.client.state).toBe('closed')
    expect(await world.client.closed).toMatchObject({ code: 'ERR_ABORTED' })
    expect(world.peer.ended).toBeDefined()
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

  it('an aborted signal starts nothing', async () => {
    const world = new World()
    expect(await failure(world.client.connect({ signal: AbortSignal.abort() }))).toMatchObject({ code: 'ERR_ABORTED' })
    expect(world.client.state).toBe('idle')
    expect(world.peers).toHaveLength(0)
    world.answer = agreeable
    await Promise.all([world.client.connect(), world.settle()])
    expect(world.client.state).toBe('connected')
  })

  it('an abort after CONNACK does nothing', async () => {
    const world = new World()
    world.answer = agreeable
    const controller = new AbortController()
    await Promise.all([world.client.connect({ signal: controller.signal }), world.settle()])
    controller.abort()
    await world.settle()
    expect(world.client.state).toBe('connected')
  })
})

type Kind =
  | 'state connecting'
  | 'state connected'
  | 'state closed'
  | 'state disconnecting'
  | 'dial'
  | 'connect'
  | 'connecterror'
  | 'serverdisconnect'
  | 'disconnect'

const kinds: Kind[] = [
  'state connecting',
  'state connected',
  'state disconnecting',
  'state closed',
  'dial',
  'connect',
  'connecterror',
  'serverdisconnect',
  'disconnect',
]

/** Calls from within a listener; gives what they return. */
const calls: Record<string, (client: BaseClient) => unknown> = {
  disconnect: (client) => client.disconnect(),
  'disconnect at once': (client) => client.disconnect({ timeout: 0 }),
  destroy: (client) => client.destroy(),
  connect: (client) => client.connect(),
  publish: (client) => client.publish('a', 'b', { qos: 2 }),
  subscribe: (client) => client.subscribe('a'),
  unsubscribe: (client) => client.unsubscribe('a'),
}

describe('every call from within every event: no deadlock, everything settles, no second life', () => {
  it.each(kinds.flatMap((kind) => Object.keys(calls).map((call) => [call, kind] as const)))('%s in %s', async (name, kind) => {
    const world = new World({}, {}, 2, (index, open) => (index === 0 ? Promise.reject(new Error('down')) : open()))
    world.answer = agreeable
    const made: Promise<unknown>[] = []
    const [type, state] = kind.split(' ') as [keyof ClientEvents, string | undefined]
    let fired = 0
    world.client.on(type, (event) => {
      if (state !== undefined && (event as ClientEvents['state']).state !== state) return
      fired += 1
      if (fired > 3) throw new Error('again and again')
      try {
        made.push(Promise.resolve(calls[name]?.(world.client)))
      } catch (error) {
        made.push(Promise.reject(error))
      }
      made.at(-1)?.catch(() => undefined)
    })
    made.push(world.client.connect())
    made.at(-1)?.catch(() => undefined)
    await world.settle()
    if (kind === 'serverdisconnect' && world.client.state === 'connected') await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
    if (world.client.state !== 'closed') made.push(world.client.disconnect({ timeout: 0 }))
    await world.clock.advance(50)
    const open = await Promise.all(made.map(async (promise) => (await world.outcome(promise)).state))
    expect(open).not.toContain('pending')
    expect(world.client.state).toBe('closed')
    expect(fired).toBeLessThanOrEqual(kind === 'dial' ? 2 : 1)
    expect(order(world).filter((entry) => entry === 'state closed')).toHaveLength(1)
    const tail = order(world).slice(order(world).indexOf('state closed') + 1)
    expect(tail.filter((entry) => entry !== 'disconnect' && entry !== 'drop')).toEqual([])
    expect(world.seen('disconnect').length).toBe(world.seen('connect').length)
    for (const peer of world.peers) expect(peer.ended).toBeDefined()
    await world.clock.advance(20_000)
    expect(world.clock.pending).toBe(0)
  })
})
