/**
 * The rows of clients that are not written in JavaScript: the same work against the C peer, client and peer on a core each, every client in the fastest of
 * its settings, in turns with mqwire. Figures to know, without a target.
 */
import { spawnSync } from 'node:child_process'
import { pinned, runProgram } from '../child.js'
import { build } from '../native/index.js'
import { startPeer } from '../peers/index.js'
import { median, paired, spread } from '../statistics.js'

/** Arguments behind port, count, QoS and concurrency; all are tried, the fastest counts. */
const natives = {
  'paho.golang': { language: 'go', settings: [[]] },
  // Threads of the runtime, and capacity of the channel of requests.
  rumqttc: {
    language: 'rust',
    settings: [
      [1, 10],
      [1, 1000],
    ],
  },
  // Without and with a thread of the library for the network.
  libmosquitto: { language: 'c', settings: [[0], [1]] },
  'HiveMQ MQTT Client': { language: 'java', settings: [[]] },
}

const sending = { program: 'send.js', qos: 1 }
const work = {
  'send QoS 0': { ...sending, qos: 0, concurrency: 1, count: 200_000, ours: { mode: 'posted' } },
  'send QoS 1 × 8': {
    ...sending,
    concurrency: 8,
    count: 40_000,
    ours: { mode: 'window', window: 8 },
  },
  'send QoS 1 × 1,000': { ...sending, concurrency: 1000, count: 50_000, ours: { mode: 'window' } },
  'receive QoS 0': {
    program: 'receive.js',
    qos: 0,
    concurrency: 0,
    count: 200_000,
    ours: { mode: 'listen' },
  },
}

function rateOf({ command, folder }, parameters) {
  const [first, ...rest] = pinned(0, [...command, ...parameters.map(String)])
  const run = spawnSync(first, rest, { cwd: folder, encoding: 'utf8', timeout: 120_000 })
  const rate = Number(run.stdout)
  if (run.status !== 0 || !(rate > 0))
    throw new Error(`${command.join(' ')} ended with ${run.status}: ${run.stderr}`)
  return rate
}

const against = (peer, name) => {
  const title = `${name}, a core each, against ${peer}`
  const { language, settings } = natives[peer]
  const { program, qos, concurrency, count, ours } = work[name]
  return {
    part: 'native',
    rows: { [title]: {} },
    async run({ has, quick, find }) {
      if (!has.cc) return { [title]: { skipped: 'cc not found' } }
      const built = build(language, find)
      if (built.reason !== undefined) return { [title]: { skipped: built.reason } }
      const { port, stop } = await startPeer(1)
      const total = quick ? count / 4 : count
      const mine = []
      const theirs = settings.map(() => [])
      try {
        for (let round = 0; round < (quick ? 1 : 3); round++) {
          const { results } = await runProgram(
            program,
            { port, ...ours, only: 'mqwire', rounds: 1, count: total, warmUp: 1 },
            { core: 0 },
          )
          mine.push(results.mqwire[0].rate)
          for (const [index, more] of settings.entries())
            theirs[index].push(rateOf(built, [port, total, qos, concurrency, ...more]))
        }
      } finally {
        stop()
      }
      const fastest = theirs.reduce((one, other) => (median(other) > median(one) ? other : one))
      return {
        [title]: {
          ratio: paired(fastest, mine),
          spread: spread(mine.map((rate, round) => rate / fastest[round])),
          mqwire: median(mine),
          peer: median(fastest),
          peerName: peer,
          figures: 'msgs/s',
        },
      }
    },
  }
}

/** Measurements of this part, in order. */
export const native = Object.keys(work).flatMap((name) =>
  Object.keys(natives).map((peer) => against(peer, name)),
)
