/**
 * Runs the installed package in the oldest and the newest supported Node, in Deno and Bun, and through bundlers and checkers that are too large to be
 * dependencies: the suites of `test/package/runtimes`.
 *
 *     npm run runtimes
 *     npm run runtimes -- --all   the versions of Node in between, Next and React Native as well: 750 MB and about a minute more
 *     npm run runtimes -- --fetch    fetches what is missing, and runs nothing
 *     npm run runtimes -- --update   writes what Deno and Bun print to test/transcript
 *
 * What they need is fetched from the npm registry, in the versions that stand here and in `.ci/tools`, when it is not there yet: about 1.1 GB on disk.
 * Writes below node_modules/.cache only. What cannot be had is named with the reason; in CI (env CI) that is a failure.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { argumentsOf } from '../examples/arguments.js'
import { cache, fetched, made, root, tools } from './fetch.mjs'

const { platform, arch } = process

// The registry has each program as a package for each platform. The first Node is the oldest that package.json allows, 22.12 the oldest 22 that can
// `require` an ES module, the others are the newest.
const nodePackage = `node-${platform === 'win32' ? 'win' : platform}-${arch}`
const denoPackage = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`
const bunPackage = `@oven/bun-${platform === 'win32' ? 'windows' : platform}-${arch === 'arm64' ? 'aarch64' : arch}`
const suffix = platform === 'win32' ? '.exe' : ''
const node = (version) => ({ name: `Node ${version}`, kind: 'node', version, from: nodePackage, file: `bin/node${suffix}` })
const frameworks = ['next', 'react-native']
const {
  all: withAll,
  fetch: fetchesOnly,
  update,
} = argumentsOf({
  usage: 'npm run runtimes -- [options]',
  about:
    'Runs the installed package in the oldest and the newest Node, in Deno and Bun, and through bundlers; fetches what is missing, about 1.1 GB on disk.',
  options: {
    all: { text: 'the versions of Node in between, Next and React Native as well: 750 MB and about a minute more' },
    fetch: { text: 'fetches what is missing, and runs nothing' },
    update: { text: 'writes what Deno and Bun print to test/transcript' },
  },
}).values

const between = ['22.12.0', '22.23.3', '24.21.0'].map(node)
const wanted = [
  node('20.19.0'),
  ...(withAll ? between : []),
  node('26.10.0'),
  { name: 'Deno 2.9.6', kind: 'deno', version: '2.9.6', from: denoPackage, file: `deno${suffix}` },
  { name: 'Bun 1.4.5', kind: 'bun', version: '1.4.5', from: bunPackage, file: `bin/bun${suffix}` },
]

async function runtime({ name, kind, version, from, file }) {
  try {
    const folder = await made(path.join(cache, `${kind}-${version}`), async (next) => {
      writeFileSync(path.join(next, 'package.json'), '{ "private": true }')
      await fetched(['install', '--no-package-lock', `${from}@${version}`], next)
      chmodSync(path.join(next, 'node_modules', from, file), 0o755)
    })
    return { name, kind, version, executable: path.join(folder, 'node_modules', from, file) }
  } catch (error) {
    return { name, kind, version, reason: error.message }
  }
}

/** Fetches everything, two at a time: the network and the processor are both busy then. */
async function fetchAll() {
  const all = { tools: {}, runtimes: [], ...(withAll && { frameworks: {} }) }
  const fetchTools = async () => {
    all.tools = await tools()
  }
  const fetchRuntime = (each, index) => async () => {
    all.runtimes[index] = await runtime(each)
  }
  const fetchFramework = (name) => async () => {
    all.frameworks[name] = await tools(name)
  }
  const jobs = [fetchTools, ...(withAll ? frameworks : []).map(fetchFramework), ...wanted.map(fetchRuntime)]
  const lane = async () => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) await job()
  }
  await Promise.all([lane(), lane()])
  return all
}

mkdirSync(cache, { recursive: true })
const start = performance.now()
const report = path.join(cache, 'fetched.json')
writeFileSync(report, JSON.stringify(await fetchAll()))
console.log(`fetched in ${((performance.now() - start) / 1000).toFixed(1)} s`)
if (fetchesOnly) process.exit()
const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
const env = {
  ...process.env,
  MQWIRE_RUNTIMES: report,
  ...(withAll && { MQWIRE_FRAMEWORKS: 'all' }),
  ...(update && { MQWIRE_TRANSCRIPT: 'update' }),
}
if (!withAll) console.log('without the versions of Node in between, Next and React Native: npm run runtimes -- --all')
const run = spawnSync(process.execPath, [vitest, 'run', '--config', 'test/package/runtimes/vitest.config.ts'], { cwd: root, env, stdio: 'inherit' })
process.exitCode = run.status ?? 1
