/** Random mutants are drawn as told, can be planted, are noticed by a test that reaches them, and survive where nothing changes. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
import { afterAll, describe, expect, it } from 'vitest'
import { draw, mutated, named, type RandomMutant, readSources, switched } from './random/draw.js'
import { readExplained, reasonFor } from './random/explained.js'
import { sitesOf } from './random/sites.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources = readSources(root)
const scratch = mkdtempSync(path.join(tmpdir(), 'mqwire-random-'))
// A vitest within a vitest must not take itself for a worker of the outer one.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')))

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const compiles = (text: string): string => transformSync(text, { loader: 'ts', format: 'esm' }).code

/** Every change of a text, as it would read. */
const changesOf = (text: string): string[] => sitesOf('made-up.ts', text).flatMap((site) => site.map((change) => mutated(text, change)))

describe('what is drawn', () => {
  it('is the same for the same seed, and other for another', () => {
    const first = draw(sources, 60, 7)
    expect(draw(sources, 60, 7)).toEqual(first)
    expect(draw(sources, 60, 8)).not.toEqual(first)
    expect(first.map(({ number }) => number)).toEqual(Array.from({ length: 60 }, (_, index) => index))
  })

  it('is spread over the files by their number of places', () => {
    const text = 'export const less = (a: number, b: number) => a < b\n'
    const made = new Map([
      ['one', text],
      ['three', text.repeat(3)],
    ])
    expect(draw(made, 4, 1).map(({ file, line }) => `${file}:${line}`)).toEqual(['one:1', 'three:1', 'three:2', 'three:3'])
    expect(() => draw(made, 5, 1)).toThrow('there are only 4 places')
  })

  it.each([
    ['a < b', ['a <= b', 'a >= b']],
    ['a && b', ['(a) || (b)']],
    ['a ?? b', ['(a) && (b)']],
    ['x = !a', ['{}', 'x = a']],
    ['x += 1', ['{}', 'x -= 1', 'x += 1 + 1', 'x += 1 - 1']],
    ['if (a) b()', ['if (!(a)) b()', 'if (true) b()', 'if (false) b()', 'if (a) {}']],
    ['while (a) b++', ['while (false) b++', 'while (a) {}']],
    [
      'function f() { a(); return b }',
      ['function f() { return; a(); return b }', 'function f() { {} return b }', 'function f() { a(); return undefined }'],
    ],
    ['await a?.b()', ['{}']],
    ["a === 'b'", ["a !== 'b'"]],
    ['function f() { return true }', ['function f() { return false }']],
    ['function f() { return undefined }', []],
  ])('of `%s` is %j', (text, changes) => {
    expect(changesOf(text)).toEqual(changes)
  })

  it.each([
    ['types', 'type A = 1 | 2\nlet a: 3 = x as 4\ninterface B { 5: 6 }'],
    ['texts', `const a = 'a < 1' + b + \`$` + '{c + 1} < 2`'],
    ['comments', '// a < 1\n/* if (a) b() */'],
    ['names of numbers', 'const a = { 1: b }'],
    ['imports', "import a from 'b'"],
  ])('is nothing of %s', (_name, text) => {
    expect(changesOf(text)).toEqual([])
  })
})

describe('the mutants of seed 1', () => {
  const mutants = draw(sources, 400, 1)

  it('can be read by a bundler, each alone and all at once behind their switches', () => {
    for (const [file, text] of sources) {
      const some = mutants.filter((mutant) => mutant.file === file)
      const plain = compiles(text)
      if (some.length === 0) continue
      for (const mutant of some) expect(compiles(mutated(text, mutant)), `${file}: ${mutant.change}`).not.toBe(plain)
      expect(compiles(switched(text, some)).match(/mutantIs\(\d+\)/g)?.length).toBeGreaterThanOrEqual(some.length)
    }
  })

  it('are on one at a time', () => {
    const text = 'export const f = (a: number, b: number) => { if (a < b && b > 2) return a + b\n return 0 }'
    const all = sitesOf('made-up.ts', text).map(
      (site, number) => ({ ...site[0], number, file: '', line: 1, lineText: '', change: '' }) as RandomMutant,
    )
    const inputs = [1, 2, 3, 4].flatMap((a) => [1, 2, 3, 4].map((b) => [a, b] as const))
    const results = (source: string, on: number): unknown[] => {
      const body = compiles(source)
        .replace('export { f };', '')
        .replace(/export\s*\{\s*f\s*\};/, '')
      const f = new Function('mutantIs', `${body}\nreturn f`)((number: number) => number === on)
      return inputs.map(([a, b]) => f(a, b))
    }
    expect(results(switched(text, all), -1)).toEqual(results(text, -1))
    for (const mutant of all) expect(results(switched(text, all), mutant.number), mutant.kind).toEqual(results(mutated(text, mutant), -1))
  })
})

describe('the runner', () => {
  const file = 'src/client/api/backoff.ts'
  const caught = ['max < min → max >= min', "jitter === 'none' → jitter !== 'none'", 'step(attempt) - min → step(attempt) + min']
  // What an empty queue keeps for later shows in memory alone.
  const same = { file: 'src/client/common/ring.ts', change: 'slots.length > mostIdleSlots → slots.length >= mostIdleSlots' }

  it.each([
    ['', 1, 'mutants: 4 random, 3 killed, 1 survived, 0 explained'],
    ['nobody sees it', 0, 'mutants: 4 random, 3 killed, 0 survived, 1 explained'],
  ])('names who killed which, and the one that survives, with the reason "%s"', { timeout: 60_000 }, async (reason, code, last) => {
    const names = path.join(scratch, 'names.json')
    writeFileSync(
      names,
      JSON.stringify([...caught.map((change) => ({ file, change })), { ...same, line: lineOf(same.change), ...(reason === '' ? {} : { reason }) }]),
    )
    const tests = 'test/client/backoff.test.ts,test/client/ring.test.ts'
    const given = [path.join(root, '.ci', 'random-mutants.mjs'), '--named', names, '--tests', tests, '--no-world']
    const run = await new Promise<{ code: unknown; lines: string[] }>((resolve) => {
      execFile(process.execPath, given, { cwd: root, env }, (error, output) => resolve({ code: error?.code ?? 0, lines: output.trim().split('\n') }))
    })
    for (const change of caught) expect(run.lines.join('\n')).toContain(`${change} | killed by test/client/backoff.test.ts › `)
    expect(run.lines).toContainEqual(expect.stringMatching(/ring\.ts:\d+ .* \| SURVIVED [1-9]/))
    expect(run.lines.at(-1)).toBe(last)
    expect(run.code).toBe(code)
  })

  const lineOf = (change: string): string => named(sources, [{ ...same, change }])[0]?.lineText ?? ''
})

describe('the explanations', () => {
  it('are of lines that are there, each once, with a reason', () => {
    const list = readExplained(path.join(root, 'test', 'mutants', 'random', 'explained.json'))
    for (const { file, line, reason } of list) {
      expect(
        sources
          .get(file)
          ?.split('\n')
          .map((each) => each.trim()),
        file,
      ).toContain(line)
      expect(reason).not.toBe('')
    }
    expect(new Set(list.map(({ file, line, change }) => JSON.stringify([file, line, change]))).size).toBe(list.length)
  })

  it('hold for the line and the change that they name', () => {
    const [mutant] = draw(sources, 1, 1) as [RandomMutant]
    const { file, lineText: line, change } = mutant
    expect(reasonFor([{ file, line, change, reason: 'why' }], mutant)).toBe('why')
    expect(reasonFor([{ file, line, change: 'other', reason: 'why' }], mutant)).toBeUndefined()
  })
})
