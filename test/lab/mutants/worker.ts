/** A process that runs tests with some sources replaced in memory. Test files share their modules within a task, and begin with fresh ones in the next. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { TestCase, TestModule, TestSpecification } from 'vitest/node'
import { createVitest } from 'vitest/node'
import { looped } from './worker-process.js'

/** Test files in the order in which they are to run, with the ids of the tests of each, or all of them. */
export interface Task {
  /** Milliseconds of processor time: a busy machine makes no test late. */
  readonly most: number
  /** The source that is replaced. Then the first failing test ends the task. */
  readonly source?: { readonly file: string; readonly text: string }
  readonly files: readonly { readonly file: string; readonly ids?: readonly string[] }[]
}

export interface Ran {
  readonly id: string
  readonly title: string
  readonly passed: boolean
  readonly late: boolean
  /** Of the processor: a busy machine makes no test slow. */
  readonly milliseconds: number
  readonly reached: readonly number[]
  readonly before: readonly number[]
}

/** What the tests did, by file; those that were left out have no entry. */
export interface Answer {
  /** Seconds of processor time. */
  readonly seconds: number
  readonly files: readonly {
    readonly file: string
    readonly tests: readonly Ran[]
    readonly errors: readonly string[]
  }[]
}

const root = process.cwd()
/** Every source with its regions marked, where reach is measured. */
const [, , marked] = process.argv
const sources = new Map<string, string>(
  marked === undefined ? [] : Object.entries(JSON.parse(readFileSync(marked, 'utf8'))),
)
const slash = (name: string): string => name.split(path.sep).join('/')

let modules: TestModule[] = []
let crashes: string[] = []
let order: readonly string[] = []

class Sequencer {
  shard(files: TestSpecification[]): TestSpecification[] {
    return files
  }
  sort(files: TestSpecification[]): TestSpecification[] {
    return files.toSorted(
      (one, other) => order.indexOf(one.moduleId) - order.indexOf(other.moduleId),
    )
  }
}

const vitest = await createVitest(
  'test',
  {
    config: path.join(root, 'test', 'lab', 'mutants', 'vitest.config.ts'),
    root,
    watch: false,
    bail: marked === undefined ? 1 : 0,
    cache: false,
    testTimeout: marked === undefined ? 20_000 : 120_000,
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
    plugins: [
      {
        name: 'mutants',
        enforce: 'pre',
        load: (id: string) => sources.get(slash(path.relative(root, id))),
      },
    ],
    logLevel: 'error',
  },
)
await vitest.standalone()

function told(test: TestCase): Ran[] {
  const { state, errors = [] } = test.result()
  if (state !== 'passed' && state !== 'failed') return []
  const { reached = [], reachedBefore: before = [], spent: milliseconds = 0 } = test.meta()
  const late = errors.some(({ message }) => message.startsWith('Test timed out'))
  return [
    {
      id: test.id,
      title: test.fullName,
      passed: state === 'passed',
      late,
      milliseconds,
      reached,
      before,
    },
  ]
}

/** Milliseconds of processor time. */
const used = (): number => (process.cpuUsage().user + process.cpuUsage().system) / 1000

/** Tests run in a thread of their own, so that one that loops does not stop this. */
function limit(most: number): NodeJS.Timeout {
  const end = used() + most
  return setInterval(() => {
    if (used() > end) process.exit(looped)
  }, 500)
}

async function run({ most, source, files }: Task): Promise<Answer> {
  const project = vitest.getRootProject()
  const timer = limit(most)
  const began = used()
  if (source !== undefined) sources.set(source.file, source.text)
  if (source !== undefined) vitest.invalidateFile(path.join(root, source.file))
  modules = []
  crashes = []
  order = files.map(({ file }) => path.join(root, file))
  try {
    await vitest.runTestSpecifications(
      files.map(({ file, ids }) =>
        project.createSpecification(
          path.join(root, file),
          ids === undefined ? undefined : { testIds: [...ids] },
        ),
      ),
    )
  } finally {
    clearInterval(timer)
    if (source !== undefined) sources.delete(source.file)
    if (source !== undefined) vitest.invalidateFile(path.join(root, source.file))
  }
  const ran = modules.map((module) => ({
    file: slash(path.relative(root, module.moduleId)),
    tests: [...module.children.allTests()].flatMap(told),
    errors: module.errors().map(({ message }) => message),
  }))
  const seconds = (used() - began) / 1000
  return {
    seconds,
    files: crashes.length === 0 ? ran : [...ran, { file: '', tests: [], errors: crashes }],
  }
}

process.on('message', (task: Task) => {
  run(task).then(
    (answer) => process.send?.(answer),
    (error: unknown) =>
      process.send?.({
        seconds: 0,
        files: [{ file: '', tests: [], errors: [String(error)] }],
      } satisfies Answer),
  )
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
