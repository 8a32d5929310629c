/** Who owns a session, and how CONNECT says so: Clean Start over several connections, state of an earlier process, and the end of it. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { again, carried, comeBack, forgets, keeps, lasting, lose, send, short, steady, willing } from './across.js'
import { agreeable, connected, failure, World } from './harness.js'
import { quiet } from './incoming.js'

const durable: ClientOptions = { ...lasting, clientId: 'mine', cleanStart: false }
const connects = (world: World) => world.peers.map((peer) => peer.all('connect')[0])

describe('Clean Start', () => {
  it('is 0 where a session is asked for, on every connection', async () => {
    const world = await steady(durable, forgets())
    await again(world)
    await again(world, forgets())
    await again(world)
    expect(connects(world).map((packet) => packet?.cleanStart)).toEqual([false, false, false, false])
  })

  it('is as configured until the first CONNACK that takes us in, then 0', async () => {
    const world = new World({ ...lasting, firstConnect: 'wait' })
    const connecting = world.client.connect()
    world.answer = (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0x88, properties: {} } : undefined)
    await world.clock.advance(25)
    expect(connects(world).length).toBeGreaterThanOrEqual(2)
    expect(connects(world).every((packet) => packet?.cleanStart === true)).toBe(true)
    world.answer = forgets()
    await world.clock.advance(10)
    await connecting
    expect(connects(world).at(-1)?.cleanStart).toBe(true)
    await again(world)
    await again(world, forgets())
    await again(world)
    expect(
      connects(world)
        .slice(-3)
        .map((packet) => packet?.cleanStart),
    ).toEqual([false, false, false])
  })

  it('the client identifier that the server assigned is used from then on', async () => {
    const world = await steady({}, forgets({ assignedClientIdentifier: 'assigned-7' }))
    expect(world.client.clientId).toBe('assigned-7')
    await again(world)
    await again(world)
    expect(connects(world).map((packet) => packet?.clientId)).toEqual(['', 'assigned-7', 'assigned-7'])
  })

  it('the session is there: nothing is subscribed to, nothing is sent but what was in flight', async () => {
    const world = await steady(durable, willing(false))
    world.client.subscription('a', { qos: 1 })
    await world.settle()
    await again(world, willing(true))
    await world.clock.advance(1000)
    expect(carried(world.peer)).toEqual([])
    expect(world.seen('connect').map(({ sessionPresent }) => sessionPresent)).toEqual([false, true])
  })

  it('Session Present 1 to a first Clean Start 1, or on a session that was never declared: close(0x82)', async () => {
    const world = new World({ ...lasting })
    world.answer = keeps()
    const error = failure(world.client.connect())
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 })
    expect(world.peer.last('disconnect').reasonCode).toBe(0x82)
  })

  it('a keep-alive timeout is a drop like any other: the session goes on', async () => {
    const world = await steady({ keepAlive: 10, pingTimeout: 5000 })
    const [one] = send(world, 1, 'one')
    world.answer = keeps()
    await world.clock.advance(15_000 + 10)
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_KEEPALIVE_TIMEOUT' } }])
    expect(carried(world.peer)).toEqual(['publish t=one q1 #1 dup'])
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    await expect(one).resolves.toMatchObject({ packetId: 1 })
  })

  it('`reconnect({ force: true })` says goodbye with 0x00, keeps the session, and goes on with it', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.settle()
    world.answer = willing(true)
    const [before] = world.peers
    const done = world.client.reconnect({ force: true, reason: 'why not' })
    await world.clock.advance(1000)
    await done
    const goodbye = before?.last('disconnect')
    expect(goodbye?.reasonCode).toBe(0)
    expect(goodbye?.properties.sessionExpiryInterval).toBeUndefined()
    expect(connects(world).at(-1)?.cleanStart).toBe(false)
    expect(carried(world.peer)[0]).toBe('publish t=one q1 #1 dup')
    await expect(one).resolves.toBeDefined()
    expect(world.seen('disconnect')).toHaveLength(1)
  })
})

describe('the end', () => {
  it('of a durable client leaves its session as CONNECT said: DISCONNECT says nothing of it', async () => {
    const world = await connected({ ...durable, sessionExpiryInterval: 1000 })
    const done = world.client.disconnect()
    await world.settle()
    expect(world.peer.last('disconnect').properties).toEqual({})
    world.peer.end()
    await world.clock.advance(5000)
    await done
  })

  it('of one with cleanStart ends the session: expiry 0; also after it came back with Clean Start 0', async () => {
    const world = await steady()
    await again(world)
    const done = world.client.disconnect()
    await world.settle()
    expect(world.peer.last('disconnect').properties).toEqual({ sessionExpiryInterval: 0 })
    world.peer.end()
    await world.clock.advance(5000)
    await done
  })

  it('a new client with the same options starts afresh', async () => {
    const options = Object.freeze({ ...durable })
    const first = await connected(options)
    first.client.destroy()
    const second = await connected(options, keeps())
    expect(connects(second).map((packet) => [packet?.cleanStart, packet?.clientId])).toEqual([[false, 'mine']])
    expect(second.seen('connect')).toMatchObject([{ sessionPresent: true }])
  })
})

describe('a session whose past this process does not know', () => {
  const pubcomp = (packetId: number, reasonCode = 0) => ({ type: 'pubcomp', packetId, reasonCode, properties: {} }) as const

  it.each([0, 0x92])('a QoS 2 identifier is cleared by PUBREL before its first use; PUBCOMP 0x%x is good enough', async (code) => {
    const world = await connected(durable, keeps())
    const promise = world.client.publish('t', 'two', { qos: 2 })
    promise.catch(() => undefined)
    await world.settle()
    const cleared = world.peer.all('pubrel').map((packet) => packet.packetId)
    expect(cleared.length).toBeGreaterThan(0)
    expect(world.peer.all('publish')).toEqual([])
    await world.send(...cleared.map((id) => pubcomp(id, code)))
    const [packet] = world.peer.all('publish')
    expect(cleared).toContain(packet?.packetId)
    expect(packet?.dup).toBe(false)
    await world.send({ type: 'pubrec', packetId: packet?.packetId ?? 0, reasonCode: 0, properties: {} })
    await world.send(pubcomp(packet?.packetId ?? 0))
    await expect(promise).resolves.toMatchObject({ packetId: packet?.packetId })
  })

  it('nothing is cleared before a QoS 2 message is published, and QoS 1 waits for nothing', async () => {
    const world = await connected(durable, keeps())
    await world.settle()
    expect(carried(world.peer)).toEqual([])
    send(world, 1, 'one')
    await world.settle()
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^publish t=one q1 #\d+$/)])
  })

  it('a QoS 2 message that is taken for a repeat without it arrives', async () => {
    // An earlier process left 1 to 40 between PUBLISH and PUBREL: a correct server takes a PUBLISH with one of these for a repeat.
    const left = new Set(Array.from({ length: 40 }, (_, index) => index + 1))
    const accepted: string[] = []
    const world = await connected(durable, (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: true, reasonCode: 0, properties: { receiveMaximum: 5 } }
      if (packet.type === 'publish' && packet.qos === 2 && !left.has(packet.packetId ?? 0)) {
        accepted.push(new TextDecoder().decode(packet.payload))
        left.add(packet.packetId ?? 0)
      }
      if (packet.type === 'pubrel') return pubcomp(packet.packetId, left.delete(packet.packetId) ? 0 : 0x92)
      return agreeable(packet)
    })
    const texts = Array.from({ length: 100 }, (_, index) => `m${index}`)
    const promises = texts.flatMap((text) => send(world, 2, text))
    await world.settle()
    await expect(Promise.all(promises)).resolves.toHaveLength(100)
    expect(accepted).toEqual(texts)
  })

  it('on 5.0 a QoS 1 message whose identifier the server has in use (PUBACK 0x91) goes out under another one', async () => {
    const world = await connected(durable, keeps())
    const promise = quiet(world.client.publish('t', 'one', { qos: 1 }))
    await world.settle()
    const [first] = world.peer.all('publish')
    await world.send({ type: 'puback', packetId: first?.packetId ?? 0, reasonCode: 0x91, properties: {} })
    const [, second] = world.peer.all('publish')
    expect([second?.dup, second?.packetId === first?.packetId]).toEqual([false, false])
    expect(await world.outcome(promise)).toEqual({ state: 'pending' })
    await world.send({ type: 'puback', packetId: second?.packetId ?? 0, reasonCode: 0, properties: {} })
    await expect(promise).resolves.toMatchObject({ packetId: second?.packetId })
  })

  it('in a session that is known PUBACK 0x91 is a refusal like any other', async () => {
    const world = await connected(durable, forgets())
    const error = failure(world.client.publish('t', 'one', { qos: 1 }))
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0x91, properties: {} })
    expect(await error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91, outcome: 'refused' })
  })

  it.each([
    ['for a message sent once', false, 'refused'],
    ['for one sent again: that may be our own first copy', true, 'unknown'],
  ])('PUBREC 0x91 %s', async (_, cut, outcome) => {
    const world = await connected(durable, forgets())
    world.answer = (packet) => (packet.type === 'publish' ? undefined : willing(true)(packet))
    const error = failure(world.client.publish('t', 'one', { qos: 2 }))
    await world.settle()
    if (cut) await again(world, (packet) => (packet.type === 'publish' ? undefined : willing(true)(packet)))
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0x91, properties: {} })
    expect(world.peer.last('publish').dup).toBe(cut)
    expect(await error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91, outcome })
  })

  it('goes on over a drop in the middle of the clearing', async () => {
    const world = await connected(durable, keeps())
    const [two] = send(world, 2, 'two')
    await world.settle()
    await again(world, willing(true))
    await world.settle()
    await expect(two).resolves.toBeDefined()
    expect(world.peer.received.map(short).slice(1, 2)[0]).toMatch(/^pubrel/)
  })

  it('a first connection with Session Present 0 has no past', async () => {
    const world = await connected(durable, willing(false))
    const [two] = send(world, 2, 'two')
    await world.settle()
    expect(carried(world.peer)).toEqual(['publish t=two q2 #1', 'pubrel #1'])
    await expect(two).resolves.toBeDefined()
  })

  it('first SUBSCRIBE of this process is sent although the session is there, with its own Retain Handling', async () => {
    const world = await connected(durable, willing(true))
    world.client.subscription(
      [
        { filter: 'a', retainHandling: 0 },
        { filter: 'b', retainHandling: 2 },
      ],
      { qos: 1 },
    )
    await world.settle()
    expect(world.peer.last('subscribe').subscriptions.map(({ filter, retainHandling }) => [filter, retainHandling])).toEqual([
      ['a', 0],
      ['b', 2],
    ])
    // On later connections the session has it.
    await again(world, willing(true))
    expect(carried(world.peer)).toEqual([])
  })
})

describe('two losses in a row', () => {
  it('between connections nothing of the wire is touched: calls wait, then go in order', async () => {
    const world = await steady()
    await lose(world)
    send(world, 1, 'a')
    send(world, 2, 'b')
    send(world, 1, 'c')
    world.answer = () => undefined
    await world.clock.advance(10)
    // CONNACK does not come; the attempt is lost.
    expect(carried(world.peer)).toEqual([])
    await lose(world)
    const peer = await comeBack(world)
    expect(carried(peer)).toEqual(['publish t=a q1 #1', 'publish t=b q2 #2', 'publish t=c q1 #3'])
  })
})
