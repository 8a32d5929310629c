/** Runs before every test file: keeps which regions of the sources each test reached, and what was reached outside of tests. */
import { afterEach, beforeEach } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** Numbers of the regions that the test reached. */
    reached?: readonly number[]
    /** Those reached before it, and by no test. */
    reachedBefore?: readonly number[]
    /** Milliseconds of processor time. */
    spent?: number
  }
}

const scope = globalThis as unknown as {
  mutantAt: (region: number) => void
  regionsReached?: Set<number>
}
scope.regionsReached ??= new Set()
const reached = scope.regionsReached
scope.mutantAt = (region) => void reached.add(region)

function take(): number[] {
  const taken = [...reached]
  reached.clear()
  return taken
}

const usage = process.cpuUsage.bind(process)
const used = (): number => (usage().user + usage().system) / 1000
let began = 0

beforeEach(({ task }) => {
  began = used()
  const before = take()
  if (before.length > 0) task.meta.reachedBefore = before
})
afterEach(({ task }) => {
  task.meta.reached = take()
  task.meta.spent = used() - began
})
