/**
 * Subscriptions that do not come about, and what waited for them: nothing is acknowledged that nobody saw, nothing is left behind.
 */
import { describe, expect, it } from 'vitest'
import { accepting, agreeable, connected, type World } from './harness.js'
import { acks, publish, quiet } from './incoming.js'

const durable = { clientId: 'service', cleanStart: false }

async function resumed(): Promise<World> {
  const world = await connected(durable, accepting({}, true))
  await world.send(publish('jobs/1', 'one', 1), publish('jobs/2', 'two', 2))
  return world
}

async function granted(world: World, reasonCode = 1): Promise<void> {
  await world.send({ type: 'suback', packetId: world.peer.last('subscribe').packetId, reasonCodes: [reasonCode], properties: {} })
}

describe('messages of a resumed session that nobody was given', () => {
  it('survive a subscribe that is aborted before its grant', async () => {
    const world = await resumed()
    const abort = new AbortController()
    const failed = quiet(world.client.subscribe('jobs/#', { qos: 1, signal: abort.signal }))
    await world.settle()
    abort.abort()
    await expect(failed).rejects.toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    await world.settle()
    expect(acks(world)).toEqual([])
    expect(world.peer.all('unsubscribe')).toEqual([])
    const next = quiet(world.client.subscribe('jobs/#', { qos: 1 }))
    await world.settle()
    await granted(world)
    const subscription = await next
    expect([subscription.read()?.text(), subscription.read()?.text()]).toEqual(['one', 'two'])
  })

  it('survive a signal that has aborted already; nothing is sent', async () => {
    const world = await resumed()
    await expect(world.client.subscribe('jobs/#', { qos: 1, signal: AbortSignal.abort() })).rejects.toMatchObject({ outcome: 'not-sent' })
    await world.settle()
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
  })

  it('survive a refusal [0x87]', async () => {
    const world = await resumed()
    const failed = quiet(world.client.subscribe('jobs/#', { qos: 1 }))
    await world.settle()
    await granted(world, 0x87)
    await expect(failed).rejects.toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 })
    await world.settle()
    expect(acks(world)).toEqual([])
  })
})

describe('a subscription that fails beside another', () => {
  it('requireQos on a filter that is there already leaves no dead reader behind', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0], properties: {} } : agreeable(packet),
    )
    const first = await started(world, world.client.subscribe('a', { retainHandling: 2 }))
    const failed = quiet(world.client.subscribe('a', { qos: 0, retainHandling: 2, requireQos: true }))
    await started(world, failed)
    const lowered = quiet(world.client.subscribe('a', { qos: 1, requireQos: true }))
    await expect(started(world, lowered)).rejects.toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED' })
    await world.send(publish('a', 'x'))
    expect(first.read()?.text()).toBe('x')
    expect((await failed).read()?.text()).toBe('x')
  })

  it('an identifier of the caller for a filter that has another is a conflict, not ignored', async () => {
    const world = await connected({}, agreeable)
    await started(world, world.client.subscribe('a'))
    const call = quiet(world.client.subscribe('a', { properties: { subscriptionIdentifier: 7 } }))
    await expect(call).rejects.toMatchObject({ code: 'ERR_SUBSCRIPTION_CONFLICT' })
  })
})

describe('limits of the session', () => {
  it('UNSUBSCRIBE in several packets waits for identifiers, and ends', async () => {
    const world = await connected({ maxFiltersPerSubscribe: 1, outbound: { maxQueuedMessages: 70_000, maxQueuedBytes: 1e9 } })
    for (let count = 0; count < 65_534; count++) world.client.publish('t', 'x', { qos: 1 }).catch(() => undefined)
    await world.settle()
    const call = quiet(world.client.unsubscribe(['a', 'b']))
    await world.settle()
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a']])
    const [first] = world.peer.all('unsubscribe')
    await world.send({ type: 'unsuback', packetId: first?.packetId ?? 0, reasonCodes: [0], properties: {} })
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0x11], properties: {} })
    expect((await call).map((result) => result.reasonCode)).toEqual([0, 0x11])
  })

  it.each([1, 2, 3])('Maximum Packet Size %s: what does not fit is not sent, and nothing is thrown into timers', async (maximumPacketSize) => {
    const world = await connected({ keepAlive: 1 }, (packet) =>
      packet.type === 'pingreq' ? { type: 'pingresp' } : accepting({ maximumPacketSize })(packet),
    )
    await world.clock.advance(1500)
    expect(world.client.state).toBe(maximumPacketSize === 1 ? 'closed' : 'connected')
    if (maximumPacketSize === 1) return
    await world.send(publish('a', 'x', 1))
    expect(await world.client.closed).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
    expect(world.peer.all('puback')).toEqual([])
  })
})

async function started<T>(world: World, call: Promise<T>): Promise<T> {
  await world.settle()
  return call
}
