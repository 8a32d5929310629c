/** The world of many connections is the same at each run. `../seeds.test.ts` plays it. */
import { describe, expect, test } from 'vitest'
import { parsed, shown } from '../shrink.js'
import { generate } from './generate.js'
import type { Schedule } from './schedule.js'
import { ManyWorld } from './world.js'

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
