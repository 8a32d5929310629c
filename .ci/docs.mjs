/**
 * The documentation as a site: the README, the guides, the API reference and the tables of proofs, with navigation and search.
 *
 *     npm run docs                 builds it into docs-site/, which is not kept
 *     npm run docs -- --serve      builds it and serves it at http://127.0.0.1:4173
 *     npm run docs -- --base /x/   for a site that is not at the root of its host
 *     npm run docs -- --reference FOLDER   writes the API reference alone, as Markdown; fails when an export has no docstring
 *
 * The generator is VitePress, from `.ci/tools/site`: it is fetched when it is first wanted, so that `npm ci` stays small. The pages are laid out below
 * node_modules/.cache, with links that fit the site. A link that leads nowhere is an error. Blocks of code that a page can run do so: `site/`.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'
import { assetOf, pageOf, playground, startsOf, tables, textFor } from './docs-pages.mjs'
import { root, tools } from './fetch.mjs'
import { writeReference } from './reference.mjs'
import { bundlePrograms } from './site/bundle.mjs'

const { values } = argumentsOf({
  usage: 'npm run docs -- [options]',
  about: 'Builds the documentation as a site with search, into docs-site/.',
  options: {
    serve: { text: 'serves it as well; Ctrl-C stops' },
    port: {
      value: 'N',
      number: [0, 65_535],
      whole: true,
      initial: 4173,
      text: 'port to serve it at',
    },
    base: { value: 'PATH', initial: '/', text: 'where it will stand on its host' },
    reference: {
      value: 'FOLDER',
      text: 'writes the API reference alone into this folder, as Markdown',
    },
    out: { value: 'FOLDER', initial: 'docs-site', text: 'where it is built' },
  },
})

/** Every file of the package, and the tables of proofs. */
function sources() {
  const { files } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
  const below = (name) => {
    if (!statSync(path.join(root, name)).isDirectory()) return [name]
    return readdirSync(path.join(root, name)).flatMap((each) => below(`${name}/${each}`))
  }
  return ['README.md', ...files.filter((name) => name !== 'dist').flatMap(below), ...tables]
}

/** The pages of the API reference, without its index, as if they lay beside the guides: name and text. */
function referencePages(folder) {
  const names = readdirSync(folder, { recursive: true }).map((name) =>
    name.split(path.sep).join('/'),
  )
  const pages = names.filter((name) => name.endsWith('.md') && name !== 'README.md').sort()
  return pages.map((name) => [
    path.posix.join('docs', 'reference', name),
    readFileSync(path.join(folder, name), 'utf8'),
  ])
}

function lay(stage, out, reference) {
  const put = (name, text) => {
    const file = path.join(stage, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const pages = sources().filter((file) => pageOf(file) !== undefined)
  const written = pages.map((file) => [file, readFileSync(path.join(root, file), 'utf8')])
  for (const [file, text] of [...written, ...reference])
    put(`${pageOf(file)}.md`, textFor(file, text))
  for (const file of sources()) {
    const asset = assetOf(file)
    if (asset !== undefined) put(`public/${asset}`, readFileSync(path.join(root, file)))
  }
  const given = JSON.stringify({
    base: values.base,
    outDir: out,
    references: reference.map(([file]) => pageOf(file)),
  })
  cpSync(path.join(root, '.ci', 'docs-pages.mjs'), path.join(stage, '.vitepress', 'pages.mjs'))
  cpSync(path.join(root, '.ci', 'site'), path.join(stage, '.vitepress', 'site'), {
    recursive: true,
  })
  put('playground.md', playground)
  put('.vitepress/theme/index.js', "export { default } from '../site/theme/index.js'\n")
  const starts = startsOf((file) => readFileSync(path.join(root, file), 'utf8'))
  put('.vitepress/site/theme/starts.js', `export default ${JSON.stringify(starts)}\n`)
  put(
    '.vitepress/config.mjs',
    `import { settings } from './pages.mjs'\nexport default settings(${given})\n`,
  )
  put('package.json', '{ "private": true, "type": "module" }\n')
}

async function buildSite() {
  const { folder, reason } = await tools('site')
  if (folder === undefined) throw new Error(`VitePress cannot be had: ${reason}`)
  const work = path.join(root, 'node_modules', '.cache', 'mqwire', `site-${process.pid}`)
  const stage = path.join(work, 'stage')
  const out = path.resolve(root, values.out)
  try {
    await writeReference(path.join(work, 'reference'))
    lay(stage, out, referencePages(path.join(work, 'reference')))
    await bundlePrograms(path.join(stage, 'public', 'run'), path.join(folder, 'node_modules'))
    const { build, serve } = await import(
      pathToFileURL(createRequire(path.join(folder, 'package.json')).resolve('vitepress')).href
    )
    await build(stage)
    if (!existsSync(path.join(out, 'index.html'))) throw new Error('nothing was built')
    console.log(`built ${path.relative(root, out) || out}`)
    if (values.serve) await serve({ root: stage, base: values.base, port: values.port })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

try {
  await (values.reference === undefined
    ? buildSite()
    : writeReference(path.resolve(root, values.reference)))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
