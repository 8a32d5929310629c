/** Events: the emitter, their names, listeners as an option, and what a listener finds. Their order over whole lives: the files `lifecycle*`. */
import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import { clientOn, connectWith } from '../../../src/client/client.js'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import { Emitter } from '../../../src/common/emitter.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { lose } from './across.js'
import { agreeable, connected, failure, World } from './harness.js'
import { agreed, quiet } from './incoming.js'
import { down, Rig } from './rig.js'
import { settled } from './steps.js'

const states = (world: World): string[] =>
  world.seen('state').map(({ previous, state }) => `${previous} → ${state}`)
const lineOf = (type: keyof ClientEvents, event: unknown): string =>
  type === 'state' ? `state ${(event as ClientEvents['state']).state}` : type

const up = ['idle → connecting', 'connecting → connected']

function agreeableWorld(): World {
  const world = new World()
  world.answer = agreeable
  return world
}

describe('connect()', () => {
  it('while connecting joins: one attempt, all settle together', async () => {
    const world = new World()
    const calls = [world.client.connect(), world.client.connect()]
    await world.settle()
    calls.push(world.client.connect())
    await world.send({ type: 'connack', sessionPresent: false, reasonCode: 0 })
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

  it('the signal of the first caller ends the attempt', async () => {
    const world = new World()
    const controller = new AbortController()
    const { signal } = controller
    const calls = [failure(world.client.connect({ signal })), failure(world.client.connect())]
    await world.settle()
    const cause = new Error('changed my mind')
    controller.abort(cause)
    const [own, joined] = await settled(world, Promise.all(calls))
    expect(own).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', cause })
    for (const error of [joined, await world.client.closed]) expect(error?.code).toBe('ERR_ABORTED')
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
    await world.send({ type: 'connack', sessionPresent: false, reasonCode: 0 })
    await first
    expect(world.client.state).toBe('connected')
  })

  it('an aborted signal starts nothing, and an abort after CONNACK does nothing', async () => {
    const world = agreeableWorld()
    const early = await failure(world.client.connect({ signal: AbortSignal.abort() }))
    expect(early.code).toBe('ERR_ABORTED')
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
    const ends = ['disconnect', 'sessionlost', 'late'] as const
    for (const type of ['state', 'reconnecting', 'connect', ...ends] as const) {
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
    const error = await settled(world, failure(world.client.connect()))
    expect(error.code).toBe('ERR_CLOSED')
    expect(lines).toEqual(['state connecting', 'state closed'])
  })

  it('destroy() in `state` connected: `connect` comes, then the end', async () => {
    const world = agreeableWorld()
    const lines = ordered(world, 'state connected', () => world.client.destroy())
    await world.up()
    const life = 'state connecting,state connected,connect,state closed,disconnect'
    expect(lines.join()).toBe(life)
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
    await lose(world)
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
    const life = 'state reconnecting,disconnect,reconnecting,state connected,connect,sessionlost'
    expect(lines.join()).toBe(life)
  })
})

interface Events {
  a: { readonly value: number }
  b: string
}

describe('the emitter', () => {
  const reports: [unknown, string][] = []
  const emitter = (): Emitter<Events> =>
    new Emitter<Events>({ handleListenerFailed: (error, type) => reports.push([error, type]) })

  it('calls listeners at once, in order, each with the event', () => {
    const events = emitter()
    const calls: unknown[] = []
    events.on('a', (event) => calls.push(['first', event]))
    events.on('b', (event) => calls.push(['b', event]))
    events.on('a', (event) => calls.push(['second', event]))
    events.emit('a', { value: 1 })
    events.emit('b', 'x')
    const [a, b] = [{ value: 1 }, 'x']
    expect(calls.flat()).toEqual(['first', a, 'second', a, 'b', b])
  })

  it('once: one event, also when the listener emits again', () => {
    const events = emitter()
    const listener = vi.fn(() => events.emit('b', 'again'))
    events.on('b', listener, { once: true })
    events.emit('b', 'x')
    events.emit('b', 'y')
    expect(listener).toHaveBeenCalledTimes(1)
    expect(events.has('b')).toBe(false)
  })

  it('what on() gives removes the listener: called, or disposed of; again is harmless; one function twice is two listeners', () => {
    const events = emitter()
    const listener = vi.fn()
    const first = events.on('b', listener)
    {
      using _second = events.on('b', listener)
      events.emit('b', 'both')
      first()
      first()
      events.emit('b', 'one')
    }
    events.emit('b', 'none')
    expect(listener.mock.calls).toEqual([['both'], ['both'], ['one']])
    expect(events.has('b')).toBe(false)
  })

  it('signal: removed with its abort, never added after it; the signal keeps no listener', () => {
    const events = emitter()
    const controller = new AbortController()
    const added = vi.spyOn(controller.signal, 'addEventListener')
    const removed = vi.spyOn(controller.signal, 'removeEventListener')
    const listener = vi.fn()
    events.on('b', listener, { signal: controller.signal })()
    events.on('b', listener, { signal: controller.signal, once: true })
    events.emit('b', 'x')
    expect(removed.mock.calls.length).toBe(added.mock.calls.length)
    events.on('b', listener, { signal: controller.signal })
    controller.abort()
    events.emit('b', 'y')
    events.on('b', listener, { signal: controller.signal })
    events.emit('b', 'z')
    expect([listener.mock.calls, events.has('b')]).toEqual([[['x']], false])
  })

  it('a listener that throws is reported and counted; the others are called', () => {
    const events = emitter()
    const error = new Error('mine')
    const listener = vi.fn(() => {
      throw error
    })
    const other = vi.fn()
    events.on('b', listener)
    events.on('b', other)
    events.emit('b', 'x')
    expect(other).toHaveBeenCalledTimes(1)
    expect([reports, events.failures]).toEqual([[[error, 'b']], 1])
  })

  it('listeners may be added and removed while an event is on its way: added ones wait for the next, removed ones are not called', () => {
    const events = emitter()
    const [late, removed] = [vi.fn(), vi.fn()]
    events.on('b', () => {
      events.on('b', late)
      remove()
    })
    const remove = events.on('b', removed)
    events.emit('b', 'x')
    expect(late).not.toHaveBeenCalled()
    events.emit('b', 'y')
    expect([late.mock.calls, removed.mock.calls]).toEqual([[['y']], []])
  })
})

it('a listener that throws in any event stops nothing, and is logged', async () => {
  const lines: string[] = []
  const world = new World({ logger: { error: (line: string) => lines.push(line) } })
  world.answer = agreeable
  const types = ['state', 'dial', 'connect', 'serverdisconnect', 'disconnect', 'packet'] as const
  for (const type of types) world.client.on(type, () => expect.fail(`thrown in ${type}`))
  await world.up()
  await settled(world, world.client.publish('a', 'b', { qos: 2 }))
  await world.send({ type: 'disconnect', reasonCode: 0x8b })
  expect(await world.client.closed).toMatchObject({ code: 'ERR_SERVER_DISCONNECT' })
  expect(world.clock.pending).toBe(0)
  for (const type of types)
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`'${type}'.*thrown in ${type}`)))
})

describe('names of events', () => {
  const every: Readonly<Record<keyof ClientEvents, string>> = {
    state: 'stat',
    reconnecting: 'reconnect',
    dial: 'dials',
    connect: 'conect',
    connecterror: 'connectError',
    disconnect: 'disconnected',
    serverdisconnect: 'serverDisconnect',
    sessionlost: 'sessionLost',
    drop: 'dropped',
    stalled: 'stall',
    late: 'lated',
    unclaimed: 'unclaim',
    error: 'err',
    invalid: 'invalids',
    recovered: 'recover',
    storecorrupt: 'storeCorrupt',
    packet: 'packetreceive',
  }
  const { client } = new World()
  const listen = (type: unknown) => () => client.on(type as 'state', () => undefined)
  const refusal = { code: 'ERR_INVALID_OPTION', option: 'type' }

  it.each(Object.entries(every))('%s is taken, and named for %s', (name, given) => {
    expect(listen(name)).not.toThrow()
    expect(listen(given)).toThrow(
      expect.objectContaining({
        ...refusal,
        message: `unknown event ${given}; did you mean ${name}?`,
      }),
    )
  })

  it.each(['message', 'messages', 'subscribe'])('%s leads to subscribe() and listen()', (given) => {
    expect(listen(given)).toThrow(/subscribe\(\) or listen\(\)/)
  })

  const odd = [Symbol('state'), ['state'], { toString: () => 'state' }]
  const none = ['', 5, undefined, null, ...odd, '__proto__', 'toString', 'x\n'.repeat(1e5)]
  it.each(none.map((given) => [given]))('%#: what is no name is refused, in few words', (given) => {
    expect(listen(given)).toThrow(
      expect.objectContaining({
        ...refusal,
        message: expect.stringMatching(/^.{0,399}$/) as string,
      }),
    )
  })
})

function thrownBy(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
const refusal = (on: unknown): unknown => thrownBy(() => new World({ on } as ClientOptions))

describe('the option on', () => {
  it('attaches listeners before the first dial: what happens meanwhile is told to them', async () => {
    const seen: string[] = []
    const on: ClientOptions['on'] = {
      state: ({ state }) => seen.push(`state ${state}`),
      dial: ({ attempt }) => seen.push(`dial ${attempt}`),
      connecterror: ({ error }) => seen.push(error.code),
      reconnecting: ({ delay }) => seen.push(`again in ${delay}`),
    }
    const behave = (_host: string, dial: number) => (dial === 1 ? down : 'hang')
    const rig = new Rig({ firstConnect: 'wait', on }, { behave })
    quiet(rig.client.connect())
    await rig.advance(1000)
    expect(seen.join(', ')).toBe(
      'state connecting, dial 1, ERR_CONNECT_FAILED, again in 1000, dial 2',
    )
    await rig.finish()
  })

  it('connect() takes it too', async () => {
    const seen: unknown[] = []
    const clock = new VirtualClock()
    const endpoint = { url: 'x://a', transport: () => Promise.reject(down) }
    const connect = connectWith(clientOn(virtualPlatform(clock)))
    const connecting = connect(endpoint, { on: { connecterror: (event) => seen.push(event) } })
    const error = { code: 'ERR_CONNECT_FAILED' }
    await expect(Promise.all([connecting, clock.settle()])).rejects.toMatchObject(error)
    expect(seen).toMatchObject([{ attempt: 1, endpoint: 'x://a', error }])
  })

  it('what is no function, and what is no object, is refused by name', () => {
    for (const state of ['loud', null])
      expect(refusal({ state })).toMatchObject({ code: 'ERR_INVALID_HANDLER', option: 'on.state' })
    for (const on of ['state', 1, null, () => undefined, ['state']])
      expect(refusal(on), String(on)).toMatchObject({ code: 'ERR_INVALID_OPTION' })
  })

  it('undefined is as good as left out, and the object that was given is not kept', async () => {
    const seen: string[] = []
    const on: ClientOptions['on'] = { state: undefined, dial: () => seen.push('given') }
    const world = new World({ on })
    const later = (): number => seen.push('put there later')
    Object.assign(on, { dial: later, state: later })
    quiet(world.client.connect())
    await world.settle()
    expect(seen).toEqual(['given'])
  })

  it('is typed by the events', () => {
    type On = NonNullable<ClientOptions['on']>
    expectTypeOf<keyof On>().toEqualTypeOf<keyof ClientEvents>()
    type Listener = NonNullable<On['connecterror']>
    expectTypeOf<Listener>().parameter(0).toEqualTypeOf<ClientEvents['connecterror']>()
    // @ts-expect-error there is no such event
    expect(refusal({ mesage: () => undefined } satisfies On)).toBeInstanceOf(MqttError)
  })
})
