/**
 * Runs the ordinary programs of `test/programs/ordinary` on real brokers, and says of each what was lost, what came twice and who ended connections.
 *
 *     npm run programs                 mqwire on mosquitto, mochi, aedes and the broker of mqwire/testing, over TCP, default options
 *     npm run programs -- --all        HiveMQ CE and Artemis too (Java 17 and Maven), WebSocket, windows, MQTT.js beside; writes test/programs/MATRIX.md
 *     npm run programs -- --help       which programs, brokers, transports and windows
 *
 * With `--seeds`, `--defect`, `--defects` or `--replay` it is the finder of `test/finder` instead, which writes programs at random:
 *
 *     npm run programs -- --seeds N [--seed FIRST] [--worlds virtual,tcp,mosquitto] [--limit SECONDS] [--jobs N]
 *     npm run programs -- --defects | --defect NAME    planted defects, which must be found
 *     npm run programs -- --replay FILE                a program as a finding prints it
 *
 * Exits with 1 when a program failed. Writes the table, and else below node_modules/.cache only.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire')

/** In one file, each module still finds what lies beside its source. */
const places = {
  name: 'places',
  setup(build) {
    build.onLoad({ filter: /[\\/]test[\\/].*\.ts$/ }, ({ path: file }) => ({
      contents: readFileSync(file, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href)),
      loader: 'ts',
    }))
  },
}

const entry = process.argv[2]?.startsWith('--') === false ? process.argv.splice(2, 1)[0] : 'main'
const finder = process.argv.some((argument) => /^--(seeds|defects?|replay)(=|$)/.test(argument))
mkdirSync(cache, { recursive: true })
const outfile = path.join(cache, `programs-${process.pid}.mjs`)
await esbuild.build({
  absWorkingDir: root,
  entryPoints: [finder ? 'test/finder/main.ts' : `test/programs/ordinary/${entry}.ts`],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  packages: 'external',
  plugins: [places],
  logLevel: 'warning',
})
process.chdir(root)
process.once('exit', () => rmSync(outfile, { force: true }))
await import(pathToFileURL(outfile).href)
