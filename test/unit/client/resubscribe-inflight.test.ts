/** SUBSCRIBE and UNSUBSCRIBE that a lost connection leaves without an answer: sent again once, settled once. */
import { describe, expect, it } from 'vitest'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { again, carried, comeBack, forgets, lose, steady, willing } from './across.js'
import { failure } from './harness.js'
import { publish, quiet, read, subscribe, takenTexts } from './incoming.js'

/** Everything is answered but these. */
const without =
  (type: 'subscribe' | 'unsubscribe', base: Answer): Answer =>
  (packet) =>
    packet.type === type ? undefined : base(packet)

/** How often a promise settled. */
function counted<T>(promise: Promise<T>): { readonly promise: Promise<T>; count: number } {
  const result = { promise, count: 0 }
  const count = (): void => {
    result.count += 1
  }
  promise.then(count, count)
  return result
}

describe.each([
  ['kept', true],
  ['lost', false],
])('the session is %s', (_name, present) => {
  it('SUBSCRIBE without SUBACK: each filter once more with a new identifier and the same options, settled once', async () => {
    const world = await steady({}, without('subscribe', willing(false)))
    const call = counted(world.client.subscribe([{ filter: 'a', qos: 2, retainHandling: 1 }, 'b'], { qos: 1 }))
    await world.settle()
    const [first] = world.peer.all('subscribe')
    const peer = await again(world, willing(present))
    const packets = peer.all('subscribe')
    // One at a time: the connection may have ended because of one of them.
    expect(packets.map(({ subscriptions }) => subscriptions)).toEqual(first?.subscriptions.map((item) => [item]))
    expect(packets[0]?.packetId).not.toBe(first?.packetId)
    await world.send({ type: 'suback', packetId: first?.packetId ?? 0, reasonCodes: [0x80, 0x80], properties: {} })
    expect((await call.promise).granted.map(({ qos }) => qos)).toEqual([2, 1])
    expect(call.count).toBe(1)
    await again(world, willing(true))
    expect(carried(world.peer)).toEqual([])
  })

  it('UNSUBSCRIBE without UNSUBACK: once more, settled once; the filter is not subscribed to again', async () => {
    const world = await steady({}, without('unsubscribe', willing(false)))
    await subscribe(world, 'a')
    await subscribe(world, 'b')
    const call = counted(world.client.unsubscribe(['a', 'x']))
    await world.settle()
    const [first] = world.peer.all('unsubscribe')
    const peer = await again(world, willing(present))
    expect(peer.all('unsubscribe').map(({ filters }) => filters)).toEqual([['a'], ['x']])
    expect(peer.all('unsubscribe')[0]?.packetId).not.toBe(first?.packetId)
    expect(await call.promise).toMatchObject([{ filter: 'a' }, { filter: 'x' }])
    expect(call.count).toBe(1)
    await again(world, willing(false))
    expect(peer.all('subscribe').flatMap((packet) => packet.subscriptions.map((item) => item.filter))).toEqual(present ? [] : ['b'])
  })

  it('a message that comes before the answer is routed', async () => {
    const world = await steady({}, without('subscribe', willing(false)))
    const subscription = world.client.subscription('a', { qos: 1 })
    await world.settle()
    await again(world, without('subscribe', willing(present)))
    expect(world.peer.all('subscribe')).toHaveLength(1)
    await world.send(publish('a', 'early', 1))
    expect(takenTexts(subscription)).toEqual(['early'])
  })

  it('several calls keep their order', async () => {
    const silent: Answer = (packet) => (packet.type === 'connect' ? forgets()(packet) : undefined)
    const world = await steady({}, silent)
    quiet(world.client.subscribe('a'))
    await world.settle()
    quiet(world.client.unsubscribe('z'))
    await world.settle()
    quiet(world.client.subscribe('b'))
    await lose(world)
    const peer = await comeBack(world, willing(present))
    expect(carried(peer).map((line) => line.replace(/ #\d+$/, ''))).toEqual(['pingreq', 'subscribe a', 'unsubscribe z', 'subscribe b'])
  })

  it('an abort in the gap ends the call: nothing is sent for it, its outcome is unknown', async () => {
    const world = await steady({}, without('subscribe', willing(false)))
    const controller = new AbortController()
    const error = failure(world.client.subscribe('a', { signal: controller.signal, onExit: 'detach' }))
    await world.settle()
    await lose(world)
    controller.abort()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    const peer = await comeBack(world, willing(present))
    expect(peer.all('subscribe').length).toBeLessThanOrEqual(1)
    expect(world.client.state).toBe('connected')
  })
})

describe('offline', () => {
  it('calls wait for the link and leave in their order, one SUBSCRIBE each', async () => {
    const world = await steady({}, willing(false))
    await lose(world)
    const one = quiet(world.client.subscribe('a', { qos: 1 }))
    const two = quiet(world.client.unsubscribe('other'))
    const three = quiet(world.client.subscribe(['b', 'c']))
    expect(await world.outcome(one)).toEqual({ state: 'pending' })
    const peer = await comeBack(world, willing(true))
    expect(carried(peer).map((line) => line.replace(/ #\d+$/, ''))).toEqual(['subscribe a', 'unsubscribe other', 'subscribe b,c'])
    await expect(Promise.all([one, two, three])).resolves.toHaveLength(3)
  })

  it('an abort removes the call, others are unaffected; its outcome is not-sent', async () => {
    const world = await steady({}, willing(false))
    await lose(world)
    const controller = new AbortController()
    const error = failure(world.client.subscribe('a', { signal: controller.signal }))
    const other = quiet(world.client.subscribe('b'))
    controller.abort()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent' })
    const peer = await comeBack(world, willing(true))
    expect(carried(peer)).toEqual([expect.stringMatching(/^subscribe b #/)])
    await expect(other).resolves.toBeDefined()
  })

  it('a subscription that comes and goes without a link never shows on the wire', async () => {
    const world = await steady({}, willing(false))
    await lose(world)
    const subscription = world.client.subscription('a')
    const left = quiet(subscription.unsubscribe())
    await world.settle()
    await left
    expect(carried(await comeBack(world, willing(true)))).toEqual([])
  })

  it('a filter that is known is left without a link, and asked for again: the server hears of both, in order', async () => {
    const world = await steady({}, willing(false))
    const before = await subscribe(world, 'a')
    await lose(world)
    const left = quiet(before.unsubscribe())
    const after = quiet(world.client.subscribe('a', { qos: 1 }))
    const peer = await comeBack(world, willing(true))
    expect(carried(peer).map((line) => line.replace(/ #\d+$/, ''))).toEqual(['unsubscribe a', 'subscribe a'])
    await left
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(await after)).toEqual(['x'])
  })

  it('a joiner while the link is away shares the filter: one SUBSCRIBE for its higher QoS, or none', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 'a', { qos: 1 })
    await lose(world)
    const two = quiet(world.client.subscribe('a', { qos: 1, retainHandling: 2 }))
    const three = quiet(world.client.subscribe('a', { qos: 2, retainHandling: 2 }))
    const peer = await comeBack(world, willing(true))
    expect(peer.all('subscribe').map((packet) => packet.subscriptions.map(({ filter, qos }) => [filter, qos]))).toEqual([[['a', 2]]])
    await world.send(publish('a', 'x'))
    expect([takenTexts(one), takenTexts(await two), takenTexts(await three)]).toEqual([['x'], ['x'], ['x']])
  })
})

describe('an answer that cannot be right', () => {
  it.each([
    ['fewer', [0]],
    ['more', [0, 0, 0]],
  ])('%s codes than filters: close(0x82), and that call is rejected, not tried again for ever', async (_name, reasonCodes) => {
    const wrong: Answer = (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes, properties: {} } : willing(true)(packet)
    const world = await steady({}, (packet) => (packet.type === 'connect' ? forgets()(packet) : wrong(packet)))
    const error = failure(world.client.subscribe(['a', 'b']))
    await world.settle()
    expect(world.peer.last('disconnect').reasonCode).toBe(0x82)
    world.answer = wrong
    await world.clock.advance(10)
    expect(await world.outcome(error)).toMatchObject({ state: 'fulfilled', value: { code: 'ERR_PROTOCOL_ERROR' } })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('when it answers what brings a session back: the connection ends, and a server that does better gets it again', async () => {
    const world = await steady({}, willing(false))
    await subscribe(world, ['a', 'b'])
    await again(world, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0], properties: {} } : willing(false)(packet),
    )
    expect(world.peer.last('disconnect').reasonCode).toBe(0x82)
    world.answer = willing(true)
    await world.clock.advance(10)
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^subscribe a,b #/)])
  })
})

describe('a SUBSCRIBE for a filter that others read already, in flight at the drop', () => {
  it('brings the filter back when the session is lost, in one packet, at the higher QoS', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 'a', { qos: 0 })
    world.answer = without('subscribe', willing(false))
    const two = quiet(world.client.subscribe('a', { qos: 1, retainHandling: 2 }))
    await world.settle()
    const peer = await again(world, willing(false))
    expect(peer.all('subscribe').map((packet) => packet.subscriptions.map(({ filter, qos }) => [filter, qos]))).toEqual([[['a', 1]]])
    await world.send(publish('a', 'x', 1))
    expect([takenTexts(one), takenTexts(await two)]).toEqual([['x'], ['x']])
  })

  it('is refused when the session is lost: the filter is gone for all its readers, not only for the one who asked', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 'a', { qos: 0 })
    const reading = read(one)
    world.answer = without('subscribe', willing(false))
    const two = failure(world.client.subscribe('a', { qos: 1, retainHandling: 2 }))
    await world.settle()
    await again(world, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87], properties: {} } : willing(false)(packet),
    )
    expect(await two).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 })
    expect(reading.end).toMatchObject({ state: 'failed', error: { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 } })
  })

  it('is refused when the session is kept: the server has the filter as it was, and its reader goes on', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 'a', { qos: 0 })
    const reading = read(one)
    world.answer = without('subscribe', willing(false))
    const two = failure(world.client.subscribe('a', { qos: 1, retainHandling: 2 }))
    await world.settle()
    await again(world, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87], properties: {} } : willing(true)(packet),
    )
    expect(await two).toMatchObject({ reasonCode: 0x87 })
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })
})

describe('the end of the client', () => {
  it('rejects what waits for a link, or for an answer from an earlier one, each once', async () => {
    const world = await steady({}, without('unsubscribe', without('subscribe', willing(false))))
    const sent = [failure(world.client.subscribe('a')), failure(world.client.unsubscribe('b'))]
    await world.settle()
    await lose(world)
    const waiting = [failure(world.client.subscribe('c')), failure(world.client.unsubscribe('d'))]
    world.client.destroy()
    for (const error of [...sent, ...waiting]) expect((await error).code).toBe('ERR_CLOSED')
    expect((await Promise.all(waiting)).map(({ outcome }) => outcome)).toEqual(['not-sent', 'not-sent'])
  })
})
