/**
 * The installed package in the oldest and the newest Node, in Deno and Bun, and through bundlers and checkers that are too large to be dependencies
 * (`test/package/runtimes`). They are fetched from the npm registry into node_modules/.cache when they are not there: about 1.3 GB.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Fetched, Runtime } from '../package/runtimes/fetched.js'
import { type Lab, type Result, together } from './lab.js'

export const about =
  'the package in Node 20.19 and 26, Deno, Bun, bundlers, checkers, and programs over mqwire/compat; `all`: the versions of Node in between, Next and React Native (750 MB more)'
export const minutes = 2

/** What `.ci/fetch.mjs` offers. */
interface Fetching {
  readonly cache: string
  made(folder: string, fill: (next: string) => Promise<void>): Promise<string>
  fetched(args: readonly string[], cwd: string): Promise<void>
  tools(name?: string): Promise<Fetched['tools']>
}

interface Wanted {
  readonly kind: Runtime['kind']
  readonly version: string
  /** The package that has the program for this platform, and where in it. */
  readonly from: string
  readonly file: string
}

const { platform, arch } = process
const suffix = platform === 'win32' ? '.exe' : ''
const node = (version: string): Wanted => ({
  kind: 'node',
  version,
  from: `node-${platform === 'win32' ? 'win' : platform}-${arch}`,
  file: `bin/node${suffix}`,
})
const deno: Wanted = {
  kind: 'deno',
  version: '2.9.6',
  from: `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`,
  file: `deno${suffix}`,
}
const bunPackage = `@oven/bun-${platform === 'win32' ? 'windows' : platform}-${arch === 'arm64' ? 'aarch64' : arch}`
const bun: Wanted = { kind: 'bun', version: '1.4.5', from: bunPackage, file: `bin/bun${suffix}` }
const names: Readonly<Record<Runtime['kind'], string>> = { node: 'Node', deno: 'Deno', bun: 'Bun' }

// The first Node is the oldest that package.json allows, 22.12 the oldest 22 that can `require` an ES module, the others are the newest.
const wanted = [node('20.19.0'), node('26.10.0'), deno, bun]
const between = ['22.12.0', '22.23.3', '24.21.0'].map(node)
const frameworks = ['next', 'react-native']
/** Programs of others over MQTT.js, which run with and without the word `all`. */
const always = ['programs']

async function runtime(
  { made, fetched, cache }: Fetching,
  { kind, version, from, file }: Wanted,
): Promise<Runtime> {
  const name = `${names[kind]} ${version}`
  try {
    const folder = await made(path.join(cache, `${kind}-${version}`), async (next) => {
      writeFileSync(path.join(next, 'package.json'), '{ "private": true }')
      await fetched(['install', '--no-package-lock', `${from}@${version}`], next)
      chmodSync(path.join(next, 'node_modules', from, file), 0o755)
    })
    return { name, kind, version, executable: path.join(folder, 'node_modules', from, file) }
  } catch (error) {
    return { name, kind, version, reason: (error as Error).message }
  }
}

export async function run(lab: Lab): Promise<Result> {
  const fetching = (await import(
    pathToFileURL(path.join(lab.root, '.ci', 'fetch.mjs')).href
  )) as Fetching
  const all = lab.words.includes('all')
  const runtimes: Runtime[] = []
  for (const each of all ? [...wanted, ...between] : wanted)
    runtimes.push(await runtime(fetching, each))
  const tools = await fetching.tools()
  const given: [string, Fetched['tools']][] = []
  for (const name of all ? [...always, ...frameworks] : always)
    given.push([name, await fetching.tools(name)])
  mkdirSync(fetching.cache, { recursive: true })
  const file = path.join(fetching.cache, 'fetched.json')
  writeFileSync(
    file,
    JSON.stringify({ runtimes, tools, frameworks: Object.fromEntries(given) } satisfies Fetched),
  )
  const missing = [...runtimes, tools, ...given.map(([, each]) => each)].flatMap(
    ({ reason }) => reason ?? [],
  )
  const env = {
    MQWIRE_RUNTIMES: file,
    ...(all && { MQWIRE_FRAMEWORKS: 'all' }),
  }
  const here = await lab.vitest(
    ['types/compat-types', 'types/typed-types', 'package/runs', 'package/testing'].map(
      (name) => `test/${name}.test.ts`,
    ),
  )
  const there = await lab.vitest([], {
    env,
    args: ['--config', 'test/package/runtimes/vitest.config.ts'],
  })
  return together(
    here,
    there,
    ...(missing.length > 0 ? [{ did: '', findings: [], skipped: missing.join('; ') }] : []),
  )
}
