/**
 * Counts what a piece of code does with the collections of the language, so that a cost test needs no clock: a look-up counts 1, a walk as many steps
 * as it may take.
 */

interface Sized {
  readonly length: number
}

type Method = (this: Sized, ...args: unknown[]) => unknown

const none: Sized = { length: 0 }

const lookups = [
  [Map.prototype, ['get', 'set', 'has', 'delete']],
  [Set.prototype, ['add', 'has', 'delete']],
] as const
const walks = ['every', 'filter', 'find', 'findIndex', 'flatMap', 'forEach', 'includes', 'indexOf', 'map', 'some', 'splice'] as const
/** What walks over a collection: each step counts. */
const iterators = [new Map().values(), new Set().values(), [].values()].map((iterator) => Object.getPrototypeOf(iterator) as object)

/** Has the language's collections count; gives the steps so far, and what puts everything back. */
function counting(): { readonly steps: () => number; readonly stop: () => void } {
  let steps = 0
  const undo: (() => void)[] = []
  const replace = (object: object, name: PropertyKey, count: (own: Sized, result: unknown) => number): void => {
    const original = Reflect.get(object, name) as Method
    undo.push(() => Reflect.set(object, name, original))
    const counted: Method = function (...args) {
      const length = count(this, undefined)
      const result = Reflect.apply(original, this, args)
      steps += length + count(none, result)
      return result
    }
    Reflect.set(object, name, counted)
  }
  for (const [object, names] of lookups) for (const name of names) replace(object, name, () => 0.5)
  for (const name of walks) replace(Array.prototype, name, (own) => own.length)
  for (const object of iterators) replace(object, 'next', () => 0.5)
  const made = (_own: unknown, result: unknown): number => (Array.isArray(result) ? result.length : 0)
  replace(Array.prototype, 'slice', made)
  for (const name of ['keys', 'values', 'entries']) replace(Object, name, made)
  const stop = (): void => {
    for (const back of undo) back()
  }
  return { steps: () => steps, stop }
}

/** Steps that `run` takes; it must not await anything. */
export function countWork(run: () => void): number {
  const { steps, stop } = counting()
  try {
    run()
  } finally {
    stop()
  }
  return steps()
}

/** The same for what takes its time; everything else that goes on meanwhile counts, too. */
export async function countWorkOf(run: () => Promise<void>): Promise<number> {
  const { steps, stop } = counting()
  try {
    await run()
  } finally {
    stop()
  }
  return steps()
}
