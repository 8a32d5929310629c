/** The corpus in CI: what was ever found, and the fewest inputs that reach what long runs reached, each without a finding. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { hex } from './build.js'
import { builtSeeds, readSeeds, seedLine } from './seeds.js'
import { build, root } from './timed.js'

const text = readFileSync(path.join(root, 'test', 'fuzz', 'seeds.txt'), 'utf8')
const seeds = readSeeds(text)
const names = ['wire', 'session', 'client'] as const

describe('the corpus of the fuzzer', () => {
  test.each(names)('%s: no input of it breaks a promise, and together they reach most of the code', { timeout: 120_000 }, async (name) => {
    const { targets, counters } = await build(`seeds-${name}`)
    const target = targets.targetOf(name)
    const inputs = [...builtSeeds(name), ...seeds.filter((seed) => seed.target === name).map(({ bytes }) => bytes)]
    const failures: string[] = []
    counters.counters().fill(0)
    for (const bytes of inputs) {
      await Promise.resolve()
        .then(() => target.run(bytes.slice()))
        .catch((error: unknown) => failures.push(`${name} ${hex(bytes)} ${String(error)}`))
    }
    expect(failures).toEqual([])
    expect(inputs.length).toBeGreaterThan(20)
    const reached = target.counters().filter((count) => count > 0).length
    // Ways through the code, as functions and branches: a corpus that went stale reaches far less.
    expect(reached).toBeGreaterThan({ wire: 600, session: 850, client: 2400 }[name])
  })

  test('seeds.txt is small, and every line of it is an input', () => {
    expect(text.length).toBeLessThan(200_000)
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(seeds.map(seedLine)).toEqual(lines)
    expect(new Set(lines).size).toBe(lines.length)
    for (const { target } of seeds) expect(names).toContain(target)
  })
})
