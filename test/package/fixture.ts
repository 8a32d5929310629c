/** Temporary projects into which npm installed the tarball of `npm pack`. The tests look at `dist/` and never build it, as several run at once. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../../package.json' with { type: 'json' }

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Outcome {
  readonly code: number
  readonly output: string
}

/** Runs a program to its end; a failure is an outcome, not a throw. Killed after `timeout` milliseconds (default one minute). */
export function run(
  command: string,
  args: readonly string[],
  cwd = root,
  timeout = 60_000,
  env = process.env,
): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, timeout, env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      const hasCode = error === null || typeof error.code === 'number'
      // One that was killed, or could not be started, printed no reason.
      const reason = hasCode
        ? ''
        : `\n${error.killed ? `killed after ${timeout} ms` : `${error.code ?? error.signal}: ${error.message}`}`
      resolve({
        code: hasCode ? Number(error?.code ?? 0) : 1,
        output: `${stdout}${stderr}${reason}`.trim(),
      })
    })
  })
}

export const node = (args: readonly string[], cwd?: string, timeout?: number) =>
  run(process.execPath, args, cwd, timeout)

/** Rejects unless `dist/` is that of the sources. */
export async function requireDist(): Promise<void> {
  const { code, output } = await node(['.ci/build.mjs', '--check'])
  if (code !== 0) throw new Error(output)
}

/** Declarations as they are published, with the indentation of the sources. It may assume `requireDist()`. */
export function declarations(file: string): string {
  return readFileSync(path.join(root, 'dist', file), 'utf8').replace(/^(?: {2})+/gm, (spaces) =>
    spaces.slice(spaces.length / 2),
  )
}

const projects: string[] = []

/** A temporary folder with these files, without the package. */
async function emptyProject(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-package-'))
  projects.push(folder)
  await writeFiles(folder, { 'package.json': '{ "private": true, "type": "module" }', ...files })
  return folder
}

export interface Packed {
  /** The file that `npm pack` made. */
  readonly tarball: string
  /** What it holds: paths in the package. */
  readonly files: readonly string[]
  /** A project that was empty before npm installed the tarball. */
  readonly folder: string
}

async function npm(args: readonly string[], cwd: string): Promise<string> {
  const { code, output } = await run('npm', [...args, '--loglevel=error'], cwd)
  if (code !== 0) throw new Error(output)
  return output
}

/** Packs the checkout and installs the tarball into an empty project. */
async function packAndInstall(): Promise<string> {
  const folder = await emptyProject({})
  const said = await npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], root)
  const [{ filename, files }] = JSON.parse(said) as [
    { filename: string; files: { path: string }[] },
  ]
  const tarball = path.join(folder, path.basename(filename))
  const dependency = path.join(root, 'node_modules', 'ws')
  await npm(
    ['install', '--no-audit', '--no-fund', '--offline', '--install-links', tarball, dependency],
    folder,
  )
  await rename(tarball, path.join(folder, 'package.tgz'))
  await writeFile(path.join(folder, 'files.json'), JSON.stringify(files.map((file) => file.path)))
  return folder
}

const cache = path.join(root, 'node_modules', '.cache', 'mqwire')

/** The files below a path of the checkout, or the file that it is. */
async function filesAt(name: string): Promise<string[]> {
  if (!(await stat(path.join(root, name))).isDirectory()) return [name]
  const below = await readdir(path.join(root, name), { recursive: true, withFileTypes: true })
  return below
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
}

/** Changes whenever packing and installing could come out differently; `built` stands for all of `dist/`. */
async function fingerprint(): Promise<string> {
  const hash = createHash('sha256')
  const documents = await Promise.all(
    packageJson.files.filter((name) => name !== 'dist').map(filesAt),
  )
  const fixed = [
    path.join(cache, 'built'),
    'package.json',
    'README.md',
    'LICENSE',
    'node_modules/ws/package.json',
    fileURLToPath(import.meta.url),
  ]
  const sources = [...fixed, ...documents.flat().sort()]
  for (const name of sources) hash.update(await readFile(path.resolve(root, name))).update('\0')
  return hash.digest('hex').slice(0, 16)
}

/** Puts a fresh one where the next test files find it, and removes those of other days. */
async function keep(folder: string): Promise<void> {
  const next = `${folder}.${process.pid}`
  await cp(await packAndInstall(), next, { recursive: true, verbatimSymlinks: true })
  for (const old of await readdir(cache)) {
    const file = path.join(cache, old)
    const made = old.startsWith('packed-') ? await stat(file).catch(() => undefined) : undefined
    if (made !== undefined && Date.now() - made.mtimeMs > 600_000)
      await rm(file, { recursive: true, force: true })
  }
  try {
    await rename(next, folder)
  } catch (error) {
    // Another run was faster.
    await rm(next, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

/** The package as it is now, packed and installed. Not to be written to. It may assume `requireDist()`. */
export async function packed(): Promise<Packed> {
  const folder = path.join(cache, `packed-${await fingerprint()}`)
  if (!existsSync(folder)) await keep(folder)
  const files: readonly string[] = JSON.parse(
    await readFile(path.join(folder, 'files.json'), 'utf8'),
  )
  return { tarball: path.join(folder, 'package.tgz'), files, folder }
}

/** A temporary folder with these files and the installed package: nothing but it and its dependency can be resolved from there. */
export async function project(files: Readonly<Record<string, string>>): Promise<string> {
  const { folder: template } = await packed()
  const folder = await emptyProject(files)
  await cp(path.join(template, 'node_modules'), path.join(folder, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  return folder
}

export async function writeFiles(
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), text)
  }
}

export async function link(folder: string, name: string): Promise<void> {
  await mkdir(path.dirname(path.join(folder, 'node_modules', name)), { recursive: true })
  await symlink(
    path.join(root, 'node_modules', name),
    path.join(folder, 'node_modules', name),
    'junction',
  )
}

/** What the project that uses an entry has to install itself, and what the declarations of that come from. */
export const peers = Object.keys(packageJson.peerDependencies)

export async function linkPeers(folder: string): Promise<void> {
  for (const name of [...peers, '@types/react', 'csstype']) await link(folder, name)
}

/** Removes every project made so far: for `afterAll`. */
export async function removeProjects(): Promise<void> {
  for (const folder of projects.splice(0)) await rm(folder, { recursive: true, force: true })
}

/** The exports map: subpath to its targets. */
export const packageExports: Readonly<Record<string, string | Readonly<Record<string, string>>>> =
  packageJson.exports

/** What may be imported: `mqwire`, `mqwire/wire`, and so on. */
export const entries = Object.keys(packageExports)
  .filter((entry) => !entry.endsWith('.json'))
  .map((entry) => `mqwire${entry.slice(1)}`)

/** The compilers that the declarations must suit, oldest first. */
export const compilers: readonly (readonly [version: string, file: string])[] = [
  ['5.2', path.join(root, 'node_modules', 'typescript-5.2', 'bin', 'tsc')],
  ['7', path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')],
]

export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(path.join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .sort(),
]
