/**
 * What each import costs: bundles one feature at a time from `dist/` with esbuild, and prints minified and gzip kilobytes (1,000 bytes).
 *
 *     npm run size               fails when a row of `test/package/sizes.json` is over its ceiling: the next full kB above its gzip size
 *     npm run size -- --update   writes that table, and the block of docs/performance.md between <!-- sizes --> and <!-- /sizes -->
 *
 * A new row is written into the table by hand, with 0. What grew since is printed and fails nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const tableFile = path.join(root, 'test', 'package', 'sizes.json')
const pageFile = path.join(root, 'docs', 'performance.md')
const block = /(<!-- sizes -->\n)[\s\S]*?(<!-- \/sizes -->)/

const packageExports = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).exports

/** What a row measures: a name, or `*` for everything, of an entry for a platform; and what a program imports from `mqwire` anyway. */
function featureOf(label) {
  const [, name = '*', from, node, beside] =
    /^(?:all of|(\w+) from) mqwire(\S*?)( \(Node\))?(?:, beside (\w+))?$/.exec(label) ?? []
  const entry = `.${from}`
  if (packageExports[entry] === undefined) throw new Error(`nothing to measure: "${label}"`)
  return { name, entry, platform: node === undefined ? 'browser' : 'node', beside }
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

async function measureAll(labels) {
  const table = {}
  for (const label of labels) table[label] = await measure(featureOf(label))
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
    const grown = rounded(gzip) - committed[name]
    const change = Math.abs(grown) < 0.05 ? '' : `${grown > 0 ? '+' : ''}${grown.toFixed(1)}`
    const kB = [minified, gzip].map((bytes) => (bytes / 1000).toFixed(1))
    return [name, ...kB, change, ceilingOf(committed[name])]
  })
  return markdown(['import', 'minified kB', 'gzip kB', 'change', 'ceiling'], rows)
}

function objections(committed, measured) {
  const over = Object.entries(measured)
    .filter(([name, { gzip }]) => gzip > ceilingOf(committed[name]) * 1000)
    .map(([name, { gzip }]) => `${name}: ${gzip} bytes, over ${ceilingOf(committed[name])} kB`)
  const entries = new Set(Object.keys(committed).map((label) => featureOf(label).entry))
  const without = Object.keys(packageExports)
    .filter((entry) => entry !== './package.json' && !entries.has(entry))
    .map((entry) => `no row measures "${entry}"`)
  return [...over, ...without]
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
    'Measures what each import costs. Exits with 1 when one is over its ceiling, or an entry has no row.',
  options: { update: { text: 'writes the table, and its copy in docs/performance.md' } },
})
const committed = JSON.parse(readFileSync(tableFile, 'utf8'))
const measured = await measureAll(Object.keys(committed))
console.log(printed(committed, measured))
if (values.update) update(measured)
else {
  const found = objections(committed, measured)
  for (const objection of found) console.error(objection)
  if (found.length > 0) console.error('If this is meant: npm run size -- --update')
  process.exitCode = found.length > 0 ? 1 : 0
}
