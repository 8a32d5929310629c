/** `drain()`: a goodbye that also waits for what is on its way out. */
import { describe, expect, it } from 'vitest'
import type { MqttError } from '../../../src/errors.js'
import { carried, lose, pause, send, steady, willing } from './across.js'
import { connected, failure, World } from './harness.js'
import { acks, gate, goodbyeCode, publish, quiet, subscribe } from './incoming.js'

const puback = (packetId: number) => ({ type: 'puback', packetId, reasonCode: 0, properties: {} }) as const

describe('drain', () => {
  it('waits for publishes in flight and in the queue, then says goodbye with 0x00, last of all', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { receiveMaximum: 1 } } : undefined,
    )
    const promises = send(world, 1, 'one', 'two')
    const done = quiet(world.client.drain())
    await world.clock.advance(1000)
    expect(world.client.state).toBe('disconnecting')
    expect(world.peer.all('disconnect')).toEqual([])
    await world.send(puback(1))
    await world.clock.advance(1000)
    expect(world.peer.all('publish')).toHaveLength(2)
    expect(world.peer.all('disconnect')).toEqual([])
    await world.send(puback(2))
    expect(goodbyeCode(world)).toBe(0)
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
    world.peer.end()
    await world.clock.advance(2000)
    await done
    expect(world.client.state).toBe('closed')
  })

  it('waits for QoS 2 to the end, PUBCOMP', async () => {
    const world = await connected()
    const [one] = send(world, 2, 'one')
    const done = quiet(world.client.drain())
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    expect(world.peer.all('disconnect')).toEqual([])
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    expect(carried(world.peer)).toEqual(['publish t=one q2 #1', 'pubrel #1', 'disconnect'])
    await expect(one).resolves.toBeDefined()
    await world.clock.advance(10_000)
    await done
  })

  it('hands out nothing more, finishes running turns, sends their acknowledgements, and never unsubscribes', async () => {
    const world = await connected({}, willing(false))
    const turn = gate()
    const seen: string[] = []
    quiet(
      world.client.listen(
        't',
        async (message) => {
          seen.push(message.text())
          await turn.promise
          // What a turn sends on its way out is waited for, too.
          await world.client.publish('answers', 'from the turn', { qos: 1 })
        },
        { qos: 1 },
      ),
    )
    await world.settle()
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    const done = quiet(world.client.drain())
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    turn.open()
    await world.settle()
    expect(seen).toEqual(['one'])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.all('publish')).toHaveLength(1)
    expect([world.peer.all('unsubscribe').length, goodbyeCode(world)]).toEqual([0, 0])
    await world.clock.advance(10_000)
    await done
  })

  it('at the end of `timeout` it goes without: what is in flight rejects with outcome unknown, what was not sent with not-sent', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { receiveMaximum: 1 } } : undefined,
    )
    const [one, two] = ['one', 'two'].map((text) => failure(world.client.publish('t', text, { qos: 1 }))) as [Promise<MqttError>, Promise<MqttError>]
    const done = quiet(world.client.drain({ timeout: 200 }))
    await world.clock.advance(199)
    expect(world.client.state).toBe('disconnecting')
    await world.clock.advance(51)
    await done
    expect(world.client.state).toBe('closed')
    expect((await one).outcome).toBe('unknown')
    expect((await two).outcome).toBe('not-sent')
    expect(goodbyeCode(world)).toBe(0)
  })

  it('a signal cuts it short', async () => {
    const world = await connected()
    const controller = new AbortController()
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    const done = quiet(world.client.drain({ timeout: 100_000, signal: controller.signal }))
    await world.settle()
    controller.abort()
    await world.settle()
    await done
    expect((await one).outcome).toBe('unknown')
  })

  it('takes what `disconnect` takes', async () => {
    const world = await connected()
    const done = quiet(world.client.drain({ reasonCode: 0x04, reasonString: 'bye', sessionExpiryInterval: 7 }))
    await world.settle()
    expect(world.peer.last('disconnect')).toMatchObject({ reasonCode: 4, properties: { reasonString: 'bye', sessionExpiryInterval: 7 } })
    await world.clock.advance(10_000)
    await done
    await expect(world.client.drain({ timeout: -1 })).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' })
  })

  it('without a connection it waits for the next one, sends what waits, and says goodbye', async () => {
    const world = await steady({}, willing(false))
    const before = send(world, 1, 'acknowledged')
    await world.settle()
    await Promise.all(before)
    await lose(world)
    const promises = [...send(world, 1, 'one'), ...send(world, 2, 'two')]
    const done = quiet(world.client.drain({ timeout: 10_000 }))
    world.answer = willing(true)
    await world.clock.advance(pause)
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
    expect(carried(world.peer)).toEqual(['publish t=one q1 #2', 'publish t=two q2 #3', 'pubrel #3', 'disconnect'])
    await world.clock.advance(20_000)
    await done
  })

  it('without a connection, and none to come: over at the end of `timeout`', async () => {
    const world = await steady({})
    world.answer = () => undefined
    await lose(world)
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    const done = quiet(world.client.drain({ timeout: 500 }))
    await world.clock.advance(500)
    await done
    expect(world.client.state).toBe('closed')
    expect((await one).outcome).toBe('not-sent')
    expect(world.clock.pending).toBe(0)
  })

  it('without a connection and with nothing to send it need not wait', async () => {
    // The design says that drain "also waits for publishes in flight": there are none. It leaves open whether the goodbye is worth a connection.
    const world = await steady({})
    world.answer = () => undefined
    await lose(world)
    const done = quiet(world.client.drain({ timeout: 5000 }))
    await world.clock.advance(5000)
    await done
    expect(world.client.state).toBe('closed')
  })

  it('a connection that is lost meanwhile: nothing hangs, everything settles', async () => {
    const world = await steady({})
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    const done = quiet(world.client.drain({ timeout: 5000 }))
    await world.settle()
    await lose(world)
    await world.clock.advance(5000)
    await done
    expect((await one).outcome).toBe('unknown')
    expect(world.client.state).toBe('closed')
    expect(world.clock.pending).toBe(0)
  })

  it('before `connect()` it is the end, at once', async () => {
    const world = new World()
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    await world.client.drain()
    expect(world.client.state).toBe('closed')
    expect((await one).outcome).toBe('not-sent')
  })

  it('twice is once; `disconnect({ timeout: 0 })` overtakes it', async () => {
    const world = await connected()
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    const [first, second] = [quiet(world.client.drain()), quiet(world.client.drain())]
    await world.settle()
    await world.client.disconnect({ timeout: 0 })
    await Promise.all([first, second])
    expect((await one).outcome).toBe('unknown')
    expect(world.seen('disconnect')).toHaveLength(1)
    await world.settle()
    expect(world.peer.all('disconnect').length).toBeLessThanOrEqual(1)
  })

  it('a durable session keeps its subscriptions and its expiry', async () => {
    const world = await connected({ clientId: 'c', cleanStart: false }, willing(false))
    await subscribe(world, 'a', { qos: 1 })
    const done = quiet(world.client.drain())
    await world.settle()
    expect(world.peer.last('disconnect').properties).toEqual({})
    expect(world.peer.all('unsubscribe')).toEqual([])
    await world.clock.advance(10_000)
    await done
  })
})
