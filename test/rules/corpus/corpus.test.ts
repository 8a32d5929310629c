/** The corpus itself: that no builder has lost its cases, that nothing in it is there twice, and that it stands on its own feet. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { hex } from './bytes.js'
import { typeNumbers } from './facts.js'
import { corpus } from './index.js'
import { lines } from './main.js'
import { endName, judge } from './oracle.js'
import { rules } from './rules.js'
import { statesOf } from './states.js'

describe('the corpus', () => {
  it.each([
    [5, 2500],
    [4, 300],
  ] as const)(
    'of version %i has %i cases and more, of each packet type, and none twice: by bytes, name, or what is special together with how it ends',
    (version, least) => {
      const cases = corpus(version)
      expect(cases.length).toBeGreaterThanOrEqual(least)
      expect(new Set(cases.map(({ type }) => type))).toEqual(new Set(Object.keys(typeNumbers)))
      const ends = cases.map(({ type, special, meanings }) => {
        const each = statesOf(version).map((state) => endName(judge(version, meanings, state)))
        return [type, special, ...each].join(' | ')
      })
      const bytes = cases.map((each) => hex([...each.bytes]))
      for (const keys of [bytes, cases.map(({ name }) => name), ends])
        expect(new Set(keys).size).toBe(cases.length)
    },
  )

  it('breaks every rule on its own, and is readable as lines of JSON', () => {
    const broken = new Set<string>()
    for (const line of lines()) {
      const { expected } = JSON.parse(line) as { expected: Record<string, { rule?: string }> }
      for (const { rule } of Object.values(expected)) if (rule !== undefined) broken.add(rule)
    }
    expect(broken).toEqual(new Set(Object.keys(rules)))
  })

  it('states its facts without the code that it tries', () => {
    const folder = fileURLToPath(new URL('.', import.meta.url))
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
    )
    const importing = files.filter((name) =>
      /from '[^']*\/src\//.test(readFileSync(`${folder}/${name}`, 'utf8')),
    )
    expect(importing.sort()).toEqual(['run/enter.ts', 'run/memory.ts', 'run/network.ts'])
  })
})
