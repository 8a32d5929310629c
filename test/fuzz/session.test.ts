/** Fuzzing in CI, target `session`: a time-boxed run with a fresh seed; see timed.ts for how to repeat it. */
import { expect, test } from 'vitest'
import { sessionInputs } from './arbitraries.js'
import { fuzz } from './timed.js'

const least = 500

test("pain 22 any server's session, changed here and there, keeps the session's books: slots, quotas, acknowledgements in order, the same for any chunking [MQTT-4.6.0-2] [MQTT-3.3.4-9]", {
  timeout: 120_000,
}, async () => {
  const { inputs, seed } = await fuzz('session', sessionInputs, least)
  expect(inputs, `inputs that ran, seed ${seed}`).toBeGreaterThan(least)
})
