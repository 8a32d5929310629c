/**
 * Looks for an order of modules in which a bundle for browsers compresses better, and writes it into `src/client/parts.ts`.
 *
 *     node .ci/order.mjs [SECONDS]    default 120; then build, and `npm run size -- --update`
 *
 * gzip looks back 32 kB only, so that modules which say the like should stand near each other. The search moves a few modules at a time, keeps what
 * is smaller and, less and less often, what is not; what a module imports stays in front of it. It assumes that `dist/` is up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const listFile = path.join(root, 'src', 'client', 'parts.ts')
const { operand } = argumentsOf({
  usage: 'node .ci/order.mjs [SECONDS]',
  about: 'Looks for an order of modules in which a bundle for browsers compresses better, and writes it into src/client/parts.ts.',
  operand: { value: 'SECONDS', text: 'how long it looks (default 120)' },
})
const time = Number(operand ?? 120) * 1000

const { outputFiles, metafile } = await build({
  stdin: { contents: "export { connect } from './dist/client/browser.js'", resolveDir: root },
  absWorkingDir: root,
  bundle: true,
  minify: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  platform: 'browser',
  outfile: 'bundle.js',
  legalComments: 'none',
  metafile: true,
})

/** The modules in the order of the bundle, each with its text and everything that it needs. */
function modules() {
  const { text } = outputFiles[0]
  let at = 0
  return Object.entries(Object.values(metafile.outputs)[0].inputs).map(([file, { bytesInOutput }]) => {
    at += bytesInOutput
    return { file, text: text.slice(at - bytesInOutput, at), needs: [...needsOf(file)].filter((other) => other !== file) }
  })
}

function needsOf(file, found = new Set()) {
  for (const { path: other } of metafile.inputs[file].imports) {
    if (found.has(other)) continue
    found.add(other)
    needsOf(other, found)
  }
  return found
}

const all = modules()
// The entry meets its transports first, and is the last one itself.
const transports = all.filter(({ file }) => file.startsWith('dist/transport/'))
const early = new Set(transports.flatMap(({ file, needs }) => [file, ...needs]))
const isLate = ({ file }) => file === '<stdin>' || /dist\/client\/(browser|parts|runtime)\.js$/.test(file)
const first = all.filter(({ file }) => early.has(file))
const last = all.filter(isLate)
const start = all.filter((each) => !early.has(each.file) && !isLate(each))
const movable = new Set(start.map(({ file }) => file))
for (const each of start) each.needs = each.needs.filter((file) => movable.has(file))

const sizeOf = (order) => gzipSync([...first, ...order, ...last].map(({ text }) => text).join(''), { level: 9 }).length

function isPossible(order) {
  const before = new Set()
  return order.every(({ file, needs }) => {
    const met = needs.every((other) => before.has(other))
    before.add(file)
    return met
  })
}

const below = (limit) => Math.floor(Math.random() * limit)

function moved(order) {
  const next = [...order]
  const taken = next.splice(below(next.length), Math.random() < 0.35 ? 1 + below(5) : 1)
  next.splice(below(next.length + 1), 0, ...taken)
  return next
}

function search() {
  let current = { order: start, size: sizeOf(start) }
  let best = current
  const begin = Date.now()
  for (let passed = 0; passed < 1; passed = (Date.now() - begin) / time) {
    const order = moved(current.order)
    if (!isPossible(order)) continue
    const next = { order, size: sizeOf(order) }
    const worse = -25 * Math.max(0, 0.8 - passed) * Math.log(1 - Math.random())
    if (next.size <= current.size + worse) current = next
    if (next.size < best.size) best = next
  }
  return best
}

function lineOf({ file }) {
  const source = file.replace(/^dist\//, '').replace(/\.js$/, '')
  const text = readFileSync(path.join(root, 'src', `${source}.ts`), 'utf8')
  const [, name] = /^export (?:async )?(?:class|function|const|let) (\w+)/m.exec(text) ?? []
  if (name === undefined) throw new Error(`${source} exports nothing that could be listed`)
  const names = source === 'client/client' ? 'BaseClient, opened' : name
  return `export { ${names} } from '${source.startsWith('client/') ? `./${source.slice(7)}` : `../${source}`}.js'\n`
}

const best = search()
const head = readFileSync(listFile, 'utf8')
  .split('\n')
  .filter((line) => !line.startsWith('export '))
writeFileSync(listFile, `${head.join('\n').trimEnd()}\n${best.order.map(lineOf).join('')}`)
console.log(`${sizeOf(start)} -> ${best.size} bytes`)
