/**
 * Runs test files where it is loaded, page or worker, and tells what came of them as plain data.
 *
 * `files` maps the name of a file to what imports it, `leftOut` to titles of its tests that are not run: made by `bundle.ts`. An error or a
 * rejection that nobody caught fails the file during which it was seen.
 */
import { startTests } from '@vitest/runner'
import { files, leftOut } from 'test-files'

const sequence = { shuffle: false, concurrent: false, seed: 1, hooks: 'stack', setupFiles: 'list' }
const config = {
  root: '/',
  setupFiles: [],
  name: undefined,
  passWithNoTests: false,
  testNamePattern: undefined,
  allowOnly: false,
  sequence,
  chaiConfig: undefined,
  maxConcurrency: 1,
  // Two of them run side by side, where one of Node has a core.
  testTimeout: 60_000,
  hookTimeout: 20_000,
  retry: 0,
  includeTaskLocation: false,
  tags: [],
  tagsFilter: undefined,
  strictTags: false,
}

const strays = []
for (const type of ['error', 'unhandledrejection'])
  addEventListener(type, (event) => {
    if (!event.defaultPrevented)
      strays.push(
        `${type}: ${event.error?.stack ?? event.reason?.stack ?? event.message ?? event.reason}`,
      )
  })

function tests(task) {
  return task.type === 'test' ? [task] : task.tasks.flatMap(tests)
}

function suites(task) {
  return task.type === 'test' ? [] : [task, ...task.tasks.flatMap(suites)]
}

function said({ fullName, name, result }) {
  return (result?.errors ?? []).map(
    (error) => `${fullName ?? name}: ${error.message}\n${error.diff ?? ''}\n${error.stack ?? ''}`,
  )
}

/** Runs one file: `{ passed, skipped, failures, milliseconds }`. */
export async function runFile(name) {
  const since = performance.now()
  strays.length = 0
  const titles = leftOut[name] ?? []
  const onCollected = ([file]) => {
    for (const title of titles) {
      const found = tests(file).filter((test) => test.fullName.includes(title))
      if (found.length === 0) strays.push(`there is no test '${title}' to be left out`)
      for (const test of found) test.mode = 'skip'
    }
  }
  const [file] = await startTests([name], {
    config,
    onCollected,
    importFile: (path) => files[path](),
  })
  // What nobody catches is told of after the turn.
  await new Promise((resolve) => setTimeout(resolve))
  const all = tests(file)
  const failures = [...suites(file).flatMap(said), ...all.flatMap(said), ...strays]
  const passed = all.filter(({ result }) => result?.state === 'pass').length
  const skipped = all.filter(({ mode }) => mode === 'skip').length
  if (passed + skipped < all.length && failures.length === 0)
    failures.push(`${all.length - passed - skipped} of ${all.length} tests did not run`)
  return { passed, skipped, failures, milliseconds: performance.now() - since }
}
