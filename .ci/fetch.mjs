/**
 * What is too large to be a dependency, fetched from the npm registry when it is first wanted and kept below node_modules/.cache: the packages of
 * `.ci/tools`, and programs.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
const toolsFolder = path.join(root, '.ci', 'tools')

/** Where everything that was fetched is kept. */
export const cache = path.join(root, 'node_modules', '.cache', 'mqwire', 'runtimes')

/** Runs npm in a folder. Rejects with the end of what it said. */
function npm(args, cwd) {
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  return new Promise((resolve, reject) => {
    const child = spawn('npm', [...args, ...options], {
      cwd,
      timeout: 180_000,
      shell: process.platform === 'win32',
    })
    let said = ''
    const hear = (text) => {
      said += text
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0
        ? resolve()
        : reject(new Error(said.trim().split('\n').slice(0, 4).join(' ') || 'npm took too long')),
    )
  })
}

/** The same, once more when it fails: networks do. */
export const fetched = (args, cwd) => npm(args, cwd).catch(() => npm(args, cwd))

/** Makes a folder by `fill`, unless it is there: a half-filled one is never seen. */
export async function made(folder, fill) {
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

/** The folder of a list of packages below `.ci/tools` (default: itself), installed; or the reason why it cannot be had. */
export async function tools(name = '') {
  const files = ['package.json', 'package-lock.json'].map((file) =>
    path.join(toolsFolder, name, file),
  )
  const print = createHash('sha256')
  for (const file of files) print.update(readFileSync(file))
  try {
    const folder = await made(
      path.join(cache, `tools-${print.digest('hex').slice(0, 16)}`),
      async (next) => {
        for (const file of files) cpSync(file, path.join(next, path.basename(file)))
        await fetched(['ci', '--include=dev'], next)
      },
    )
    return { folder }
  } catch (error) {
    return { reason: error.message }
  }
}
