/**
 * A process that runs tests with one random mutant on, one task after the other, or with none, and tells what each test did.
 *
 * All mutants are in the sources at once, each behind a switch, so that a source is transformed once. Test files share their modules within a task, and
 * begin with fresh ones in the next. What the tests load is replaced on its way: sources on disk are never written to.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { TestCase, TestModule, TestSpecification } from 'vitest/node'
import { createVitest } from 'vitest/node'

/** Test files in the order in which they are to run, with the ids of the tests of each, or all of them. */
export interface Task {
  /** -1: none, and every test runs. Otherwise the first failing test ends it. */
  readonly mutant: number
  readonly files: readonly { readonly file: string; readonly ids?: readonly string[] }[]
}

export interface Ran {
  readonly id: string
  readonly title: string
  readonly passed: boolean
  readonly late: boolean
  readonly milliseconds: number
  readonly reached: readonly number[]
  readonly before: readonly number[]
}

/** What the tests did, by file; those that were left out have no entry. */
export interface Answer {
  readonly files: readonly { readonly file: string; readonly tests: readonly Ran[]; readonly errors: readonly string[] }[]
}

const root = process.cwd()
const [switchedFile = '', given = ''] = process.argv.slice(2)
const sources = new Map(Object.entries(JSON.parse(readFileSync(switchedFile, 'utf8')) as Record<string, string>))
const slash = (name: string): string => name.split(path.sep).join('/')

let modules: TestModule[] = []
let crashes: string[] = []
let order: readonly string[] = []

class Sequencer {
  shard(files: TestSpecification[]): TestSpecification[] {
    return files
  }
  sort(files: TestSpecification[]): TestSpecification[] {
    return files.toSorted((one, other) => order.indexOf(one.moduleId) - order.indexOf(other.moduleId))
  }
}

const vitest = await createVitest(
  'test',
  {
    config: path.join(root, 'test', 'mutants', 'vitest.config.ts'),
    root,
    watch: false,
    bail: given === 'measure' ? 0 : 1,
    cache: false,
    isolate: false,
    pool: 'threads',
    fileParallelism: false,
    maxWorkers: 1,
    testTimeout: 10_000,
    sequence: { sequencer: Sequencer as never },
    reporters: [
      {
        onTestModuleEnd: (module: TestModule) => {
          modules.push(module)
        },
        onTestRunEnd: (_modules: readonly TestModule[], errors: readonly { message: string }[]) => {
          crashes = errors.map(({ message }) => message)
        },
      },
    ],
  },
  {
    plugins: [{ name: 'random-mutants', enforce: 'pre', load: (id: string) => sources.get(slash(path.relative(root, id))) }],
    logLevel: 'error',
  },
)
vitest.config.setupFiles.unshift(path.join(root, 'test', 'mutants', 'random', 'switch.ts'))
await vitest.standalone()

function told(test: TestCase): Ran[] {
  const { state, errors = [] } = test.result()
  if (state !== 'passed' && state !== 'failed') return []
  const { reached = [], reachedBefore: before = [] } = test.meta()
  const late = errors.some(({ message }) => message.startsWith('Test timed out') || message === 'the mutant loops')
  return [{ id: test.id, title: test.fullName, passed: state === 'passed', late, milliseconds: test.diagnostic()?.duration ?? 0, reached, before }]
}

async function run({ mutant, files }: Task): Promise<Answer> {
  const project = vitest.getRootProject()
  project.provide('mutantOn', mutant)
  modules = []
  crashes = []
  order = files.map(({ file }) => path.join(root, file))
  const specifications = files.map(({ file, ids }) =>
    project.createSpecification(path.join(root, file), ids === undefined ? undefined : { testIds: [...ids] }),
  )
  await vitest.runTestSpecifications(specifications)
  const ran = modules.map((module) => ({
    file: slash(path.relative(root, module.moduleId)),
    tests: [...module.children.allTests()].flatMap(told),
    errors: module.errors().map(({ message }) => message),
  }))
  return { files: crashes.length === 0 ? ran : [...ran, { file: '', tests: [], errors: crashes }] }
}

process.on('message', (task: Task) => {
  run(task).then(
    (answer) => process.send?.(answer),
    (error: unknown) => process.send?.({ files: [{ file: '', tests: [], errors: [String(error)] }] } satisfies Answer),
  )
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
