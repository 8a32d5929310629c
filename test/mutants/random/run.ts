/**
 * Plants mutants drawn from a seed and says of each who noticed it: a test, the virtual world, or nobody.
 *
 * A test judges a mutant only if it passes without, and reaches the place. What a mutant was noticed by is kept below node_modules/.cache: as long as
 * the sources and that test file stay the same it is not run again.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Hand } from '../hand.js'
import { draw, mutated, named, type RandomMutant, readSources, type Sources, switched } from './draw.js'
import { readExplained, reasonFor } from './explained.js'
import { cacheFor, judgesOf, measure, type TestFile, testFiles } from './reach.js'
import type { Answer, Task } from './worker.js'
import { askWorld, bundleWorld } from './world.js'

/** What to run. */
export interface Options {
  readonly root: string
  /** The worker program. */
  readonly worker: string
  readonly scratch: string
  readonly count: number
  readonly seed: number
  /** A file that names changes to plant instead, as `explained.json` does. */
  readonly named: string | undefined
  /** Test files that judge instead of all. */
  readonly tests: readonly string[]
  /** Only these, by number; empty for all. */
  readonly only: readonly number[]
  /** The part of so many that is to run. */
  readonly part: { readonly index: number; readonly of: number }
  /** Draws and prints, and runs nothing. */
  readonly list: boolean
  /** Forgets what is known of earlier runs. */
  readonly fresh: boolean
  /** Asks the virtual world about those that survive the tests. */
  readonly world: boolean
  /** Hears how many mutants are judged. */
  readonly tell?: (done: number, total: number) => void
}

/** Milliseconds for starting a round of tests, and a test that is late. */
const patience = 20_000

interface Verdict {
  /** Who noticed it; undefined when nobody did. */
  readonly by?: string
  /** The test file, and its hash. */
  readonly file?: string
  readonly hash?: string
  readonly seconds: number
  /** How many tests ran with it at most. */
  readonly tests: number
}

/** Where a mutant is, and what it changes. */
function place({ number, file, line, kind, change }: RandomMutant): string {
  return `${number} ${file}:${line} | ${kind} | ${change}`
}

class Court {
  readonly #files: readonly TestFile[]
  readonly #hand: Hand<Task, Answer>
  /** Test files by how often they noticed a mutant of a source file. */
  readonly #noticed = new Map<string, number>()

  constructor(files: readonly TestFile[], hand: Hand<Task, Answer>) {
    this.#files = files
    this.#hand = hand
  }

  /** Learns from what is known already. */
  learn(mutant: RandomMutant, file: string): void {
    const key = `${mutant.file} ${file}`
    this.#noticed.set(key, (this.#noticed.get(key) ?? 0) + 1)
  }

  async judge(mutant: RandomMutant): Promise<Verdict> {
    const started = performance.now()
    const known = (file: string): number => this.#noticed.get(`${mutant.file} ${file}`) ?? 0
    const judges = judgesOf(this.#files, mutant).map((judge, index) => ({ ...judge, rank: index / (1 + 3 * known(judge.file)) }))
    judges.sort((one, other) => one.rank - other.rank)
    const tests = judges.reduce((sum, { ids }) => sum + ids.length, 0)
    const done = (by?: string, file?: string): Verdict => {
      const seconds = Math.round((performance.now() - started) / 100) / 10
      if (by === undefined || file === undefined) return by === undefined ? { seconds, tests } : { by, seconds, tests }
      this.learn(mutant, file)
      return { by, file, hash: judges.find((judge) => judge.file === file)?.hash ?? '', seconds, tests }
    }
    for (const round of rounds(judges)) {
      const expected = round.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
      const answer = await this.#hand.run({ mutant: mutant.number, files: round }, patience + 1000 * round.length + 3 * expected)
      if ('broken' in answer) return done(answer.broken === 'silent' ? 'time limit' : `crash: ${answer.detail.slice(0, 80)}`, round[0]?.file)
      const [failed] = answer.files.flatMap(({ file, tests }) => tests.filter(({ passed }) => !passed).map((test) => ({ file, ...test })))
      if (failed !== undefined) return done(`${failed.file} › ${failed.title}${failed.late ? ' (time limit)' : ''}`, failed.file)
      const [wrong] = answer.files.filter(({ errors }) => errors.length > 0)
      if (wrong !== undefined) return done(`${wrong.file} cannot be loaded: ${wrong.errors[0]}`, wrong.file || round[0]?.file)
    }
    return done()
  }
}

/** The first alone, then more and more at a time, as most mutants die soon; no file is in one round twice. */
function rounds<T extends { readonly file: string }>(judges: readonly T[]): T[][] {
  const made: T[][] = []
  let round: T[] = []
  for (const judge of judges) {
    if (round.length >= 4 ** made.length || round.some(({ file }) => file === judge.file)) {
      made.push(round)
      round = []
    }
    round.push(judge)
  }
  return round.length > 0 ? [...made, round] : made
}

function sourcesWith(sources: Sources, mutants: readonly RandomMutant[]): Map<string, string> {
  const files = new Set(mutants.map(({ file }) => file))
  return new Map(
    [...files].map((file) => [
      file,
      switched(
        sources.get(file) ?? '',
        mutants.filter((mutant) => mutant.file === file),
      ),
    ]),
  )
}

/** Asks the world about those that no test noticed. */
async function askAboutAll(options: Options, sources: Sources, survivors: readonly RandomMutant[]): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  if (!options.world || survivors.length === 0) return found
  const ask = async (planted: Sources): Promise<string | undefined> => {
    const file = path.join(options.scratch, 'world.mjs')
    await bundleWorld(options.root, file, planted)
    return askWorld(file)
  }
  const without = await ask(new Map())
  if (without !== undefined) throw new Error(`the world finds something without a mutant: ${without}`)
  for (const mutant of survivors) {
    const by = await ask(new Map([[mutant.file, mutated(sources.get(mutant.file) ?? '', mutant)]]))
    if (by !== undefined) found.set(mutant.number, by)
    console.log(`${place(mutant)} | ${by === undefined ? 'the world finds nothing' : `world: ${by.replace(/\s+/g, ' ').slice(0, 120)}`}`)
  }
  return found
}

/** True when every mutant was noticed or is explained. */
export async function main(options: Options): Promise<boolean> {
  const { root, count, seed, only, part, tests } = options
  const sources = readSources(root)
  const all = options.named === undefined ? draw(sources, count, seed) : named(sources, readExplained(options.named))
  const chosen = all.filter(({ number }) => number % part.of === part.index && (only.length === 0 || only.includes(number)))
  if (options.list) for (const mutant of chosen) console.log(place(mutant))
  if (options.list) return true
  const planted = sourcesWith(sources, all)
  const switchedFile = path.join(options.scratch, 'switched.json')
  writeFileSync(switchedFile, JSON.stringify(Object.fromEntries(planted)))
  const cache = cacheFor(root, sources, all)
  const files = await measure(
    root,
    cache,
    tests.length > 0 ? tests : testFiles(root),
    () => new Hand(options.worker, root, [switchedFile, 'measure']),
  )
  for (const { file, failing } of files)
    if (failing.length > 0) console.log(`judges not, as it fails without a mutant | ${file} | ${failing.join('; ')}`)
  const verdicts = await judgeAll(options, cache, files, chosen, () => new Hand(options.worker, root, [switchedFile]))
  const survivors = chosen.filter(({ number }) => verdicts.get(number)?.by === undefined)
  const found = await askAboutAll(options, sources, survivors)
  return report(
    options,
    chosen,
    survivors.filter(({ number }) => !found.has(number)),
    verdicts,
  )
}

async function judgeAll(
  options: Options,
  cache: string,
  files: readonly TestFile[],
  chosen: readonly RandomMutant[],
  start: () => Hand<Task, Answer>,
): Promise<Map<number, Verdict>> {
  const store = path.join(cache, `verdicts-${options.part.of}-${options.part.index}.json`)
  const kept = new Map<number, Verdict>(!options.fresh && existsSync(store) ? (JSON.parse(readFileSync(store, 'utf8')) as [number, Verdict][]) : [])
  const hand = start()
  const court = new Court(files, hand)
  const verdicts = new Map<number, Verdict>()
  const isKnown = ({ number }: RandomMutant): boolean => {
    const { file, hash } = kept.get(number) ?? {}
    return file !== undefined && files.some((each) => each.file === file && each.hash === hash)
  }
  for (const mutant of chosen) {
    const known = isKnown(mutant) ? kept.get(mutant.number) : undefined
    const verdict = known ?? (await court.judge(mutant))
    if (known?.file !== undefined) court.learn(mutant, known.file)
    verdicts.set(mutant.number, verdict)
    options.tell?.(verdicts.size, chosen.length)
    kept.set(mutant.number, verdict)
    const by = verdict.by === undefined ? `SURVIVED ${verdict.tests} tests` : `killed by ${verdict.by}`
    console.log(`${place(mutant)} | ${by.replace(/\s+/g, ' ')} | ${verdict.seconds} s${known === undefined ? '' : ', known'}`)
    // What a few test files say is no verdict for later.
    if (options.tests.length > 0) continue
    mkdirSync(cache, { recursive: true })
    writeFileSync(store, JSON.stringify([...kept]))
  }
  await hand.close()
  return verdicts
}

function report(
  { root, named: given }: Options,
  chosen: readonly RandomMutant[],
  survivors: readonly RandomMutant[],
  verdicts: ReadonlyMap<number, Verdict>,
): boolean {
  const list = readExplained(given ?? path.join(root, 'test', 'mutants', 'random', 'explained.json'))
  let explained = 0
  console.log('\nsurvivor | kind | change | explanation')
  for (const mutant of survivors) {
    const reason = reasonFor(list, mutant)
    if (reason !== undefined) explained += 1
    console.log(`${place(mutant)} | ${reason ?? `NONE (${verdicts.get(mutant.number)?.tests ?? 0} tests reach it)`}`)
  }
  const open = survivors.length - explained
  console.log(`mutants: ${chosen.length} random, ${chosen.length - survivors.length} killed, ${open} survived, ${explained} explained`)
  return open === 0
}
