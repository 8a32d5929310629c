/**
 * The rows of many quiet clients: what they cost, in one process and over threads, and what it takes until all are back after the server has ended all of
 * their connections. Each client has a process of its own, in turns.
 */
import { spawnSync } from 'node:child_process'
import { runProgram } from '../child.js'
import { median, spread } from '../statistics.js'

const flags = ['--expose-gc']

/** Results of `idle.js` by client, some rounds of them. */
async function inTurns(clients, rounds, settings) {
  const runs = Object.fromEntries(clients.map((client) => [client, []]))
  for (let round = 0; round < rounds; round++)
    for (const client of clients)
      runs[client].push(await runProgram('idle.js', { client, ...settings }, { flags }))
  return runs
}

/** Figures of both clients; `ratio` is the one of mqwire. */
function figuresOf(runs, key, unit, figures) {
  const of = (client) => median(runs[client].map((run) => run[key])) / unit
  const [mqwire, peer] = [of('mqwire'), of('MQTT.js')]
  return { ratio: mqwire, mqwire, peer, peerName: 'MQTT.js', figures }
}

/** The same, with `ratio` to MQTT.js. */
function besideMqttJs(runs, key, unit, figures) {
  const row = figuresOf(runs, key, unit, figures)
  const ratios = runs.mqwire.map((run, round) => run[key] / runs['MQTT.js'][round][key])
  return { ...row, ratio: row.mqwire / row.peer, spread: spread(ratios) }
}

/** The same, and how near it is to bare sockets. */
function besideBare(runs, key, unit, figures) {
  const row = besideMqttJs(runs, key, unit, figures)
  const bare = runs['bare socket'].map((run) => run[key])
  const shares = runs.mqwire.map((run, round) => bare[round] / run[key])
  return {
    ...row,
    limit: { of: 'bare socket', share: median(shares), spread: spread(shares) },
    note: `a bare socket: ${(median(bare) / unit / row.peer).toFixed(2)}× MQTT.js's`,
  }
}

const noSlower = { target: "≤ 1× MQTT.js's", atMost: 1 }
const small = { target: '≤ 22 KiB', atMost: 22, unit: 'KiB' }
const clients = ['mqwire', 'MQTT.js', 'bare socket']

const names = {
  time: '2,000 idle clients: time to connect',
  heap: '2,000 idle clients: heap each, KiB',
  resident: '2,000 idle clients: resident memory each, KiB',
  rest: '2,000 idle clients: processor at rest, % of a core',
}

const oneProcess = {
  part: 'idle',
  rows: {
    [names.time]: { ...noSlower, stretch: 0.6 },
    [names.heap]: { target: '≤ 8 KiB', atMost: 8, unit: 'KiB' },
    [names.resident]: small,
    [names.rest]: { target: '≤ 1 %', atMost: 1, unit: '%' },
  },
  async run({ peer, quick, mosquitto, has }) {
    const { port } = has.mosquitto ? await mosquitto() : await peer()
    const runs = await inTurns(clients, quick ? 1 : 3, { port, rest: quick ? 500 : 3000 })
    return {
      [names.time]: besideBare(runs, 'milliseconds', 1, 'ms'),
      [names.heap]: figuresOf(runs, 'heap', 1024, 'KiB'),
      [names.resident]: figuresOf(runs, 'resident', 1024, 'KiB'),
      [names.rest]: figuresOf(runs, 'rest', 0.01, '%'),
    }
  },
}

const many = {
  time: '10,000 clients over 4 threads: time to connect',
  processor: '10,000 clients over 4 threads: processor time to connect',
  resident: '10,000 clients over 4 threads: resident memory each, KiB',
}
const wantedFiles = 10_500

/** Files that a process may have open: a socket is one, here and in the broker. */
function fileLimit() {
  const { stdout } = spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' })
  return stdout?.trim() === 'unlimited' ? Number.POSITIVE_INFINITY : Number(stdout)
}

const overThreads = {
  part: 'idle',
  lacks({ has }) {
    if (!has.mosquitto) return 'mosquitto not found'
    const limit = fileLimit()
    return limit >= wantedFiles ? undefined : `${limit} open files a process (ulimit -n)`
  },
  rows: { [many.time]: noSlower, [many.processor]: noSlower, [many.resident]: small },
  async run({ quick, mosquitto }) {
    const { port } = await mosquitto()
    const settings = { port, count: 10_000, threads: 4, rest: 0 }
    const runs = await inTurns(clients, quick ? 1 : 3, settings)
    return {
      [many.time]: besideBare(runs, 'milliseconds', 1, 'ms'),
      [many.processor]: besideBare(runs, 'processor', 1, 's'),
      [many.resident]: figuresOf(runs, 'resident', 1024, 'KiB'),
    }
  },
}

const back = {
  time: '2,000 clients lose their connections: time until all are subscribed again',
  processor: '2,000 clients lose their connections: processor time until all are subscribed again',
}

const storm = {
  part: 'idle',
  rows: { [back.time]: noSlower, [back.processor]: noSlower },
  async run({ peer, quick }) {
    const settings = { port: (await peer()).port, storm: true }
    const runs = await inTurns(clients.slice(0, 2), quick ? 1 : 5, settings)
    const note = 'both reconnect after 1 ms, the shortest delay that MQTT.js takes'
    return {
      [back.time]: { ...besideMqttJs(runs, 'milliseconds', 1, 'ms'), note },
      [back.processor]: besideMqttJs(runs, 'processor', 1, 's'),
    }
  },
}

/** Measurements of this part, in order. */
export const idle = [oneProcess, overThreads, storm]
