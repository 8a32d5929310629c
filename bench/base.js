/**
 * The package as it was at a commit, built: for measurements beside what is now.
 *
 * It lies below node_modules/.cache, by the tree of its sources, and is built once. There is none without git, or where the commit is missing, as in a
 * shallow clone.
 */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = path.join(root, 'node_modules')
const cache = path.join(modules, '.cache', 'mqwire-bench')
const kept = ['dist', 'node_modules', 'package.json']

/** What git prints; undefined when it fails. */
function git(...parameters) {
  const { status, stdout } = spawnSync('git', parameters, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

/** The newest commit whose `src` is not that of the work tree; undefined when the clone holds none. */
export function commitBefore() {
  const changed = git('status', '--porcelain', '--', 'src')
  if (changed !== '') return changed && git('rev-parse', 'HEAD')
  const last = git('rev-list', '--first-parent', '-1', 'HEAD', '--', 'src')
  return last && git('rev-parse', '--verify', '--quiet', `${last}^`)
}

/** The `dist` folder of a commit, in a copy of it; undefined when there is no such commit. */
export async function baseOf(commit) {
  const sources = git('rev-parse', '--verify', '--quiet', `${commit}^{commit}:src`)
  if (sources === undefined) return undefined
  const folder = path.join(cache, `base-${sources}`)
  const dist = path.join(folder, 'dist')
  if (existsSync(dist)) return dist
  mkdirSync(cache, { recursive: true })
  const fresh = mkdtempSync(path.join(cache, 'fresh-'))
  const run = (command, parameters, options) =>
    spawnSync(command, parameters, { maxBuffer: 2 ** 28, ...options })
  try {
    const { status, stdout } = run('git', ['archive', '--format=tar', commit], { cwd: root })
    if (status !== 0 || run('tar', ['-x', '-C', fresh], { input: stdout }).status !== 0)
      return undefined
    // All but the cache, in which a build notes what it was made of.
    mkdirSync(path.join(fresh, 'node_modules'))
    for (const name of readdirSync(modules).filter((each) => each !== '.cache'))
      symlinkSync(path.join(modules, name), path.join(fresh, 'node_modules', name))
    const { status: built, stderr } = run(process.execPath, ['.ci/build.mjs'], {
      cwd: fresh,
      encoding: 'utf8',
    })
    if (built !== 0) throw new Error(`${commit} was not built: ${stderr}`)
    for (const name of readdirSync(fresh).filter((each) => !kept.includes(each)))
      rmSync(path.join(fresh, name), { recursive: true })
    rmSync(path.join(fresh, 'node_modules', '.cache'), { recursive: true, force: true })
    renameSync(fresh, folder)
    return dist
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** The folder of the present benches, to be run with the build of a commit: equal work for both. */
export async function benchesOf(commit) {
  const dist = await baseOf(commit)
  if (dist === undefined) return undefined
  const folder = path.join(dist, '..', 'bench')
  rmSync(folder, { recursive: true, force: true })
  cpSync(path.join(root, 'bench'), folder, { recursive: true })
  return folder
}
