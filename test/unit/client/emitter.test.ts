import { describe, expect, it, vi } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import { Emitter } from '../../../src/client/common/emitter.js'
import { agreeable, World } from './harness.js'
import { settled } from './steps.js'

interface Events {
  a: { readonly value: number }
  b: string
}

describe('the emitter', () => {
  const reports: [unknown, string][] = []
  const emitter = (): Emitter<Events> =>
    new Emitter<Events>((error, type) => reports.push([error, type]))

  it('calls listeners at once, in order, each with the event', () => {
    const events = emitter()
    const calls: unknown[] = []
    events.on('a', (event) => calls.push(['first', event]))
    events.on('b', (event) => calls.push(['b', event]))
    events.on('a', (event) => calls.push(['second', event]))
    events.emit('a', { value: 1 })
    events.emit('b', 'x')
    expect(calls).toEqual([
      ['first', { value: 1 }],
      ['second', { value: 1 }],
      ['b', 'x'],
    ])
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

describe('client.on', () => {
  it('a listener that throws in any event stops nothing, and is logged', async () => {
    const lines: string[] = []
    const world = new World({ logger: { error: (line: string) => lines.push(line) } })
    world.answer = agreeable
    const types = ['state', 'dial', 'connect', 'serverdisconnect', 'disconnect', 'packet'] as const
    for (const type of types) world.client.on(type, () => expect.fail(`thrown in ${type}`))
    await settled(world, world.client.connect())
    await settled(world, world.client.publish('a', 'b', { qos: 2 }))
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_SERVER_DISCONNECT' })
    expect(world.clock.pending).toBe(0)
    for (const type of types)
      expect(lines).toContainEqual(
        expect.stringMatching(new RegExp(`'${type}'.*thrown in ${type}`)),
      )
  })

  it('packets: every one in both directions, CONNECT without its secrets; nothing when nobody listens', async () => {
    const world = new World({ username: 'u', password: 'p' })
    world.answer = agreeable
    const seen: string[] = []
    const remove = world.client.on('packet', ({ direction, packet }) =>
      seen.push(`${direction} ${packet.type}`),
    )
    await settled(world, world.client.connect())
    await settled(
      world,
      Promise.all([world.client.publish('a', 'b', { qos: 2 }), world.client.subscribe('a')]),
    )
    expect(seen.slice(0, 2)).toEqual(['out connect', 'in connack'])
    const rest = [
      'in pubcomp',
      'in pubrec',
      'in suback',
      'out publish',
      'out pubrel',
      'out subscribe',
    ]
    expect(seen.slice(2).sort()).toEqual(rest)
    remove()
    await settled(world, world.client.disconnect())
    expect(seen).toHaveLength(8)
  })
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

  const none = [
    '',
    5,
    undefined,
    null,
    Symbol('state'),
    ['state'],
    { toString: () => 'state' },
    '__proto__',
    'toString',
    'x\n'.repeat(1e5),
  ]
  it.each(none.map((given) => [given]))('%#: what is no name is refused, in few words', (given) => {
    expect(listen(given)).toThrow(
      expect.objectContaining({
        ...refusal,
        message: expect.stringMatching(/^.{0,399}$/) as string,
      }),
    )
  })
})
