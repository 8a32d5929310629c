/**
 * mqwire beside other clients for JavaScript: what each does on the wire, what it costs to install and to ship.
 *
 *     npm run lab -- docs comparison     asks every client, and writes bench/versus/features.json and the tables of the pages
 *     node bench/versus/main.js --table    asks nobody: writes the tables anew, from what is kept
 *
 * Speeds come from `bench/RESULTS.md`, which `npm run bench` writes. The clients are installed below node_modules/.cache when they are first wanted.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { argumentsOf } from '../../examples/arguments.js'
import { runProgram } from '../child.js'
import { folderOf, install, names as installed } from './install.js'
import { clients, markdown, withTable } from './table.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const file = (name) => path.join(root, name)
const kept = file('bench/versus/features.json')
const pages = ['README.md', 'docs/comparison.md'].map(file)

/** The npm package of a client, and where it is installed. */
const packageOf = (client) => (client === 'MQTT.js' ? 'mqtt' : client)
const folder = (client) => (installed.includes(client) ? folderOf(client) : root)

function manifestAt(place) {
  return JSON.parse(readFileSync(path.join(place, 'package.json'), 'utf8'))
}

/** The folder of a package as another one finds it, or undefined. */
function placeOf(name, from) {
  for (let at = from; ; at = path.dirname(at)) {
    const place = path.join(at, 'node_modules', name)
    if (existsSync(path.join(place, 'package.json'))) return place
    if (at === path.dirname(at)) return undefined
  }
}

/** How many packages come with one, itself included. */
function packagesWith(name, from, seen = new Set()) {
  const place = placeOf(name, from)
  if (place === undefined || seen.has(place)) return seen.size
  seen.add(place)
  for (const dependency of Object.keys(manifestAt(place).dependencies ?? {}))
    packagesWith(dependency, place, seen)
  return seen.size
}

/** What a page ships of it. */
const imports = {
  'MQTT.js': "export { default } from 'mqtt'",
  'u8-mqtt': "export { default } from 'u8-mqtt'",
  'paho-mqtt': "export { default } from 'paho-mqtt'",
  'aws-crt': "export { mqtt5 } from 'aws-crt'",
}

async function gzipOf(client) {
  const { outputFiles } = await build({
    stdin: { contents: imports[client], resolveDir: folder(client) },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    conditions: ['browser'],
    legalComments: 'none',
    logLevel: 'silent',
  })
  return gzipSync(outputFiles[0].contents, { level: 9 }).length
}

/** What is known of a package without running it. mqwire's own size is that of `test/package/sizes.json`. */
async function costs(client) {
  if (client === 'mqwire')
    return { packages: 1 + Object.keys(manifestAt(root).dependencies).length, declarations: true }
  const place = placeOf(packageOf(client), folder(client))
  const { version, types, typings } = manifestAt(place)
  const declarations =
    types !== undefined || typings !== undefined || readdirSync(place).includes('index.d.ts')
  const gzip = await gzipOf(client).catch(() => null)
  return { version, declarations, packages: packagesWith(packageOf(client), folder(client)), gzip }
}

async function ask() {
  const found = {}
  for (const client of clients) {
    const missing = installed.includes(client) ? install(client) : undefined
    if (missing !== undefined) throw new Error(missing)
    console.error(`asking ${client} …`)
    const { answers } = await runProgram(
      'versus-features.js',
      { name: client },
      { timeout: 180_000 },
    )
    found[client] = { ...(await costs(client)), ...answers }
  }
  return found
}

function tableOf(found) {
  const results = readFileSync(file('bench/RESULTS.md'), 'utf8')
  return markdown({
    found,
    results,
    sizes: JSON.parse(readFileSync(file('test/package/sizes.json'), 'utf8')),
  })
}

const { values } = argumentsOf({
  usage: 'node bench/versus/main.js [options]',
  about:
    'Asks mqwire and four other clients what they do on the wire, and writes the tables that compare them.',
  options: { table: { text: 'asks nobody: writes the tables anew, from what is kept' } },
})
const found = values.table ? JSON.parse(readFileSync(kept, 'utf8')) : await ask()
if (!values.table) writeFileSync(kept, `${JSON.stringify(found, null, 2)}\n`)
const table = tableOf(found)
for (const page of pages) writeFileSync(page, withTable(readFileSync(page, 'utf8'), table))
console.log(table)
