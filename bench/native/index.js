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

/** `make` builds in a copy of the folder, `run` starts what it made there; each begins with a program that has to be there. */
const toolchains = {
  c: {
    make: ['cc', '-O2', '-o', 'bench', 'main.c', '-lmosquitto'],
    run: ['./bench'],
    made: 'bench',
  },
  go: {
    make: ['go', 'build', '-mod=mod', '-o', 'bench', '.'],
    run: ['./bench'],
    made: 'bench',
    environment: { GOFLAGS: '', GOTOOLCHAIN: 'local' },
  },
  java: {
    make: ['mvn', '-B', '-q', 'compile', 'dependency:copy-dependencies', '-DoutputDirectory=lib'],
    run: ['java', '-cp', 'target/classes:lib/*', 'Bench'],
    made: 'target/classes/Bench.class',
  },
  rust: {
    make: ['cargo', 'build', '--release', '--quiet'],
    run: ['./target/release/mqwire-bench'],
    made: 'target/release/mqwire-bench',
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
 * How a built program is started, or why there is none.
 * @param {keyof typeof toolchains} language
 * @param {(name: string) => string | undefined} find
 * @returns {{ command: string[], folder: string } | { reason: string }}
 */
export function build(language, find) {
  const { make, run, made, environment } = toolchains[language]
  const missing = [make[0], run[0]].find((name) => !name.startsWith('.') && !find(name))
  if (missing !== undefined) return { reason: `${missing} not found` }
  const sources = path.join(here, language)
  const folder = path.join(cache, `${language}-${fingerprint(sources)}`)
  const built = path.join(folder, made)
  if (existsSync(built)) return { command: run, folder }
  mkdirSync(folder, { recursive: true })
  cpSync(sources, folder, { recursive: true })
  const making = spawnSync(find(make[0]), make.slice(1), {
    cwd: folder,
    encoding: 'utf8',
    timeout: 400_000,
    env: { ...process.env, ...environment },
  })
  if (making.status === 0 && existsSync(built)) return { command: run, folder }
  const lines = `${making.stdout ?? ''}${making.stderr ?? ''}`.trim().split('\n')
  const line = lines.find((each) => /error/i.test(each)) ?? lines.at(-1)
  return { reason: `it could not be built: ${line}` }
}
