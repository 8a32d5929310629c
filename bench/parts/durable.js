/**
 * The rows of what is kept in LevelDB: entries of a queue beside bare LevelDB, a queue of a million entries, QoS 1 publishes of a client with a store and of
 * a queue beside those of MQTT.js with mqtt-level-store, and a client without a store beside itself before there were any. 256 bytes a message; against
 * mosquitto where it is installed, else the peer.
 */

import { baseOf } from '../base.js'
import { runProgram } from '../child.js'
import { median, spread } from '../statistics.js'

const patient = { timeout: 600_000 }
const portOf = async ({ has, mosquitto, peer }) =>
  (has.mosquitto ? await mosquitto() : await peer()).port
const besides = (ours, theirs) => spread(ours.map((each, round) => each / theirs[round]))

const ofLevel = { target: '≥ 1/1.5 of bare LevelDB', atLeast: 1 / 1.5 }

const queue = (durability, shared) => {
  const titleOf = (what) => `queue over LevelDB, ${durability}: ${what}`
  // What is stored costs the same in both.
  const rows = {
    ...(!shared && {
      [titleOf('stored one at a time')]: ({ stored }) => stored[1],
      [titleOf('stored 100 at once')]: ({ stored }) => stored[100],
    }),
    [titleOf(`drained${shared ? ', in the store of its session' : ''}`)]: ({ drained }) => drained,
  }
  return {
    part: 'durable',
    rows: Object.fromEntries(Object.keys(rows).map((title) => [title, ofLevel])),
    async run(context) {
      const { quick } = context
      const settings = {
        port: await portOf(context),
        durability,
        shared,
        rounds: quick ? 3 : 9,
        entries: quick ? 4000 : 20_000,
      }
      const results = await runProgram('durable/queue.js', settings, patient)
      const row = ({ mqwire: ours, arrays, steps }) => {
        const [mqwire, peer] = [median(ours), median(arrays)]
        return {
          ratio: mqwire / peer,
          spread: besides(ours, arrays),
          mqwire,
          peer,
          peerName: 'bare LevelDB, the same batches',
          figures: 'entries/s',
          note: `batches that are filled step by step: ${Math.round(median(steps))} entries/s`,
        }
      }
      return Object.fromEntries(
        Object.entries(rows).map(([title, pick]) => [title, row(pick(results))]),
      )
    },
  }
}

const openingTitles = {
  time: 'a queue of 1,000,000 entries: until it publishes, ms',
  memory: 'a queue of 1,000,000 entries: memory beside one of half as many',
}

const opening = {
  part: 'durable',
  rows: {
    [openingTitles.time]: { target: '≤ 2,000 ms', atMost: 2000, unit: 'ms' },
    [openingTitles.memory]: { target: '≤ 1.1×', atMost: 1.1 },
  },
  async run({ quick }) {
    const entries = quick ? 100_000 : 1_000_000
    const open = (count) => runProgram('durable/opening.js', { entries: count }, patient)
    const half = await open(entries / 2)
    const whole = await open(entries)
    const row = (key, figures) => ({
      mqwire: whole[key],
      peer: half[key],
      peerName: 'half as many',
      figures,
    })
    return {
      [openingTitles.time]: { ratio: whole.opened, ...row('opened', 'ms') },
      [openingTitles.memory]: { ratio: whole.memory / half.memory, ...row('memory', 'MiB') },
    }
  },
}

const publishing = (atOnce) => {
  const how = atOnce === 1 ? 'one at a time' : `${atOnce} at once`
  const atLeast = (least) => ({ target: `≥ ${least}×`, atLeast: least })
  const titles = {
    os: `QoS 1 kept in LevelDB, ${how}`,
    sync: `QoS 1 kept in LevelDB, synced, ${how}`,
    queue: `QoS 1 through a queue over LevelDB, ${how}`,
  }
  return {
    part: 'durable',
    rows: {
      [titles.os]: atOnce === 1 ? {} : atLeast(3),
      [titles.sync]: {},
      [titles.queue]: {},
    },
    async run(context) {
      const { quick } = context
      const settings = {
        port: await portOf(context),
        atOnce,
        rounds: quick ? 3 : 11,
        seconds: quick ? 0.2 : 0.4,
      }
      const results = await runProgram('durable/publish.js', settings, patient)
      const rates = (name) => results[name].map(({ rate }) => rate)
      const processor = (name) => median(results[name].map(({ user, system }) => user + system))
      const row = (name) => ({
        ratio: median(rates(name)) / median(rates('MQTT.js')),
        spread: besides(rates(name), rates('MQTT.js')),
        mqwire: median(rates(name)),
        peer: median(rates('MQTT.js')),
        peerName: 'MQTT.js, mqtt-level-store',
        figures: 'msgs/s',
        processor: { ratio: processor(name) / processor('MQTT.js') },
        note: 'mqtt-level-store does not sync',
      })
      return Object.fromEntries(Object.entries(titles).map(([name, title]) => [title, row(name)]))
    },
  }
}

/** The last commit before there were stores. */
const before = 'a3e811d'

const plain = (mode, count) => {
  const title = `${mode.replace(' ', ', QoS ')}, without a store, beside ${before}: CPU`
  return {
    part: 'durable',
    rows: { [title]: { target: '≤ 1.05×', atMost: 1.05 } },
    async run({ peer, quick }) {
      const base = await baseOf(before)
      if (base === undefined) return { [title]: { skipped: `${before} cannot be built here` } }
      const { port } = await peer()
      const runs = []
      for (const first of ['base', 'now']) {
        const settings = {
          ...{ port, base, mode, first },
          rounds: quick ? 4 : 30,
          count: quick ? count / 4 : count,
        }
        runs.push(
          await runProgram('durable/plain.js', settings, { flags: ['--expose-gc'], ...patient }),
        )
      }
      const ratios = runs.map((costs) => median(costs.now.map((cost, at) => cost / costs.base[at])))
      const cost = (name) => median(runs.flatMap((costs) => costs[name]))
      return {
        [title]: {
          ratio: Math.sqrt(ratios[0] * ratios[1]),
          mqwire: cost('now'),
          peer: cost('base'),
          peerName: before,
          figures: 'µs',
        },
      }
    },
  }
}

/** Measurements of this part, in order. */
export const durable = [
  ...['sync', 'os'].flatMap((durability) => [queue(durability, false), queue(durability, true)]),
  opening,
  publishing(1),
  publishing(100),
  plain('receive 0', 200_000),
  plain('receive 1', 50_000),
  plain('publish 1', 30_000),
  plain('publish 2', 20_000),
]
