/**
 * The README's TypeScript blocks compile against the built package, and those tagged `ts run` run against a broker.
 *
 * Each block is a module of its own. What a block leaves out for the reader's sake stands in an HTML comment right before it, which a reader of
 * the rendered page does not see:
 *
 *     <!-- given
 *     declare const client: import('mqwire').Client
 *     -->
 *
 * In a block that runs, port 1883 stands for the broker's port. It has to end by itself within 20 seconds.
 */
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import path from 'node:path'
import { Aedes } from 'aedes'
import { transform } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compilers, link, node, project, removeProjects, requireDist, root, writeFiles } from './fixture.js'

interface Block {
  /** The line of the README on which the code begins. */
  readonly line: number
  readonly code: string
  readonly runs: boolean
}

const fence = /(?:<!-- given\n([\s\S]*?)-->\n+)?^```ts( run)?\n([\s\S]*?)^```$/gm

function blocksOf(text: string): Block[] {
  return [...text.matchAll(fence)].map((found) => {
    const start = found.index + found[0].indexOf('```ts')
    const code = `${found[1] ?? ''}${found[3]}`
    return { line: text.slice(0, start).split('\n').length + 1, code, runs: found[2] !== undefined }
  })
}

const file = path.join(root, 'README.md')
const readme = existsSync(file) ? readFileSync(file, 'utf8') : ''
const blocks = blocksOf(readme)

const settings = {
  target: 'es2022',
  module: 'nodenext',
  moduleResolution: 'nodenext',
  moduleDetection: 'force',
  lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  skipLibCheck: true,
  noEmit: true,
}

/** Type-checks modules in a project of their own. Returns what the compiler says; empty when all is well. */
async function compile(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await project(files)
  for (const name of ['@types/node', 'undici-types']) await link(folder, name)
  await writeFiles(folder, { 'tsconfig.json': JSON.stringify({ compilerOptions: settings, include: ['*.ts'] }) })
  const [, compiler] = compilers.at(-1) as readonly [string, string]
  return (await node([compiler, '-p', folder], folder)).output
}

/** Runs a module against a fresh broker. */
async function execute(code: string) {
  const broker = await Aedes.createBroker()
  const server: Server = createServer(broker.handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as AddressInfo
    const local = code.replace(/:1883\b/g, `:${port}`)
    const { code: script } = await transform(local, { loader: 'ts', format: 'esm', target: 'es2022' })
    const folder = await project({ 'block.mjs': script })
    return await node(['--unhandled-rejections=strict', 'block.mjs'], folder, 20_000)
  } finally {
    broker.close()
    server.close()
  }
}

beforeAll(requireDist)
afterAll(removeProjects)

describe('the README', () => {
  it('is there, with TypeScript blocks, some of which run', () => {
    expect(readme).not.toBe('')
    expect(blocks.length).toBeGreaterThan(0)
    expect(blocks.some((block) => block.runs)).toBe(true)
    const fences = readme.match(/^```(?:ts|typescript)\b.*$/gm) ?? []
    expect(fences.filter((line) => line !== '```ts' && line !== '```ts run')).toEqual([])
    expect(fences).toHaveLength(blocks.length)
  })

  it('has only blocks that compile', async () => {
    expect(await compile(Object.fromEntries(blocks.map(({ line, code }) => [`line-${line}.ts`, code])))).toBe('')
  }, 60_000)

  const running = blocks.filter((block) => block.runs)
  for (const { line, code } of running) {
    it(`runs the block at line ${line}`, async () => {
      expect(await execute(code)).toMatchObject({ code: 0 })
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
