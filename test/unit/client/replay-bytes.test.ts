/**
 * The link is killed at each byte of a run, and again during the replay: nothing is lost, QoS 2 is not doubled.
 *
 * A push tries every fourth byte, from another one on each time; with `MQWIRE_LONG` all are tried.
 */
import { describe, expect, it } from 'vitest'
import { quietly } from '../../rules/corpus/run/quietly.js'
import { type Cut, cutting } from './cutting.js'
import { SmallBroker } from './small-broker.js'

const stride = process.env['MQWIRE_LONG'] === undefined ? 4 : 1
const first = Math.floor(Math.random() * stride)

/** The bytes up to this one at which a link is cut. */
function* places(last: number): Iterable<number> {
  for (let at = first; at <= last; at += stride) yield at
}

const texts = Array.from({ length: 100 }, (_, index) => String(index))
const levelOf = (text: string): 1 | 2 => (Number(text) % 2 === 0 ? 1 : 2)

interface Published {
  readonly broker: SmallBroker
  readonly bytes: number
  readonly fulfilled: number
}

/** 100 publishes, QoS 1 and 2 in turn, over connections that are cut; gives what the broker came to have. */
function publishing(cuts: readonly Cut[], receiveMaximum = 34): Promise<Published> {
  return quietly(() => published(cuts, receiveMaximum))
}

async function published(cuts: readonly Cut[], receiveMaximum: number): Promise<Published> {
  const broker = new SmallBroker({ receiveMaximum })
  const world = cutting(broker, cuts, { firstConnect: 'wait' })
  world.client.connect().catch(() => undefined)
  let fulfilled = 0
  for (const text of texts) {
    const count = (): void => {
      fulfilled += 1
    }
    world.client.publish('t', text, { qos: levelOf(text) }).then(count, () => undefined)
  }
  await world.clock.advance(100)
  const bytes = world.peers[0]?.bytes.length ?? 0
  world.client.destroy()
  await world.settle()
  return { broker, bytes, fulfilled }
}

function check({ broker, fulfilled }: Published, where: string): void {
  expect(broker.broken, where).toEqual([])
  expect(fulfilled, where).toBe(texts.length)
  const got = broker.accepted.map(({ text }) => text)
  expect([...new Set(got)].sort(), where).toEqual([...texts].sort())
  const doubled = broker.accepted.filter(({ qos }) => qos === 2)
  expect(doubled.length, `${where}: QoS 2 once each`).toBe(texts.length / 2)
  // First occurrences come in the order of the calls, whatever came between.
  expect([...new Set(got)], where).toEqual(texts)
}

describe('100 publishes at QoS 1 and 2', () => {
  it('arrive over one connection that lives', async () => {
    check(await publishing([]), 'undisturbed')
  })

  it('a cut at each byte towards the server', { timeout: 120_000 }, async () => {
    const { bytes } = await publishing([])
    expect(bytes).toBeGreaterThan(1000)
    for (const at of places(bytes)) check(await publishing([{ forward: at }]), `byte ${at}`)
  })

  it('a cut at each byte towards the client', { timeout: 120_000 }, async () => {
    for (const at of places(612)) check(await publishing([{ backward: at }]), `byte ${at}`)
  })

  it('a cut in mid-run, then one at each byte of the replay, in both directions', { timeout: 120_000 }, async () => {
    for (const at of places(260)) {
      check(await publishing([{ forward: 500 }, { forward: at }]), `replay, byte ${at}`)
      check(await publishing([{ backward: 203 }, { backward: at }]), `replay, byte ${at} towards the client`)
    }
  })

  it('a link that never lives for more than a few packets', { timeout: 120_000 }, async () => {
    for (const room of [90, 97, 111]) {
      const cuts = Array.from({ length: 9 }, (_, index) => (index % 2 === 0 ? { forward: room + index } : { backward: room }))
      check(await publishing(cuts, 4), `${room} bytes at a time`)
    }
  })

  it('all at once, a large window: every PUBLISH is in flight when it is cut', { timeout: 120_000 }, async () => {
    for (let at = 0; at <= 1100; at += 13) check(await publishing([{ forward: at }, { forward: at + 7 }], 65_535), `byte ${at}`)
  })

  it('100 queued before the first connection and 100 after, a drop every 20 messages: all 200, in order', { timeout: 60_000 }, async () => {
    const broker = new SmallBroker()
    const all = Array.from({ length: 200 }, (_, index) => String(index))
    // About 20 messages of 12 bytes, and what has to be repeated of them.
    const world = cutting(
      broker,
      Array.from({ length: 30 }, (_, index) => ({ forward: 300 + index })),
      { firstConnect: 'wait' },
    )
    const settled: Promise<unknown>[] = []
    const publish = (text: string): void => {
      settled.push(world.client.publish('t', text, { qos: levelOf(text) }))
    }
    for (const text of all.slice(0, 100)) publish(text)
    world.client.connect().catch(() => undefined)
    await world.settle()
    for (const text of all.slice(100)) publish(text)
    await world.clock.advance(1000)
    await Promise.all(settled)
    expect(broker.connections).toBeGreaterThan(5)
    expect(broker.broken).toEqual([])
    expect([...new Set(broker.accepted.map(({ text }) => text))]).toEqual(all)
    expect(broker.accepted.filter(({ qos }) => qos === 2)).toHaveLength(100)
    world.client.destroy()
  })
})
