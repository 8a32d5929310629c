/** The parts of the virtual worlds: schedules, seeds, the shrinker, the clock. `seeds.test.ts` plays them. */
import { describe, expect, test } from 'vitest'
import { WorldClock } from './clock.js'
import { type KindName, kinds, traced } from './kinds.js'
import { Random } from './random.js'
import { scenarios } from './scenarios.js'
import type { Schedule } from './schedule.js'
import { parsed, shown, shrink } from './shrink.js'
import { wideScenarios } from './wide-scenarios.js'

test('each scenario has a name of its own', () => {
  const names = [...scenarios, ...wideScenarios].map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

describe('the same seed', () => {
  const names = Object.keys(kinds) as KindName[]

  test.each(names)(
    'gives the same schedule, which can be printed and read again, and the same run, packet by packet: %s',
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

  test('gives the same numbers, also beyond 32 bits', () => {
    const numbers = (seed: number): number[] => {
      const random = new Random(seed)
      return Array.from({ length: 5 }, () => random.below(1000))
    }
    expect(numbers(7)).toEqual(numbers(7))
    expect(numbers(7 + 2 ** 40)).not.toEqual(numbers(7))
  })
})

describe('the shrinker', () => {
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

  test('leaves what the failure needs, and nothing else', async () => {
    const small = await shrink(schedule, 'I1', async ({ ops, faults, setup }) => {
      const fails =
        ops.some((op) => op.at === 3) &&
        ops.some((op) => op.at === 7) &&
        faults.some(({ kind }) => kind === 'end') &&
        setup.keepAlive === 5
      return fails ? [{ rule: 'I1', detail: '' }] : []
    })
    expect(small.ops.map(({ at }) => at)).toEqual([3, 7])
    expect(small.faults).toEqual([{ kind: 'end', at: 2 }])
    expect(small.setup).toEqual({ keepAlive: 5 })
  })

  test('keeps to the rule that was broken', async () => {
    const small = await shrink(schedule, 'I1', async ({ ops }) => [
      { rule: ops.length < 5 ? 'I2' : 'I1', detail: '' },
    ])
    expect(small.ops.length).toBe(5)
  })
})

describe('the clock of the world', () => {
  test('runs timers in the order of their times, and of one time in the order in which they were set', async () => {
    const clock = new WorldClock()
    const random = new Random(1)
    const order: [number, number][] = []
    for (let n = 0; n < 500; n++) {
      const at = random.below(40)
      clock.setTimer(() => order.push([at, n]), at)
    }
    await clock.advance(100)
    expect(order).toEqual([...order].sort(([a, n], [b, m]) => a - b || n - m))
    expect(clock.now()).toBe(100)
    expect(clock.pending).toBe(0)
  })

  test('lets every promise have its turn between two timers', async () => {
    const clock = new WorldClock()
    const seen: string[] = []
    clock.setTimer(async () => {
      for (let hop = 0; hop < 50; hop++) await undefined
      seen.push('settled')
    }, 1)
    clock.setTimer(() => seen.push('next'), 1)
    await clock.advance(1)
    expect(seen).toEqual(['settled', 'next'])
  })

  test('what is cancelled does not run, and what is late runs at once', async () => {
    const clock = new WorldClock()
    const seen: number[] = []
    const cancel = clock.setTimer(() => seen.push(1), 5)
    clock.setTimer(() => seen.push(clock.now()), 10)
    cancel()
    cancel()
    clock.jump(50)
    await clock.advance(0)
    expect(seen).toEqual([50])
    expect(clock.pending).toBe(0)
  })
})
