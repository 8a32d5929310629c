/** The fixed seeds of the three worlds that every change has to bear. `npm run lab -- world` plays others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generate as generateDurable } from './durable/generate.js'
import { DurableWorld } from './durable/world.js'
import { generate } from './generate.js'
import type { Finding } from './history.js'
import { generate as generateMany } from './many/generate.js'
import { ManyWorld } from './many/world.js'
import { World } from './world.js'

type Play = (seed: number) => Promise<{ readonly findings: readonly Finding[] }>

const worlds: readonly (readonly [name: string, seeds: number, play: Play])[] = [
  ['a client, a broker and the network between them', 1000, (seed) => new World(generate(seed)).run()],
  ['a device with a store, whose process dies and comes back', 200, (seed) => new DurableWorld(generateDurable(seed)).run()],
  ['a pool or a group over several connections', 200, (seed) => new ManyWorld(generateMany(seed)).run()],
]

describe('no rule is broken in', () => {
  const { stackTraceLimit } = Error
  // Stacks of errors take a third of the time.
  beforeAll(() => {
    Error.stackTraceLimit = 0
  })
  afterAll(() => {
    Error.stackTraceLimit = stackTraceLimit
  })

  test.each(worlds)('%s: %i seeds', async (_name, seeds, play) => {
    for (let seed = 1; seed <= seeds; seed++)
      expect(
        (await play(seed)).findings.map(({ rule, detail }) => `${rule}: ${detail}`),
        `seed ${seed}`,
      ).toEqual([])
  })
})
