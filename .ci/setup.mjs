/**
 * Makes a clone ready: installs the dependencies when they are missing or not those of package-lock.json, and builds `dist/` when it is missing
 * or not that of the sources. Runs before `npm test`, `npm start` and their like; says nothing when there is nothing to do.
 *
 * Needs Node and npm only: it must not import a dependency before the install is known to be complete.
 *
 *     node .ci/setup.mjs             install and build, each if needed
 *     node .ci/setup.mjs --install   install if needed, nothing more
 *     node .ci/setup.mjs --build     install if needed, then build in any case
 *     node .ci/setup.mjs --then FILE install and build if needed, then run FILE with the arguments behind it
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

function fail(message) {
  console.error(message)
  process.exit(1)
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19))
    fail(`mqwire needs Node 20.19 or later; this is ${process.versions.node}`)
}

// Undefined when there is no such file, or none that can be read: npm then says what is wrong with it.
function packagesIn(file) {
  try {
    return JSON.parse(readFileSync(path.join(root, file), 'utf8')).packages
  } catch {
    return undefined
  }
}

// npm writes node_modules/.package-lock.json last, so that a broken install has none. Optional packages may be there or not, by platform.
function isInstalled() {
  const wanted = packagesIn('package-lock.json')
  const present = packagesIn('node_modules/.package-lock.json')
  if (wanted === undefined || present === undefined) return false
  const isThere = ([name, { integrity }]) =>
    name in present && present[name].integrity === integrity
  const needed = Object.entries(wanted).filter(
    ([name, entry]) => name !== '' && !entry.optional && !entry.devOptional,
  )
  return needed.every(isThere)
}

function install() {
  console.error('installing the dependencies (npm ci) …')
  const options = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  const [command, ...first] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm']
  const run = spawnSync(command, [...first, ...options], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32' && first.length === 0,
  })
  if (run.error) fail(`npm could not be started: ${run.error.message}`)
  if (run.status !== 0)
    fail(
      `${run.stdout}${run.stderr}\nnpm ci failed; is the network there? Run it by hand to see more.`,
    )
}

async function buildIfNeeded(always) {
  const { build, isBuilt } = await import('./build.mjs')
  if (!always && isBuilt()) return
  console.error('building dist …')
  try {
    await build()
  } catch (error) {
    fail(`build failed: ${error.message}`)
  }
}

// What stands behind `--then FILE` is for that program.
const then = process.argv.indexOf('--then')
const own = process.argv.slice(2, then < 0 ? undefined : then)

checkNode()
const { argumentsOf } = await import('../examples/arguments.js')
const { values } = argumentsOf(
  {
    usage: 'node .ci/setup.mjs [options] [--then FILE ...]',
    about:
      'Installs the dependencies and builds dist/, each if needed, then runs FILE with the arguments behind it.',
    options: {
      install: { text: 'installs if needed, nothing more' },
      build: { text: 'builds in any case' },
    },
  },
  own,
)
if (!isInstalled()) install()
if (!values.install) await buildIfNeeded(values.build)

// `--then FILE …` goes on with a program in this same process: no shell in between that a Ctrl-C would kill first.
if (then >= 0) {
  const [file, ...rest] = process.argv.slice(then + 1)
  process.argv = [process.argv[0], path.join(root, file), ...rest]
  await import(new URL(file, new URL('..', import.meta.url)).href)
}
