/**
 * Runs the installed package in every supported Node, in Deno and Bun, and through bundlers and checkers that are too large to be dependencies: the
 * suites of `test/package/runtimes`.
 *
 *     npm run runtimes
 *
 * What they need is fetched from the npm registry, in the versions that stand here and in `.ci/tools`, when it is not there yet: about 350 MB. Writes
 * below node_modules/.cache only. What cannot be had is named with the reason; in CI (env CI) that is a failure.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const toolsFolder = path.join(root, '.ci', 'tools')
const cache = path.join(root, 'node_modules', '.cache', 'mqwire', 'runtimes')
const { platform, arch } = process

// The registry has each program as a package for each platform. The first Node is the oldest that package.json allows, the others are the newest.
const nodePackage = `node-${platform === 'win32' ? 'win' : platform}-${arch}`
const denoPackage = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`
const bunPackage = `@oven/bun-${platform === 'win32' ? 'windows' : platform}-${arch === 'arm64' ? 'aarch64' : arch}`
const suffix = platform === 'win32' ? '.exe' : ''
const node = (version) => ({ name: `Node ${version}`, kind: 'node', version, from: nodePackage, file: `bin/node${suffix}` })
const wanted = [
  node('20.19.0'),
  node('22.23.3'),
  node('24.21.0'),
  node('26.10.0'),
  { name: 'Deno 2.9.6', kind: 'deno', version: '2.9.6', from: denoPackage, file: `deno${suffix}` },
  { name: 'Bun 1.4.5', kind: 'bun', version: '1.4.5', from: bunPackage, file: `bin/bun${suffix}` },
]

/** Runs npm in a folder. Rejects with the end of what it said. */
function npm(args, cwd) {
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  return new Promise((resolve, reject) => {
    const child = spawn('npm', [...args, ...options], { cwd, timeout: 180_000, shell: platform === 'win32' })
    let said = ''
    const hear = (text) => {
      said += text
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(said.trim().split('\n').slice(0, 4).join(' ') || 'npm took too long'))))
  })
}

/** The same, once more when it fails: networks do. */
const fetched = (args, cwd) => npm(args, cwd).catch(() => npm(args, cwd))

/** Makes a folder by `fill`, unless it is there: a half-filled one is never seen. */
async function made(folder, fill) {
  if (existsSync(folder)) return folder
  const next = `${folder}.${process.pid}`
  mkdirSync(next, { recursive: true })
  try {
    await fill(next)
    renameSync(next, folder)
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
  return folder
}

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

async function tools() {
  const files = ['package.json', 'package-lock.json'].map((name) => path.join(toolsFolder, name))
  const print = createHash('sha256')
  for (const file of files) print.update(readFileSync(file))
  try {
    const folder = await made(path.join(cache, `tools-${print.digest('hex').slice(0, 16)}`), async (next) => {
      for (const file of files) cpSync(file, path.join(next, path.basename(file)))
      await fetched(['ci', '--include=dev'], next)
    })
    return { folder }
  } catch (error) {
    return { reason: error.message }
  }
}

/** Fetches everything, two at a time: the network and the processor are both busy then. */
async function fetchAll() {
  const all = { tools: {}, runtimes: [] }
  const fetchTools = async () => {
    all.tools = await tools()
  }
  const fetchRuntime = (each, index) => async () => {
    all.runtimes[index] = await runtime(each)
  }
  const jobs = [fetchTools, ...wanted.map(fetchRuntime)]
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
const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
const env = { ...process.env, MQWIRE_RUNTIMES: report }
const run = spawnSync(process.execPath, [vitest, 'run', '--config', 'test/package/runtimes/vitest.config.ts'], { cwd: root, env, stdio: 'inherit' })
process.exitCode = run.status ?? 1
