/**
 * The rows of native clients: the same work against the same mosquitto, each in the fastest of its settings, in turns with mqwire.
 */
import { spawnSync } from 'node:child_process'
import { runProgram } from '../child.js'
import { build } from '../native/index.js'
import { median } from '../statistics.js'

/** Arguments behind port, count, QoS and concurrency; all are tried, the fastest counts. */
const natives = {
  'paho.golang': { language: 'go', settings: [[]] },
  rumqttc: {
    language: 'rust',
    settings: [
      [1, 10],
      [1, 1000],
      [2, 1000],
    ],
  },
}

function rateOf(program, parameters) {
  const run = spawnSync(program, parameters.map(String), { encoding: 'utf8', timeout: 120_000 })
  const rate = Number(run.stdout)
  if (run.status !== 0 || !(rate > 0))
    throw new Error(`${program} ended with ${run.status}: ${run.stderr}`)
  return rate
}

const work = {
  'QoS 0': { qos: 0, concurrency: 1, count: 200_000, ours: { mode: 'posted' } },
  'QoS 1 × 8': { qos: 1, concurrency: 8, count: 60_000, ours: { mode: 'window', window: 8 } },
}

const against = (peer, name) => {
  const title = `${name} to mosquitto, against ${peer}`
  const { language, settings } = natives[peer]
  const { qos, concurrency, count, ours } = work[name]
  return {
    part: 'native',
    rows: { [title]: { target: 'at least equal (≥ 1×)', atLeast: 1 } },
    async run({ mosquitto, has, quick, find }) {
      if (!has.mosquitto) return { [title]: { skipped: 'mosquitto not found' } }
      const built = build(language, find)
      if (built.reason !== undefined) return { [title]: { skipped: built.reason } }
      const { port } = await mosquitto()
      const total = quick ? count / 4 : count
      const mine = []
      const theirs = settings.map(() => [])
      for (let round = 0; round < (quick ? 2 : 5); round++) {
        const { results } = await runProgram('send.js', {
          port,
          ...ours,
          only: 'mqwire',
          rounds: 1,
          first: total / 5,
          seconds: quick ? 0.3 : 0.8,
        })
        mine.push(results.mqwire[0].rate)
        for (const [index, more] of settings.entries())
          theirs[index].push(rateOf(built.program, [port, total, qos, concurrency, ...more]))
      }
      const peerRate = Math.max(...theirs.map(median))
      return {
        [title]: {
          ratio: median(mine) / peerRate,
          mqwire: median(mine),
          peer: peerRate,
          peerName: peer,
          figures: 'msgs/s',
        },
      }
    },
  }
}

/** Measurements of this part, in order. */
export const native = Object.keys(natives).flatMap((peer) =>
  Object.keys(work).map((name) => against(peer, name)),
)
