/**
 * Runs our codec against three foreign ones: bundles test/differential with src, and prints findings, judgements and one summary line.
 *
 *     node .ci/differential.mjs [--packets N] [--seed S] [--only CODEC] [--limit SECONDS]
 *     node .ci/differential.mjs --defect NAME [...]   the same with a planted defect
 *     node .ci/differential.mjs --defects             each planted defect in turn, until the comparison that is named for it finds it
 *
 * CODEC is mqtt-packet, paho.golang or mochi-mqtt; the latter two need Go, and are left out where it is missing, with the reason printed.
 * Exits with 1 when something was found (with --defects: when a defect was not). Writes below node_modules/.cache only.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire', `differential-${process.pid}`)

/** In one file, each module still finds what lies beside its source; the text of a defect is replaced. */
function sources(defect) {
  const file = defect && path.join(root, 'src', defect.file)
  return {
    name: 'sources',
    setup(build) {
      build.onLoad({ filter: /[\\/](test|src)[\\/].*\.ts$/ }, ({ path: name }) => {
        const text = readFileSync(name, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(name).href))
        if (name !== file) return { contents: text, loader: 'ts' }
        const times = text.split(defect.find).length - 1
        if (times !== 1) throw new Error(`defect '${defect.name}': its text occurs ${times} times in src/${defect.file}`)
        return { contents: text.replace(defect.find, () => defect.replace), loader: 'ts' }
      })
    },
  }
}

async function load(entry, name, defect) {
  const outfile = path.join(cache, `${name}.mjs`)
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: [`test/differential/${entry}.ts`],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    plugins: [sources(defect)],
    logLevel: 'silent',
  })
  return import(pathToFileURL(outfile).href)
}

/** Each planted defect with the same packets, to the first finding. */
async function tryDefects() {
  const { defects } = await load('defects', 'defects')
  let missed = 0
  for (const [index, defect] of defects.entries()) {
    const { search } = await load('main', `defect-${index}`, defect)
    const { finding, packets } = await search(defect.by)
    if (finding === undefined) missed += 1
    console.log(`${defect.name} | ${finding ?? 'NOT FOUND'} | ${packets} packets`)
  }
  console.log(`differential: ${defects.length} defects, ${missed} not found`)
  return missed === 0
}

/** A whole run, with a planted defect where one is named. */
async function compare({ defect: name, ...settings }) {
  if (name === undefined) return (await load('main', 'main')).main(settings)
  const { defects } = await load('defects', 'defects')
  const defect = defects.find((each) => each.name === name)
  if (defect === undefined) throw new Error(`there is no such defect; there are: ${defects.map((each) => each.name).join(', ')}`)
  return (await load('main', 'main', defect)).main(settings)
}

const { values } = argumentsOf({
  usage: 'npm run differential -- [options]',
  about: 'Runs our codec against three foreign ones. Exits with 1 when something was found (with --defects: when a defect was not).',
  options: {
    packets: { value: 'N', number: [0], whole: true, initial: 100_000, text: 'how many packets; with the default every judgement applies' },
    seed: { value: 'N', number: [0], whole: true, initial: 1, text: 'what they are' },
    only: { value: 'CODEC', text: 'mqtt-packet, paho.golang or mochi-mqtt; the latter two need Go (default: all that are there)' },
    limit: { value: 'S', number: [0], initial: 600, text: 'stops after so many seconds' },
    defect: { value: 'NAME', text: 'with a planted defect' },
    defects: { text: 'each planted defect in turn, until the comparison that is named for it finds it' },
  },
})
mkdirSync(cache, { recursive: true })
process.chdir(root)
try {
  const { defects, ...settings } = values
  const good = defects ? await tryDefects() : await compare(settings)
  process.exitCode = good ? 0 : 1
} finally {
  rmSync(cache, { recursive: true, force: true })
}
