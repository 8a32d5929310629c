/** The server has forgotten the session: every message that was in flight is accounted for, one by one. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { again, carried, comeBack, forgets, lose, send, steady, willing } from './across.js'
import { failure } from './harness.js'
import { publish, subscribe, taken } from './incoming.js'

const puback = (packetId: number) => ({ type: 'puback', packetId, reasonCode: 0, properties: {} }) as const
const pubrec = (packetId: number) => ({ type: 'pubrec', packetId, reasonCode: 0, properties: {} }) as const

describe('QoS 1 in flight', () => {
  it('is published as new: DUP 0, in order, before what was never sent; it settles with that', async () => {
    const world = await steady()
    const promises = send(world, 1, 'a', 'b')
    await world.settle()
    await lose(world)
    promises.push(...send(world, 1, 'new'))
    const peer = await comeBack(world, forgets())
    expect(peer.all('publish').map((packet) => [new TextDecoder().decode(packet.payload), packet.qos, packet.dup])).toEqual([
      ['a', 1, false],
      ['b', 1, false],
      ['new', 1, false],
    ])
    const ids = peer.all('publish').map((packet) => packet.packetId)
    expect(new Set(ids).size).toBe(3)
    await world.send(...ids.map((id) => puback(id ?? 0)))
    await expect(Promise.all(promises)).resolves.toMatchObject(ids.map((packetId) => ({ packetId })))
    expect(world.seen('drop')).toEqual([])
  })

  it('carries the same payload and properties, also a large one that was handed over as it lies', async () => {
    const world = await steady()
    const large = new Uint8Array(50_000).map((_, index) => index * 7)
    const properties = { contentType: 'x', correlationData: 'abc', userProperties: [['a', '1']] as [string, string][] }
    world.client.publish('t', 'small', { qos: 1, retain: true, properties }).catch(() => undefined)
    world.client.publish('t', large, { qos: 1, properties }).catch(() => undefined)
    await world.settle()
    const before = world.peer.all('publish')
    const peer = await again(world, forgets())
    const strip = ({ packetId: _id, ...rest }: { packetId?: number | undefined }) => rest
    expect(peer.all('publish').map(strip)).toEqual(before.map(strip))
  })

  it('is rejected with ERR_SESSION_LOST, outcome unknown, where that is asked for', async () => {
    const world = await steady({ outbound: { onSessionLost: 'reject' } })
    const error = failure(world.client.publish('t', 'a', { qos: 1 }))
    const kept = world.client.publish('t', 'b', { qos: 1, onSessionLost: 'republish' })
    kept.catch(() => undefined)
    await world.settle()
    const peer = await again(world, forgets())
    expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
    expect(carried(peer)).toEqual([expect.stringMatching(/^publish t=b q1 #\d+$/)])
  })
})

describe('QoS 2 in flight', () => {
  it('rejects with ERR_SESSION_LOST, outcome unknown, whether PUBREC had come or not; its PUBREL is not sent', async () => {
    const world = await steady()
    const errors = ['one', 'two'].map((text) => failure(world.client.publish('t', text, { qos: 2 })))
    await world.send(pubrec(2))
    const peer = await again(world, forgets())
    for (const error of errors) expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
    expect(carried(peer)).toEqual([])
  })

  it.each([
    ['for the client', { outbound: { onSessionLost: 'republish' } }, {}],
    ['for this one', {}, { onSessionLost: 'republish' }],
    ['for this one, over the client', { outbound: { onSessionLost: 'reject' } }, { onSessionLost: 'republish' }],
  ] as [string, ClientOptions, { onSessionLost?: 'republish' }][])('is published anew where that is asked %s', async (_name, options, own) => {
    const world = await steady(options)
    const promise = world.client.publish('t', 'one', { qos: 2, ...own })
    promise.catch(() => undefined)
    const released = world.client.publish('t', 'two', { qos: 2, ...own })
    released.catch(() => undefined)
    await world.send(pubrec(2))
    const peer = await again(world, willing(false))
    const texts = peer.all('publish').map((packet) => [new TextDecoder().decode(packet.payload), packet.qos, packet.dup])
    expect(texts.sort()).toEqual([
      ['one', 2, false],
      ['two', 2, false],
    ])
    await expect(Promise.all([promise, released])).resolves.toHaveLength(2)
  })

  it('published anew it keeps the order of the calls, whatever PUBREC had come', async () => {
    const world = await steady({ outbound: { onSessionLost: 'republish' } })
    send(world, 2, 'a', 'b')
    send(world, 1, 'c')
    send(world, 2, 'd')
    await world.send(pubrec(4), pubrec(2))
    const peer = await again(world, forgets())
    expect(peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))).toEqual(['a', 'b', 'c', 'd'])
  })

  it('that was never sent stays queued', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 1 }))
    const sent = failure(world.client.publish('t', 'sent', { qos: 2 }))
    const waiting = world.client.publish('t', 'waiting', { qos: 2 })
    waiting.catch(() => undefined)
    await world.settle()
    const peer = await again(world, willing(false))
    expect(await sent).toMatchObject({ code: 'ERR_SESSION_LOST' })
    await expect(waiting).resolves.toMatchObject({ reasonCode: 0 })
    expect(peer.all('publish')).toHaveLength(1)
  })
})

describe('the `sessionlost` event', () => {
  it('accounts for every message in flight, one by one, and for none that was queued or settled', async () => {
    const world = await steady()
    const [acknowledged] = send(world, 1, 'acknowledged')
    await world.send(puback(1))
    await acknowledged
    send(world, 1, 'a')
    send(world, 2, 'b', 'c')
    await world.send(pubrec(4))
    await lose(world)
    send(world, 1, 'queued')
    send(world, 2, 'queued')
    await comeBack(world, forgets())
    const [event, ...rest] = world.seen('sessionlost')
    expect(rest).toEqual([])
    expect(event).toMatchObject({ cause: 'absent', stale: 0, republished: [{ topic: 't', qos: 1, packetId: 2 }] })
    expect(event?.republished).toHaveLength(1)
    const rejected = [...(event?.rejected ?? [])].sort((one, other) => one.packetId - other.packetId)
    expect(rejected).toMatchObject([
      { topic: 't', qos: 2, packetId: 3, error: { code: 'ERR_SESSION_LOST', outcome: 'unknown' } },
      { topic: 't', qos: 2, packetId: 4, error: { code: 'ERR_SESSION_LOST', outcome: 'unknown' } },
    ])
    expect(Object.isFrozen(event)).toBe(true)
  })

  it('comes once for each loss, with the connection that shows it, also when nothing was in flight', async () => {
    const world = await steady()
    await again(world, forgets())
    expect(world.seen('sessionlost')).toEqual([{ cause: 'absent', republished: [], rejected: [], stale: 0 }])
    await again(world)
    expect(world.seen('sessionlost')).toHaveLength(1)
    await again(world, forgets())
    expect(world.seen('sessionlost')).toHaveLength(2)
    const order = world.events.map(({ type }) => type).filter((type) => type === 'connect' || type === 'sessionlost')
    expect(order).toEqual(['connect', 'connect', 'sessionlost', 'connect', 'connect', 'sessionlost'])
  })

  it('does not come with the first connection, nor where the session was kept', async () => {
    const world = await steady({ clientId: 'c', cleanStart: false }, forgets())
    await again(world)
    expect(world.seen('sessionlost')).toEqual([])
  })

  it('a message republished after one loss is accounted for again at the next, and arrives once', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.settle()
    await again(world, forgets())
    await again(world, forgets())
    expect(world.seen('sessionlost').map(({ republished }) => republished.length)).toEqual([1, 1])
    const peer = await again(world, willing(false))
    expect(peer.all('publish')).toHaveLength(1)
    await expect(one).resolves.toMatchObject({ reasonCode: 0 })
  })

  it('a message whose caller was told already (timeout, abort) is neither republished nor counted as rejected twice', async () => {
    const world = await steady()
    const late = failure(world.client.publish('t', 'late', { qos: 1, ackTimeout: 5 }))
    await world.clock.advance(5)
    expect((await late).code).toBe('ERR_TIMEOUT')
    const peer = await again(world, forgets())
    expect(carried(peer)).toEqual([])
    expect(world.seen('sessionlost')).toMatchObject([{ republished: [], rejected: [] }])
    expect(world.seen('drop')).toHaveLength(1)
  })
})

describe('incoming messages of a lost session', () => {
  it('are stale: `ack()` gives false and sends nothing; their number is told', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2, { qos: 2 }), publish('t', 'three', 3))
    const messages = [taken(subscription), taken(subscription), taken(subscription)]
    await lose(world)
    expect(messages[0]?.ack()).toBe(true)
    const peer = await comeBack(world, willing(false))
    expect(world.seen('sessionlost')).toMatchObject([{ stale: 3 }])
    expect(messages.map((message) => message.ack())).toEqual([false, false, false])
    await world.settle()
    expect(carried(peer)).toEqual([expect.stringMatching(/^subscribe t #\d+$/)])
  })

  it('a QoS 2 identifier of it brings a new message', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2 })
    await world.send(publish('t', 'old', 1, { qos: 2 }))
    expect((await subscription.next())?.text()).toBe('old')
    expect(subscription.read()).toBeUndefined()
    await world.settle()
    await again(world, willing(false))
    await world.send(publish('t', 'new', 1, { qos: 2, dup: true }))
    expect(subscription.read()?.text()).toBe('new')
  })

  it('what was buffered and not read can still be read', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1 })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    const peer = await again(world, willing(false))
    expect([subscription.read()?.text(), subscription.read()?.text(), subscription.read()]).toEqual(['one', 'two', undefined])
    await world.settle()
    expect(carried(peer)).toEqual([expect.stringMatching(/^subscribe t/)])
  })
})

describe('what was sent before', () => {
  it('is out of reach of `ttl`, message expiry and `clear()` also after it was taken back', async () => {
    const world = await steady({ outbound: { ttl: 100 } }, forgets({ receiveMaximum: 2 }))
    const [one, two] = [
      world.client.publish('t', 'one', { qos: 1 }),
      world.client.publish('t', 'two', { qos: 1, properties: { messageExpiryInterval: 1 } }),
    ]
    for (const promise of [one, two]) promise.catch(() => undefined)
    await world.settle()
    // The next connection has room for none: the window is used up by what it holds back.
    await again(world, forgets({ receiveMaximum: 1 }))
    await world.clock.advance(5000)
    world.client.outbound.clear()
    expect(await world.outcome(two)).toEqual({ state: 'pending' })
    const id = world.peer.all('publish')[0]?.packetId ?? 0
    await world.send(puback(id))
    const packets = world.peer.all('publish')
    expect(packets.map((packet) => new TextDecoder().decode(packet.payload))).toEqual(['one', 'two'])
    await world.send(puback(packets[1]?.packetId ?? 0))
    await expect(Promise.all([one, two])).resolves.toHaveLength(2)
  })

  it('an abort of one that waits to be republished rejects with outcome unknown: it was sent once', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 2 }))
    const controller = new AbortController()
    send(world, 1, 'first')
    const error = failure(world.client.publish('t', 'second', { qos: 1, signal: controller.signal }))
    await world.settle()
    const peer = await again(world, forgets({ receiveMaximum: 1 }))
    controller.abort()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    await world.send(puback(peer.all('publish')[0]?.packetId ?? 0))
    expect(peer.all('publish')).toHaveLength(1)
  })

  it('at the end of the client it rejects with outcome unknown, what was never sent with not-sent', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 2 }))
    const sent = ['one', 'two'].map((text) => failure(world.client.publish('t', text, { qos: 1 })))
    await world.settle()
    await again(world, forgets({ receiveMaximum: 1 }))
    const never = failure(world.client.publish('t', 'three', { qos: 1 }))
    world.client.destroy()
    for (const error of sent) expect(await error).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
    expect(await never).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
  })
})
