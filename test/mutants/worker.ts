/**
 * A process that runs test files with a mutant planted, one task after the other, and tells what came of each.
 *
 * It keeps one vitest with the usual configuration: only the mutated file is transformed anew, every test file runs in a thread of its own with fresh
 * modules. Sources on disk are never written to; what the tests load is replaced on its way.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Plugin } from 'vite'
import type { TestModule, TestRunEndReason } from 'vitest/node'
import { createVitest } from 'vitest/node'
import { type Mutant, planted } from './list.js'

/** What is to be run: a mutant with its test files, or these files without any. */
export interface Task {
  readonly mutant: Mutant | undefined
  readonly tests: readonly string[]
}

/** What came of a task. */
export interface Outcome {
  /**
   * `caught` a test failed that had loaded the mutant; `survived` all passed, with it loaded; `passed` all passed, of a task without one; `broken` anything
   * else: a test file that cannot be loaded or has no tests, a mutant that no test loads, an error outside tests.
   */
  readonly verdict: 'caught' | 'survived' | 'passed' | 'broken'
  /** Test file and title that caught it. */
  readonly by?: { readonly file: string; readonly title: string; readonly late: boolean }
  /** Why it is broken. */
  readonly detail?: string
  readonly milliseconds: number
}

const root = process.cwd()
let current: Mutant | undefined
let modules: TestModule[] = []
let crashes: string[] = []

const planting: Plugin = {
  name: 'planted-mutant',
  enforce: 'pre',
  load(id) {
    if (current === undefined || id !== path.join(root, current.file)) return undefined
    const mark = `;(globalThis.plantedMutants ??= new Set()).add(${JSON.stringify(current.id)})`
    return `${planted(current, readFileSync(id, 'utf8'))}\n${mark}\n`
  },
}

const vitest = await createVitest(
  'test',
  {
    config: path.join(root, 'test', 'mutants', 'vitest.config.ts'),
    root,
    watch: false,
    bail: 1,
    cache: false,
    fileParallelism: false,
    maxWorkers: 1,
    reporters: [
      {
        onTestModuleEnd: (module: TestModule) => {
          modules.push(module)
        },
        onTestRunEnd: (_modules: readonly TestModule[], errors: readonly { message: string }[], _reason: TestRunEndReason) => {
          crashes = errors.map(({ message }) => message)
        },
      },
    ],
  },
  { plugins: [planting], logLevel: 'error' },
)
vitest.config.setupFiles.push(path.join(root, 'test', 'mutants', 'marker.ts'))
await vitest.standalone()

/** One test file: who caught the mutant, or what is wrong; `loaded` when a test ran with it. */
async function runFile(name: string): Promise<{ by?: Outcome['by']; detail?: string; loaded: boolean }> {
  modules = []
  crashes = []
  const file = path.join(root, name)
  await vitest.runTestSpecifications([vitest.getRootProject().createSpecification(file)])
  const [module] = modules
  if (module === undefined) return { detail: `${name} did not run: ${crashes.join('; ')}`, loaded: false }
  const id = current?.id
  const has = (mutants: readonly string[] | undefined): boolean => id === undefined || mutants?.includes(id) === true
  const tests = [...module.children.allTests()]
  const loaded = tests.some((test) => has(test.meta().mutants))
  const failed = tests.find((test) => test.result().state === 'failed')
  if (failed !== undefined) {
    const errors = failed.result().errors ?? []
    if (!has(failed.meta().mutants)) return { detail: `${name} failed without it: ${failed.fullName}: ${errors[0]?.message}`, loaded }
    return { by: { file: name, title: failed.fullName, late: errors.some(({ message }) => message.startsWith('Test timed out')) }, loaded }
  }
  const wrong = [...module.errors().map(({ message }) => message), ...crashes]
  if (wrong.length > 0) return { detail: `${name}: ${wrong.join('; ')}`, loaded }
  if (tests.length === 0) return { detail: `${name} has no tests`, loaded }
  return { loaded }
}

async function run({ mutant, tests }: Task): Promise<Outcome> {
  const started = performance.now()
  const done = (outcome: Omit<Outcome, 'milliseconds'>): Outcome => ({ ...outcome, milliseconds: Math.round(performance.now() - started) })
  current = mutant
  if (mutant?.title === undefined) vitest.resetGlobalTestNamePattern()
  else vitest.setGlobalTestNamePattern(new RegExp(`^${mutant.title.replaceAll(' > ', ' ').replace(/[^\w ]/g, '.')}$`))
  if (mutant !== undefined) vitest.invalidateFile(path.join(root, mutant.file))
  try {
    let loaded = false
    for (const name of tests) {
      const result = await runFile(name)
      loaded ||= result.loaded
      if (result.detail !== undefined) return done({ verdict: 'broken', detail: result.detail })
      if (result.by === undefined) continue
      if (mutant === undefined) return done({ verdict: 'broken', detail: `${result.by.file} fails without a mutant: ${result.by.title}` })
      return done({ verdict: 'caught', by: result.by })
    }
    if (!loaded) return done({ verdict: 'broken', detail: 'no test loads it' })
    return done({ verdict: mutant === undefined ? 'passed' : 'survived' })
  } finally {
    current = undefined
    if (mutant !== undefined) vitest.invalidateFile(path.join(root, mutant.file))
  }
}

process.on('message', (task: Task) => {
  run(task).then(
    (outcome) => process.send?.(outcome),
    (error: unknown) => process.send?.({ verdict: 'broken', detail: String(error), milliseconds: 0 } satisfies Outcome),
  )
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
