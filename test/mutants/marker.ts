/**
 * Runs before every test file of a mutant: notes on each test which mutants were loaded, by the mark that a planted source leaves behind.
 *
 * A test that fails without the mutant having been loaded has not caught it.
 */
import { afterEach } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** Ids of the mutants whose source was loaded when the test ended. */
    mutants?: readonly string[]
  }
}

afterEach(({ task }) => {
  const { plantedMutants } = globalThis as { plantedMutants?: Set<string> }
  if (plantedMutants !== undefined) task.meta.mutants = [...plantedMutants]
})
