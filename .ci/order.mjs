/**
 * Looks for an order of modules, and of the names that the build shortens, in which a bundle for browsers compresses better. Writes them into
 * `src/client/parts.ts` and `.ci/internal-names.json`.
 *
 *     node .ci/order.mjs [SECONDS]    default 120; then build, and `npm run size -- --update`
 *
 * gzip looks back 32 kB only, so that modules which say the like should stand near each other; and a short name costs less where the same letters
 * stand in the same places. The search moves a few modules at a time, or lets two names change places. It keeps what is smaller and, less and less
 * often, what is not; what a module imports stays in front of it. It assumes that `dist/` is up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'
import { shortNames } from './build.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const listFile = path.join(root, 'src', 'client', 'parts.ts')
const namesFile = path.join(root, '.ci', 'internal-names.json')
const { operand } = argumentsOf({
  usage: 'node .ci/order.mjs [SECONDS]',
  about: 'Looks for an order of modules and of internal names in which a bundle for browsers compresses better, and writes both.',
  operand: { value: 'SECONDS', text: 'how long it looks (default 120)' },
})
const time = Number(operand ?? 120) * 1000
/** Bytes by which a step may be worse, about, at the beginning. */
const heat = 8

const names = await shortNames(esbuild)
/** Stand for the short names in the texts: no text has these characters otherwise. */
const firstMark = 0x4e00
const marks = Object.values(names).map((short, index) => [short, String.fromCharCode(firstMark + index)])
const isMark = /[\u4e00-\u6fff]/g

const { outputFiles, metafile } = await esbuild.build({
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
  charset: 'utf8',
  mangleProps: new RegExp(`^(?:${Object.values(names).join('|').replaceAll('$', '\\$')})$`),
  mangleCache: Object.fromEntries(marks),
})

/** The modules in the order of the bundle, each with its text and everything that it needs. */
function modules() {
  const { contents } = outputFiles[0]
  let at = 0
  return Object.entries(Object.values(metafile.outputs)[0].inputs).map(([file, { bytesInOutput }]) => {
    at += bytesInOutput
    return { file, text: textOf(contents.subarray(at - bytesInOutput, at)), needs: [...needsOf(file)].filter((other) => other !== file) }
  })
}

function textOf(bytes) {
  return new TextDecoder().decode(bytes)
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

function sizeOf(order, shorts) {
  const texts = [...first, ...order, ...last].map(({ text }) => text)
  const named = texts.join('').replace(isMark, (mark) => shorts[mark.charCodeAt(0) - firstMark])
  return gzipSync(named, { level: 9 }).length
}

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

const whole = all.map(({ text }) => text).join('')
/** The names that the bundle has; the others lend theirs. */
const used = [...new Set(whole.match(isMark))].map((mark) => mark.charCodeAt(0) - firstMark)

function swapped(shorts) {
  const next = [...shorts]
  const [one, other] = [used[below(used.length)], below(next.length)]
  next[one] = shorts[other]
  next[other] = shorts[one]
  return next
}

const given = { order: start, shorts: Object.values(names) }

function search() {
  let current = { ...given, size: sizeOf(given.order, given.shorts) }
  let best = current
  const begin = Date.now()
  for (let passed = 0; passed < 1; passed = (Date.now() - begin) / time) {
    const moves = Math.random() < 0.5
    const order = moves ? moved(current.order) : current.order
    const shorts = moves ? current.shorts : swapped(current.shorts)
    if (!isPossible(order)) continue
    const next = { order, shorts, size: sizeOf(order, shorts) }
    const worse = -heat * Math.max(0, 0.8 - passed) * Math.log(1 - Math.random())
    if (next.size <= current.size + worse) current = next
    if (next.size < best.size) best = next
  }
  return best
}

function lineOf({ file }) {
  const source = file.replace(/^dist\//, '').replace(/\.js$/, '')
  const text = readFileSync(path.join(root, 'src', `${source}.ts`), 'utf8')
  const [, name] = /^export (?:async |abstract )?(?:class|function|const|let) (\w+)/m.exec(text) ?? []
  if (name === undefined) throw new Error(`${source} exports nothing that could be listed`)
  const names = source === 'client/client' ? 'clientOn, connectWith' : name
  return `export { ${names} } from '${source.startsWith('client/') ? `./${source.slice(7)}` : `../${source}`}.js'\n`
}

const best = search()
const head = readFileSync(listFile, 'utf8')
  .split('\n')
  .filter((line) => !line.startsWith('export '))
writeFileSync(listFile, `${head.join('\n').trimEnd()}\n${best.order.map(lineOf).join('')}`)
const nameOf = Object.fromEntries(Object.keys(names).map((name, index) => [best.shorts[index], name]))
const list = given.shorts.map((short) => nameOf[short])
writeFileSync(namesFile, `${JSON.stringify(list, undefined, 2)}\n`)
console.log(`${sizeOf(given.order, given.shorts)} -> ${best.size} bytes`)
