/** Corners of subscriptions: merging while offline, answers that cross, calls from inside callbacks, signals that outlive everything. */
import { describe, expect, it } from 'vitest'
import type { SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, World } from './harness.js'
import { acks, agreed, publish, quiet, read, series, subscribe, taken, takenTexts } from './incoming.js'

const silent: Answer = (packet) => (packet.type === 'subscribe' || packet.type === 'unsubscribe' ? undefined : agreeable(packet))

async function connect(world: World): Promise<void> {
  world.answer ??= agreeable
  const connecting = world.client.connect()
  await world.settle()
  await connecting
}

/** A signal that counts who listens to it. */
function counted(): { readonly signal: AbortSignal; readonly listeners: () => number; abort(): void } {
  const controller = new AbortController()
  const { signal } = controller
  const known = new Set<unknown>()
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject, options?: AddEventListenerOptions | boolean) => {
    known.add(listener)
    add(type, listener, options)
  }
  signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
    known.delete(listener)
    remove(type, listener)
  }
  return { signal, listeners: () => known.size, abort: () => controller.abort() }
}

describe('offline', () => {
  it('subscriptions on one filter become one SUBSCRIBE, in the order of the calls', async () => {
    const world = new World()
    const first = world.client.subscription('a')
    await world.settle()
    const second = world.client.subscription('a', { qos: 2, retainHandling: 1 })
    world.client.subscription('b', { qos: 1 })
    await connect(world)
    expect(world.peer.all('subscribe').map((packet) => packet.subscriptions)).toMatchObject([
      [{ filter: 'a', qos: 2, retainHandling: 0 }],
      [{ filter: 'b', qos: 1 }],
    ])
    expect((await first.ready).granted[0]?.qos).toBe(2)
    expect((await second.ready).granted[0]?.qos).toBe(2)
  })

  it('subscribed, unsubscribed and subscribed again: only the last leaves', async () => {
    const world = new World()
    const first = world.client.subscription('a', { qos: 1 })
    expect(await world.outcome(first.unsubscribe())).toMatchObject({ state: 'fulfilled' })
    await expect(first.ready).rejects.toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent' })
    const second = world.client.subscription('a', { qos: 2 })
    await connect(world)
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'subscribe'])
    expect(world.peer.last('subscribe').subscriptions[0]?.qos).toBe(2)
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(second)).toEqual(['x'])
    expect(await first.next()).toBeUndefined()
  })

  it('one of two on a filter leaves: the SUBSCRIBE stays', async () => {
    const world = new World()
    const first = world.client.subscription('a')
    const second = world.client.subscription('a')
    await first.unsubscribe()
    await connect(world)
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'subscribe'])
    await world.send(publish('a', 'x'))
    expect(takenTexts(second)).toEqual(['x'])
  })
})

describe('answers that cross', () => {
  it('the first SUBSCRIBE is refused, that of a joiner granted: only the joiner gets messages', async () => {
    const world = await connected({}, silent)
    const first = quiet(world.client.subscribe('a'))
    await world.settle()
    const second = quiet(world.client.subscribe('a', { qos: 1 }))
    await world.settle()
    const [one, other] = world.peer.all('subscribe').map((packet) => packet.packetId)
    await world.send({ type: 'suback', packetId: one ?? 0, reasonCodes: [0x97] }, { type: 'suback', packetId: other ?? 0, reasonCodes: [1] })
    expect(await world.outcome(first)).toMatchObject({ state: 'rejected' })
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(await second)).toEqual(['x'])
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('client.unsubscribe while SUBSCRIBE is not answered: granted, then ended', async () => {
    const world = await connected({}, silent)
    const subscription = world.client.subscription('a')
    const reading = read(subscription)
    await world.settle()
    const gone = quiet(world.client.unsubscribe('a'))
    await world.settle()
    await world.send({ type: 'suback', packetId: world.peer.last('subscribe').packetId, reasonCodes: [0] })
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0] })
    expect(await world.outcome(gone)).toMatchObject({ state: 'fulfilled' })
    expect(reading.end.state).toBe('done')
    expect((await world.outcome(subscription.ready)).state).not.toBe('pending')
  })

  it('messages in the segment of SUBACK, before and behind it, arrive', async () => {
    const world = await connected({}, silent)
    const call = world.client.subscribe('a', { qos: 1 })
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    await world.send(publish('a', '1', 1), { type: 'suback', packetId, reasonCodes: [1] }, publish('a', '2', 2))
    expect(takenTexts(await call)).toEqual(['1', '2'])
  })

  it('an UNSUBACK refusal after the loop was left: messages do not pile up for nobody', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'unsubscribe' ? { type: 'unsuback', packetId: packet.packetId, reasonCodes: [0x87] } : agreeable(packet),
    )
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await subscription[Symbol.asyncDispose]()
    await world.settle()
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual(['puback 1'])
  })
})

describe('what a server does not limit', () => {
  it('Maximum QoS of CONNACK is about publishing: a subscription may ask for more', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { maximumQoS: 0 } } : agreeable(packet),
    )
    expect((await subscribe(world, 'a', { qos: 2 })).granted[0]?.qos).toBe(2)
  })

  it("the caller's objects are never written to", async () => {
    const world = await agreed()
    const filter = Object.freeze({ filter: 'a', qos: 0 as const, retainHandling: 2 as const })
    const options: SubscribeOptions = Object.freeze({
      ack: 'manual',
      properties: Object.freeze({ userProperties: [['k', 'v'] as [string, string]] }),
    })
    const calls = [world.client.subscribe(Object.freeze([filter]), options), world.client.subscribe({ filter: 'a', qos: 2 }, options)]
    await world.settle()
    await Promise.all(calls)
    expect(filter).toEqual({ filter: 'a', qos: 0, retainHandling: 2 })
    expect(world.peer.last('subscribe').subscriptions).toMatchObject([{ filter: 'a', qos: 2, retainHandling: 0 }])
  })
})

describe('from inside callbacks', () => {
  it('onDrop detaches: the message that came is kept for the next subscription as well', async () => {
    const world = await agreed()
    let subscription: Subscription | undefined
    subscription = await subscribe(world, 'a', { qos: 1, buffer: 2, overflow: 'drop-oldest', onDrop: () => subscription?.detach() })
    for (let id = 1; id <= 4; id++) await world.send(publish('a', String(id), id))
    const next = await subscribe(world, 'a', { qos: 1 })
    expect(takenTexts(next).at(-1)).toBe('4')
    await world.settle()
    expect(acks(world)).toHaveLength(4)
  })

  it('onDrop unsubscribes: everything is acknowledged', async () => {
    const world = await agreed()
    let subscription: Subscription | undefined
    const left: Promise<void>[] = []
    subscription = await subscribe(world, 'a', {
      qos: 1,
      buffer: 2,
      overflow: 'drop-oldest',
      onDrop: () => left.push(quiet(subscription?.unsubscribe() ?? Promise.resolve())),
    })
    for (let id = 1; id <= 5; id++) await world.send(publish('a', String(id), id))
    await Promise.all(left)
    expect(acks(world)).toHaveLength(5)
    expect(world.client.state).toBe('connected')
  })

  it('a drop listener that ends the client', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { buffer: 1, overflow: 'drop-newest' })
    world.client.on('drop', () => world.client.destroy())
    for (let index = 1; index <= 3; index++) await world.send(publish('a', String(index)))
    expect(world.client.state).toBe('closed')
    // destroy() hands out nothing more.
    expect(takenTexts(subscription)).toEqual([])
  })

  it('subscribe while disconnecting settles with ERR_CLOSED', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    taken(subscription)
    const done = quiet(world.client.disconnect({ timeout: 100 }))
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    const late = quiet(world.client.subscribe('b'))
    await world.clock.advance(200)
    await done
    expect((await world.outcome(late)).state).not.toBe('pending')
  })

  it('everything that is pending settles when the client ends', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'subscribe' && packet.subscriptions[0]?.filter === 'open' ? agreeable(packet) : silent(packet),
    )
    const open = await subscribe(world, 'open')
    const pending: Promise<unknown>[] = [
      world.client.subscribe('a'),
      world.client.subscription('b').ready,
      world.client.subscription('c').next(),
      world.client.subscription('d')[Symbol.asyncIterator]().next(),
      world.client.subscription('e').batches().next(),
      world.client.listen('f', () => undefined),
      open.unsubscribe(),
      world.client.unsubscribe('g'),
    ].map((promise) => quiet(promise as Promise<unknown>))
    await world.settle()
    const done = world.client.disconnect({ timeout: 0 })
    await world.settle()
    await done
    for (const promise of pending) expect((await world.outcome(promise)).state).not.toBe('pending')
  })
})

describe('signals', () => {
  it('the signal of subscribe is let go of with the grant', async () => {
    const world = await agreed()
    const { signal, listeners } = counted()
    await subscribe(world, 'a', { signal })
    await world.settle()
    expect(listeners()).toBe(0)
  })

  it.each(['unsubscribe', 'detach', 'break', 'end of the client'])('until is let go of with the subscription: %s', async (how) => {
    const world = await agreed()
    const { signal, listeners } = counted()
    const subscription = await subscribe(world, 'a', { until: signal })
    expect(listeners()).toBe(1)
    if (how === 'unsubscribe') quiet(subscription.unsubscribe())
    else if (how === 'detach') subscription.detach()
    else if (how === 'break') await subscription[Symbol.asyncIterator]().return?.()
    else world.client.destroy()
    await world.settle()
    expect(listeners()).toBe(0)
  })

  it('the signal of next() is let go of with its answer', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const { signal, listeners } = counted()
    const waiting = subscription.next({ signal })
    expect(listeners()).toBe(1)
    await world.send(publish('a', 'x'))
    await waiting
    expect(listeners()).toBe(0)
    const timed = quiet(subscription.next({ signal, timeout: 10 }))
    await world.clock.advance(20)
    await timed.catch(() => undefined)
    expect(listeners()).toBe(0)
  })

  it('until in the middle of a message: the turn goes on, what is buffered follows onExit', async () => {
    const world = await agreed()
    const { signal, abort } = counted()
    const subscription = await subscribe(world, 'a', { qos: 1, until: signal, onExit: 'detach' })
    await world.send(...series('a', 3))
    const message = taken(subscription)
    abort()
    expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['2', '3'])
  })
})
