/**
 * Which tests can notice which mutant: runs each test file once without any mutant on, and keeps what each test reached.
 *
 * What was measured is kept below node_modules/.cache, by what the mutants, the sources and the test file with its helpers are: only what changed runs
 * again.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Hand } from '../hand.js'
import type { RandomMutant, Sources } from './draw.js'
import { importsOf } from './sites.js'
import type { Answer, Task } from './worker.js'

/** Folders whose tests need no broker, no browser and no build. */
const folders = ['auth', 'client', 'conformance', 'testing', 'transport', 'wasm', 'wire']
// Of the tests of these files each says the same of a mutant, and much later, than others do; or they count processes and memory.
const leftOut = [
  'test/client/exit.test.ts',
  'test/client/message-memory.test.ts',
  'test/client/replay-bytes.test.ts',
  'test/client/settle.test.ts',
  'test/wire/carry.test.ts',
  'test/wire/polluted.test.ts',
]
/** Milliseconds of a test that is too slow to judge hundreds of mutants. */
const tooSlow = 1000
const patience = 300_000
const filesATime = 12

/** One test: what it costs, and the mutants that it reaches. */
export interface Test {
  readonly id: string
  readonly title: string
  readonly milliseconds: number
  readonly reached: readonly number[]
}

/** A test file that passes without a mutant. */
export interface TestFile {
  readonly file: string
  /** Changes with the file and with what it imports of other tests. */
  readonly hash: string
  readonly tests: readonly Test[]
  /** Reached outside tests. */
  readonly before: readonly number[]
  /** Titles of tests that fail without a mutant. */
  readonly failing: readonly string[]
  /** Source files that it loads, with the number of imports in between. */
  readonly distances: ReadonlyMap<string, number>
}

export const hashOf = (...texts: readonly string[]): string => createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 20)

/** The test files that judge. */
export function testFiles(root: string): string[] {
  const all = folders.flatMap((folder) =>
    readdirSync(path.join(root, 'test', folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      path.posix.join('test', folder, name.split(path.sep).join('/')),
    ),
  )
  return all.filter((name) => name.endsWith('.test.ts') && !leftOut.includes(name)).sort()
}

/** Follows imports from a test file: sources by distance, and a hash of everything that is no source. */
class Imports {
  readonly #root: string
  readonly #known = new Map<string, { readonly text: string; readonly imports: readonly string[] }>()

  constructor(root: string) {
    this.#root = root
  }

  from(file: string): { distances: Map<string, number>; hash: string } {
    const distances = new Map([[file, 0]])
    const texts: string[] = []
    // A map is walked in the order in which it grows: nearest first.
    for (const [name, distance] of distances) {
      const { text, imports } = this.#read(name)
      if (!name.startsWith('src/')) texts.push(name, text)
      for (const each of imports) if (!distances.has(each)) distances.set(each, distance + 1)
    }
    return { distances: new Map([...distances].filter(([name]) => name.startsWith('src/'))), hash: hashOf(...texts) }
  }

  #read(name: string): { readonly text: string; readonly imports: readonly string[] } {
    let known = this.#known.get(name)
    if (known === undefined) {
      const text = readFileSync(path.join(this.#root, name), 'utf8')
      const near = name.endsWith('.ts') ? importsOf(name, text).filter((each) => each.startsWith('.')) : []
      const paths = near.map((each) => path.posix.join(path.posix.dirname(name), each.replace(/\.js$/, '.ts')))
      known = { text, imports: paths.filter((each) => existsSync(path.join(this.#root, each))) }
      this.#known.set(name, known)
    }
    return known
  }
}

type Kept = Pick<TestFile, 'hash' | 'tests' | 'before' | 'failing'>

function keptOf(hash: string, { tests, errors }: Answer['files'][number]): Kept {
  const before = new Set(tests.flatMap((test) => test.before))
  const good = tests.filter(({ passed, milliseconds }) => passed && milliseconds < tooSlow)
  return {
    hash,
    tests: good.map(({ id, title, milliseconds, reached }) => ({ id, title, milliseconds: Math.round(milliseconds), reached })),
    before: [...before],
    failing: [...errors, ...tests.filter(({ passed }) => !passed).map(({ title }) => title)],
  }
}

/** What each test file reaches; measures those that are new. */
export async function measure(root: string, cache: string, names: readonly string[], start: () => Hand<Task, Answer>): Promise<TestFile[]> {
  const store = path.join(cache, 'reached.json')
  const kept: Record<string, Kept> = existsSync(store) ? JSON.parse(readFileSync(store, 'utf8')) : {}
  const imports = new Imports(root)
  const files = names.map((file) => ({ file, ...imports.from(file) })).filter(({ distances }) => distances.size > 0)
  const missing = files.filter(({ file, hash }) => kept[file]?.hash !== hash)
  const hand = start()
  for (let at = 0; at < missing.length; at += filesATime) {
    const some = missing.slice(at, at + filesATime)
    console.log(`measure | ${at} of ${missing.length} test files | ${some[0]?.file}`)
    const answer = await hand.run({ mutant: -1, files: some.map(({ file }) => ({ file })) }, patience)
    if ('broken' in answer) throw new Error(`${some.map(({ file }) => file).join(', ')}: ${answer.detail}`)
    for (const { file, hash } of some) {
      const ran = answer.files.find((each) => each.file === file)
      kept[file] = keptOf(hash, ran ?? { file, tests: [], errors: ['it did not run'] })
    }
    mkdirSync(cache, { recursive: true })
    writeFileSync(store, JSON.stringify(kept))
  }
  await hand.close()
  return files.map(({ file, hash, distances }) => ({ ...(kept[file] as Kept), file, hash, distances }))
}

/** The tests of a file that a mutant's judges are taken from. */
export interface Judge {
  readonly file: string
  readonly hash: string
  readonly ids: readonly string[]
  readonly milliseconds: number
  readonly distance: number
}

/** The tests that reach a mutant, quick ones before slow ones, and near ones first. */
export function judgesOf(files: readonly TestFile[], mutant: { readonly number: number; readonly file: string }): Judge[] {
  // A module is loaded for the first test file alone that is measured.
  const isEarly = files.some(({ before }) => before.includes(mutant.number))
  const judges = files.flatMap(({ file, hash, tests, distances }) => {
    const distance = distances.get(mutant.file)
    if (distance === undefined) return []
    const able = isEarly ? tests : tests.filter(({ reached }) => reached.includes(mutant.number))
    const judge = (some: readonly Test[]): Judge[] => {
      const milliseconds = some.reduce((sum, test) => sum + test.milliseconds, 0)
      return some.length === 0 ? [] : [{ file, hash, ids: some.map(({ id }) => id), milliseconds, distance }]
    }
    return [...judge(able.filter(({ milliseconds }) => milliseconds <= 100)), ...judge(able.filter(({ milliseconds }) => milliseconds > 100))]
  })
  const cost = ({ milliseconds, distance, ids }: Judge): number => (milliseconds + 30) * distance * (milliseconds > 100 * ids.length ? 10 : 1)
  return judges.sort((one, other) => cost(one) - cost(other))
}

/** What the cache belongs to. */
export function cacheFor(root: string, sources: Sources, mutants: readonly RandomMutant[]): string {
  const key = hashOf(JSON.stringify(mutants), ...[...sources].flat())
  return path.join(root, 'node_modules', '.cache', 'mqwire-random-mutants', key)
}
