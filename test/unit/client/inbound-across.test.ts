/** Messages that are in hand, buffered or half done when a connection is lost. */
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/api/index.js'
import { again, comeBack, lose, steady, willing } from './across.js'
import { acks, gate, publish, quiet, read, subscribe, taken, takenTexts } from './incoming.js'

const repeat = (text: string, id: number, qos: 1 | 2 = 1) => publish('t', text, id, { qos, dup: true })

describe('a message in hand', () => {
  it('`ack()` in the gap is true and remembered; the acknowledgement leaves after the repeat, and the repeat is not delivered', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 7))
    const message = taken(subscription)
    await lose(world)
    expect(message.ack()).toBe(true)
    expect(message.ack()).toBe(false)
    await comeBack(world, willing(true))
    expect(acks(world)).toEqual([])
    await world.clock.advance(60_000)
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 7))
    expect(acks(world)).toEqual(['puback 7'])
    expect(takenTexts(subscription)).toEqual([])
  })

  it('acknowledged on the next connection, before its repeat: waits for it, too (nothing is acknowledged that this connection did not bring)', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2, { qos: 2 }))
    const [one, two] = [taken(subscription), taken(subscription)]
    await again(world, willing(true))
    expect([one.ack(), two.ack(0x83)]).toEqual([true, true])
    await world.settle()
    expect(acks(world)).toEqual([])
    await world.send(repeat('two', 2, 2))
    expect(acks(world)).toEqual(['pubrec 2 0x83'])
    await world.send(repeat('one', 1))
    expect(acks(world)).toEqual(['pubrec 2 0x83', 'puback 1'])
  })

  it('stays in hand over many connections, with and without a repeat', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1))
    const message = taken(subscription)
    for (let round = 0; round < 6; round++) {
      await again(world, willing(true))
      if (round % 2 === 0) await world.send(repeat('one', 1))
      expect(takenTexts(subscription)).toEqual([])
    }
    await again(world, willing(true))
    await world.send(repeat('one', 1))
    expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('of a loop: the body runs on over the drop, its end acknowledges after the repeat, the next message follows', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1 })
    const gates = [gate(), gate(), gate()]
    const got: string[] = []
    const run = (async () => {
      for await (const message of subscription) {
        got.push(message.text())
        await gates[got.length - 1]?.promise
      }
    })()
    quiet(run)
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    await again(world, willing(true))
    gates[0]?.open()
    await world.settle()
    expect(got).toEqual(['one', 'two'])
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 1), repeat('two', 2), publish('t', 'three', 3))
    expect(acks(world)).toEqual(['puback 1'])
    gates[1]?.open()
    await world.settle()
    expect(got).toEqual(['one', 'two', 'three'])
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('of a handler: it runs once, whatever the link does meanwhile', async () => {
    const world = await steady({}, willing(false))
    const stop = gate()
    const seen: Message[] = []
    quiet(
      world.client.listen(
        't',
        async (message) => {
          seen.push(message)
          await stop.promise
        },
        { qos: 2 },
      ),
    )
    await world.settle()
    await world.send(publish('t', 'one', 1, { qos: 2 }))
    await again(world, willing(true))
    await world.send(repeat('one', 1, 2))
    await again(world, willing(true))
    await world.send(repeat('one', 1, 2))
    expect(acks(world)).toEqual([])
    stop.open()
    await world.settle()
    expect(seen).toHaveLength(1)
    expect(acks(world)).toEqual(['pubrec 1'])
  })

  it('another message takes its identifier (no DUP): that one is delivered, and `ack()` of the old one is stale', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'old', 1))
    const old = taken(subscription)
    await again(world, willing(true))
    await world.send(publish('t', 'new', 1))
    expect(old.ack()).toBe(false)
    await world.settle()
    expect(acks(world)).toEqual([])
    const fresh = taken(subscription)
    expect([fresh.text(), fresh.ack()]).toEqual(['new', true])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })
})

describe('a message in the buffer', () => {
  it('is read once, though its repeat came before it was read', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2 })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2, { qos: 2 }))
    await again(world, willing(true))
    await world.send(repeat('one', 1), repeat('two', 2, 2))
    expect(subscription.size).toBe(2)
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    subscription.read()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
  })

  it('that was read in the gap is acknowledged when its repeat comes; the reader sees no second copy', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1 })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    await lose(world)
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    expect(subscription.read()).toBeUndefined()
    await comeBack(world, willing(true))
    await world.send(repeat('one', 1), repeat('two', 2))
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect(takenTexts(subscription)).toEqual([])
  })

  it('frees its place of Receive Maximum for the next connection: a full window does not stop what comes again', async () => {
    const world = await steady({ receiveMaximum: 2 }, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    await again(world, willing(true))
    await world.send(repeat('two', 2), repeat('one', 1))
    expect(world.client.state).toBe('connected')
    const [one, two] = [taken(subscription), taken(subscription)]
    one.ack()
    two.ack()
    await world.settle()
    // In the order of this connection [MQTT-4.6.0-2].
    expect(acks(world)).toEqual(['puback 2', 'puback 1'])
  })
})

describe('acknowledgements that were lost', () => {
  it('PUBACK that did not leave is not sent on the next connection; QoS 1 is delivered again, as redelivered', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1))
    // In the same turn: the acknowledgement is queued, the link is gone before it is written.
    taken(subscription).ack()
    world.peer.cut()
    await world.settle()
    await comeBack(world, willing(true))
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 1))
    const again1 = taken(subscription)
    expect([again1.text(), again1.redelivered, again1.dup]).toEqual(['one', true, true])
    again1.ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(subscription.size).toBe(0)
  })

  it('PUBREC that was lost: the repeat is answered, with DUP or without, and not delivered', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'one', 1, { qos: 2 }), publish('t', 'two', 2, { qos: 2 }))
    for (const message of [taken(subscription), taken(subscription)]) message.ack()
    await world.settle()
    await again(world, willing(true))
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 1, 2), publish('t', 'two', 2, { qos: 2 }))
    expect(acks(world)).toEqual(['pubrec 1', 'pubrec 2'])
    expect(takenTexts(subscription)).toEqual([])
  })

  it('PUBREL on the next connection: PUBCOMP, also a second time, and nothing is delivered', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'one', 1, { qos: 2 }))
    taken(subscription).ack()
    await world.settle()
    const pubrel = { type: 'pubrel', packetId: 1, reasonCode: 0, properties: {} } as const
    await again(world, willing(true))
    await world.send(pubrel)
    await again(world, willing(true))
    await world.send(pubrel)
    expect(acks(world)).toEqual(['pubcomp 1 0x92'])
    await world.send(publish('t', 'new', 1, { qos: 2 }))
    expect(takenTexts(subscription)).toEqual(['new'])
  })

  it('a repeat before PUBREL on one connection: PUBREC again, one delivery', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2, ack: 'on-receive', overflow: 'drop-oldest' })
    await world.send(publish('t', 'one', 1, { qos: 2 }))
    await again(world, willing(true))
    await world.send(repeat('one', 1, 2), repeat('one', 1, 2))
    expect(acks(world)).toEqual(['pubrec 1', 'pubrec 1'])
    expect(takenTexts(subscription)).toEqual(['one'])
  })
})

describe('several consumers and subscriptions', () => {
  it('one acknowledgement after all have settled, with a drop in between; success if any succeeded', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    const two = await subscribe(world, 't', { qos: 1, ack: 'manual', retainHandling: 2 })
    await world.send(publish('t', 'x', 1))
    const [first, second] = [taken(one), taken(two)]
    first.ack(0x80)
    await again(world, willing(true))
    await world.send(repeat('x', 1))
    expect(acks(world)).toEqual([])
    expect(second.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect([takenTexts(one), takenTexts(two)]).toEqual([[], []])
  })

  it('two messages, only the second settled: neither is acknowledged on the next connection until the first is', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    const [one, two] = [taken(subscription), taken(subscription)]
    two.ack()
    await again(world, willing(true))
    await world.send(repeat('one', 1), repeat('two', 2))
    expect(acks(world)).toEqual([])
    one.ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('detached messages wait through a drop, their repeats are not delivered twice, and the next subscription gets them once', async () => {
    const world = await steady({ clientId: 'c', cleanStart: false }, willing(false))
    const first = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    taken(first)
    first.detach()
    await again(world, willing(true))
    await world.send(repeat('one', 1), repeat('two', 2))
    expect(acks(world)).toEqual([])
    const second = await subscribe(world, 't', { qos: 1 })
    const reading = read(second)
    await world.settle()
    expect(reading.texts).toEqual(['one', 'two'])
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('an unsubscribed filter: what is in hand can still be acknowledged after the repeat', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1))
    const message = taken(subscription)
    const left = quiet(subscription.unsubscribe())
    await world.settle()
    await left
    await again(world, willing(true))
    await world.send(repeat('one', 1))
    expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })
})

describe('what comes twice', () => {
  it('is delivered once at QoS 2 and answered each time, over any mixture of drops and repeats', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2 })
    const reading = read(subscription)
    await world.send(publish('t', 'one', 1, { qos: 2 }))
    for (let round = 0; round < 5; round++) {
      await again(world, willing(true))
      await world.send(repeat('one', 1, 2), repeat('one', 1, 2))
      expect(acks(world)).toEqual(['pubrec 1', 'pubrec 1'])
    }
    const pubrel = { type: 'pubrel', packetId: 1, reasonCode: 0, properties: {} } as const
    await world.send(pubrel, pubrel)
    expect(acks(world).slice(2)).toEqual(['pubcomp 1', 'pubcomp 1 0x92'])
    expect(reading.texts).toEqual(['one'])
  })
})
