/**
 * Runs before every test file: the switch that says which random mutant is on, and, where none is, which ones each test reaches.
 *
 * Reached before the first test of a file, or between two, is what a module does as it is loaded, and what hooks of a suite do.
 */
import { afterEach, beforeEach, inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** The number of the mutant that is on. */
    mutantOn: number
  }
  interface TaskMeta {
    /** Numbers of the mutants that the test reached. */
    reached?: readonly number[]
    /** Those reached before it, and by no test. */
    reachedBefore?: readonly number[]
  }
}

const scope = globalThis as unknown as { mutantIs: (number: number) => boolean; mutantsReached?: Set<number> }
const on = inject('mutantOn')

/** A mutant that is asked for so often in one test loops. */
const mostAsked = 20_000_000
let asked = 0

function isOn(number: number): boolean {
  if (number !== on) return false
  asked += 1
  if (asked > mostAsked) throw new Error('the mutant loops')
  return true
}

if (on >= 0) {
  scope.mutantIs = isOn
  beforeEach(() => {
    asked = 0
  })
} else {
  scope.mutantsReached ??= new Set()
  const reached = scope.mutantsReached
  scope.mutantIs = (number) => {
    reached.add(number)
    return false
  }
  const take = (): number[] => {
    const taken = [...reached]
    reached.clear()
    return taken
  }
  beforeEach(({ task }) => {
    const before = take()
    if (before.length > 0) task.meta.reachedBefore = before
  })
  afterEach(({ task }) => {
    task.meta.reached = take()
  })
}
