/**
 * Real brokers: the features of `test/real`, ordinary programs and random ones (`test/real/programs`, `test/world/finder`), and the tests of MQTT.js for its own
 * client against `mqwire/compat`. A broker whose toolchain is missing is left out, with the reason.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { ordinary } from '../real/programs/ordinary/main.js'
import { bundle, bundles } from '../world/finder/bundle.js'
import { workAll } from '../world/finder/run.js'
import type { Task } from '../world/finder/worker.js'
import { type Lab, type Result, together } from './lab.js'

export const about =
  '`suites` of test/real and others on real brokers; `finder`: random programs, --replay FILE or SEED shows one; `defects`: clients with a defect, which they have to find; `programs [all] [NAME ...]`: ordinary ones, broker by broker; ' +
  '`write`: every feature on every broker, and test/real/MATRIX.md; `compat`: the tests of a checkout of MQTT.js that MQWIRE_MQTTJS names'
export const minutes = 4

/** Seconds of the time that random programs get beside the suites. */
const finderShare = 0.2

const suiteNames = [
  ...['real/', 'lab/brokers/', 'world/finder/', 'unit/compat/', 'broker/outside', 'unit/typed/mosquitto', 'unit/typed/python'].map(
    (name) => `test/${name}`,
  ),
  'test/unit/client/large-uploads-sockets',
]

async function finder(lab: Lab, seconds: number): Promise<Result> {
  const task: Task = {
    worlds: ['virtual', 'tcp'],
    first: lab.seed,
    seeds: Number.MAX_SAFE_INTEGER,
    limit: seconds,
    part: 0,
    parts: 1,
  }
  try {
    const file = await bundle()
    if (lab.replay !== undefined) {
      const replay = /^\d+$/.test(lab.replay) ? lab.replay : readFileSync(lab.replay, 'utf8')
      const { trace } = await workAll(file, { ...task, replay }, 1)
      for (const line of trace) lab.say(line)
      const found = trace.filter((line) => line.startsWith('FINDING'))
      return { did: 'one program', findings: found.map((what) => ({ what, command: `npm run lab -- brokers finder --replay ${lab.replay}` })) }
    }
    const { programs, told } = await workAll(file, task, availableParallelism())
    lab.say(`finder: ${programs} programs, ${told.length} findings`)
    return {
      did: `${programs} random programs`,
      findings: told.map(({ rule, detail, world, seed, program }) => ({
        what: `${rule}: ${detail} (in the world ${world})\n${program}`,
        command: `npm run lab -- brokers finder --replay ${seed}`,
      })),
    }
  } finally {
    rmSync(bundles, { recursive: true, force: true })
  }
}

async function write(lab: Lab): Promise<Result> {
  const report = path.join(lab.root, 'node_modules', '.cache', 'mqwire', 'interop.json')
  const files = ['real/aedes', 'real/mosquitto', 'real/mosquitto-transports', 'lab/brokers/mochi', 'lab/brokers/hivemq'].map(
    (name) => `test/${name}.`,
  )
  const result = await lab.vitest(files, { env: { MQWIRE_PATIENCE: '40000' }, report })
  const { tableOf } = await import('../real/table.js')
  writeFileSync(path.join(lab.root, 'test', 'real', 'MATRIX.md'), tableOf(JSON.parse(readFileSync(report, 'utf8'))))
  return result
}

async function compat(lab: Lab): Promise<Result> {
  const checkout = process.env['MQWIRE_MQTTJS']
  if (checkout === undefined || !existsSync(path.join(checkout, 'test', 'node')))
    return { did: 'nothing', findings: [], skipped: 'MQWIRE_MQTTJS names no checkout of MQTT.js' }
  const { code, output } = await lab.node(['test/unit/compat/mqttjs.mjs', ...lab.words.slice(1)])
  const sum = output.split('\n').find((line) => line.startsWith('| all |')) ?? ''
  return {
    did: `tests of MQTT.js ${sum}`,
    findings: code === 0 ? [] : [{ what: `the run ended with ${code}`, command: 'npm run lab -- brokers compat' }],
  }
}

export async function run(lab: Lab): Promise<Result> {
  const suites = (): Promise<Result> => lab.vitest(suiteNames, { env: { MQWIRE_PATIENCE: '40000' } })
  const [word, ...words] = lab.words
  if (word === undefined) return together(await finder(lab, lab.minutes * 60 * finderShare), await suites())
  if (word === 'suites') return suites()
  if (word === 'finder') return finder(lab, lab.minutes * 60)
  if (word === 'defects') return (await import('../support/checkers.js')).tryDefects(lab, 'brokers', ['programs'])
  if (word === 'programs') return ordinary(lab, words)
  if (word === 'write') return write(lab)
  if (word === 'compat') return compat(lab)
  throw new Error(`there is no ${word} in brokers; there are: suites, finder, defects, programs, write, compat`)
}
