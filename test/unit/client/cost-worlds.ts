/**
 * Rows of the cost tests: each prepares a world for so many and gives what is to be counted, without a clock. Two kinds of places have a count of their
 * own: each function and block of `src`, as often as the engine ran it; and each method of the language's collections, a look-up 1, a walk as many
 * steps as it may take, a copy one for 64 bytes. It may assume that nothing else uses the engine's coverage meanwhile.
 *
 * Work is judged by its places, because a walk that grows with the square hides in the sum behind what costs much and grows evenly.
 */
import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'
import { describe, expect, it } from 'vitest'
import type {
  ClientOptions,
  Message,
  PublishOptions,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import { steady, willing } from './across.js'
import { connected, times, World } from './harness.js'
import { bytesOf, obliging, quiet, series } from './incoming.js'
import { deafTo, settled } from './steps.js'

interface Sized {
  readonly length: number
}

type Method = (this: Sized, ...args: unknown[]) => unknown

/** How often each place ran. */
type Work = ReadonlyMap<string, number>

const none: Sized = { length: 0 }
const wordsOfBytes = 64

const lookups: [object, string][] = [
  [Map.prototype, 'get set has delete'],
  [Set.prototype, 'add has delete'],
]
const walks = 'every filter find findIndex flatMap forEach includes indexOf map some splice'.split(
  ' ',
)
/** What walks over a collection: each step counts. */
const iterators = [new Map().values(), new Set().values(), [].values()].map(
  (iterator) => Object.getPrototypeOf(iterator) as object,
)
const bytes = Object.getPrototypeOf(Uint8Array.prototype) as object

/** Has the language's collections count; gives the steps so far, and what puts everything back. */
function counting(): { readonly steps: Map<string, number>; readonly stop: () => void } {
  const steps = new Map<string, number>()
  const { get, set } = Map.prototype
  const undo: (() => void)[] = []
  const replace = (
    object: object,
    name: PropertyKey,
    count: (own: Sized, result: unknown, given: unknown) => number,
  ): void => {
    const original = Reflect.get(object, name) as Method
    const place = `${Reflect.get(object, Symbol.toStringTag) ?? ''} ${String(name)}`.trim()
    undo.push(() => Reflect.set(object, name, original))
    const counted: Method = function (...args) {
      const length = count(this, undefined, undefined)
      const result = Reflect.apply(original, this, args)
      const before = (get.call(steps, place) as number | undefined) ?? 0
      set.call(steps, place, before + length + count(none, result, args[0]))
      return result
    }
    Reflect.set(object, name, counted)
  }
  for (const [object, names] of lookups)
    for (const name of names.split(' ')) replace(object, name, () => 0.5)
  for (const name of walks) replace(Array.prototype, name, (own) => own.length)
  for (const object of iterators) replace(object, 'next', () => 0.5)
  const made = (_own: unknown, result: unknown): number =>
    Array.isArray(result) ? result.length : 0
  for (const name of ['slice', 'concat']) replace(Array.prototype, name, made)
  for (const name of ['keys', 'values', 'entries']) replace(Object, name, made)
  const words = (copied: unknown): number =>
    ((copied as Sized | undefined)?.length ?? 0) / wordsOfBytes
  replace(bytes, 'set', (_own, _result, given) => words(given))
  replace(bytes, 'slice', (_own, result) => words(result))
  replace(bytes, 'copyWithin', (own) => own.length / wordsOfBytes)
  const stop = (): void => {
    for (const back of undo) back()
  }
  return { steps, stop }
}

// From the start: the engine counts the blocks of those functions only that it compiles from now on.
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/** How often each function and block of `src` ran since the last call. */
async function blocks(): Promise<[string, number][]> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return result
    .filter(({ url }) => url.includes('/src/'))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName, ranges }) =>
        ranges.map(({ startOffset, endOffset, count }): [string, number] => [
          `${functionName || 'a function'} in ${url.slice(url.indexOf('/src/') + 1)}, ${startOffset} to ${endOffset}`,
          count,
        ]),
      ),
    )
}

/** Work of what takes its time; everything else that goes on meanwhile counts, too. */
async function countWorkOf(run: () => Promise<void>): Promise<Work> {
  // Code that the engine has optimised counts only a part of what it does.
  setFlagsFromString('--no-opt')
  try {
    await blocks()
    const { steps, stop } = counting()
    try {
      await run()
    } finally {
      stop()
    }
    return new Map([...(await blocks()), ...steps])
  } finally {
    setFlagsFromString('--opt')
  }
}

/** How often a place may run for each of what there is, before its growth is looked at. What begins at a threshold grows from nothing. */
const free = 10

/** Places, and the sum of all, whose work grew more than six times from `less`, done for so many, to `more`, done for four times as many. */
function grownTooMuch(count: number, less: Work, more: Work): string[] {
  const sum = (work: Work): number => [...work.values()].reduce((total, times) => total + times, 0)
  const places = [
    ['all', sum(less), sum(more)] as const,
    ...[...more].map(([place, times]) => [place, less.get(place) ?? 0, times] as const),
  ]
  return places
    .filter(([, before, after]) => after > 6 * Math.max(before, free * count))
    .map(([place, before, after]) => `${place}: ${before}, then ${after}`)
}

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
