/**
 * The TypeScript blocks of a page: found, type-checked against the built package, and run against a broker.
 *
 * Each block is a module of its own. What a block leaves out for the reader's sake stands in an HTML comment right before it, which a reader of
 * the rendered page does not see:
 *
 *     <!-- given
 *     declare const client: import('mqwire').Client
 *     -->
 *
 * In a block tagged `ts run`, which runs, port 1883 stands for the broker's port. It has to end by itself within 20 seconds. A `text` block right behind
 * it is what it prints.
 */
import { createServer, type Server } from 'node:net'
import { Aedes } from 'aedes'
import { transform } from 'esbuild'
import { listening } from '../support/servers.js'
import { compilers, link, node, project, writeFiles } from './fixture.js'

export interface Block {
  /** The line of the page on which the code begins. */
  readonly line: number
  readonly code: string
  readonly runs: boolean
  /** What the page says it prints. */
  readonly prints: string | undefined
}

const fence =
  /(?:<!-- given\n([\s\S]*?)-->\n+)?^```ts( run)?\n([\s\S]*?)^```$(?:\n\n^```text\n([\s\S]*?)^```$)?/gm

/** The blocks of a page, in order. */
export function blocksOf(text: string): Block[] {
  return [...text.matchAll(fence)].map((found) => {
    const start = found.index + found[0].indexOf('```ts')
    const code = `${found[1] ?? ''}${found[3]}`
    const line = text.slice(0, start).split('\n').length + 1
    return { line, code, runs: found[2] !== undefined, prints: found[4] }
  })
}

/** The opening fences of everything that calls itself TypeScript: as many as there are blocks, and tagged as blocks are. */
export function fencesOf(text: string): string[] {
  return text.match(/^```(?:ts|typescript)\b.*$/gm) ?? []
}

export function filesOf(blocks: readonly Block[]): Record<string, string> {
  return Object.fromEntries(blocks.map(({ line, code }) => [`line-${line}.ts`, code]))
}

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

/**
 * Type-checks modules in a project of their own, with these packages besides mqwire. Returns what the compiler says; empty when all is well.
 */
export async function compile(
  files: Readonly<Record<string, string>>,
  packages: readonly string[] = [],
): Promise<string> {
  const folder = await project(files)
  for (const name of ['@types/node', 'undici-types', ...packages]) await link(folder, name)
  await writeFiles(folder, {
    'tsconfig.json': JSON.stringify({ compilerOptions: settings, include: ['*.ts'] }),
  })
  const [, compiler] = compilers.at(-1) as readonly [string, string]
  return (await node([compiler, '-p', folder], folder)).output
}

/** Runs a module against a fresh broker, with these packages besides mqwire. */
export async function execute(code: string, packages: readonly string[] = []) {
  const broker = await Aedes.createBroker()
  const server: Server = createServer(broker.handle)
  const port = await listening(server)
  try {
    const local = code.replace(/:1883\b/g, `:${port}`)
    const { code: script } = await transform(local, {
      loader: 'ts',
      format: 'esm',
      target: 'es2022',
    })
    const folder = await project({ 'block.mjs': script })
    for (const name of packages) await link(folder, name)
    return await node(['--unhandled-rejections=strict', 'block.mjs'], folder, 20_000)
  } finally {
    broker.close()
    server.close()
  }
}
