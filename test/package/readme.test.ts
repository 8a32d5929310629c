/** The TypeScript blocks of the README and of the guides compile against the built package, and those tagged `ts run` run against a broker. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf, compile, execute, fencesOf, filesOf } from './code-blocks.js'
import { node, pages, project, removeProjects, requireDist, root } from './fixture.js'

const read = (page: string): string => readFileSync(path.join(root, page), 'utf8')
const guides = pages
  .filter((page) => page !== 'docs/from-mqttjs.md')
  .map((page) => ({ page, text: read(page), blocks: blocksOf(read(page)) }))
const readme = read('README.md')

/** Languages of blocks that are no programs of ours to run here: commands, and markup. */
const others = ['```sh', '```html']

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
    for (const { line, code } of blocks.filter((block) => block.runs)) {
      it(`run: the block at line ${line} of ${page}`, async () => {
        expect(await execute(code, guidePackages)).toMatchObject({ code: 0 })
      }, 40_000)
    }
  }
})

describe('the broker in one line', () => {
  it.each(['README.md', 'docs/examples.md'])(
    'of %s listens over TCP and WebSocket',
    async (page) => {
      const [, line = ''] = /^node -e "(.*)"$/m.exec(read(page)) ?? []
      expect(line).toContain('tcp: 1883, ws: { port: 9001,')
      const code = `${line.replace('1883', '0').replace('9001', '0')}.then(({ urls }) => { console.log(urls.join()); process.exit() })`
      const { output } = await node(['-e', code], await project({}), 10_000)
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
