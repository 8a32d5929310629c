/**
 * Installs the packages of `versus/package.json` into `node_modules/.cache`, each by itself, so that one that cannot be had does not cost the others.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const cache = path.join(here, '..', '..', 'node_modules', '.cache', 'mqwire-bench', 'versus')

const { dependencies } = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'))

/** What can be compared with. */
export const names = Object.keys(dependencies)

/** Where a package is installed. */
export const folderOf = (name) => path.join(cache, `${name}-${dependencies[name]}`)

/** Installs a package when it is not there; gives the reason when it cannot be had. */
export function install(name) {
  const folder = folderOf(name)
  if (existsSync(path.join(folder, 'node_modules', name, 'package.json'))) return undefined
  mkdirSync(folder, { recursive: true })
  const manifest = { private: true, dependencies: { [name]: dependencies[name] } }
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest))
  const options = [
    'install',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--no-package-lock',
    '--loglevel=error',
  ]
  const run = spawnSync('npm', options, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 120_000,
    shell: process.platform === 'win32',
  })
  return run.status === 0 ? undefined : `${name} could not be installed`
}

/** The installed package. */
export function load(name) {
  return createRequire(path.join(folderOf(name), 'package.json'))(name)
}
