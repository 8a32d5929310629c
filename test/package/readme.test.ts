/**
 * The TypeScript blocks of the README and of the guides compile against the built package, and those tagged `ts run` run against a broker. The table
 * that compares clients says what was found, measured and weighed, in every page that shows it.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { start } from '../cli/program.js'
import { blocksOf, compile, execute, fencesOf, filesOf } from './code-blocks.js'
import { pages, removeProjects, requireDist, root } from './fixture.js'

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

const guides = pages
  .filter((page) => page !== 'docs/from-mqttjs.md')
  .map((page) => ({ page, text: read(page), blocks: blocksOf(read(page)) }))
const readme = read('README.md')

/** Languages of blocks that are no programs of ours to run here: commands, and markup. */
const others = ['```jsonl', '```json', '```text', '```sh', '```html']

/** What the guides to stores, to tracing and to typed topics import besides. */
const guidePackages = [
  'classic-level',
  'abstract-level',
  '@opentelemetry/api',
  'zod',
  'msgpackr',
  'cbor-x',
]
const agentPackages = [
  'https-proxy-agent',
  'socks-proxy-agent',
  'agent-base',
  'proxy-agent-negotiate',
  'socks',
]

beforeAll(requireDist)
afterAll(removeProjects)

it('the README: has TypeScript blocks, most of which run, and the first is a whole program in ten lines', () => {
  const blocks = blocksOf(readme)
  expect(blocks.filter((block) => block.runs).length).toBeGreaterThan(blocks.length / 2)
  expect(blocks[0]?.runs).toBe(true)
  expect(blocks[0]?.code.trimEnd().split('\n').length).toBeLessThanOrEqual(10)
})

describe('the pages', () => {
  it.each(guides)('$page has no block that is left out', ({ text, blocks }) => {
    const fences = text.match(/^```\S.*$/gm) ?? []
    expect(
      fences.filter((line) => line !== '```ts' && line !== '```ts run' && !others.includes(line)),
    ).toEqual([])
    expect(fencesOf(text)).toHaveLength(blocks.length)
    for (const [, json = ''] of text.matchAll(/^```json\n(.*?)^```$/gms))
      expect(() => JSON.parse(json)).not.toThrow()
    // Node 22, which runs TypeScript as it stands, does not know it.
    expect(blocks.filter(({ code }) => code.includes('await using'))).toEqual([])
  })

  it('have only blocks that compile', async () => {
    const files = guides.flatMap(({ page, blocks }) =>
      Object.entries(filesOf(blocks)).map(([name, code]) => [
        `${path.basename(page, '.md')}-${name}`,
        code,
      ]),
    )
    expect(new Set(files.map(([name]) => name)).size).toBe(
      guides.flatMap(({ blocks }) => blocks).length,
    )
    expect(await compile(Object.fromEntries(files), [...guidePackages, ...agentPackages])).toBe('')
  }, 60_000)

  for (const { page, blocks } of guides) {
    for (const { line, code, prints } of blocks.filter((block) => block.runs)) {
      it(`run: the block at line ${line} of ${page}`, async () => {
        // What a program of the README prints is below it.
        const output = prints ?? (page === 'README.md' ? '' : undefined)
        expect(await execute(code, guidePackages)).toMatchObject({
          code: 0,
          ...(output !== undefined && { output: output.trim() }),
        })
      }, 40_000)
    }
  }
})

describe('the broker in one line', () => {
  it.each(['README.md', 'docs/examples.md'])(
    'of %s listens over TCP and WebSocket',
    async (page) => {
      const [, line = ''] = /^npx mqwire (broker .*)$/m.exec(read(page)) ?? []
      expect(line).toContain('--ws 9001')
      const args = [...line.replace('9001', '0').split(' '), '--port', '0']
      const program = start(args)
      await program.said('ws://')
      program.child.kill('SIGINT')
      const output = (await program.ended).out.trim().replace('\n', ',')
      expect(output).toMatch(/^mqtt:\/\/127\.0\.0\.1:\d+,ws:\/\/127\.0\.0\.1:\d+\/?$/)
    },
  )
})

it('a block that does not compile, or that throws, would be found', async () => {
  const bad =
    "import { connect } from 'mqwire'\nconst client: number = await connect('mqtt://127.0.0.1:1883')\n"
  expect(await compile({ 'line-1.ts': bad })).toContain('line-1.ts(2,')
  expect(await execute("throw new Error('broken')")).toMatchObject({
    code: 1,
    output: expect.stringContaining('broken'),
  })
})
