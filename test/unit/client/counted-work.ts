/**
 * Counts what a piece of code does, so that a cost test needs no clock. Two kinds of places have a count of their own: each function and block of `src`,
 * as often as the engine ran it; and each method of the language's collections, a look-up 1, a walk as many steps as it may take, a copy one for 64 bytes.
 *
 * Work is judged by its places, because a walk that grows with the square hides in the sum behind what costs much and grows evenly. It may assume that
 * nothing else uses the engine's coverage meanwhile.
 */
import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'

interface Sized {
  readonly length: number
}

type Method = (this: Sized, ...args: unknown[]) => unknown

/** How often each place ran. */
export type Work = ReadonlyMap<string, number>

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
export async function countWorkOf(run: () => Promise<void>): Promise<Work> {
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
export function grownTooMuch(count: number, less: Work, more: Work): string[] {
  const sum = (work: Work): number => [...work.values()].reduce((total, times) => total + times, 0)
  const places = [
    ['all', sum(less), sum(more)] as const,
    ...[...more].map(([place, times]) => [place, less.get(place) ?? 0, times] as const),
  ]
  return places
    .filter(([, before, after]) => after > 6 * Math.max(before, free * count))
    .map(([place, before, after]) => `${place}: ${before}, then ${after}`)
}
