/** The fixed seeds of each kind of world that every change has to bear. `npm run lab -- world` plays others. And the shrinker. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type KindName, kinds, traced } from './kinds.js'
import { parsed, shown, shrink } from './runner.js'
import type { Schedule } from './schedule.js'

const { stackTraceLimit } = Error
// Stacks of errors take a third of the time.
beforeAll(() => {
  Error.stackTraceLimit = 0
})
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit
})

test.each<[what: string, seeds: number, name: KindName]>([
  ['a client, a broker and the network between them', 1000, 'world'],
  ['an application that calls anything at any time', 200, 'programs'],
  ['a device with a store, whose process dies and comes back', 200, 'durable'],
  ['a pool or a group over several connections', 200, 'many'],
])('no rule is broken in %s: %i seeds', async (_what, seeds, name) => {
  for (let seed = 1; seed <= seeds; seed++) {
    const { findings } = await kinds[name].make(kinds[name].generate(seed)).run()
    expect([seed, ...findings.map(({ rule, detail }) => `${rule}: ${detail}`)]).toEqual([seed])
  }
})

test.each(Object.keys(kinds) as KindName[])(
  'a seed of %s gives one schedule, which can be printed and read again, and one run, packet by packet',
  async (name) => {
    const { generate } = kinds[name]
    expect(generate(4711)).not.toEqual(generate(4712))
    for (const seed of [3, 8, 42]) {
      expect(parsed(shown(generate(seed)))).toEqual(JSON.parse(JSON.stringify(generate(seed))))
      const lines = await traced(name, generate(seed))
      expect(lines.length).toBeGreaterThan(10)
      expect(await traced(name, parsed(shown(generate(seed))))).toEqual(lines)
    }
  },
)

test('the shrinker leaves what the failure of that rule needs, and nothing else', async () => {
  const schedule: Schedule = {
    name: 'by hand',
    seed: 3,
    span: 100,
    setup: { keepAlive: 5, version: 4 },
    ops: Array.from({ length: 9 }, (_, n) => ({ at: n, do: 'publish', n, topic: 'out', qos: 1 })),
    faults: [
      { kind: 'reset', step: 1 },
      { kind: 'end', at: 2 },
    ],
  }
  const small = await shrink(schedule, 'I1', async ({ ops, faults, setup }) => {
    const isWhole = [3, 7].every((time) => ops.some(({ at }) => at === time))
    const fails = isWhole && faults.some(({ kind }) => kind === 'end') && setup.keepAlive === 5
    return [{ rule: fails ? 'I1' : 'I2', detail: '' }]
  })
  expect(small.ops.map(({ at }) => at)).toEqual([3, 7])
  expect([small.faults, small.setup]).toEqual([[{ kind: 'end', at: 2 }], { keepAlive: 5 }])
})
