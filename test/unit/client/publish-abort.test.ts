/** Abort signals and time limits of publishes: before the first byte the message is gone, later only the caller is. */
import { describe, expect, it } from 'vitest'
import { ack, StubWorld, stubbed, watched } from './stub.js'

describe('abort', () => {
  it.each([0, 1, 2] as const)('an aborted signal sends nothing at QoS %i', async (qos) => {
    const world = await stubbed()
    const reason = new Error('changed my mind')
    const result = watched(world.client.publish('t', 'x', { qos, signal: AbortSignal.abort(reason) }))
    await world.settle()
    expect(result.error).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', cause: reason, outcome: 'not-sent', fault: 'local' })
    expect(world.stub.writes).toEqual([])
  })

  it.each([0, 1, 2] as const)('before the first byte the message is removed, others are not: QoS %i', async (qos) => {
    const world = await stubbed()
    world.stub.takes = false
    world.client.post('fill', 'fill')
    await world.settle()
    const abort = new AbortController()
    const calls = ['a', 'b', 'c'].map((text) => watched(world.client.publish('t', text, { qos, ...(text === 'b' ? { signal: abort.signal } : {}) })))
    await world.settle()
    abort.abort()
    await world.settle()
    expect(calls.map((one) => one.state)).toEqual(['pending', 'rejected', 'pending'])
    expect(calls[1]?.error).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', outcome: 'not-sent' })
    expect(world.client.outbound.size).toBe(2)
    world.stub.release()
    await world.settle()
    expect(world.stub.payloads).toEqual(['fill', 'a', 'c'])
  })

  it('queued before the first connection: removed', async () => {
    const world = new StubWorld()
    const abort = new AbortController()
    const call = watched(world.client.publish('t', 'gone', { qos: 1, signal: abort.signal }))
    world.client.publish('t', 'stays', { qos: 1 })
    abort.abort()
    await world.settle()
    expect(call.error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent' })
    await world.connect()
    expect(world.client.outbound.size).toBe(0)
  })

  it('later it detaches the caller; the exchange is finished, the link is unaffected', async () => {
    const world = await stubbed({}, { receiveMaximum: 1 })
    const abort = new AbortController()
    const call = watched(world.client.publish('t', 'a', { qos: 2, signal: abort.signal }))
    const next = watched(world.client.publish('t', 'b', { qos: 1 }))
    await world.settle()
    abort.abort()
    await world.settle()
    expect(call.error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    expect(world.stub.payloads).toEqual(['a'])
    await world.deliver(ack('pubrec', 1))
    expect(world.stub.packets.at(-1)).toMatchObject({ type: 'pubrel', packetId: 1, reasonCode: 0 })
    await world.deliver(ack('pubcomp', 1))
    expect(world.stub.payloads).toEqual(['a', 'b'])
    await world.deliver(ack('puback', 2))
    expect(next.state).toBe('fulfilled')
    expect(call.settled).toBe(1)
  })

  it('an abort after the end is nothing', async () => {
    const world = await stubbed()
    const abort = new AbortController()
    const call = watched(world.client.publish('t', 'a', { qos: 1, signal: abort.signal }))
    await world.settle()
    await world.deliver(ack('puback', 1))
    abort.abort()
    await world.settle()
    expect(call).toMatchObject({ state: 'fulfilled', settled: 1 })
  })

  it('an abort raises no drop: the caller wanted it', async () => {
    const world = await stubbed()
    const abort = new AbortController()
    world.client.publish('t', 'a', { qos: 1, signal: abort.signal })
    await world.settle()
    abort.abort()
    await world.settle()
    expect(world.drops).toEqual([])
  })

  it('no listener stays on the signal of a publish that is over', async () => {
    const world = await stubbed({}, { receiveMaximum: 2 })
    let listeners = 0
    const { signal } = new AbortController()
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1
      remove(...args)
    }
    for (let id = 1; id <= 5; id++) world.client.publish('t', 'x', { qos: 1, signal })
    world.client.publish('t', 'x', { signal })
    world.client.publish('t', new Uint8Array(40_000), { signal })
    await world.settle()
    await world.deliver(ack('puback', 1), ack('puback', 2))
    await world.deliver(ack('puback', 3), ack('puback', 4, 0x80))
    await world.deliver(ack('puback', 5))
    expect(listeners).toBe(0)
  })

  it.each([
    ['flush: true', 'x', { flush: true }],
    ['by reference', new Uint8Array(40_000), {}],
  ] as const)('QoS 0 that waits to be written (%s) lets go of its caller', async (_, payload, options) => {
    const world = await stubbed()
    world.stub.holds = true
    const abort = new AbortController()
    const call = watched(world.client.publish('t', payload, { ...options, signal: abort.signal }))
    await world.settle()
    expect(call.state).toBe('pending')
    abort.abort()
    await world.settle()
    expect(call.error).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', outcome: 'unknown' })
    world.stub.release()
    await world.settle()
    expect(world.stub.packets).toHaveLength(1)
    expect(call.settled).toBe(1)
  })
})

describe('ackTimeout', () => {
  it('rejects with outcome unknown; the link stays and the exchange is finished', async () => {
    const world = await stubbed({ keepAlive: false })
    const call = watched(world.client.publish('t', 'a', { qos: 2, ackTimeout: 500 }))
    await world.settle()
    await world.clock.advance(499)
    expect(call.state).toBe('pending')
    await world.clock.advance(1)
    expect(call.error).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown', fault: 'local' })
    expect(world.drops).toMatchObject([{ direction: 'out', topic: 't', count: 1, error: { code: 'ERR_TIMEOUT' } }])
    await world.deliver(ack('pubrec', 1), ack('pubcomp', 1))
    expect(world.stub.packets.map((packet) => packet.type)).toEqual(['publish', 'pubrel'])
    expect(call.settled).toBe(1)
    expect(world.client.state).toBe('connected')
  })

  it('the client default, calls of their own, and 0 for the default, end in the right order', async () => {
    const world = await stubbed({ keepAlive: false, outbound: { ackTimeout: 300 } })
    const ends: string[] = []
    for (const [name, ackTimeout] of [
      ['default', undefined],
      ['long', 400],
      ['short', 100],
      ['zero', 0],
    ] as const)
      world.client.publish('t', name, { qos: 1, ...(ackTimeout === undefined ? {} : { ackTimeout }) }).catch(() => ends.push(name))
    await world.clock.advance(99)
    expect(ends).toEqual([])
    await world.clock.advance(1)
    expect(ends).toEqual(['short'])
    await world.clock.advance(200)
    expect(ends).toEqual(['short', 'default', 'zero'])
    await world.clock.advance(100)
    expect(ends).toEqual(['short', 'default', 'zero', 'long'])
  })

  it('does not run while a publish waits for its place', async () => {
    const world = await stubbed({ keepAlive: false, outbound: { ackTimeout: 300 } }, { receiveMaximum: 1 })
    const first = watched(world.client.publish('t', 'a', { qos: 1, ackTimeout: 10_000 }))
    const second = watched(world.client.publish('t', 'b', { qos: 1 }))
    await world.clock.advance(5000)
    expect(second.state).toBe('pending')
    await world.deliver(ack('puback', 1))
    expect(first.state).toBe('fulfilled')
    await world.clock.advance(299)
    expect(second.state).toBe('pending')
    await world.clock.advance(1)
    expect(second.error).toMatchObject({ code: 'ERR_TIMEOUT' })
  })

  it('leaves no timer behind', async () => {
    const world = await stubbed({ keepAlive: false })
    world.client.publish('t', 'a', { qos: 1, ackTimeout: 1000 })
    world.client.publish('t', 'b', { qos: 1, ackTimeout: 1000 })
    await world.settle()
    await world.deliver(ack('puback', 1))
    world.client.destroy()
    await world.settle()
    expect(world.clock.pending).toBe(0)
  })
})
