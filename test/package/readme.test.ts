/**
 * The README's TypeScript blocks compile against the built package, and those tagged `ts run` run against a broker; how a block is written stands in
 * `code-blocks.ts`.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf, compile, execute, fencesOf, filesOf } from './code-blocks.js'
import { node, project, removeProjects, requireDist, root } from './fixture.js'

const file = path.join(root, 'README.md')
const readme = existsSync(file) ? readFileSync(file, 'utf8') : ''
const blocks = blocksOf(readme)

beforeAll(requireDist)
afterAll(removeProjects)

describe('the README', () => {
  it('is there, with TypeScript blocks, some of which run', () => {
    expect(readme).not.toBe('')
    expect(blocks.length).toBeGreaterThan(0)
    expect(blocks.some((block) => block.runs)).toBe(true)
    const fences = fencesOf(readme)
    expect(fences.filter((line) => line !== '```ts' && line !== '```ts run')).toEqual([])
    expect(fences).toHaveLength(blocks.length)
  })

  it('has only blocks that compile', async () => {
    expect(await compile(filesOf(blocks))).toBe('')
  }, 60_000)

  const running = blocks.filter((block) => block.runs)
  for (const { line, code } of running) {
    it(`runs the block at line ${line}`, async () => {
      expect(await execute(code)).toMatchObject({ code: 0 })
    }, 40_000)
  }
})

describe('the broker in one line', () => {
  it('listens over TCP and WebSocket', async () => {
    const [, line = ''] = /^node -e "(.*)"$/m.exec(readme) ?? []
    expect(line).toContain('tcp: 1883, ws: { port: 9001,')
    const code = `${line.replace('1883', '0').replace('9001', '0')}.then(({ urls }) => { console.log(urls.join()); process.exit() })`
    const { output } = await node(['-e', code], await project({}), 10_000)
    expect(output).toMatch(/^mqtt:\/\/127\.0\.0\.1:\d+,ws:\/\/127\.0\.0\.1:\d+\/?$/)
  })
})

const guides: readonly (readonly [name: string, packages: readonly string[]])[] = [
  ['typed.md', []],
  ['durability.md', ['classic-level', 'abstract-level']],
]

describe.each(guides)('the guide %s', (name, packages) => {
  const guide = blocksOf(readFileSync(path.join(root, 'docs', name), 'utf8'))

  it('has only blocks that compile', async () => {
    expect(guide.length).toBeGreaterThan(2)
    expect(await compile(filesOf(guide), packages)).toBe('')
  }, 60_000)

  for (const { line, code } of guide.filter((block) => block.runs)) {
    it(`runs the block at line ${line}`, async () => {
      expect(await execute(code, packages)).toMatchObject({ code: 0 })
    }, 40_000)
  }
})

describe('the README tester', () => {
  it('finds blocks, what is given for them, and their lines', () => {
    const text = '# A\n```ts\na()\n```\ntext\n\n<!-- given\nconst b = 1\n-->\n\n```ts run\nf(b)\n```\n```sh\nnpm\n```\n'
    expect(blocksOf(text)).toEqual([
      { line: 3, code: 'a()\n', runs: false },
      { line: 12, code: 'const b = 1\nf(b)\n', runs: true },
    ])
  })

  it('objects to a block that does not compile', async () => {
    const bad = "import { connect } from 'mqwire'\nconst client: number = await connect('mqtt://127.0.0.1:1883')\nclient.unheardOf()\n"
    const good = "import { connect } from 'mqwire'\nawait connect('mqtt://127.0.0.1:1883')\n"
    const said = await compile({ 'line-1.ts': bad, 'line-9.ts': good })
    expect(said).toContain('line-1.ts(2,')
    expect(said).not.toContain('line-9.ts')
  })

  it('objects to a block that throws, and gives each block a broker', async () => {
    expect(await execute("throw new Error('broken')")).toMatchObject({ code: 1, output: expect.stringContaining('broken') })
    const dial = "import { connect } from 'node:net'\nconst socket = connect(1883, '127.0.0.1')\n".replace('1883', "Number(':1883'.slice(1))")
    const events = "socket.on('error', () => process.exit(3)).on('connect', () => { console.log('there'); socket.destroy() })\n"
    expect(await execute(dial + events)).toEqual({ code: 0, output: 'there' })
  })
})
