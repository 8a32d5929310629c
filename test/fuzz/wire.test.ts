/** Fuzzing in CI, target `wire`: a time-boxed run with a fresh seed; see timed.ts for how to repeat it. */
import { expect, test } from 'vitest'
import { wireInputs } from './arbitraries.js'
import { fuzz } from './timed.js'

const least = 2000

test("pain 22 any server's or client's session, changed here and there, decodes or raises a WireError, the same for any chunking (N26 N27 N34)", {
  timeout: 120_000,
}, async () => {
  const { inputs, seed } = await fuzz('wire', wireInputs, least)
  expect(inputs, `inputs that ran, seed ${seed}`).toBeGreaterThan(least)
})
