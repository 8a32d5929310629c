/**
 * What each import costs: bundles one feature at a time from `dist/`, minified, and compares minified and gzip bytes with the committed table
 * `test/package/sizes.json` and with the copy of it in `docs/performance.md`.
 *
 *     npm run size               fails when a size is off by more than 2 %, a row is missing or left over, or the page shows other figures
 *     npm run size -- --update   writes the table, and the page's block between <!-- sizes --> and <!-- /sizes -->
 *
 * An entry of the exports map whose file is not built has no row.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const tableFile = path.join(root, 'test', 'package', 'sizes.json')
const pageFile = path.join(root, 'docs', 'performance.md')
const block = /(<!-- sizes -->\n)[\s\S]*?(<!-- \/sizes -->)/
const tolerance = 0.02
const slack = 32

const nodeOnly = ['tcp', 'tls', 'unix', 'websocket-node']
const packageExports = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).exports

/** One row each: what is imported (`*` for everything), from which entry, for which platform; and what a program imports from `mqwire` anyway. */
function features() {
  const named = (entry, names) => names.map((name) => ({ name, entry, platform: 'browser' }))
  const whole = (entry, platform) => ({ name: '*', entry, platform })
  const transports = Object.keys(packageExports).filter((entry) => entry.startsWith('./transport/'))
  return [
    ...named('.', ['connect', 'Client', 'MqttError']),
    { name: 'connect', entry: '.', platform: 'node' },
    ...named('./typed', ['topic', 'channel', '*']),
    ...named('./typed', ['topic', '*']).map((feature) => ({ ...feature, beside: 'connect' })),
    ...named('./asyncapi', ['*']),
    ...named('./wire', ['decode', 'Decoder', 'encode', '*']),
    ...transports.map((entry) => whole(entry, nodeOnly.includes(path.basename(entry)) ? 'node' : 'browser')),
    ...named('./store', ['memoryStore', '*']),
    ...named('./queue', ['*']),
    ...named('./queue', ['*']).map((feature) => ({ ...feature, beside: 'connect' })),
    ...named('./group', ['*']).map((feature) => ({ ...feature, beside: 'connect' })),
    ...named('./pool', ['*']).map((feature) => ({ ...feature, beside: 'connect' })),
    ...named('./tracing', ['*']).map((feature) => ({ ...feature, beside: 'connect' })),
    whole('./store/level', 'node'),
    whole('./store/level', 'browser'),
    { ...whole('./store/level', 'node'), beside: 'connect' },
    { ...whole('./store/level', 'browser'), beside: 'connect' },
    whole('./react', 'browser'),
    whole('./compat', 'browser'),
    { ...whole('./compat', 'browser'), beside: 'connect' },
    whole('./auth', 'browser'),
    whole('./aws', 'browser'),
    whole('./wasm', 'browser'),
    whole('./testing', 'browser'),
  ]
}

function isThere({ entry, platform }) {
  const target = packageExports[entry]
  return existsSync(path.join(root, target[platform] ?? target.default))
}

function label({ name, entry, platform, beside }) {
  const from = `mqwire${entry.slice(1)}`
  const where = `${platform === 'node' ? ' (Node)' : ''}${beside === undefined ? '' : `, beside ${beside}`}`
  return name === '*' ? `all of ${from}${where}` : `${name} from ${from}${where}`
}

async function bundled(contents, platform) {
  const result = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    platform,
    conditions: [platform],
    external: ['ws', 'react', 'classic-level', '@opentelemetry/api'],
    legalComments: 'none',
    logLevel: 'error',
  })
  const bytes = result.outputFiles[0].contents
  return { minified: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length }
}

async function measure({ name, entry, platform, beside }) {
  const what = name === '*' ? '*' : `{ ${name} }`
  const own = `export ${what} from 'mqwire${entry.slice(1)}'`
  if (beside === undefined) return bundled(own, platform)
  const other = `export { ${beside} } from 'mqwire'`
  const [both, alone] = [await bundled(`${other}\n${own}`, platform), await bundled(other, platform)]
  return { minified: both.minified - alone.minified, gzip: both.gzip - alone.gzip }
}

async function measureAll() {
  const table = {}
  for (const feature of features().filter(isThere)) table[label(feature)] = await measure(feature)
  return table
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`

function markdown(table) {
  const rows = Object.entries(table).map(([name, size]) => `| ${name} | ${kilobytes(size.minified)} | ${kilobytes(size.gzip)} |`)
  return ['| import | minified | gzip |', '| --- | ---: | ---: |', ...rows, ''].join('\n')
}

function differs(committed, measured) {
  return Math.abs(measured - committed) > Math.max(committed * tolerance, slack)
}

function objections(committed, measured) {
  const found = []
  for (const [name, size] of Object.entries(measured)) {
    const old = committed[name]
    if (old === undefined) found.push(`no row for "${name}"`)
    else if (differs(old.gzip, size.gzip)) found.push(`${name}: ${old.gzip} -> ${size.gzip} bytes gzip`)
    else if (differs(old.minified, size.minified)) found.push(`${name}: ${old.minified} -> ${size.minified} bytes minified`)
  }
  const entries = new Set(features().map(({ entry }) => entry))
  for (const entry of Object.keys(packageExports)) if (entry !== './package.json' && !entries.has(entry)) found.push(`nothing measures "${entry}"`)
  for (const name of Object.keys(committed)) if (!(name in measured)) found.push(`left-over row "${name}"`)
  return found
}

// Undefined where the page has no block.
function pageWith(table) {
  const text = readFileSync(pageFile, 'utf8')
  return block.test(text) ? { text, updated: text.replace(block, (_, start, end) => `${start}${markdown(table)}${end}`) } : undefined
}

function update(measured) {
  writeFileSync(tableFile, `${JSON.stringify(measured, null, 2)}\n`)
  const page = pageWith(measured)
  if (page !== undefined) writeFileSync(pageFile, page.updated)
}

function check(measured) {
  const committed = existsSync(tableFile) ? JSON.parse(readFileSync(tableFile, 'utf8')) : {}
  const found = objections(committed, measured)
  const page = pageWith(committed)
  if (page === undefined) found.push('docs/performance.md has no block of sizes')
  else if (page.text !== page.updated) found.push('docs/performance.md shows other figures than the table')
  if (Object.keys(measured).length === 0) found.push('nothing to measure: is dist built?')
  return found
}

const { values } = argumentsOf({
  usage: 'npm run size -- [options]',
  about:
    'Measures what each import costs. Exits with 1 when a size is off by more than 2 %, a row is missing or docs/performance.md shows other figures.',
  options: { update: { text: 'writes the table, and its copy in docs/performance.md' } },
})
const measured = await measureAll()
console.log(markdown(measured))
if (values.update) {
  update(measured)
} else {
  const found = check(measured)
  for (const objection of found) console.error(objection)
  if (found.length > 0) console.error('If this is meant: npm run size -- --update')
  process.exitCode = found.length > 0 ? 1 : 0
}
