/**
 * The codec and the session are pure, by compilation and by text; source files keep their limits. With proof that each check can fail.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { fileViolations, pureFolders, purityViolations } from './purity.js'
import { readSources, root } from './source.js'

const run = promisify(execFile)
const sources = readSources()

/** What the compiler says about a project; empty when all is well. */
async function compile(project: string): Promise<string> {
  const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  return run(process.execPath, [compiler, '-p', project]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout || String(error),
  )
}

describe('purity', () => {
  it.each(pureFolders)('compiles src/%s without DOM, Node or timers in scope', async (folder) => {
    expect(await compile(path.join(root, 'src', folder))).toBe('')
  })

  it.each(pureFolders)(
    'would not compile a use of the platform with the settings of src/%s',
    async (folder) => {
      const project = await mkdtemp(path.join(tmpdir(), 'mqwire-purity-'))
      try {
        const settings = {
          extends: path.join(root, 'src', folder, 'tsconfig.json'),
          include: ['.'],
        }
        await writeFile(path.join(project, 'tsconfig.json'), JSON.stringify(settings))
        const lines = [
          'setTimeout(String, 1)',
          'performance.now()',
          'process.exit()',
          'document.title',
          'new TextDecoder()',
          'crypto.randomUUID()',
        ]
        await writeFile(path.join(project, 'a.ts'), lines.join('\n'))
        const said = await compile(project)
        for (const line of lines.keys()) expect(said).toContain(`a.ts(${line + 1},`)
      } finally {
        await rm(project, { recursive: true })
      }
    },
  )

  it.each(pureFolders)('has sources in src/%s', (folder) => {
    expect([...sources.keys()].filter((file) => file.startsWith(folder)).length).toBeGreaterThan(2)
  })

  it('has no clock, chance, platform or promise in the text', () => {
    expect(purityViolations(sources)).toEqual([])
  })

  it.each([
    'const now = Date.now()',
    'const id = Math . random()',
    'setTimeout(f, 1)',
    'let p: Promise<void>',
    'const f = async () => 1',
    'for await (const a of b) c(a)',
    'const g = globalThis',
    'const m = f(window)',
    `const t = \`\${Date.now()}\``,
    'declare const performance: { now(): number }',
    'declare global { }',
    "const m = import('./a.js')",
  ])('the text check finds: %s', (code) => {
    expect(purityViolations(new Map([['wire/a.ts', code]]))).not.toEqual([])
    expect(purityViolations(new Map([['client/session/a.ts', code]]))).not.toEqual([])
    expect(purityViolations(new Map([['client/a.ts', code]]))).toEqual([])
  })

  it.each([
    '// Date.now() and new Date() and await',
    '/** Promise */',
    "const text = 'Math.random() setTimeout process.exit'",
    'const asynchronous = nodeProcess.env, candidate = my.window, processed = 1',
    'function walk(window: Window) { return window.start }',
    'const { window } = pool\nuse(window)',
    'interface Pool { readonly window: Window; process(a: number): void }',
  ])('the text check accepts: %s', (code) => {
    expect(purityViolations(new Map([['wire/a.ts', code]]))).toEqual([])
  })

  it('the text check lets wire/utf8.ts alone declare TextDecoder, which it does, and nothing else', () => {
    expect(sources.get('wire/utf8.ts')).toContain('declare const TextDecoder')
    const code = 'declare class TextDecoder { decode(bytes: Uint8Array): string }'
    expect(purityViolations(new Map([['wire/utf8.ts', code]]))).toEqual([])
    expect(purityViolations(new Map([['wire/reader.ts', code]]))).toEqual([
      'wire/reader.ts: declare TextDecoder',
    ])
    expect(
      purityViolations(new Map([['wire/utf8.ts', 'declare const process: object']])),
    ).not.toEqual([])
  })
})

describe('source files', () => {
  it('are well named, and open with a comment', () => {
    expect(fileViolations(sources)).toEqual([])
  })

  it('would be found out', () => {
    const header = '/**\n * What it is.\n */\n'
    expect(fileViolations(new Map([['wire/a.ts', header]]))).toEqual([])
    expect(fileViolations(new Map([['wire/utils.ts', header]]))).toHaveLength(1)
    expect(fileViolations(new Map([['wire/a.ts', 'a()\n']]))).toEqual([
      'wire/a.ts: no opening comment',
    ])
  })
})
