/** Rows of the cost tests: each prepares a world for so many and gives what is to be counted. */
import { describe, expect, it } from 'vitest'
import type {
  ClientOptions,
  Message,
  PublishOptions,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import { steady, willing } from './across.js'
import { countWorkOf, grownTooMuch, type Work } from './counted-work.js'
import { connected, times, World } from './harness.js'
import { bytesOf, obliging, quiet, series } from './incoming.js'
import { deafTo, settled } from './steps.js'

/** Prepares a world for so many; gives what counts. */
export type Row = (count: number) => Promise<() => Promise<unknown>>

const few = 100

/** Tests that four times as many cost at most six times the work, each row by itself. */
export function costsEvenly(title: string, rows: Readonly<Record<string, Row>>): void {
  describe(title, () => {
    it.each(Object.keys(rows))('%s', async (name) => {
      const works: Work[] = []
      for (const count of [few, 4 * few]) {
        const run = await rows[name]?.(count)
        works.push(await countWorkOf(async () => void (await run?.())))
      }
      const [less, more] = works as [Work, Work]
      expect(Math.max(...less.values()), 'it does something').toBeGreaterThan(few / 2)
      expect(grownTooMuch(few, less, more)).toEqual([])
    })
  })
}

export const wide: ClientOptions = {
  keepAlive: false,
  receiveMaximum: 65_535,
  memoryBudget: 2 ** 30,
}
/** Room for everything that is queued. */
export const outbound = { maxQueuedMessages: 1_000_000, maxQueuedBytes: 2 ** 30 }

export const upTo = (count: number): number[] => times(count, (index) => index)
/** The same numbers, in an order that has nothing to do with theirs. */
export const shuffled = (numbers: readonly number[]): number[] =>
  [...numbers].sort((one, other) => ((one * 7919) % 1009) - ((other * 7919) % 1009))
export const filters = (count: number): string[] => upTo(count).map((index) => `t/${index}`)

export const open = (options: ClientOptions = {}, answer = obliging): Promise<World> =>
  connected({ ...wide, ...options }, answer)

/** A connected client whose publishes have no answer yet. */
export async function inFlight(
  count: number,
  qos: 1 | 2,
  options: ClientOptions = {},
): Promise<{ world: World; all: Promise<unknown[]> }> {
  const world = await connected({ ...wide, outbound, ...options }, deafTo('publish'))
  const all = Promise.all(
    upTo(count).map((index) => world.client.publish('t', String(index), { qos })),
  )
  quiet(all)
  await world.settle()
  expect(world.peer.all('publish')).toHaveLength(count)
  return { world, all }
}

/** A client that is not connected, with so much in its queue. */
export function offline(
  count: number,
  options: PublishOptions = {},
): { world: World; all: Promise<unknown>[] } {
  const world = new World({ ...wide, outbound, reconnect: false })
  const all = upTo(count).map((index) =>
    quiet(world.client.publish('t', String(index), { qos: 1, ...options })),
  )
  return { world, all }
}

/** Messages that somebody has in hand, under manual acknowledgement. */
export async function handed(
  count: number,
  qos: 1 | 2 = 1,
  options: SubscribeOptions = {},
): Promise<{ world: World; messages: Message[] }> {
  const world = await open()
  const granted = world.client.subscribe('t', { qos: 2, ack: 'manual', ...options })
  const subscription = await settled(world, granted)
  await world.sendBytes(
    bytesOf(series('t', count).map((packet) => ({ ...packet, qos }) as typeof packet)),
  )
  return { world, messages: upTo(count).map(() => subscription.read() as Message) }
}

export async function subscribed(
  count: number,
  options: ClientOptions = {},
): Promise<{ world: World; subscriptions: Subscription[] }> {
  const world = await steady({ ...wide, ...options }, willing(false))
  const subscriptions = await settled(
    world,
    Promise.all(filters(count).map((filter) => world.client.subscribe(filter, { qos: 1 }))),
  )
  return { world, subscriptions }
}
