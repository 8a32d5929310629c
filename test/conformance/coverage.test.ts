/** The table of branch coverage has every file, adds up, and nothing under the limit passes. The figures themselves are checked by the coverage step. */
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

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
  sourceFiles(): string[]
  rowsOf(report: ReadonlyMap<string, object>): Row[]
  unmeasured(report: ReadonlyMap<string, object>): string[]
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

describe('the table of branch coverage', () => {
  it('is of each file of src/wire and src/client/session, and of no other', () => {
    expect(program.sourceFiles()).toEqual([...sources('src/wire'), ...sources('src/client/session')].sort())
    expect(program.rowsOf(new Map()).map(({ file }) => file)).toEqual(program.sourceFiles())
  })

  it('has the branches of each file, as a fraction and a percentage, and their sum', () => {
    const lines = program.markdown([row('a.ts', 49, 50), row('b.ts', 0, 0)]).split('\n')
    expect(lines).toEqual(expect.arrayContaining(['| `a.ts` | 49/50 | 98.0 % |', '| `b.ts` | – | – |', '| **all** | 49/50 | 98.0 % |']))
  })

  it('is objected to when a file was not measured', () => {
    const all = new Map(program.sourceFiles().map((file) => [file, {}]))
    expect(program.unmeasured(all)).toEqual([])
    all.delete('src/wire/trie.ts')
    expect(program.unmeasured(all)).toEqual(['src/wire/trie.ts was not measured'])
  })
})

describe('the limit', () => {
  it('is 98 % of branches', () => expect(program.least).toBe(98))

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
