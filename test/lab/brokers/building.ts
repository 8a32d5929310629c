/**
 * Builds the brokers that are programs in another language, from their sources in this folder into `node_modules/.cache/mqwire`: never into the tree.
 *
 * What is there already for the same sources is used as it is. Where the toolchain or what it would fetch is missing, the reason is given.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const patience = 280_000
const cache = fileURLToPath(new URL('../../../node_modules/.cache/mqwire/', import.meta.url))

/** A folder with what was built, or why there is none. */
export type Built =
  | { readonly folder: string; readonly missing?: undefined }
  | { readonly folder?: undefined; readonly missing: string }

/** The path of a program, looked for in PATH and in more folders. */
export function findProgram(name: string, more: readonly string[] = []): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...more]
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

function fingerprint(folder: string, toolchain: string): string {
  const hash = createHash('sha256').update(toolchain)
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  for (const path of entries.map((entry) => join(entry.parentPath, entry.name)).sort())
    hash.update(relative(folder, path)).update(readFileSync(path))
  return hash.digest('hex').slice(0, 16)
}

/** Runs a build in a folder; gives undefined, or the last thing that it said. */
function run(
  program: string,
  parameters: readonly string[],
  cwd: string,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(
      program,
      parameters,
      { cwd, timeout: patience, maxBuffer: 1 << 24 },
      (error, out, said) => {
        if (error === null) return resolve(undefined)
        const lines = `${out}\n${said}`.split('\n').filter((line) => line.trim() !== '')
        resolve(lines.find((line) => line.includes('ERROR')) ?? lines.at(-1) ?? error.message)
      },
    )
  })
}

/** A copy of a folder of sources, built by a program in it. */
async function build(
  sources: string,
  program: string,
  parameters: readonly string[],
): Promise<Built> {
  const from = fileURLToPath(new URL(sources, import.meta.url))
  const folder = join(
    cache,
    `${basename(from)}-${fingerprint(from, `${program} ${parameters.join(' ')}`)}`,
  )
  if (existsSync(folder)) return { folder }
  mkdirSync(cache, { recursive: true })
  // Several may build at a time: the first to be done puts it in its place.
  const place = mkdtempSync(`${folder}-`)
  try {
    cpSync(from, place, { recursive: true })
    const objection = await run(program, parameters, place)
    if (objection !== undefined) return { missing: `it could not be built: ${objection.trim()}` }
    if (!existsSync(folder)) renameSync(place, folder)
    return { folder }
  } catch (error) {
    if (existsSync(folder)) return { folder }
    throw error
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Builds a Go program: `broker` in the folder. */
export async function buildGo(sources: string): Promise<Built> {
  const go = findProgram('go', ['/usr/local/go/bin'])
  return go === undefined
    ? { missing: 'go not found' }
    : build(sources, go, ['build', '-o', 'broker', '.'])
}

/** Builds a Maven project: `target/classes`, and what it depends on in `lib`, in the folder. */
export async function buildMaven(sources: string): Promise<Built> {
  const missing = ['java', 'mvn'].filter((name) => findProgram(name) === undefined)
  if (missing.length > 0) return { missing: `${missing.join(', ')} not found` }
  return build(sources, 'mvn', [
    '-B',
    '-q',
    'compile',
    'dependency:copy-dependencies',
    '-DoutputDirectory=lib',
  ])
}
