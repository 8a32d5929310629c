/** Acknowledgements leave together before the turn has ended, few at first on a new connection; a turn of consumers is told from the next. */
import { describe, expect, it } from 'vitest'
import { TurnEnd } from '../../../src/client/connection/stream-writer.js'
import { ReaderTurns } from '../../../src/client/deliver/buffer.js'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Platform } from '../../../src/client/platform.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import type { SubscribePacket } from '../../../src/wire/packets.js'
import type { World } from './harness.js'
import { acks, agreed, pubacks, publish, quiet, series, subscribe, taken } from './incoming.js'
import { loop } from './steps.js'
import { stubbed } from './stub.js'

async function hops(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await undefined
}

describe('TurnEnd', () => {
  function made(
    platform: Pick<Platform, 'microtask' | 'turnEnd'> = virtualPlatform(new VirtualClock()),
  ) {
    const calls = { count: 0 }
    const handleTurnEnd = () => {
      calls.count += 1
    }
    const turnEnd = new TurnEnd(platform as Platform, { handleTurnEnd })
    return { turnEnd, calls }
  }

  it('calls back once for all that asked, as soon as what runs has ended', async () => {
    const { turnEnd, calls } = made()
    expect([turnEnd.ask(false), turnEnd.ask(false), turnEnd.ask(true)]).toEqual([
      true,
      false,
      false,
    ])
    expect(calls.count).toBe(0)
    await hops(1)
    expect(calls.count).toBe(1)
    await hops(20)
    expect(calls.count).toBe(1)
  })

  it('lets the patient wait for a few microtasks without news', async () => {
    const { turnEnd, calls } = made()
    for (let count = 0; count < 5; count++) turnEnd.ask(true)
    await hops(5)
    expect(calls.count).toBe(0)
    await hops(5)
    expect(calls.count).toBe(1)
    for (let count = 0; count < 5; count++) {
      turnEnd.ask(true)
      await hops(5)
    }
    expect(calls.count).toBe(1)
    await hops(9)
    expect(calls.count).toBe(2)
  })

  it('does not let those wait who come after the patient, nor run before what was there already', async () => {
    const { turnEnd, calls } = made()
    turnEnd.ask(true)
    await hops(3)
    const order: string[] = []
    queueMicrotask(() => order.push(`other ${calls.count}`))
    expect(turnEnd.ask(false)).toBe(false)
    turnEnd.ask(true)
    await hops(2)
    expect([calls.count, order]).toEqual([1, ['other 0']])
  })

  it('calls nobody back after cancel, and is there for whoever asks next', async () => {
    const { turnEnd, calls } = made()
    turnEnd.ask(false)
    turnEnd.cancel()
    expect(turnEnd.ask(true)).toBe(true)
    turnEnd.cancel()
    await hops(20)
    expect(calls.count).toBe(0)
    expect(turnEnd.ask(false)).toBe(true)
    turnEnd.cancel()
    turnEnd.ask(false)
    await hops(2)
    expect(calls.count).toBe(1)
  })

  it('waits for the end of a turn where the platform tells it, whoever asks', () => {
    const due: (() => void)[] = []
    const { turnEnd, calls } = made({
      turnEnd: (callback) => void due.push(callback),
      microtask: () => expect.unreachable(),
    })
    for (const patient of [true, false]) {
      turnEnd.ask(patient)
      turnEnd.ask(patient)
      expect(due).toHaveLength(1)
      due.shift()?.()
    }
    expect(calls.count).toBe(2)
  })
})

it('a mark of ReaderTurns is over when consumers had their turn', async () => {
  const turns = new ReaderTurns(virtualPlatform(new VirtualClock()))
  const first = turns.readerTurn()
  expect([turns.readerTurn(), turns.readerTurns]).toEqual([first, first])
  await Promise.resolve()
  expect(turns.readerTurns).not.toBe(first)
  const second = turns.readerTurn()
  expect(second).toBe(turns.readerTurns)
  await Promise.resolve()
  expect(turns.readerTurns).not.toBe(second)
})

describe('acknowledgements', () => {
  /** So many messages wait for the application, which settles the first few. */
  async function settling(count: number, settled: number, options: ClientOptions = {}) {
    const world = await agreed(options)
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(...series('a', count))
    for (let left = settled; left > 0; left--) taken(subscription).ack()
    return world
  }
  const lastTypes = (world: World, count: number) =>
    world.peers[0]?.received.map(({ type }) => type).slice(-count)

  it('leave in one write for all that one turn settles', async () => {
    const world = await stubbed({ receiveMaximum: 65_535 })
    const waiting = world.client.subscribe('a', { qos: 1 })
    await world.settle()
    world.stub.deliver({
      type: 'suback',
      packetId: (world.stub.packets[0] as SubscribePacket).packetId,
      reasonCodes: [1],
    })
    quiet(loop(await waiting))
    let sent = 0
    const writesOf = async (count: number): Promise<number[]> => {
      world.forget()
      await world.deliver(...series('a', count, sent + 1))
      sent += count
      return world.stub.writes.map((bytes) => bytes.length / 4)
    }
    expect([await writesOf(1), await writesOf(5), await writesOf(5000)]).toEqual([[1], [5], [5000]])
  })

  it.each<[string, number, number, number[], number[]]>([
    // What leaves in one go is lost in one go.
    [
      'a few in a millisecond where the connection before did not hold',
      100,
      5000,
      [1, 1, 8, 88, 2],
      [8, 16, 24, 88, 792, 5000],
    ],
    ['all at once after a connection that was stable', 31_000, 2000, [], [2000]],
    ['all when the timer comes late', 100, 2000, [1000], [8, 2000]],
  ])('leave %s', async (_name, held, messages, waits, expected) => {
    const world = await agreed({ reconnect: { backoff: () => 1 }, receiveMaximum: 65_535 })
    quiet(loop(world.client.subscription('a', { qos: 1 })))
    await world.clock.advance(held)
    world.peer.cut()
    await world.clock.advance(10)
    await world.send(...series('a', messages))
    const counts = [acks(world).length]
    for (const wait of waits) {
      await world.clock.advance(wait)
      counts.push(acks(world).length)
    }
    expect(counts).toEqual(expected)
    expect(acks(world)).toEqual(pubacks(1, messages))
  })

  it('leave though nobody reads the rest, and other messages wait for ever', async () => {
    const world = await agreed()
    const nobody = await subscribe(world, 'b', { qos: 1 })
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('b', 'x', 100), ...series('a', 10))
    expect(nobody.size).toBe(1)
    for (let count = 0; count < 3; count++) {
      taken(subscription).ack()
      await world.settle()
      // What came in first is not acknowledged: nothing behind it may be.
      expect(acks(world)).toEqual([])
    }
    taken(nobody)
    nobody.read()
    await world.settle()
    expect(acks(world)).toEqual(['puback 100', ...pubacks(1, 3)])
  })

  it.each(['disconnect', 'drain'] as const)('leave before DISCONNECT: %s()', async (how) => {
    const world = await settling(10, 5)
    await Promise.all([world.client[how]({ timeout: 100 }), world.clock.advance(2000)])
    expect(lastTypes(world, 6)).toEqual([...new Array(5).fill('puback'), 'disconnect'])
  })

  it('leave when the connection is replaced, before the goodbye of the old one', async () => {
    const world = await settling(4, 2, { reconnect: true })
    world.client.reconnect({ force: true })
    await world.clock.advance(2000)
    expect(lastTypes(world, 3)).toEqual(['puback', 'puback', 'disconnect'])
  })
})
