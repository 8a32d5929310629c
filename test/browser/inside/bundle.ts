/**
 * The virtual world as modules for a browser: `page.js` and its `worker.js`, name to text.
 *
 * Test files get what they use of Node from `node.js`; files of `src` get nothing.
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
    onResolve({ filter: /^node:util$/ }, () => ({ path: standIn }))
    onLoad({ filter: /\/test\/.*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8')
      const used = ofNode.filter((name) => new RegExp(`\\b${name}\\b`).test(text))
      return { loader: 'ts', contents: `import { ${used.join(', ')} } from '${standIn}'; ${text}` }
    })
  },
}

export async function bundleInside(): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['page.js', 'worker.js'].map((name) => path.join(folder, name)),
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
