/** Messages that are in hand, buffered or half done when a connection is lost. */
import { describe, expect, it } from 'vitest'
import type {
  ClientOptions,
  Message,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/api/index.js'
import { comeBack, lose, again as reconnected, steady, willing } from './across.js'
import type { World } from './harness.js'
import { acks, gate, publish, quiet, read, subscribe, taken, takenTexts } from './incoming.js'
import { listen, loop, settled } from './steps.js'

const kept = willing(true)
const first = (text: string, id: number, qos: 1 | 2 = 1) => publish('t', text, id, { qos })
const repeat = (text: string, id: number, qos: 1 | 2 = 1) =>
  publish('t', text, id, { qos, dup: true })
const pubrel = { type: 'pubrel', packetId: 1, reasonCode: 0, properties: {} } as const
const again = (world: World): Promise<unknown> => reconnected(world, kept)

/** A reader of `t`, to which these messages come. */
async function reader(
  options: SubscribeOptions,
  messages: ReturnType<typeof first>[] = [],
  client: ClientOptions = {},
) {
  const world = await steady(client, willing(false))
  const subscription = await subscribe(world, 't', { qos: 1, ...options })
  await world.send(...messages)
  return { world, subscription }
}

/** Acknowledges what waits, and gives the acknowledgements that have left by now. */
async function acked(world: World, ...messages: Message[]): Promise<string[]> {
  expect(messages.map((message) => message.ack())).toEqual(messages.map(() => true))
  await world.settle()
  return acks(world)
}

const both = (subscription: Subscription): [Message, Message] => [
  taken(subscription),
  taken(subscription),
]
const manual = { ack: 'manual' } as const

describe('a message in hand', () => {
  it('`ack()` in the gap is true and remembered; the acknowledgement leaves after the repeat, which is not delivered', async () => {
    const { world, subscription } = await reader(manual, [first('one', 7)])
    const message = taken(subscription)
    await lose(world)
    expect([message.ack(), message.ack()]).toEqual([true, false])
    await comeBack(world, kept)
    await world.clock.advance(60_000)
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 7))
    expect([acks(world), takenTexts(subscription)]).toEqual([['puback 7'], []])
  })

  it('acknowledged on the next connection, before its repeat: waits for it, too (nothing is acknowledged that this connection did not bring)', async () => {
    const { world, subscription } = await reader({ ...manual, qos: 2 }, [
      first('one', 1),
      first('two', 2, 2),
    ])
    const [one, two] = both(subscription)
    await again(world)
    expect([one.ack(), two.ack(0x83)]).toEqual([true, true])
    await world.settle()
    expect(acks(world)).toEqual([])
    await world.send(repeat('two', 2, 2))
    expect(acks(world)).toEqual(['pubrec 2 0x83'])
    await world.send(repeat('one', 1))
    expect(acks(world)).toEqual(['pubrec 2 0x83', 'puback 1'])
  })

  it('stays in hand over many connections, with and without a repeat', async () => {
    const { world, subscription } = await reader(manual, [first('one', 1)])
    const message = taken(subscription)
    for (let round = 0; round < 7; round++) {
      await again(world)
      if (round % 2 === 0) await world.send(repeat('one', 1))
      expect(takenTexts(subscription)).toEqual([])
    }
    expect(await acked(world, message)).toEqual(['puback 1'])
  })

  it('of a loop: the body runs on over the drop, its end acknowledges after the repeat, the next message follows', async () => {
    const { world, subscription } = await reader({})
    const gates = [gate(), gate(), gate()]
    const got: string[] = []
    quiet(loop(subscription, (message) => gates[got.push(message.text()) - 1]?.promise))
    await world.send(first('one', 1), first('two', 2))
    await again(world)
    gates[0]?.open()
    await world.settle()
    expect([got, acks(world)]).toEqual([['one', 'two'], []])
    await world.send(repeat('one', 1), repeat('two', 2), first('three', 3))
    expect(acks(world)).toEqual(['puback 1'])
    gates[1]?.open()
    await world.settle()
    expect([got, acks(world)]).toEqual([
      ['one', 'two', 'three'],
      ['puback 1', 'puback 2'],
    ])
  })

  it('of a handler: it runs once, whatever the link does meanwhile', async () => {
    const world = await steady({}, willing(false))
    const stop = gate()
    let calls = 0
    const handler = (): Promise<void> => {
      calls += 1
      return stop.promise
    }
    await listen(world, 't', handler, { qos: 2 })
    await world.send(first('one', 1, 2))
    for (let round = 0; round < 2; round++) {
      await again(world)
      await world.send(repeat('one', 1, 2))
    }
    expect(acks(world)).toEqual([])
    stop.open()
    await world.settle()
    expect([calls, acks(world)]).toEqual([1, ['pubrec 1']])
  })

  it('another message takes its identifier (no DUP): that one is delivered, and `ack()` of the old one is stale', async () => {
    const { world, subscription } = await reader(manual, [first('old', 1)])
    const old = taken(subscription)
    await again(world)
    await world.send(first('new', 1))
    expect(old.ack()).toBe(false)
    await world.settle()
    expect(acks(world)).toEqual([])
    const fresh = taken(subscription)
    expect([fresh.text(), await acked(world, fresh)]).toEqual(['new', ['puback 1']])
  })
})

describe('a message in the buffer', () => {
  it('is read once, though its repeat came before it was read', async () => {
    const { world, subscription } = await reader({ qos: 2 }, [first('one', 1), first('two', 2, 2)])
    await again(world)
    await world.send(repeat('one', 1), repeat('two', 2, 2))
    expect(subscription.size).toBe(2)
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    expect(subscription.read()).toBeUndefined()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
  })

  it('that was read in the gap is acknowledged when its repeat comes; the reader sees no second copy', async () => {
    const { world, subscription } = await reader({}, [first('one', 1), first('two', 2)])
    await lose(world)
    expect([takenTexts(subscription), subscription.read()]).toEqual([['one', 'two'], undefined])
    await comeBack(world, kept)
    await world.send(repeat('one', 1), repeat('two', 2))
    expect([acks(world), takenTexts(subscription)]).toEqual([['puback 1', 'puback 2'], []])
  })

  it('frees its place of Receive Maximum for the next connection: a full window does not stop what comes again', async () => {
    const { world, subscription } = await reader(manual, [first('one', 1), first('two', 2)], {
      receiveMaximum: 2,
    })
    await again(world)
    await world.send(repeat('two', 2), repeat('one', 1))
    expect(world.client.state).toBe('connected')
    // In the order of this connection [MQTT-4.6.0-2].
    expect(await acked(world, ...both(subscription))).toEqual(['puback 2', 'puback 1'])
  })
})

describe('acknowledgements that were lost', () => {
  it('PUBACK that did not leave is not sent on the next connection; QoS 1 is delivered again, as redelivered', async () => {
    const { world, subscription } = await reader(manual, [first('one', 1)])
    // In the same turn: the acknowledgement is queued, the link is gone before it is written.
    taken(subscription).ack()
    await again(world)
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 1))
    const message = taken(subscription)
    expect([message.text(), message.redelivered, message.dup]).toEqual(['one', true, true])
    expect([await acked(world, message), subscription.size]).toEqual([['puback 1'], 0])
  })

  it('PUBREC that was lost: the repeat is answered, with DUP or without, and not delivered', async () => {
    const { world, subscription } = await reader({ ...manual, qos: 2 }, [
      first('one', 1, 2),
      first('two', 2, 2),
    ])
    await acked(world, ...both(subscription))
    await again(world)
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 1, 2), first('two', 2, 2))
    expect([acks(world), takenTexts(subscription)]).toEqual([['pubrec 1', 'pubrec 2'], []])
  })

  it('PUBREL on the next connection: PUBCOMP, also a second time, and nothing is delivered', async () => {
    const { world, subscription } = await reader({ ...manual, qos: 2 }, [first('one', 1, 2)])
    await acked(world, taken(subscription))
    for (let round = 0; round < 2; round++) {
      await again(world)
      await world.send(pubrel)
    }
    expect(acks(world)).toEqual(['pubcomp 1 0x92'])
    await world.send(first('new', 1, 2))
    expect(takenTexts(subscription)).toEqual(['new'])
  })

  it('repeats before PUBREL, over any number of drops: PUBREC each time, one delivery', async () => {
    const { world, subscription } = await reader(
      { qos: 2, ack: 'on-receive', overflow: 'drop-oldest' },
      [first('one', 1, 2)],
    )
    const reading = read(subscription)
    for (let round = 0; round < 5; round++) {
      await again(world)
      await world.send(repeat('one', 1, 2), repeat('one', 1, 2))
      expect(acks(world)).toEqual(['pubrec 1', 'pubrec 1'])
    }
    await world.send(pubrel, pubrel)
    expect(acks(world).slice(2)).toEqual(['pubcomp 1', 'pubcomp 1 0x92'])
    expect(reading.texts).toEqual(['one'])
  })
})

describe('several consumers and subscriptions', () => {
  it('one acknowledgement after all have settled, with a drop in between; success if any succeeded', async () => {
    const { world, subscription: one } = await reader(manual)
    const two = await subscribe(world, 't', { qos: 1, ack: 'manual', retainHandling: 2 })
    await world.send(first('x', 1))
    const second = taken(two)
    taken(one).ack(0x80)
    await again(world)
    await world.send(repeat('x', 1))
    expect(acks(world)).toEqual([])
    expect(await acked(world, second)).toEqual(['puback 1'])
    expect([takenTexts(one), takenTexts(two)]).toEqual([[], []])
  })

  it('two messages, only the second settled: neither is acknowledged on the next connection until the first is', async () => {
    const { world, subscription } = await reader(manual, [first('one', 1), first('two', 2)])
    const [one, two] = both(subscription)
    two.ack()
    await again(world)
    await world.send(repeat('one', 1), repeat('two', 2))
    expect(acks(world)).toEqual([])
    expect(await acked(world, one)).toEqual(['puback 1', 'puback 2'])
  })

  it('detached messages wait through a drop, their repeats are not delivered twice, and the next subscription gets them once', async () => {
    const session = { clientId: 'c', cleanStart: false }
    const { world, subscription } = await reader(
      manual,
      [first('one', 1), first('two', 2)],
      session,
    )
    taken(subscription)
    subscription.detach()
    await again(world)
    await world.send(repeat('one', 1), repeat('two', 2))
    expect(acks(world)).toEqual([])
    const reading = read(await subscribe(world, 't', { qos: 1 }))
    await world.settle()
    expect([reading.texts, acks(world)]).toEqual([
      ['one', 'two'],
      ['puback 1', 'puback 2'],
    ])
  })

  it('an unsubscribed filter: what is in hand can still be acknowledged after the repeat', async () => {
    const { world, subscription } = await reader(manual, [first('one', 1)])
    const message = taken(subscription)
    await settled(world, subscription.unsubscribe())
    await again(world)
    await world.send(repeat('one', 1))
    expect(await acked(world, message)).toEqual(['puback 1'])
  })
})
