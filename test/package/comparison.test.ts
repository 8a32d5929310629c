/** The table that compares clients says what was found, measured and weighed, in every page that shows it. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { root } from './fixture.js'

type Answers = Readonly<Record<string, unknown>>
type Found = Readonly<Record<string, Answers>>

/** What `bench/versus/table.js` offers. */
interface Table {
  readonly clients: readonly string[]
  markdown(given: {
    found: Found
    results: string
    sizes: Readonly<Record<string, number>>
  }): string
}

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8')
const { clients, markdown } = (await import(
  pathToFileURL(path.join(root, 'bench/versus/table.js')).href
)) as Table

const found = JSON.parse(read('bench/versus/features.json')) as Found
const results = read('bench/RESULTS.md')
const sizes = JSON.parse(read('test/package/sizes.json')) as Readonly<Record<string, number>>
const table = markdown({ found, results, sizes })
const cells = table
  .trim()
  .split('\n')
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )

describe('the comparison', () => {
  it.each(['README.md', 'docs/comparison.md'])(
    'in %s is what features.json, RESULTS.md and sizes.json give',
    (page) => {
      expect(
        read(page).includes(`<!-- comparison -->\n${table}<!-- /comparison -->`),
        'node bench/versus/main.js --table writes it anew',
      ).toBe(true)
    },
  )

  it('has an answer of every client, of the versions that are installed', () => {
    expect(Object.keys(found)).toEqual(clients)
    const { dependencies } = JSON.parse(read('bench/versus/package.json')) as {
      dependencies: Record<string, string>
    }
    const mqtt = (JSON.parse(read('node_modules/mqtt/package.json')) as { version: string }).version
    const versions = Object.fromEntries(
      clients.map((client) => [client, found[client]?.['version']]),
    )
    expect(versions).toEqual({ ...dependencies, mqwire: undefined, 'MQTT.js': mqtt })
  })

  it('has a row of each kind, and no more gaps than there were', () => {
    expect(cells.length).toBeGreaterThan(18)
    expect(cells.flat().filter((cell) => cell === 'not measured').length).toBeLessThanOrEqual(10)
    expect(cells.filter(([title]) => title?.startsWith('speed:')).length).toBe(5)
    const isWhole = (row: readonly string[]): boolean =>
      row.length === clients.length + 1 && row.slice(1).every((cell) => cell !== '')
    expect(cells.filter((row) => !isWhole(row))).toEqual([])
  })

  it('explains every row that a client was asked for', () => {
    const explained = read('docs/comparison.md').split('## How the cells were found')[1] ?? ''
    const asked = cells
      .slice(2)
      .map(([title = '']) => title.replace(/^honours the broker's /, 'honours '))
    expect(
      asked.filter((title) => !title.startsWith('speed:') && !explained.includes(title)),
    ).toEqual([])
  })
})
