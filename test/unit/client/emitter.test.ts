import { describe, expect, it, vi } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import { Emitter } from '../../../src/client/common/emitter.js'
import { agreeable, connected, World } from './harness.js'

interface Events {
  a: { readonly value: number }
  b: string
}

function emitter(): { emitter: Emitter<Events>; reports: [unknown, string][] } {
  const reports: [unknown, string][] = []
  return { emitter: new Emitter<Events>((error, type) => reports.push([error, type])), reports }
}

describe('the emitter', () => {
  it('calls listeners at once, in order, each with the event', () => {
    const { emitter: events } = emitter()
    const calls: unknown[] = []
    events.on('a', (event) => calls.push(['first', event]))
    events.on('b', (event) => calls.push(['b', event]))
    events.on('a', (event) => calls.push(['second', event]))
    events.emit('a', { value: 1 })
    expect(calls).toEqual([
      ['first', { value: 1 }],
      ['second', { value: 1 }],
    ])
    events.emit('b', 'x')
    expect(calls).toHaveLength(3)
  })

  it('once: one event, also when the listener emits again', () => {
    const { emitter: events } = emitter()
    const listener = vi.fn(() => events.emit('b', 'again'))
    events.on('b', listener, { once: true })
    events.emit('b', 'x')
    events.emit('b', 'y')
    expect(listener).toHaveBeenCalledTimes(1)
    expect(events.has('b')).toBe(false)
  })

  it('what on() gives removes the listener: called, or disposed of; again is harmless', () => {
    const { emitter: events } = emitter()
    const listener = vi.fn()
    const first = events.on('b', listener)
    first()
    first()
    {
      using _second = events.on('b', listener)
      events.emit('b', 'x')
    }
    events.emit('b', 'y')
    expect(listener.mock.calls).toEqual([['x']])
    expect(events.has('b')).toBe(false)
  })

  it('one function twice is two listeners', () => {
    const { emitter: events } = emitter()
    const listener = vi.fn()
    const first = events.on('b', listener)
    events.on('b', listener)
    events.emit('b', 'x')
    first()
    events.emit('b', 'y')
    expect(listener).toHaveBeenCalledTimes(3)
  })

  it('signal: removed with its abort, never added after it; the signal keeps no listener', () => {
    const { emitter: events } = emitter()
    const controller = new AbortController()
    const added = vi.spyOn(controller.signal, 'addEventListener')
    const removed = vi.spyOn(controller.signal, 'removeEventListener')
    const listener = vi.fn()
    events.on('b', listener, { signal: controller.signal })()
    events.on('b', listener, { signal: controller.signal, once: true })
    events.emit('b', 'x')
    expect(listener).toHaveBeenCalledTimes(1)
    expect(removed.mock.calls.length).toBe(added.mock.calls.length)
    events.on('b', listener, { signal: controller.signal })
    controller.abort()
    events.emit('b', 'y')
    expect(listener).toHaveBeenCalledTimes(1)
    events.on('b', listener, { signal: controller.signal })
    events.emit('b', 'z')
    expect(listener).toHaveBeenCalledTimes(1)
    expect(events.has('b')).toBe(false)
  })

  it('a listener that throws is reported and counted; the others are called', () => {
    const { emitter: events, reports } = emitter()
    const error = new Error('mine')
    const listener = vi.fn()
    events.on('b', () => {
      throw error
    })
    events.on('b', listener)
    events.emit('b', 'x')
    expect(listener).toHaveBeenCalledTimes(1)
    expect(reports).toEqual([[error, 'b']])
    expect(events.failures).toBe(1)
  })

  it('listeners may be added and removed while an event is on its way: added ones wait for the next', () => {
    const { emitter: events } = emitter()
    const late = vi.fn()
    events.on('b', () => {
      events.on('b', late)
    })
    events.emit('b', 'x')
    expect(late).not.toHaveBeenCalled()
    events.emit('b', 'y')
    expect(late).toHaveBeenCalledTimes(1)
  })

  it('a listener that an earlier one removed is not called any more', () => {
    const { emitter: events } = emitter()
    const listener = vi.fn()
    events.on('b', () => remove())
    const remove = events.on('b', listener)
    events.emit('b', 'x')
    expect(listener).not.toHaveBeenCalled()
  })
})

describe('client.on', () => {
  it('a listener that throws in any event stops nothing, and is logged', async () => {
    const lines: string[] = []
    const world = new World({ logger: { error: (line: string) => lines.push(line) } })
    world.answer = agreeable
    const types = ['state', 'dial', 'connect', 'disconnect', 'serverdisconnect', 'packet', 'drop', 'unclaimed', 'connecterror'] as const
    for (const type of types)
      world.client.on(type, () => {
        throw new Error(`thrown in ${type}`)
      })
    await Promise.all([world.client.connect(), world.settle()])
    await Promise.all([world.client.publish('a', 'b', { qos: 2 }), world.settle()])
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_SERVER_DISCONNECT' })
    expect(world.clock.pending).toBe(0)
    for (const type of ['state', 'dial', 'connect', 'serverdisconnect', 'disconnect', 'packet'])
      expect(lines.some((line) => line.includes(`'${type}'`) && line.includes(`thrown in ${type}`))).toBe(true)
  })

  it('a listener that rejects is no unhandled rejection of ours', async () => {
    const world = await connected({}, agreeable)
    const remove = world.client.on('state', () => undefined)
    remove()
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(world.client.state).toBe('closed')
  })

  it('packets: every one in both directions, CONNECT without its secrets; nothing when nobody listens', async () => {
    const world = new World({ username: 'u', password: 'p' })
    world.answer = agreeable
    const seen: string[] = []
    const remove = world.client.on('packet', ({ direction, packet }) => seen.push(`${direction} ${packet.type}`))
    await Promise.all([world.client.connect(), world.settle()])
    const calls = [world.client.publish('a', 'b', { qos: 2 }), world.client.subscribe('a')]
    await world.settle()
    await Promise.all(calls)
    expect(seen.slice(0, 2)).toEqual(['out connect', 'in connack'])
    expect(seen.slice(2).sort()).toEqual(['in pubcomp', 'in pubrec', 'in suback', 'out publish', 'out pubrel', 'out subscribe'])
    remove()
    await Promise.all([world.client.disconnect(), world.settle()])
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

  it('on() takes every event that there is', () => {
    const { client } = new World()
    for (const type of Object.keys(every)) expect(() => client.on(type as keyof ClientEvents, () => undefined)).not.toThrow()
  })

  it.each(Object.entries(every))('the nearest one, %s, is named to whoever says %s', (name, given) => {
    const { client } = new World()
    expect(() => client.on(given as 'state', () => undefined)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'type', message: `unknown event ${given}; did you mean ${name}?` }),
    )
  })

  it.each(['message', 'messages', 'subscribe'])('who listens to %s is led to subscribe() and listen()', (given) => {
    const { client } = new World()
    expect(() => client.on(given as 'state', () => undefined)).toThrow(/subscribe\(\) or listen\(\)/)
  })

  it.each([
    [''],
    [5],
    [undefined],
    [null],
    [Symbol('state')],
    [['state']],
    [{ toString: () => 'state' }],
    ['__proto__'],
    ['toString'],
    ['x\n'.repeat(100_000)],
  ])('%#: what is no name is refused, in few words', (given) => {
    const { client } = new World()
    try {
      client.on(given as unknown as 'state', () => undefined)
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'type' })
      expect((error as Error).message.length).toBeLessThan(400)
      expect((error as Error).message).not.toContain('\n')
      return
    }
    throw new Error('it was to throw')
  })
})
