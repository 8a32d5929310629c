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
  delaysInWords(delays: unknown): string
  ratioIn(results: string, title: string, client: string): number | undefined
  withTable(page: string, table: string): string
}

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8')
const { clients, markdown, delaysInWords, ratioIn, withTable } = (await import(
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
    expect(
      cells.every(
        (row) => row.length === clients.length + 1 && row.slice(1).every((cell) => cell !== ''),
      ),
    ).toBe(true)
    expect(
      cells.slice(2).flatMap((row) => row.filter((cell) => cell === 'not measured')).length,
    ).toBeLessThanOrEqual(10)
    expect(cells.filter(([title]) => title?.startsWith('speed:')).length).toBe(5)
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

describe('the words of the comparison', () => {
  it.each([
    [
      [
        [1000, 1002, 1001],
        [1000, 1001, 1003],
      ],
      'about 1 s, no jitter',
    ],
    [
      [
        [2100, 2300, 2200],
        [2390, 2050, 2010],
      ],
      'about 2 s, jitter',
    ],
    [
      [
        [900, 2500, 7000],
        [1500, 1300, 4000],
      ],
      'growing, jitter',
    ],
    [
      [
        [1000, 2000, 4000],
        [1000, 2000, 4000],
      ],
      'growing, no jitter',
    ],
    [[[4], [4]], 'not measured'],
    ['no answer: x', 'not measured'],
  ])('for the delays %j are %s', (delays, words) => {
    expect(delaysInWords(delays)).toBe(words)
  })

  it('for a speed are the ratio of the results, and a gap where there is none', () => {
    const rows =
      '| receive, against a | – | 12.4× | – | 2 msgs/s | 1 msgs/s (a) | – |\n| receive, against b | – | skipped | – | – | – | – |\n'
    expect([
      ratioIn(rows, 'receive', 'a'),
      ratioIn(rows, 'receive', 'b'),
      ratioIn(rows, 'send', 'a'),
    ]).toEqual([12.4, undefined, undefined])
  })

  it('for what was not found are a gap, and never a yes', () => {
    const nothing = Object.fromEntries(clients.map((client) => [client, {}]))
    const rows = markdown({ found: nothing, results: '', sizes: { 'connect from mqwire': 1 } })
      .trim()
      .split('\n')
      .slice(2)
    for (const row of rows) expect(row).not.toMatch(/\| (?:yes|no) \|/)
  })

  it('replace what stood in the block, and nothing else', () => {
    expect(withTable('a\n<!-- comparison -->\nold\n<!-- /comparison -->\nb\n', '| new |\n')).toBe(
      'a\n<!-- comparison -->\n| new |\n<!-- /comparison -->\nb\n',
    )
  })
})
