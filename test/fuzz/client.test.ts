/** Fuzzing in CI, target `client`: a time-boxed run with a fresh seed; see timed.ts for how to repeat it. */
import { expect, test } from 'vitest'
import { clientInputs } from './arbitraries.js'
import { fuzz } from './timed.js'

const least = 100

test('pain 22 any program and any peer: nothing is thrown outside the API, every promise settles, everything stays within its limits, the same for any chunking', {
  timeout: 120_000,
}, async () => {
  const { inputs, seed } = await fuzz('client', clientInputs, least)
  expect(inputs, `inputs that ran, seed ${seed}`).toBeGreaterThan(least)
})
