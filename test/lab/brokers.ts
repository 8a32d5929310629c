/**
 * Real brokers: the features of `test/real`, ordinary programs (`test/real/programs`), and the tests of MQTT.js for its own client against
 * `mqwire/compat`. A broker whose toolchain is missing is left out, with the reason.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { doctors } from '../real/doctors.js'
import { ordinary } from '../real/programs/main.js'
import type { Lab, Result } from './lab.js'

export const about =
  '`suites` of test/real and others on real brokers; `programs [all] [NAME ...]`: ordinary ones, broker by broker; ' +
  '`write`: every feature on every broker, into test/real/MATRIX.md; `doctor`: what the doctor says of each, into docs/cli.md; `compat`: the tests of a checkout of MQTT.js that MQWIRE_MQTTJS names'
export const minutes = 4

const suiteNames = [
  ...['real/', 'lab/brokers/', 'unit/compat/', 'broker/outside', 'unit/typed/mosquitto'].map(
    (name) => `test/${name}`,
  ),
  'test/unit/client/large-uploads-sockets',
  'test/cli/doctor',
]

async function write(lab: Lab): Promise<Result> {
  const report = path.join(lab.root, 'node_modules', '.cache', 'mqwire', 'interop.json')
  const files = [
    'real/aedes',
    'real/mosquitto',
    'real/mosquitto-transports',
    'lab/brokers/mochi',
    'lab/brokers/hivemq',
  ].map((name) => `test/${name}.`)
  const result = await lab.vitest(files, { env: { MQWIRE_PATIENCE: '40000' }, report })
  const { writeFeatures } = await import('../real/matrix.js')
  writeFeatures(JSON.parse(readFileSync(report, 'utf8')))
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
    findings:
      code === 0
        ? []
        : [{ what: `the run ended with ${code}`, command: 'npm run lab -- brokers compat' }],
  }
}

export async function run(lab: Lab): Promise<Result> {
  const suites = (): Promise<Result> =>
    lab.vitest(suiteNames, { env: { MQWIRE_PATIENCE: '40000' } })
  const [word, ...words] = lab.words
  if (word === undefined || word === 'suites') return suites()
  if (word === 'programs') return ordinary(lab, words)
  if (word === 'write') return write(lab)
  if (word === 'compat') return compat(lab)
  if (word === 'doctor') return doctors(lab)
  throw new Error(
    `there is no ${word} in brokers; there are: suites, programs, write, doctor, compat`,
  )
}
