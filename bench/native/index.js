/**
 * Builds the native peers from their registries into `node_modules/.cache`, once per version of their sources; says why when that cannot be.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const cache = path.join(here, '..', '..', 'node_modules', '.cache', 'mqwire-bench')

const toolchains = {
  go: {
    tool: 'go',
    parameters: ['build', '-mod=mod', '-o', 'bench', '.'],
    program: 'bench',
    environment: { GOFLAGS: '', GOTOOLCHAIN: 'local' },
  },
  rust: {
    tool: 'cargo',
    parameters: ['build', '--release', '--quiet'],
    program: path.join('target', 'release', 'mqwire-bench'),
  },
}

function fingerprint(folder) {
  const hash = createHash('sha256')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  for (const file of files
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    .sort())
    hash.update(readFileSync(file))
  return hash.digest('hex').slice(0, 16)
}

/**
 * The path of a built program, or why there is none.
 * @param {'go' | 'rust'} language
 * @param {(name: string) => string | undefined} find
 * @returns {{ program: string } | { reason: string }}
 */
export function build(language, find) {
  const { tool, parameters, program, environment } = toolchains[language]
  const command = find(tool)
  if (command === undefined) return { reason: `${tool} not found` }
  const sources = path.join(here, language)
  const folder = path.join(cache, `${language}-${fingerprint(sources)}`)
  const built = path.join(folder, program)
  if (existsSync(built)) return { program: built }
  mkdirSync(folder, { recursive: true })
  cpSync(sources, folder, { recursive: true })
  const run = spawnSync(command, parameters, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 400_000,
    env: { ...process.env, ...environment },
  })
  if (run.status !== 0 || !existsSync(built))
    return { reason: `it could not be built: ${(run.stderr ?? '').trim().split('\n').at(-1)}` }
  return { program: built }
}
