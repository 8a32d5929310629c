/**
 * The world of many connections as a whole: random seeds.
 *
 * The long runs are child processes of the runner. A push has some hundred seeds, the same each time; with MQWIRE_LONG there
 * are 5,000.
 */
import { describe, expect, test } from 'vitest'
import { runCommand } from '../command.js'
import { parsed, shown } from '../shrink.js'
import { generate } from './generate.js'
import type { Schedule } from './schedule.js'
import { ManyWorld } from './world.js'

const long = process.env['MQWIRE_LONG'] !== undefined
const run = (...args: string[]) => runCommand('--many', ...args)

describe('a pool or a group', () => {
  test('at random, with links that are cut, brokers that forget, and members that come and go', { timeout: 1_200_000 }, async () => {
    const seeds = long ? 5000 : 200
    const { code, text } = await run('--seeds', String(seeds))
    expect(text.trim().split('\n').at(-1), text).toMatch(new RegExp(`^world: ${seeds} schedules, ${seeds} seeds, 0 findings, [\\d.]+ s$`))
    expect(code).toBe(0)
  })
})

describe('its runs', () => {
  const historyOf = async (schedule: Schedule): Promise<string[]> => {
    const lines: string[] = []
    await new ManyWorld(schedule, (line) => lines.push(line)).run()
    return lines
  }

  test('are the same for the same seed, to the last packet', async () => {
    for (const seed of [3, 8, 21]) {
      const lines = await historyOf(generate(seed))
      expect(lines.length).toBeGreaterThan(20)
      expect(await historyOf(parsed(shown(generate(seed))))).toEqual(lines)
    }
    expect(generate(4711)).not.toEqual(generate(4712))
  })
})
