/**
 * The counters that an instrumented build keeps, one for each way through the code: coverage for the search, and steps for bounds without a clock.
 *
 * Without instrumentation there are none and every count is 0. Targets may read them and must never write.
 */

interface Counted {
  /** One for each branch and function of the sources, by number. */
  mqwireHits?: Uint32Array
  /** How many of them, from the first on, are those of the codec. */
  mqwireWire?: number
  /** Bytes that were copied from one array to another. */
  mqwireCopied?: number
}

const world = globalThis as Counted

const none = new Uint32Array(0)
let codec: Uint32Array = none

/** The counters; empty in a build without. */
export function counters(): Uint32Array {
  return world.mqwireHits ?? none
}

/** Those of the codec. */
export function codecCounters(): Uint32Array {
  if (codec.length === 0) codec = counters().subarray(0, world.mqwireWire)
  return codec
}

/** Branches and functions of the codec that were entered so far, and bytes copied: what its work costs, whatever the machine. */
export function steps(): number {
  const hits = codecCounters()
  let sum = world.mqwireCopied ?? 0
  for (let index = 0; index < hits.length; index++) sum += hits[index] as number
  return sum
}

/** Counts the bytes that typed arrays copy, from now on: work that no branch shows. Once for each thread, however often it is called. */
export function countCopies(): void {
  if (world.mqwireCopied !== undefined) return
  world.mqwireCopied = 0
  const { prototype } = Uint8Array
  const { set, slice } = prototype
  const count = (bytes: number): void => {
    world.mqwireCopied = (world.mqwireCopied ?? 0) + bytes
  }
  const replace = (name: 'set' | 'slice', value: unknown): void => {
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true })
  }
  replace('set', function (this: Uint8Array, source: ArrayLike<number>, offset?: number) {
    count(source.length)
    set.call(this, source, offset)
  })
  replace('slice', function (this: Uint8Array, start?: number, end?: number) {
    const copy = slice.call(this, start, end)
    count(copy.length)
    return copy
  })
}
