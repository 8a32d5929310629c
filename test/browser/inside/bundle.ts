/**
 * The pure suites as modules for a browser: every test file of their folders, but for those that are left out by name, with the reason.
 *
 * Test files get `vitest` and what they use of Node from this folder; files of `src` get nothing, and `client/node.js` is `client/browser.js` there.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { root } from '../../package/fixture.js'
import { leftOut, long } from './left-out.js'

const folder = path.join(root, 'test', 'browser', 'inside')
/** Folders of tests that depend on nothing but the language. */
const suites = [
  'broker',
  'rules',
  'unit/auth',
  'unit/aws',
  'unit/client',
  'unit/queue',
  'unit/testing',
  'unit/wasm',
  'unit/wire',
  'world',
]

/** Every test file of those folders, as a path below `test`. */
export const allFiles: readonly string[] = suites.flatMap((suite) =>
  readdirSync(path.join(root, 'test', suite), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${suite}/${name}`)
    // Those read the sources.
    .filter((name) => !name.startsWith('rules/code/'))
    .sort(),
)

/** Those that are run, in order. The long ones only when they are asked for. */
export const files: readonly string[] = allFiles.filter(
  (name) =>
    typeof leftOut[name] !== 'string' &&
    (process.env['MQWIRE_LONG'] !== undefined || !long.includes(name)),
)

/** File to the titles of its tests that are not run. */
const titles = Object.fromEntries(
  Object.entries(leftOut).flatMap(([name, tests]) =>
    typeof tests === 'string' ? [] : [[name, Object.keys(tests)]],
  ),
)

const ofNode = ['Buffer', 'process', 'setImmediate']

const standIns: Plugin = {
  name: 'stand-ins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^vitest$/ }, () => ({ path: path.join(folder, 'vitest.js') }))
    onResolve({ filter: /^node:(fs|util|v8|vm)$/ }, () => ({ path: path.join(folder, 'node.js') }))
    onResolve({ filter: /\/src\/client\/node\.js$/ }, () => ({
      path: path.join(root, 'src', 'client', 'browser.ts'),
    }))
    // What starts processes stays where it is: the page has the plain data of it, and is told of the rest.
    onResolve({ filter: /\/(brokers|proxy)\.js$/ }, ({ path: name, importer }) => {
      if (!importer.startsWith(path.join(root, 'test', 'real'))) return undefined
      return {
        path: name.endsWith('/proxy.js')
          ? path.join(folder, 'proxy.js')
          : path.join(root, 'test', 'real', 'setups.ts'),
      }
    })
    onResolve({ filter: /^test-files$/ }, () => ({ path: 'test-files', namespace: 'made' }))
    onLoad({ filter: /.*/, namespace: 'made' }, () => ({
      resolveDir: path.join(root, 'test'),
      contents: `export const leftOut = ${JSON.stringify(titles)}\nexport const files = {\n${files.map((name) => `'${name}': () => import('./${name}'),`).join('\n')}\n}\n`,
    }))
    onLoad({ filter: /\/test\/.*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8')
      const used = ofNode.filter((name) => new RegExp(`\\b${name}\\b`).test(text))
      const here = `new URL('/${path.relative(root, file)}', location.origin).href`
      const head =
        used.length === 0
          ? ''
          : `import { ${used.join(', ')} } from '${path.join(folder, 'node.js')}'; `
      return { loader: 'ts', contents: head + text.replaceAll('import.meta.url', here) }
    })
  },
}

/** Their subject is, in part, what comes from a frame. */
const ofPages = ['unit/client/publish.test.ts', 'unit/wire/given-bytes.test.ts']

/** They put a document of their own in place of the global one, which no page lets them. */
const ofWorkers = ['unit/client/browser-wake.test.ts']

/** Where a file is run: by turns, but for what needs a document, or needs that there is none. */
export function placeOf(name: string): 'page' | 'worker' {
  if (ofWorkers.includes(name)) return 'worker'
  return ofPages.includes(name) || files.indexOf(name) % 2 === 0 ? 'page' : 'worker'
}

/**
 * Name to text: `page.js` and `worker.js` have the pure suites, `features.js` those of brokers. Each is of one piece: what is loaded on first use
 * would take real time, while that of the tests stands still.
 */
export async function bundleInside(): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['page.js', 'worker.js', 'features.js'].map((name) => path.join(folder, name)),
    outdir: path.join(root, 'inside'),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['browser'],
    target: 'es2022',
    logLevel: 'silent',
    plugins: [standIns],
  })
  return new Map(outputFiles.map(({ path: file, text }) => [path.basename(file), text]))
}
