import { describe, expect, it } from 'vitest'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { publish } from './incoming.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'

const types = (world: World): string[] => world.peer.received.map((packet) => packet.type)

describe('the packet', () => {
  it('DISCONNECT 0x00 is last on the wire, then the end of the stream [MQTT-3.14.4-1] [MQTT-3.14.4-2]', async () => {
    const world = await connected({ sessionExpiryInterval: 0 }, agreeable)
    world.client.post('a', 'b')
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(types(world)).toEqual(['connect', 'publish', 'disconnect'])
    expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
    expect(world.peer.ended).toEqual({ cause: undefined })
    expect(await world.client.closed).toBeUndefined()
    expect(world.seen('disconnect')).toEqual([{ cause: undefined }])
    expect(world.clock.pending).toBe(0)
  })

  it('reason, expiry and user properties', async () => {
    const world = await connected({})
    const userProperties: [string, string][] = [
      ['a', '1'],
      ['a', ''],
    ]
    world.client.disconnect({ reasonCode: 0x04, reasonString: 'night', sessionExpiryInterval: 60, userProperties })
    await world.settle()
    expect(world.peer.last('disconnect')).toMatchObject({
      reasonCode: 0x04,
      properties: { reasonString: 'night', sessionExpiryInterval: 60, userProperties },
    })
  })

  it('a session is never shortened unless asked, but one that began clean ends', async () => {
    const clean = await connected({ sessionExpiryInterval: 300 })
    clean.client.disconnect()
    await clean.settle()
    expect(clean.peer.last('disconnect').properties.sessionExpiryInterval).toBe(0)
    const durable = await connected({ clientId: 'a', cleanStart: false }, accepting({}, true))
    durable.client.disconnect()
    await durable.settle()
    expect(durable.peer.last('disconnect').properties.sessionExpiryInterval).toBeUndefined()
    const ended = await connected({ clientId: 'a', cleanStart: false }, accepting({}, true))
    ended.client.disconnect({ sessionExpiryInterval: 0 })
    await ended.settle()
    expect(ended.peer.last('disconnect').properties.sessionExpiryInterval).toBe(0)
  })

  it('a positive expiry when CONNECT had 0 is refused, and the link stays [MQTT-3.14.2-2]', async () => {
    const world = await connected({ sessionExpiryInterval: 0 })
    await expect(world.client.disconnect({ sessionExpiryInterval: 1 })).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: 'sessionExpiryInterval',
    })
    expect(world.client.state).toBe('connected')
    world.client.disconnect({ sessionExpiryInterval: 0 })
    await world.settle()
    expect(types(world)).toEqual(['connect', 'disconnect'])
  })

  it('what does not fit is left out: user properties first, then the reason string [MQTT-3.14.2-3] [MQTT-3.14.2-4]', async () => {
    const long = 'x'.repeat(40)
    const cases = [
      [120, { reasonString: long, userProperties: [['k', long]], sessionExpiryInterval: 5 }],
      [70, { reasonString: long, sessionExpiryInterval: 5 }],
      [20, { sessionExpiryInterval: 5 }],
      [4, {}],
    ] as const
    for (const [maximumPacketSize, properties] of cases) {
      const world = await connected({}, accepting({ maximumPacketSize }))
      const done = world.client.disconnect({ reasonString: long, userProperties: [['k', long]], sessionExpiryInterval: 5 })
      await world.settle()
      await done
      const sent = world.peer.last('disconnect').properties
      expect(Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined))).toEqual(properties)
    }
  })

  it('a server that takes hardly anything: the close completes without DISCONNECT', async () => {
    const world = await connected({}, accepting({ maximumPacketSize: 1 }))
    const done = world.client.disconnect({ reasonCode: 4 })
    await world.settle()
    await done
    expect(types(world)).toEqual(['connect'])
    expect(world.client.state).toBe('closed')
    expect(world.clock.pending).toBe(0)
  })
})

describe('DISCONNECT and AUTH of the server', () => {
  it.each([0x00, 0x81, 0x87, 0x89, 0x8b, 0x8d, 0x93, 0x97, 0x98, 0x9c, 0x9d, 0xa0])(
    'code %s: serverdisconnect, then disconnect, and no DISCONNECT back [MQTT-3.14.4-3]',
    async (reasonCode) => {
      const world = await connected()
      const properties = { reasonString: 'why', serverReference: 'b:1' }
      await world.send({ type: 'disconnect', reasonCode, properties })
      const cause = await world.client.closed
      expect(cause).toMatchObject({ code: 'ERR_SERVER_DISCONNECT', reasonCode, reasonString: 'why', fault: 'remote' })
      expect(world.events.map((entry) => entry.type).filter((type) => type !== 'state')).toEqual([
        'dial',
        'connect',
        'serverdisconnect',
        'disconnect',
      ])
      expect(world.seen('serverdisconnect')).toMatchObject([{ error: cause, packet: { reasonCode, properties } }])
      expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
      expect(types(world)).toEqual(['connect'])
      expect(world.peer.ended).toBeDefined()
      expect(world.clock.pending).toBe(0)
    },
  )

  it('session taken over has a code of its own', async () => {
    const world = await connected()
    await world.send({ type: 'disconnect', reasonCode: 0x8e, properties: {} })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_SESSION_TAKEN_OVER', reasonCode: 0x8e })
  })

  it.each([
    ['Session Expiry Interval', 'e0 07 00 05 11 00 00 00 00', 0x82],
    ['a code that only a client may send', 'e0 02 04 00', 0x82],
    ['a code that is none', 'e0 02 7f 00', 0x82],
    ['cut properties', 'e0 06 00 04 1f 00 05 61', 0x81],
    ['flags', 'e1 00', 0x81],
  ])('with %s', async (_name, hex, reasonCode) => {
    const world = await connected()
    await world.sendBytes(hex)
    const sent = world.peer.received.at(-1)
    expect(sent).toMatchObject({ type: 'disconnect' })
    expect([0x81, 0x82]).toContain(sent?.type === 'disconnect' && sent.reasonCode)
    if (reasonCode === 0x81) expect(sent).toMatchObject({ reasonCode })
    expect(world.seen('serverdisconnect')).toEqual([])
    expect(world.client.state).toBe('closed')
  })

  it.each(['f0 00', 'f0 02 00 00', 'f0 06 18 04 15 00 01 61', 'f0 06 00 04 15 00 01 61'])(
    'AUTH %s when no method was given [MQTT-4.12.0-1]',
    async (hex) => {
      const world = await connected()
      await world.sendBytes(hex)
      expect(world.peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
      expect(await world.client.closed).toMatchObject({ reasonCode: 0x82, fault: 'remote' })
    },
  )
})

describe('stopping', () => {
  it('what comes in after our DISCONNECT is dropped', async () => {
    const transport = new StalledTransport()
    const world = new World({}, {}, 1, () => transport)
    const subscription = world.client.subscription('#')
    const connecting = world.client.connect()
    await world.settle()
    transport.feed(plainConnack)
    await connecting
    const events = world.events.length
    world.client.disconnect({ timeout: 100 })
    await world.settle()
    const sent = transport.written.length
    transport.feed('30 04 00 01 61 00 32 06 00 01 61 00 01 00 00 00')
    await world.clock.advance(2000)
    expect(transport.written).toHaveLength(sent)
    expect(subscription.size).toBe(0)
    expect(world.events.slice(events).map((entry) => entry.type)).toEqual(['state', 'state', 'disconnect'])
  })

  it('waits for a turn up to the timeout, then forces; everything settles', async () => {
    const world = await connected({}, agreeable)
    let end: () => void = () => undefined
    const handling = world.client.listen('a', () => new Promise<void>((resolve) => (end = resolve)), { qos: 1 })
    await world.settle()
    const { done } = await handling
    await world.send(publish('a', '', 9))
    const stopping = world.client.disconnect({ timeout: 3000 })
    await world.clock.advance(2999)
    expect(world.client.state).toBe('disconnecting')
    expect(types(world)).not.toContain('disconnect')
    await world.clock.advance(1)
    await stopping
    expect(world.client.state).toBe('closed')
    expect(types(world).slice(-1)).toEqual(['disconnect'])
    expect(types(world)).not.toContain('puback')
    end()
    await world.settle()
    await done
    expect(world.clock.pending).toBe(0)
  })

  it('a turn that ends in time is acknowledged before DISCONNECT', async () => {
    const world = await connected({}, agreeable)
    const subscribing = world.client.subscribe('a', { qos: 1 })
    await world.settle()
    const subscription = await subscribing
    await world.send(publish('a', '', 1), publish('a', '', 2))
    await subscription.next()
    const stopping = world.client.disconnect()
    await world.clock.advance(100)
    const next = subscription.next()
    await world.settle()
    expect(await next).toBeUndefined()
    await stopping
    expect(types(world).slice(-2)).toEqual(['puback', 'disconnect'])
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual([1])
    expect(world.clock.now()).toBe(100)
  })

  it('the connection is lost while disconnect() waits for a turn: it resolves when that ends, with what happened in closed', async () => {
    const world = await connected({}, agreeable)
    const subscription = world.client.subscription('a', { qos: 1 })
    await world.send(publish('a', '', 1))
    await subscription.next()
    const stopping = world.client.disconnect({ timeout: 60_000 })
    await world.clock.advance(10)
    world.peer.cut()
    expect(await world.outcome(stopping)).toMatchObject({ state: 'pending' })
    expect(await subscription.next()).toBeUndefined()
    expect(await world.outcome(stopping)).toMatchObject({ state: 'fulfilled' })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
    expect(world.clock.pending).toBe(0)
  })

  it('timeout 0 does not wait', async () => {
    const world = await connected({}, agreeable)
    const subscribing = world.client.subscribe('a', { qos: 1 })
    await world.settle()
    const subscription = await subscribing
    await world.send(publish('a', '', 1))
    await subscription.next()
    const stopping = world.client.disconnect({ timeout: 0 })
    await world.settle()
    await stopping
    expect(types(world).slice(-1)).toEqual(['disconnect'])
    expect(world.peer.ended).toEqual({ cause: undefined })
  })

  it('destroy cuts without DISCONNECT, so that the will is published', async () => {
    const world = await connected({ will: { topic: 'w' } })
    const publishing = failure(world.client.publish('a', 'b', { qos: 1 }))
    await world.settle()
    world.client.destroy()
    expect(world.client.state).toBe('closed')
    await world.settle()
    expect(types(world)).toEqual(['connect', 'publish'])
    expect(world.peer.ended?.cause).toBeDefined()
    expect(await publishing).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
    expect(await world.client.closed).toBeUndefined()
    expect(world.seen('disconnect')).toHaveLength(1)
    expect(world.clock.pending).toBe(0)
  })

  it('twice, joined; before connect; after the end', async () => {
    const world = await connected({}, agreeable)
    const both = [world.client.disconnect(), world.client.disconnect()]
    await world.settle()
    await Promise.all(both)
    await world.client.disconnect()
    world.client.destroy()
    expect(world.peer.all('disconnect')).toHaveLength(1)
    expect(world.seen('disconnect')).toHaveLength(1)
    const idle = new World()
    await idle.client.disconnect()
    await idle.client.disconnect()
    expect(idle.seen('state')).toEqual([{ state: 'closed', previous: 'idle' }])
    expect(idle.seen('disconnect')).toEqual([])
    expect(await idle.client.closed).toBeUndefined()
    const destroyed = new World()
    destroyed.client.destroy()
    expect(destroyed.client.state).toBe('closed')
    await destroyed.client.disconnect()
  })

  it('a client whose connect failed', async () => {
    const world = new World({}, {}, 1, () => Promise.reject(new Error('no')))
    await failure(world.client.connect())
    await world.client.disconnect()
    expect(world.seen('state')).toEqual([
      { state: 'connecting', previous: 'idle' },
      { state: 'closed', previous: 'connecting' },
    ])
  })

  it('of several calls the one in most of a hurry decides; a signal cuts the wait', async () => {
    const world = await connected({}, agreeable)
    const subscribing = world.client.subscribe('a', { qos: 1 })
    await world.settle()
    await world.send(publish('a', '', 1))
    await (await subscribing).next()
    const slow = world.client.disconnect({ timeout: 60_000 })
    await world.clock.advance(1000)
    const controller = new AbortController()
    const fast = world.client.disconnect({ timeout: 60_000, signal: controller.signal })
    await world.clock.advance(1000)
    expect(world.client.state).toBe('disconnecting')
    controller.abort()
    await world.settle()
    await Promise.all([slow, fast])
    expect(world.client.state).toBe('closed')
    expect(world.clock.pending).toBe(0)
  })

  it('pending calls reject once, typed', async () => {
    const world = await connected({})
    const { client } = world
    const subscription = client.subscription('s')
    const pending = [
      client.publish('a', 'b', { qos: 1 }),
      client.publish('a', 'b', { qos: 2 }),
      client.subscribe('b'),
      client.listen('c', () => undefined),
      client.unsubscribe('d'),
      subscription.ready,
    ].map(failure)
    await world.settle()
    client.disconnect()
    // The answer to UNSUBSCRIBE is waited for, as long as there is time.
    await world.clock.advance(5000)
    for (const error of await Promise.all(pending)) expect(error).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
  })

  it('calls after close are refused', async () => {
    const world = await connected({}, agreeable)
    const { client } = world
    await Promise.all([client.disconnect(), world.settle()])
    const bytes = world.peer.bytes.length
    const calls = [client.publish('a', 'b'), client.subscribe('a'), client.listen('a', () => undefined), client.unsubscribe('a'), client.connect()]
    for (const error of await Promise.all(calls.map(failure))) expect(error).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
    expect(() => client.subscription('a')).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }) as Error)
    expect(client.post('a', 'b')).toBe(false)
    await expect(client.flush()).rejects.toMatchObject({ code: expect.stringMatching(/ERR_(CLOSED|NOT_CONNECTED)/) as string })
    expect(await failure(client.writable)).toMatchObject({ code: 'ERR_CLOSED' })
    await world.settle()
    expect(world.peer.bytes).toHaveLength(bytes)
  })

  it('publish from a turn that still runs during disconnect() is accepted and sent', async () => {
    const world = await connected({}, agreeable)
    let published: Promise<unknown> | undefined
    const handling = world.client.listen(
      'a',
      async () => {
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, 50))
        published = world.client.publish('reply', 'x', { qos: 1 })
        await published
      },
      { qos: 1 },
    )
    await world.settle()
    await handling
    await world.send(publish('a', '', 3))
    const stopping = world.client.disconnect()
    await world.clock.advance(60)
    await stopping
    await published
    expect(types(world).slice(-3)).toEqual(['publish', 'puback', 'disconnect'])
  })

  it('with timeout 0 DISCONNECT goes in front of publishes that wait for quota', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const publishing = [1, 2, 3].map((index) => failure(world.client.publish('a', String(index), { qos: 1 })))
    await world.settle()
    world.client.disconnect({ timeout: 0 })
    await world.settle()
    expect(types(world)).toEqual(['connect', 'publish', 'disconnect'])
    expect((await Promise.all(publishing)).map((error) => error.outcome)).toEqual(['unknown', 'not-sent', 'not-sent'])
  })

  it('losses that wait to be told leave no timer', async () => {
    const world = await connected()
    const subscription = world.client.subscription('a', { buffer: 1, overflow: 'drop-newest' })
    for (let round = 0; round < 5; round++) await world.send(publish('a', 'x'), publish('a', 'y'))
    expect(subscription.dropped).toBeGreaterThan(1)
    world.client.destroy()
    await world.settle()
    expect(world.clock.pending).toBe(0)
  })

  it('no event after closed', async () => {
    const world = await connected({}, agreeable)
    await Promise.all([world.client.disconnect(), world.settle()])
    const before = world.events.length
    world.client.destroy()
    failure(world.client.publish('a', 'b'))
    failure(world.client.connect())
    await world.client.disconnect()
    await world.clock.advance(100_000)
    expect(world.events).toHaveLength(before)
  })

  it('the stream of a peer that never ends its side is cut within the timeout', async () => {
    const transport = new StalledTransport()
    const world = new World({}, {}, 1, () => transport)
    const connecting = world.client.connect()
    await world.settle()
    transport.feed(plainConnack)
    await connecting
    const stopping = world.client.disconnect({ timeout: 200 })
    await world.clock.advance(250)
    await stopping
    expect(transport.written.slice(-9, -7)).toEqual([0xe0, 7])
    expect(transport.destroyed).toBeDefined()
    expect(world.clock.pending).toBe(0)
  })

  it('await using disconnects', async () => {
    const world = await connected({}, agreeable)
    const stopping = world.client[Symbol.asyncDispose]()
    await world.settle()
    await stopping
    expect(types(world)).toEqual(['connect', 'disconnect'])
  })
})
