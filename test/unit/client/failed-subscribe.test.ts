/** Subscriptions that do not come about, and what waited for them: nothing is acknowledged that was not read, nothing is left behind. */
import { describe, expect, it } from 'vitest'
import { keeps } from './across.js'
import { accepting, agreeable, connected, failure, type World } from './harness.js'
import { acks, agreed, publish, quiet, takenTexts } from './incoming.js'
import { settled } from './steps.js'

/** A client whose session was kept, with messages that nobody subscribed to yet; the test answers SUBSCRIBE. */
async function resumed(): Promise<World> {
  const world = await connected({ clientId: 'service', cleanStart: false }, keeps())
  await world.send(publish('jobs/1', 'one', 1), publish('jobs/2', 'two', 2))
  return world
}

const granted = (world: World, reasonCode = 1): Promise<void> =>
  world.send({
    type: 'suback',
    packetId: world.peer.last('subscribe').packetId,
    reasonCodes: [reasonCode],
    properties: {},
  })

describe('messages of a resumed session that were given to nobody', () => {
  it('survive a subscribe that is aborted before its grant', async () => {
    const world = await resumed()
    const abort = new AbortController()
    const failed = failure(world.client.subscribe('jobs/#', { qos: 1, signal: abort.signal }))
    await world.settle()
    abort.abort()
    expect(await settled(world, failed)).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    expect([acks(world), world.peer.all('unsubscribe')]).toEqual([[], []])
    const next = quiet(world.client.subscribe('jobs/#', { qos: 1 }))
    await world.settle()
    await granted(world)
    expect(takenTexts(await next)).toEqual(['one', 'two'])
  })

  it('survive a signal that has aborted already; nothing is sent', async () => {
    const world = await resumed()
    const failed = failure(
      world.client.subscribe('jobs/#', { qos: 1, signal: AbortSignal.abort() }),
    )
    expect(await settled(world, failed)).toMatchObject({ outcome: 'not-sent' })
    expect(world.peer.received.map(({ type }) => type)).toEqual(['connect'])
  })

  it('survive a refusal [0x87]', async () => {
    const world = await resumed()
    const failed = failure(world.client.subscribe('jobs/#', { qos: 1 }))
    await world.settle()
    await granted(world, 0x87)
    expect(await settled(world, failed)).toMatchObject({
      code: 'ERR_SUBSCRIBE_REFUSED',
      reasonCode: 0x87,
    })
    expect(acks(world)).toEqual([])
  })
})

describe('a subscription that fails beside another', () => {
  it('requireQos on a filter that is there already leaves no dead reader behind', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'subscribe'
        ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0], properties: {} }
        : agreeable(packet),
    )
    const first = await settled(world, world.client.subscribe('a', { retainHandling: 2 }))
    const second = await settled(
      world,
      world.client.subscribe('a', { qos: 0, retainHandling: 2, requireQos: true }),
    )
    const lowered = failure(world.client.subscribe('a', { qos: 1, requireQos: true }))
    expect(await settled(world, lowered)).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED' })
    await world.send(publish('a', 'x'))
    expect([first.read()?.text(), second.read()?.text()]).toEqual(['x', 'x'])
  })

  it('an identifier of the caller for a filter that has another is a conflict, not ignored', async () => {
    const world = await agreed()
    await settled(world, world.client.subscribe('a'))
    const call = world.client.subscribe('a', { properties: { subscriptionIdentifier: 7 } })
    expect(await failure(call)).toMatchObject({ code: 'ERR_SUBSCRIPTION_CONFLICT' })
  })
})

describe('limits of the session', () => {
  it('UNSUBSCRIBE in several packets waits for identifiers, and ends', async () => {
    const outbound = { maxQueuedMessages: 70_000, maxQueuedBytes: 1e9 }
    const world = await connected({ maxFiltersPerSubscribe: 1, outbound })
    for (let count = 0; count < 65_534; count++) quiet(world.client.publish('t', 'x', { qos: 1 }))
    await world.settle()
    const call = quiet(world.client.unsubscribe(['a', 'b']))
    await world.settle()
    expect(world.peer.all('unsubscribe').map(({ filters }) => filters)).toEqual([['a']])
    for (const reasonCode of [0, 0x11]) {
      const { packetId } = world.peer.last('unsubscribe')
      await world.send({ type: 'unsuback', packetId, reasonCodes: [reasonCode], properties: {} })
    }
    expect((await call).map((result) => result.reasonCode)).toEqual([0, 0x11])
  })

  it.each([1, 2, 3])(
    'Maximum Packet Size %s: what does not fit is not sent',
    async (maximumPacketSize) => {
      const world = await connected({ keepAlive: 1 }, (packet) =>
        packet.type === 'pingreq' ? { type: 'pingresp' } : accepting({ maximumPacketSize })(packet),
      )
      await world.clock.advance(1500)
      expect(world.client.state).toBe(maximumPacketSize === 1 ? 'closed' : 'connected')
      if (maximumPacketSize === 1) return
      await world.send(publish('a', 'x', 1))
      expect(await world.client.closed).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
      expect(world.peer.all('puback')).toEqual([])
    },
  )
})
