/**
 * What it costs to begin: processor time of a process that imports a client and ends, less that of one that imports nothing.
 *
 * Settings: `rounds`. The candidates go in turns; files are in the cache of the system after the first round, which does not count.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from '../statistics.js'
import { finish, settings } from './rounds.js'

const { rounds = 15 } = settings
const imports = { bare: '', mqwire: "import 'mqwire'", 'MQTT.js': "import 'mqtt'" }
const cwd = fileURLToPath(new URL('.', import.meta.url))

/** Milliseconds of processor time of one process. */
function run(text) {
  const report = ';const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)'
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', `${text}${report}`],
    { cwd, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stderr)
  return Number(stdout)
}

const times = { bare: [], mqwire: [], 'MQTT.js': [] }
for (let round = 0; round <= rounds; round++) {
  for (const [name, text] of Object.entries(imports)) {
    const time = run(text)
    if (round > 0) times[name].push(time)
  }
}
const bare = median(times.bare)
finish({ mqwire: median(times.mqwire) - bare, 'MQTT.js': median(times['MQTT.js']) - bare, bare })
