/** Which tests can notice which mutant, by the regions of the sources that each test reached. What was measured is kept until the text changes. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { hashOf, type Mutant, type Sources } from './draw.js'
import { importsOf, type Places, placesOf } from './sites.js'
import type { Answer, Ran, Task } from './worker.js'
import type { Hand } from './worker-process.js'

const slash = (name: string): string => name.split(path.sep).join('/')
/** Milliseconds of processor time for a few test files. */
const patience = 600_000
const filesATime = 6
/** Milliseconds that the tests of one mutant may take: of the quickest and nearest so many are chosen. */
const mostJudging = 60_000

interface Test {
  readonly id: string
  readonly milliseconds: number
}

/** What one test file reaches. */
interface Kept {
  readonly hash: string
  /** Those that pass. */
  readonly tests: readonly Test[]
  /** By source file and region: the tests that reach it, as pairs of the first and the one behind the last. */
  readonly regions: Readonly<Record<string, Readonly<Record<number, readonly number[]>>>>
  /** Reached outside tests. */
  readonly before: Readonly<Record<string, readonly number[]>>
  /** Titles of tests that fail as they are. */
  readonly failing: readonly string[]
}

interface TestFile extends Kept {
  readonly file: string
  /** Source files that it loads, with the number of imports in between. */
  readonly distances: ReadonlyMap<string, number>
  /** It replaces modules, which takes no effect where another file has loaded them. */
  readonly isAlone: boolean
}

/** Tests of one file that are to judge a mutant. */
export interface Judge {
  readonly file: string
  readonly ids: readonly string[]
  readonly milliseconds: number
  /** It must not share its modules with other files. */
  readonly isAlone: boolean
}

/** Those of the gate that stand on `src` itself, and those of `mqwire/compat`. */
function testFiles(root: string): string[] {
  const program = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const given = ['list', '--filesOnly', '--json', '--config', 'test/vitest.config.ts']
  const listed = JSON.parse(
    execFileSync(process.execPath, [program, ...given], { cwd: root, encoding: 'utf8' }),
  ) as {
    file: string
    projectName: string
  }[]
  const stands = (file: string, project: string): boolean =>
    project === 'pure' || /^test\/unit\/(compat|store|transport)\//.test(file)
  const standing = listed
    .map(({ file, projectName }) => [slash(path.relative(root, file)), projectName] as const)
    .filter((each) => stands(...each))
  return [...new Set(standing.map(([file]) => file))].sort()
}

/** Follows imports from a test file: sources by distance, and a hash of everything. */
class Imports {
  readonly #root: string
  readonly #known = new Map<
    string,
    { readonly text: string; readonly imports: readonly string[] }
  >()

  constructor(root: string) {
    this.#root = root
  }

  from(file: string): Pick<TestFile, 'distances' | 'hash' | 'isAlone'> {
    const distances = new Map([[file, 0]])
    const texts: string[] = []
    // A map is walked in the order in which it grows: nearest first.
    for (const [name, distance] of distances) {
      const { text, imports } = this.#read(name)
      texts.push(name, text)
      for (const each of imports) if (!distances.has(each)) distances.set(each, distance + 1)
    }
    return {
      distances: new Map([...distances].filter(([name]) => name.startsWith('src/'))),
      hash: hashOf(...texts),
      isAlone: /\bvi\.(mock|doMock|resetModules)\(/.test(this.#read(file).text),
    }
  }

  #read(name: string): { readonly text: string; readonly imports: readonly string[] } {
    let known = this.#known.get(name)
    if (known === undefined) {
      const text = readFileSync(path.join(this.#root, name), 'utf8')
      const near = name.endsWith('.ts')
        ? importsOf(name, text).map((each) => (each === 'mqwire' ? '/src/client/node.js' : each))
        : []
      const paths = near.map((each) =>
        path.posix.join(
          each.startsWith('/') ? '.' : path.posix.dirname(name),
          each.replace(/\.js$/, '.ts'),
        ),
      )
      known = { text, imports: paths.filter((each) => existsSync(path.join(this.#root, each))) }
      this.#known.set(name, known)
    }
    return known
  }
}

/** The regions of all sources, numbered through. */
class Regions {
  readonly #places: ReadonlyMap<string, Places>
  /** By number: the file, and the number within it. */
  readonly #all: (readonly [file: string, region: number])[] = []
  readonly marked: Readonly<Record<string, string>>

  constructor(sources: Sources) {
    this.#places = new Map([...sources].map(([file, text]) => [file, placesOf(file, text)]))
    const marked: Record<string, string> = {}
    for (const [file, places] of this.#places) {
      marked[file] = places.marked(this.#all.length)
      for (const region of places.regions.keys()) this.#all.push([file, region])
    }
    this.marked = marked
  }

  /** The innermost region around a place, and all that begin behind it until `end`. */
  of({ file, start, end }: Mutant): number[] {
    const regions = this.#places.get(file)?.regions ?? []
    const innermost = regions.findLastIndex((region) => region.start <= start && start < region.end)
    const inside = [...regions.keys()].filter(
      (number) => (regions[number]?.start ?? 0) > start && (regions[number]?.start ?? 0) < end,
    )
    return [innermost, ...inside]
  }

  kept(hash: string, ran: readonly Ran[], errors: readonly string[]): Kept {
    const tests = ran.filter(({ passed }) => passed)
    const regions: Record<string, Record<number, number[]>> = {}
    const before: Record<string, number[]> = {}
    tests.forEach(({ reached }, index) => {
      for (const number of reached) {
        const [file, region] = this.#all[number] as readonly [string, number]
        regions[file] ??= {}
        regions[file][region] ??= []
        const ranges = regions[file][region]
        if (ranges.at(-1) === index) ranges[ranges.length - 1] = index + 1
        else ranges.push(index, index + 1)
      }
    })
    for (const number of new Set(ran.flatMap((test) => test.before))) {
      const [file, region] = this.#all[number] as readonly [string, number]
      before[file] ??= []
      before[file].push(region)
    }
    const failing = [...errors, ...ran.filter(({ passed }) => !passed).map(({ title }) => title)]
    return {
      hash,
      tests: tests.map(({ id, milliseconds }) => ({ id, milliseconds: Math.round(milliseconds) })),
      regions,
      before,
      failing,
    }
  }
}

/** Every test file, and what it reaches. */
export class Reach {
  readonly #regions: Regions
  #files: readonly TestFile[] = []

  constructor(sources: Sources) {
    this.#regions = new Regions(sources)
  }

  /** Measures the test files that are new; `start` gives a worker that loads what it is given from a file. */
  async measure(
    root: string,
    cache: string,
    start: (marked: string) => Hand<Task, Answer>,
    jobs: number,
    say: (text: string) => void,
  ): Promise<void> {
    const store = path.join(cache, 'reached.json')
    const kept: Record<string, Kept> = existsSync(store)
      ? JSON.parse(readFileSync(store, 'utf8'))
      : {}
    const imports = new Imports(root)
    const files = testFiles(root)
      .map((file) => ({ file, ...imports.from(file) }))
      .filter(({ distances }) => distances.size > 0)
    const missing = files.filter(({ file, hash }) => kept[file]?.hash !== hash)
    const marked = path.join(cache, 'marked.json')
    mkdirSync(cache, { recursive: true })
    writeFileSync(marked, JSON.stringify(this.#regions.marked))
    const together = missing.filter(({ isAlone }) => !isAlone)
    const batches = [
      ...missing.filter(({ isAlone }) => isAlone).map((file) => [file]),
      ...Array.from({ length: Math.ceil(together.length / filesATime) }, (_, at) =>
        together.slice(at * filesATime, (at + 1) * filesATime),
      ),
    ]
    let done = 0
    const work = async (): Promise<void> => {
      const hand = start(marked)
      for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
        const answer = await hand.run({
          most: patience,
          files: batch.map(({ file }) => ({ file })),
        })
        const ran = 'broken' in answer ? [] : answer.files
        for (const { file, hash } of batch) {
          const { tests = [], errors = ['it did not run'] } =
            ran.find((each) => each.file === file) ?? {}
          // One that gave nothing runs again next time.
          kept[file] = this.#regions.kept(tests.length === 0 ? '' : hash, tests, errors)
        }
        done += batch.length
        say(`measured ${done} of ${missing.length} test files`)
        writeFileSync(store, JSON.stringify(kept))
      }
      await hand.close()
    }
    await Promise.all(Array.from({ length: Math.min(jobs, batches.length) }, work))
    this.#files = files.map((file) => ({ ...(kept[file.file] as Kept), ...file }))
    const wrong = this.#files.filter(({ failing }) => failing.length > 0)
    for (const { file, failing } of wrong)
      say(`judges not, as it fails without a mutant: ${file}: ${failing.join('; ').slice(0, 300)}`)
  }

  /** The tests that can notice a mutant: quick ones before slow ones and near ones before far ones. */
  judgesOf(mutant: Mutant, noticed: (file: string) => number): Judge[] {
    const regions = this.#regions.of(mutant)
    // A module is loaded for the first of a few test files alone.
    const isEarly =
      regions[0] === 0 ||
      this.#files.some(({ before }) =>
        regions.some((region) => before[mutant.file]?.includes(region)),
      )
    const judges = this.#files.flatMap((file) => {
      const { distances, tests } = file
      const distance = distances.get(mutant.file)
      if (distance === undefined) return []
      const reached = new Set(
        regions.flatMap((region) => testsIn(file.regions[mutant.file]?.[region] ?? [])),
      )
      const able = tests.filter((_, index) => isEarly || reached.has(index))
      const slow = able.filter(({ milliseconds }) => milliseconds > 100)
      const near = (distance * (reached.size > 0 ? 1 : 10)) / (1 + 3 * noticed(file.file))
      return [able.filter((test) => !slow.includes(test)), slow].flatMap((some, isSlow) => {
        const milliseconds = some.reduce((sum, test) => sum + test.milliseconds, 0)
        const cost = (milliseconds + 30) * near * (isSlow === 1 ? 10 : 1)
        return some.length === 0
          ? []
          : [
              {
                file: file.file,
                isAlone: file.isAlone,
                ids: some.map(({ id }) => id),
                milliseconds,
                cost,
              },
            ]
      })
    })
    let spent = 0
    return judges
      .sort((one, other) => one.cost - other.cost)
      .filter(({ milliseconds }) => {
        const isChosen = spent === 0 || spent + milliseconds <= mostJudging
        if (isChosen) spent += milliseconds
        return isChosen
      })
  }
}

function testsIn(ranges: readonly number[]): number[] {
  const found: number[] = []
  for (let at = 0; at < ranges.length; at += 2)
    for (let test = ranges[at] ?? 0; test < (ranges[at + 1] ?? 0); test++) found.push(test)
  return found
}
