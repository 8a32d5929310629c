/**
 * The package as it was at a commit, built: for measurements beside what is now.
 *
 * It lies below node_modules/.cache, and is built once. Undefined where there is no git, or no such commit, as in a shallow clone.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-bench')

/** The `dist` folder of a commit. */
export async function baseOf(commit) {
  if (!/^[0-9a-f]{7,40}$/.test(commit)) throw new Error(`${commit} is no commit`)
  const folder = path.join(cache, `base-${commit}`)
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
    symlinkSync(path.join(root, 'node_modules'), path.join(fresh, 'node_modules'))
    const { status: built, stderr } = run(process.execPath, ['.ci/build.mjs'], {
      cwd: fresh,
      encoding: 'utf8',
    })
    if (built !== 0) throw new Error(`${commit} was not built: ${stderr}`)
    renameSync(fresh, folder)
    return dist
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
