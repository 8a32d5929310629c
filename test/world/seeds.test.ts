/** The fixed seeds of each kind of world that every change has to bear. `npm run lab -- world` plays others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kinds } from './kinds.js'

describe('no rule is broken in', () => {
  const { stackTraceLimit } = Error
  // Stacks of errors take a third of the time.
  beforeAll(() => {
    Error.stackTraceLimit = 0
  })
  afterAll(() => {
    Error.stackTraceLimit = stackTraceLimit
  })

  test.each([
    ['a client, a broker and the network between them', 1000, kinds.world],
    ['an application that calls anything at any time', 200, kinds.programs],
    ['a device with a store, whose process dies and comes back', 200, kinds.durable],
    ['a pool or a group over several connections', 200, kinds.many],
  ] as const)('%s: %i seeds', async (_name, seeds, { generate, make }) => {
    for (let seed = 1; seed <= seeds; seed++) {
      const { findings } = await make(generate(seed)).run()
      expect(
        findings.map(({ rule, detail }) => `${rule}: ${detail}`),
        `seed ${seed}`,
      ).toEqual([])
    }
  })
})
