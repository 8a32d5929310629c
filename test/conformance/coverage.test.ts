/** The table of branch coverage names the files that there are, adds up, and holds nothing under the limit. Its figures are checked by the coverage step. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const table = readFileSync(new URL('COVERAGE.md', import.meta.url), 'utf8')

interface Counts {
  covered: number
  all: number
}

interface Row {
  file: string
  statements: Counts
  branches: Counts
  functions: Counts
}

/** What the program offers to whoever imports it. */
interface Coverage {
  least: number
  markdown(rows: Row[]): string
  totalOf(rows: Row[]): Row
  tooLow(rows: Row[]): string[]
}

const program = (await import(pathToFileURL(path.join(root, '.ci', 'coverage.mjs')).href)) as Coverage

function sources(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name.split(path.sep).join('/')}`)
    .filter((name) => name.endsWith('.ts'))
}

const none: Counts = { covered: 0, all: 0 }
const row = (file: string, covered: number, all: number): Row => ({ file, statements: none, branches: { covered, all }, functions: none })

/** The rows of the committed table, without the last. */
const rows = [...table.matchAll(/^\| `([^`]+)` \| (?:(\d+)\/(\d+)|–) \|/gm)].map(([, file = '', covered = 0, all = 0]) =>
  row(file, Number(covered), Number(all)),
)

describe('the table of branch coverage', () => {
  it('has a row for each file of src/wire and src/client/session, and no other', () => {
    expect(rows.map(({ file }) => file)).toEqual([...sources('src/wire'), ...sources('src/client/session')].sort())
  })

  it('is what the program writes for these figures: percentages, sum and all', () => {
    expect(table).toBe(program.markdown(rows))
  })

  it('has no file under 98 % of branches, nor all of them together', () => {
    expect(program.least).toBe(98)
    expect(program.tooLow(rows)).toEqual([])
    expect(rows.filter(({ branches }) => branches.all > 0).length).toBeGreaterThan(20)
  })
})

describe('the limit', () => {
  it.each([
    [[row('a', 98, 100)], []],
    [[row('a', 97, 100)], ['a: 97.0', 'all: 97.0']],
    // Rounding must not lift it.
    [[row('a', 979, 1000), row('b', 5000, 5000)], ['a: 97.9']],
    [[row('a', 9796, 10_000)], ['a: 97.9', 'all: 97.9']],
    [[row('a', 0, 0)], []],
    [[row('a', 0, 1), row('b', 999, 999)], ['a: 0.0']],
    [[], []],
  ] as [Row[], string[]][])('of each file and of all', (given, low) => {
    expect(program.tooLow(given).map((text) => text.split(' %')[0])).toEqual(low)
  })

  it('takes 100 % for all of them', () => {
    expect(program.markdown([row('a', 9999, 10_000)])).toContain('| 99.9 % |')
    expect(program.markdown([row('a', 10_000, 10_000)])).toContain('| 100.0 % |')
    expect(program.totalOf([row('a', 1, 2), row('b', 3, 4)]).branches).toEqual({ covered: 4, all: 6 })
  })
})
