/**
 * Builds `dist/` from `src/`: each TypeScript file becomes one ES module (no bundling, so that every subpath tree-shakes), with the names and comments
 * of the source, one source map and one declaration. Before that, `src/wasm/binary.ts` is made anew when the AssemblyScript source has changed.
 *
 * Run by hand (`npm run build`) or through `.ci/setup.mjs`, which asks `isBuilt()` first. It assumes that node_modules is complete.
 * `--check` only says, by the exit code, whether `dist/` is up to date.
 * `dist/` is replaced in one step, so that a reader never sees half of it; a failed build leaves the old one in place, marked as out of date.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'
import { updateModule } from './wasm.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = path.join(root, 'dist')
const cache = path.join(root, 'node_modules', '.cache', 'mqwire')
const stamp = path.join(cache, 'built')

function filesBelow(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
}

/** The sources that become modules: every `.ts` below src but declarations. */
function sources() {
  return filesBelow(path.join(root, 'src'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .sort()
}

/** The data that the command takes in. */
function data() {
  return filesBelow(path.join(root, 'src', 'cli'))
    .filter((file) => file.endsWith('.json'))
    .sort()
}

/** Changes whenever a build could come out differently. */
function fingerprint() {
  const names = [
    'package-lock.json',
    'tsconfig.json',
    '.ci/tsconfig.build.json',
    '.ci/build.mjs',
    '.ci/wasm.mjs',
    'src/wasm/scanner.as',
  ]
  const settings = names.map((name) => path.join(root, name))
  const hash = createHash('sha256')
  for (const file of [...sources(), ...data(), ...settings])
    hash
      .update(`${path.relative(root, file)}\n`)
      .update(readFileSync(file))
      .update('\0')
  return hash.digest('hex')
}

/** True when `dist/` is there and was built from the sources as they are now. */
export function isBuilt() {
  return existsSync(dist) && existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint()
}

/** Modules, source maps that hold the sources, and declarations. */
function emit(outdir) {
  const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const project = path.join(root, '.ci', 'tsconfig.build.json')
  const run = spawnSync(process.execPath, [compiler, '-p', project, '--outDir', outdir], {
    cwd: root,
    encoding: 'utf8',
  })
  if (run.status !== 0)
    throw new Error(`the sources do not compile\n${run.stdout}${run.stderr}`.trimEnd())
}

/** Compiled in the cache, the maps would look for the sources from there. */
function pointToSources(outdir) {
  for (const file of filesBelow(outdir).filter((name) => name.endsWith('.js.map'))) {
    const source = path.relative(outdir, file).replace(/\.js\.map$/, '.ts')
    const place = path.relative(
      path.dirname(path.join(dist, source)),
      path.join(root, 'src', source),
    )
    writeFileSync(
      file,
      JSON.stringify({
        ...JSON.parse(readFileSync(file, 'utf8')),
        sources: [place.replaceAll(path.sep, '/')],
      }),
    )
  }
}

function packageJson() {
  return JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
}

/** The modules and declarations that the entries lead to stay; nobody can import the others. */
function dropUnreachable(outdir) {
  const { exports } = packageJson()
  const targets = Object.values(exports).flatMap((entry) => Object.values(entry))
  const entries = targets
    .filter((file) => file.startsWith('./dist/'))
    .map((file) => path.join(outdir, file.replace('./dist/', '')))
  // The module of each platform has declarations of its own: tests compare them.
  const pending = [
    ...entries,
    ...entries.map((file) => file.replace(/(?<!\.d)\.(?:js|ts)$/, '.d.ts')),
  ]
  const kept = new Set()
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (kept.has(file)) continue
    kept.add(file)
    const extension = file.endsWith('.d.ts') ? '.d.ts' : '.js'
    if (extension === '.js') kept.add(`${file}.map`)
    const imports = readFileSync(file, 'utf8').matchAll(
      /(?:from |import\(|^import )'(\.[^']+)\.js'/gm,
    )
    for (const [, to] of imports) pending.push(path.join(path.dirname(file), `${to}${extension}`))
  }
  for (const file of filesBelow(outdir)) if (!kept.has(file)) rmSync(file)
}

/**
 * The command of `bin`, with the packages that it needs, as one file: they are no dependencies of the library. The package itself stays outside.
 * Their licences lie beside it.
 */
async function bundleCommand(outdir) {
  const { build: bundle } = await import('esbuild')
  const { metafile } = await bundle({
    entryPoints: [path.join(root, 'src', 'cli', 'main.ts')],
    outfile: path.join(outdir, 'cli.js'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // One file is found and read faster than a hundred.
    alias: Object.fromEntries(
      Object.entries(packageJson().exports).flatMap(([entry, targets]) =>
        ['.', './typed', './wire', './testing'].includes(entry)
          ? [
              [
                `mqwire${entry.slice(1)}`,
                path.resolve(outdir, (targets.node ?? targets.default).replace('./dist/', '')),
              ],
            ]
          : [],
      ),
    ),
    external: ['ws'],
    loader: { '.iife.min.js': 'text', '.min.css': 'text' },
    // The paths of tsconfig.json are for the type check.
    tsconfigRaw: '{}',
    // Packages written as CommonJS ask for Node's modules by `require`.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
    },
    define: { VERSION: JSON.stringify(packageJson().version) },
    minify: true,
    legalComments: 'none',
    logLevel: 'error',
    metafile: true,
  })
  const packages = new Set(
    Object.keys(metafile.inputs).flatMap(
      (file) => /^.*node_modules\/(?!\.)(?:@[^/]+\/)?[^/]+/.exec(file) ?? [],
    ),
  )
  const licences = [...packages].map((folder) => {
    const file = readdirSync(path.join(root, folder)).find((name) => /^licen[cs]e/i.test(name))
    if (file === undefined) throw new Error(`${folder} has no licence to ship`)
    return `${path.basename(folder)}\n\n${readFileSync(path.join(root, folder, file), 'utf8')}`
  })
  writeFileSync(path.join(outdir, 'cli-licences.txt'), licences.join('\n\n'))
}

/** The client as one file for `<script>`, with the global `mqwire`: for pages without modules, and for hosts that serve the files of packages. */
async function bundleScript(outdir) {
  const { build: bundle } = await import('esbuild')
  await bundle({
    entryPoints: [path.join(outdir, 'client', 'browser.js')],
    outfile: path.join(outdir, 'mqwire.js'),
    bundle: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'mqwire',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    logLevel: 'error',
  })
}

function put(built) {
  const old = path.join(cache, `old-${process.pid}`)
  if (existsSync(dist)) renameSync(dist, old)
  renameSync(built, dist)
  rmSync(old, { recursive: true, force: true })
}

// What an interrupted build left behind, once no running one can still be using it.
function sweep() {
  for (const entry of readdirSync(cache)) {
    const file = path.join(cache, entry)
    if (/^(next|old)-\d+$/.test(entry) && Date.now() - statSync(file).mtimeMs > 600_000)
      rmSync(file, { recursive: true, force: true })
  }
}

/** Builds whatever the state of `dist/` is. Throws an Error that says what does not compile. */
export async function build() {
  mkdirSync(cache, { recursive: true })
  sweep()
  const next = path.join(cache, `next-${process.pid}`)
  try {
    await updateModule()
    const print = fingerprint()
    emit(next)
    dropUnreachable(next)
    pointToSources(next)
    await bundleScript(next)
    await bundleCommand(next)
    put(next)
    writeFileSync(stamp, print)
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
}

async function main() {
  const { check } = argumentsOf({
    usage: 'node .ci/build.mjs [options]',
    about: 'Builds dist/ from src/, whatever its state is.',
    options: {
      check: {
        text: 'builds nothing; exits with 1 when dist/ is missing or not that of the sources',
      },
    },
  }).values
  if (check) {
    if (isBuilt()) return
    throw new Error('dist is missing or not that of the sources: npm run build')
  }
  await build()
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().catch((error) => {
    console.error(error.message)
    process.exitCode = 1
  })
}
