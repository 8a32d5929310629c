/** Resets, crashes of the broker and reconnects, again and again, against mosquitto with the built package (`bench/endurance.js`). */
import type { Lab, Result } from './lab.js'

export const about =
  'many messages through resets, kills of mosquitto, thousands of reconnects: `resets`, `crashes`, `leaks`; at full size from --minutes 20 on'
export const minutes = 1

/** Minutes that the full size takes. */
const whole = 20

export async function run(lab: Lab): Promise<Result> {
  const share = Math.min(1, lab.minutes / whole)
  const sizes = {
    messages: Math.round(100_000 * share),
    kills: Math.max(1, Math.round(20 * share)),
    reconnects: Math.round(10_000 * share),
  }
  const given = [
    ...lab.words.map((word) => `--${word}`),
    ...Object.entries(sizes).flatMap(([name, size]) => [`--${name}`, String(size)]),
  ]
  const { code, output } = await lab.node([
    'bench/endurance.js',
    '--seed',
    String(lab.seed),
    ...given,
  ])
  const faults = output.split('\n').filter((line) => line.includes('FAULT: '))
  const command = `npm run lab -- endurance ${lab.words.join(' ')} --seed ${lab.seed} --minutes ${lab.minutes}`
  const what =
    faults.length > 0 ? faults : code === 0 ? [] : [`bench/endurance.js ended with ${code}`]
  return {
    did: `${sizes.messages} messages through resets at each QoS, ${sizes.kills} kills for each kind of memory, ${sizes.reconnects} reconnects`,
    findings: what.map((each) => ({ what: each.trim(), command })),
  }
}
