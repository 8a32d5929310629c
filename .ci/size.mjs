/**
 * What each import costs: bundles one feature at a time from `dist/` with esbuild, and prints minified and gzip kilobytes (1,000 bytes).
 *
 *     npm run size               fails when a row is over its ceiling: the next full kB above its gzip size in `test/package/sizes.json`
 *     npm run size -- --update   writes that table, and the block of docs/performance.md between <!-- sizes --> and <!-- /sizes -->
 *
 * What grew since the table was written is printed and fails nothing. An entry of the exports map whose file is not built has no row.
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
    ...named('./typed/msgpack', ['*']),
    ...named('./typed/cbor', ['*']),
    ...named('./asyncapi', ['*']),
    ...named('./wire', ['decode', 'Decoder', 'encode', '*']),
    ...transports.map((entry) =>
      whole(entry, nodeOnly.includes(path.basename(entry)) ? 'node' : 'browser'),
    ),
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
    whole('./store/file', 'node'),
    { ...whole('./store/file', 'node'), beside: 'connect' },
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
    external: ['ws', 'react', 'classic-level', '@opentelemetry/api', 'msgpackr', 'cbor-x'],
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
  const [both, alone] = [
    await bundled(`${other}\n${own}`, platform),
    await bundled(other, platform),
  ]
  return { minified: both.minified - alone.minified, gzip: both.gzip - alone.gzip }
}

async function measureAll() {
  const table = {}
  for (const feature of features().filter(isThere)) table[label(feature)] = await measure(feature)
  return table
}

/** As in the table: kB with one decimal, rounded down. The ceiling is the next full kB, with room for 200 bytes: gzip moves by 15 with any edit. */
const rounded = (bytes) => Math.floor(bytes / 100) / 10
const ceilingOf = (committed) => Math.floor(committed + 0.2) + 1

function markdown(header, rows) {
  return [header, header.map((_, index) => (index === 0 ? '---' : '---:')), ...rows, []]
    .map((cells) => (cells.length === 0 ? '' : `| ${cells.join(' | ')} |`))
    .join('\n')
}

function printed(committed, measured) {
  const rows = Object.entries(measured).map(([name, { minified, gzip }]) => {
    const grown = rounded(gzip) - (committed[name] ?? 0)
    const change =
      committed[name] === undefined || Math.abs(grown) < 0.05
        ? ''
        : `${grown > 0 ? '+' : ''}${grown.toFixed(1)}`
    const ceiling = committed[name] === undefined ? '' : ceilingOf(committed[name])
    return [name, (minified / 1000).toFixed(1), (gzip / 1000).toFixed(1), change, ceiling]
  })
  return markdown(['import', 'minified kB', 'gzip kB', 'change', 'ceiling'], rows)
}

function objections(committed, measured) {
  const found = []
  for (const [name, { gzip }] of Object.entries(measured)) {
    if (committed[name] === undefined) found.push(`no row for "${name}"`)
    else if (gzip > ceilingOf(committed[name]) * 1000)
      found.push(`${name}: ${gzip} bytes of gzip, the ceiling is ${ceilingOf(committed[name])} kB`)
  }
  const entries = new Set(features().map(({ entry }) => entry))
  for (const entry of Object.keys(packageExports))
    if (entry !== './package.json' && !entries.has(entry)) found.push(`nothing measures "${entry}"`)
  for (const name of Object.keys(committed))
    if (!(name in measured)) found.push(`left-over row "${name}"`)
  if (Object.keys(measured).length === 0) found.push('nothing to measure: is dist built?')
  return found
}

function update(measured) {
  const table = Object.fromEntries(
    Object.entries(measured).map(([name, { gzip }]) => [name, rounded(gzip)]),
  )
  writeFileSync(tableFile, `${JSON.stringify(table, null, 2)}\n`)
  const whole = (bytes) => `${Math.max(1, Math.round(bytes / 1000))} kB`
  const rows = Object.entries(measured).map(([name, { minified, gzip }]) => [
    name,
    whole(minified),
    whole(gzip),
  ])
  const text = markdown(['import', 'minified', 'gzip'], rows)
  writeFileSync(
    pageFile,
    readFileSync(pageFile, 'utf8').replace(block, (_, start, end) => `${start}${text}${end}`),
  )
}

const { values } = argumentsOf({
  usage: 'npm run size -- [options]',
  about:
    'Measures what each import costs. Exits with 1 when one is over its ceiling, or a row is missing or left over.',
  options: { update: { text: 'writes the table, and its copy in docs/performance.md' } },
})
const measured = await measureAll()
const committed = existsSync(tableFile) ? JSON.parse(readFileSync(tableFile, 'utf8')) : {}
console.log(printed(committed, measured))
if (values.update) update(measured)
else {
  const found = objections(committed, measured)
  for (const objection of found) console.error(objection)
  if (found.length > 0) console.error('If this is meant: npm run size -- --update')
  process.exitCode = found.length > 0 ? 1 : 0
}
