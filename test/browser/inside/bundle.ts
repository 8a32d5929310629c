/**
 * The virtual world and the features of brokers as modules for a browser.
 *
 * Test files get what they use of vitest and of Node from `node.js`; files of `src` get nothing, and `client/node.js` is `client/browser.js` there.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { root } from '../../package/fixture.js'

const folder = path.join(root, 'test', 'browser', 'inside')
const standIn = path.join(folder, 'node.js')
const ofNode = ['Buffer', 'process', 'setImmediate']

const standIns: Plugin = {
  name: 'stand-ins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:vitest|node:util)$/ }, () => ({ path: standIn }))
    onResolve({ filter: /\/src\/client\/node\.js$/ }, () => ({
      path: path.join(root, 'src', 'client', 'browser.ts'),
    }))
    // What starts processes stays where it is: the page has the plain data of it.
    onResolve({ filter: /\/(brokers|link)\.js$/ }, ({ path: name, importer }) => {
      const real = path.join(root, 'test', 'real')
      if (!importer.startsWith(real)) return undefined
      return { path: name.endsWith('/link.js') ? standIn : path.join(real, 'setups.ts') }
    })
    onLoad({ filter: /\/test\/.*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8')
      const used = ofNode.filter((name) => new RegExp(`\\b${name}\\b`).test(text))
      return { loader: 'ts', contents: `import { ${used.join(', ')} } from '${standIn}'; ${text}` }
    })
  },
}

/** Name to text: `page.js` and its `worker.js` have the world, `features.js` the features. */
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
