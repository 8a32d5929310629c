/**
 * Durable publishes beside what they stand on, and beside MQTT.js: entries of a queue over LevelDB beside bare LevelDB, a queue of a million entries, QoS 1
 * publishes of a client with a store beside those of MQTT.js with mqtt-level-store, and a client without a store beside itself before there were any.
 *
 *     node bench/durable/main.js [--quick] [--only PART]
 *
 * All in turns, medians; against mosquitto where it is installed, else the peer of this folder. Exits with 1 when a target is missed.
 */
import { argumentsOf } from '../../examples/arguments.js'
import { baseOf } from '../base.js'
import { runProgram } from '../child.js'
import { machine } from '../measure.js'
import { find, mosquittoVersion, startMosquitto, startPeer } from '../peers/index.js'
import { figure } from '../report.js'
import { median, verdict } from '../statistics.js'

const { values } = argumentsOf({
  usage: 'node bench/durable/main.js [options]',
  about:
    'Times durable queues and publishes beside bare LevelDB and MQTT.js. Exits with 1 when a target is missed. Run it on a quiet machine.',
  options: {
    quick: { text: 'fewer rounds, and a queue of 100,000 entries, in about a minute' },
    only: {
      value: 'PART',
      many: true,
      text: 'queue, opening, publish or plain; may be given several times',
    },
    base: {
      value: 'COMMIT',
      initial: 'a3e811d',
      text: 'the commit that a client without a store is measured beside',
    },
  },
  notes: ['BENCH_WITHOUT=mosquitto takes it for missing.'],
})
const { quick } = values
const rounds = (full) => (quick ? 3 : full)

let missed = 0

/** One line of a table: what was measured, beside what, and the verdict where there is a target. */
function tell(name, ours, theirs, ratio, target) {
  const said = target === undefined ? '–' : verdict(ratio, target)
  if (said === 'missed') missed += 1
  const limit =
    target === undefined
      ? '–'
      : target.atMost === undefined
        ? `≥ ${target.atLeast}`
        : `≤ ${target.atMost}`
  console.log(`| ${name} | ${ours} | ${theirs} | ${figure(ratio)} | ${limit} | ${said} |`)
}

const head = (what, ours, theirs) =>
  console.log(
    `\n| ${what} | ${ours} | ${theirs} | ratio | target | |\n| --- | ---: | ---: | ---: | --- | --- |`,
  )

async function queue({ port }) {
  head(
    'queue, entries a second',
    'mqwire',
    'LevelDB, the same batches as arrays (filled step by step)',
  )
  for (const durability of ['sync', 'os']) {
    for (const shared of [false, true]) {
      const settings = {
        port,
        durability,
        shared,
        rounds: rounds(9),
        entries: quick ? 4000 : 20_000,
      }
      const { stored, drained } = await runProgram('durable/queue.js', settings, {
        timeout: 600_000,
      })
      const row = (name, { mqwire, arrays, steps }, target) => {
        const [ours, theirs, fastest] = [mqwire, arrays, steps].map(median)
        tell(
          `${durability}: ${name}`,
          figure(ours),
          `${figure(theirs)} (${figure(fastest)})`,
          theirs / ours,
          target,
        )
      }
      // Storing is the same in both.
      if (!shared) {
        row('stored, one at a time', stored[1], { atMost: 1.5 })
        row('stored, 100 at once', stored[100], { atMost: 1.5 })
      }
      row(
        `drained, ${shared ? "in the store of the client's session" : 'in a store of its own'}`,
        drained,
        { atMost: 1.5 },
      )
    }
  }
}

async function opening() {
  const entries = quick ? 100_000 : 1_000_000
  const half = await runProgram(
    'durable/opening.js',
    { entries: entries / 2 },
    { timeout: 600_000 },
  )
  const whole = await runProgram('durable/opening.js', { entries }, { timeout: 600_000 })
  const name = (count) => `${count.toLocaleString('en')} entries`
  head('opening a queue', name(entries), name(entries / 2))
  const ms = (value) => `${Math.round(value)} ms`
  const mib = (value) => `${value.toFixed(1)} MiB`
  tell('until it publishes, ÷ 2,000 ms', ms(whole.opened), ms(half.opened), whole.opened / 2000, {
    atMost: 1,
  })
  tell('memory of the process', mib(whole.memory), mib(half.memory), whole.memory / half.memory, {
    atMost: 1.1,
  })
}

async function publish({ port }) {
  head('durable QoS 1 publishes a second', 'mqwire', 'MQTT.js, mqtt-level-store (unsynced)')
  for (const atOnce of [1, 100]) {
    const results = await runProgram(
      'durable/publish.js',
      { port, atOnce, rounds: rounds(11), seconds: quick ? 0.2 : 0.4 },
      { timeout: 600_000 },
    )
    const rate = (name) => median(results[name].map((each) => each.rate))
    const theirs = rate('MQTT.js')
    const how = atOnce === 1 ? 'one by one' : `${atOnce} at once`
    const row = (durability, target) =>
      tell(
        `${durability}: ${how}`,
        figure(rate(durability)),
        figure(theirs),
        rate(durability) / theirs,
        target,
      )
    row('os', atOnce === 100 ? { atLeast: 3 } : undefined)
    row('sync', undefined)
  }
}

async function plain() {
  const base = await baseOf(values.base)
  if (base === undefined)
    return console.log(
      `\nskipped: a client without a store: commit ${values.base} cannot be built here`,
    )
  const { port } = await peer()
  head('a client without a store, processor µs a message', 'now', values.base)
  for (const [mode, count] of Object.entries({
    'receive 0': 200_000,
    'receive 1': 50_000,
    'publish 1': 30_000,
    'publish 2': 20_000,
  })) {
    const runs = []
    for (const first of ['base', 'now']) {
      const settings = {
        port,
        base,
        mode,
        first,
        rounds: quick ? 4 : 30,
        count: quick ? count / 4 : count,
      }
      runs.push(
        await runProgram('durable/plain.js', settings, {
          flags: ['--expose-gc'],
          timeout: 600_000,
        }),
      )
    }
    const ratios = runs.map((costs) => median(costs.now.map((cost, at) => cost / costs.base[at])))
    const cost = (name) => figure(median(runs.flatMap((costs) => costs[name])))
    tell(mode.replace(' ', ', QoS '), cost('now'), cost('base'), Math.sqrt(ratios[0] * ratios[1]), {
      atMost: 1.05,
    })
  }
}

const parts = { queue, opening, publish, plain }
const started = []

async function peer() {
  const server = await startPeer()
  started.push(server)
  return server
}

async function broker() {
  if (find('mosquitto') === undefined) return peer()
  const server = await startMosquitto()
  started.push(server)
  return server
}

async function main() {
  const unknown = values.only.find((name) => parts[name] === undefined)
  if (unknown !== undefined)
    throw new Error(`no part is called ${unknown}: ${Object.keys(parts).join(', ')}`)
  const server = await broker()
  const version =
    find('mosquitto') === undefined
      ? 'the peer of the benchmark'
      : `mosquitto ${mosquittoVersion()}`
  console.log(`${machine()}, ${version}. 256 bytes a message.`)
  for (const [name, measure] of Object.entries(parts))
    if (values.only.length === 0 || values.only.includes(name)) await measure(server)
  if (missed > 0) process.exitCode = 1
}

try {
  await main()
} finally {
  for (const server of started) server.stop()
}
