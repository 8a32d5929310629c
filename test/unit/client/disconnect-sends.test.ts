/** `disconnect()` sends what it was given: it waits for publishes while the connection is up, and tells what it gives up. */
import { describe, expect, it } from 'vitest'
import { carried, lose, steady } from './across.js'
import { accepting, agreeable, connected, failure } from './harness.js'
import { goodbyeCode, quiet } from './incoming.js'
import { logger, Unheard } from './reporting.js'
import { stubbed } from './stub.js'

const puback = (packetId: number) => ({ type: 'puback', packetId, reasonCode: 0, properties: {} }) as const

describe('disconnect() with publishes under way', () => {
  it('of 200 that nobody awaits 200 arrive, whatever the server allows at a time', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { receiveMaximum: 20 } } : agreeable(packet),
    )
    for (let count = 0; count < 200; count++) void world.client.publish('a', String(count), { qos: 1 })
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(world.peer.all('publish')).toHaveLength(200)
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    expect(world.seen('drop')).toEqual([])
  })

  it('waits for QoS 2 to the end', async () => {
    const world = await connected({}, agreeable)
    void world.client.publish('a', 'x', { qos: 2 })
    void world.client.disconnect()
    await world.settle()
    expect(carried(world.peer)).toEqual(['publish a=x q2 #1', 'pubrel #1', 'disconnect'])
  })

  it('with nothing outstanding DISCONNECT leaves in the same turn', async () => {
    const { client, stub } = await stubbed()
    void client.disconnect()
    expect(stub.packets.map(({ type }) => type)).toEqual(['disconnect'])
  })

  it('timeout 0 waits for nothing', async () => {
    const world = await connected()
    const one = failure(world.client.publish('a', 'x', { qos: 1 }))
    void world.client.disconnect({ timeout: 0 })
    await world.settle()
    expect(goodbyeCode(world)).toBe(0)
    expect((await one).outcome).toBe('unknown')
  })

  it('waits no longer than its timeout', async () => {
    const world = await connected()
    const one = failure(world.client.publish('a', 'x', { qos: 1 }))
    const done = quiet(world.client.disconnect({ timeout: 300 }))
    await world.clock.advance(299)
    expect(world.peer.all('disconnect')).toEqual([])
    await world.clock.advance(51)
    await done
    expect(goodbyeCode(world)).toBe(0)
    expect(await one).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
  })

  it('the end of the connection ends the wait; drain() waits for the next one', async () => {
    const world = await steady({})
    const one = failure(world.client.publish('a', 'x', { qos: 1 }))
    const done = quiet(world.client.disconnect())
    await world.clock.advance(100)
    await lose(world)
    await done
    expect(world.client.state).toBe('closed')
    expect((await one).outcome).toBe('unknown')
    expect(world.peers).toHaveLength(1)
  })

  it('without a connection it waits for nothing', async () => {
    const world = await steady({})
    await lose(world)
    const one = failure(world.client.publish('a', 'x', { qos: 1 }))
    await world.client.disconnect()
    expect(await one).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
  })

  it.each([
    ['while the old link ends', 0],
    ['while there is no link', 5],
  ])('where we replace the connection ourselves, it waits for the next one, %s', async (_name, later) => {
    const world = await steady({}, accepting())
    world.answer = (packet) => (packet.type === 'connect' ? undefined : agreeable(packet))
    quiet(world.client.reconnect({ force: true }))
    if (later > 0) await world.clock.advance(later)
    const sent = quiet(world.client.publish('a', 'x', { qos: 1 }))
    const done = world.client.disconnect()
    await world.clock.advance(1500)
    await world.send({ type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} })
    await world.clock.advance(100)
    await done
    await expect(sent).resolves.toMatchObject({ packetId: 1 })
    expect(world.peers).toHaveLength(2)
    expect(carried(world.peer)).toEqual(['publish a=x q1 #1', 'disconnect'])
  })

  it('it waits no longer than its timeout for that one, nor for a third where that is lost', async () => {
    const late = await steady({})
    late.answer = undefined
    quiet(late.client.reconnect({ force: true }))
    await late.clock.advance(5)
    const unsent = failure(late.client.publish('a', 'x', { qos: 1 }))
    const done = quiet(late.client.disconnect({ timeout: 2000 }))
    await late.clock.advance(1900)
    expect(late.client.state).toBe('disconnecting')
    await late.clock.advance(200)
    await done
    expect(await unsent).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })

    const lost = await steady({})
    quiet(lost.client.reconnect({ force: true }))
    const unknown = failure(lost.client.publish('a', 'x', { qos: 1 }))
    const gone = lost.client.disconnect()
    await lost.clock.advance(1500)
    expect(lost.peer.all('publish')).toHaveLength(1)
    await lose(lost)
    await gone
    expect(await unknown).toMatchObject({ outcome: 'unknown' })
    expect(lost.peers).toHaveLength(2)
  })

  it('waits for what running turns publish, and takes nothing more once they are over', async () => {
    const world = await connected({}, agreeable)
    let end: () => void = () => undefined
    void world.client.listen('jobs', async () => {
      await new Promise<void>((resolve) => (end = resolve))
      void world.client.publish('answers', 'from the turn', { qos: 1 })
    })
    await world.settle()
    await world.send({ type: 'publish', topic: 'jobs', payload: new Uint8Array(1), qos: 0, retain: false, dup: false, properties: {} })
    world.answer = () => undefined
    void world.client.disconnect()
    end()
    await world.settle()
    expect(world.peer.all('publish')).toHaveLength(1)
    const late = failure(world.client.publish('late', 'x', { qos: 1 }))
    expect(await late).toMatchObject({ code: 'ERR_CLOSED', message: expect.stringContaining('disconnect() was called') as string })
    await world.send(puback(world.peer.last('publish').packetId as number))
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it.each(['disconnect', 'drain'] as const)('%s() waits for a publish that a hook has in hand', async (how) => {
    const world = await connected({}, agreeable)
    let go: () => void = () => undefined
    world.client.use({
      publish: async (call, next) => {
        await new Promise<void>((resolve) => (go = resolve))
        return next(call)
      },
    })
    const one = world.client.publish('a', 'x', { qos: 1 })
    void world.client[how]()
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    go()
    await world.settle()
    await expect(one).resolves.toMatchObject({ reasonCode: 0 })
    expect(carried(world.peer)).toEqual(['publish a=x q1 #1', 'disconnect'])
  })
})

describe('what disconnect() gives up', () => {
  const silent = accepting({ receiveMaximum: 2 })

  it('raises drop, is one line of the log and one report with the count', async () => {
    const lines: string[] = []
    const world = new Unheard({ logger: logger(lines) })
    world.answer = silent
    await world.connect()
    let dropped = 0
    world.client.on('drop', ({ count }) => {
      dropped += count
    })
    for (let count = 0; count < 5; count++) void world.client.publish('a', 'x', { qos: 1 })
    const done = world.client.disconnect({ timeout: 100 })
    await world.clock.advance(1000)
    await done
    expect(dropped).toBe(5)
    const text =
      'mqwire unheard: disconnect() gave up 5 publishes (3 queued, 2 sent and not acknowledged): its timeout was 100 ms; a longer { timeout } waits longer'
    expect(lines).toEqual([`warn ${text}`])
    expect(world.said).toEqual([`MQWIRE_UNSENT ${text}`])
  })

  it('is reported where nobody listens, awaited or not, and once', async () => {
    const world = new Unheard()
    world.answer = silent
    await world.connect()
    const all = [1, 2, 3].map(() => failure(world.client.publish('a', 'x', { qos: 1 })))
    void world.client.disconnect({ timeout: 0 })
    await world.settle()
    await Promise.all(all)
    expect(world.said).toEqual([expect.stringMatching(/^MQWIRE_UNSENT .*gave up 3 publishes \(1 queued, 2 sent/) as string])
  })

  it('without a connection says that', async () => {
    const world = new Unheard({ reconnect: { backoff: () => 60_000 } })
    await world.connect()
    world.peer.cut()
    await world.settle()
    void world.client.publish('a', 'x', { qos: 1 })
    await world.client.disconnect()
    expect(world.said).toEqual([
      expect.stringMatching(/MQWIRE_UNSENT .*gave up 1 publish .*: there was no connection; drain\(\) waits for one$/) as string,
    ])
  })

  it('nothing is said where all was acknowledged, nor with logger null', async () => {
    const world = await new Unheard().connect()
    void world.client.publish('a', 'x', { qos: 1 })
    void world.client.disconnect()
    await world.settle()
    expect(world.said).toEqual([])
    const deaf = new Unheard({ logger: null })
    deaf.answer = silent
    await deaf.connect()
    void deaf.client.publish('a', 'x', { qos: 1 })
    void deaf.client.disconnect({ timeout: 0 })
    await deaf.settle()
    expect(deaf.said).toEqual([])
  })
})
