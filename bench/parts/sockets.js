/**
 * The rows of sockets: one connection to a peer that is not the limit, in a process of its own for each pair, MQTT.js and mqwire in turns.
 */
import { profileProgram, runProgram } from '../child.js'
import { median } from '../statistics.js'

/** Rounds and their length, by thoroughness. */
export function effort(quick) {
  return quick ? { rounds: 3, seconds: 0.25 } : { rounds: 7, seconds: 0.4 }
}

/** Ratio and figures of the results of `alternate`: messages per second, and microseconds of processor time a message. */
export function compared({ mqwire, 'MQTT.js': peer }, name = 'MQTT.js') {
  const middle = (results, key) => median(results.map((result) => result[key]))
  const processor = (results) => median(results.map(({ user, system }) => user + system))
  return {
    ratio: middle(mqwire, 'rate') / middle(peer, 'rate'),
    mqwire: middle(mqwire, 'rate'),
    peer: middle(peer, 'rate'),
    peerName: name,
    figures: 'msgs/s',
    processor: {
      mqwire: processor(mqwire),
      peer: processor(peer),
      ratio: processor(mqwire) / processor(peer),
    },
  }
}

/** What explains a row that is missed: mqwire alone, under the profiler. */
const alone = (program, settings) => async (port) =>
  profileProgram(program, { port, ...settings, only: 'mqwire', rounds: 5, seconds: 0.4 })

const receiving = (settings, target, name, basic) => ({
  part: 'receive',
  basic,
  rows: { [name]: target },
  profile: async ({ peer }) => alone('receive.js', settings)((await peer()).port),
  async run({ peer, quick }) {
    const { results } = await runProgram('receive.js', {
      port: (await peer()).port,
      ...effort(quick),
      ...settings,
    })
    return { [name]: compared(results) }
  },
})

const sending = (settings, target, name, basic) => ({
  part: 'send',
  basic,
  rows: { [name]: target },
  profile: async ({ peer }) => alone('send.js', settings)((await peer()).port),
  async run({ peer, quick }) {
    const { results } = await runProgram('send.js', {
      port: (await peer()).port,
      ...effort(quick),
      ...settings,
    })
    return { [name]: compared(results) }
  },
})

const target = (atLeast, stretch) => ({ target: `≥ ${atLeast}×`, atLeast, stretch })
const informative = {}

const idleNames = {
  time: '2,000 idle clients: time to connect',
  heap: '2,000 idle clients: heap each, KiB',
  resident: '2,000 idle clients: resident memory each, KiB',
  rest: '2,000 idle clients: processor at rest, % of a core',
}

const idle = {
  part: 'idle',
  rows: {
    [idleNames.time]: { target: "≤ 1× MQTT.js's", atMost: 1, stretch: 0.6 },
    [idleNames.heap]: { target: '≤ 8 KiB', atMost: 8, unit: 'KiB' },
    [idleNames.resident]: { target: '≤ 20 KiB', atMost: 20, unit: 'KiB' },
    [idleNames.rest]: { target: '≤ 1 %', atMost: 1, unit: '%' },
  },
  async run({ peer, quick, mosquitto, has }) {
    const { port } = has.mosquitto ? await mosquitto() : await peer()
    const runs = { mqwire: [], 'MQTT.js': [] }
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      for (const client of Object.keys(runs)) {
        runs[client].push(
          await runProgram(
            'idle.js',
            { port, client, rest: quick ? 500 : 3000 },
            { flags: ['--expose-gc'] },
          ),
        )
      }
    }
    const of = (client, key, unit = 1) => median(runs[client].map((run) => run[key])) / unit
    const row = (key, unit, figures) => {
      const [mqwire, other] = [of('mqwire', key, unit), of('MQTT.js', key, unit)]
      return { ratio: mqwire, mqwire, peer: other, peerName: 'MQTT.js', figures }
    }
    const time = row('milliseconds', 1, 'ms')
    return {
      [idleNames.time]: { ...time, ratio: time.mqwire / time.peer },
      [idleNames.heap]: row('heap', 1024, 'KiB'),
      [idleNames.resident]: row('resident', 1024, 'KiB'),
      [idleNames.rest]: row('rest', 0.01, '%'),
    }
  },
}

/** Measurements of this part, in order. */
export const sockets = [
  receiving({ mode: 'owned' }, target(7, 9), 'receive QoS 0, for await, owned', true),
  receiving({ mode: 'borrowed' }, target(10, 14), 'receive QoS 0, for await, borrowed', true),
  receiving({ mode: 'batches' }, target(9), 'receive QoS 0, batches'),
  receiving({ mode: 'listen' }, target(25, 35), 'receive QoS 0, listen, borrowed', true),
  receiving({ mode: 'owned', qos: 1 }, target(11, 15), 'receive QoS 1, for await, owned', true),
  receiving({ mode: 'borrowed', qos: 1 }, target(15, 22), 'receive QoS 1, for await, borrowed'),
  receiving({ mode: 'listen', qos: 1 }, target(25, 40), 'receive QoS 1, listen, borrowed'),
  receiving(
    { mode: 'owned', size: 65_536, first: 100 },
    target(3),
    'receive QoS 0, for await, owned, 64 KiB',
  ),
  receiving(
    { mode: 'owned', scanner: false },
    informative,
    'receive QoS 0, for await, owned, without WebAssembly',
  ),
  receiving(
    { mode: 'listen', scanner: false },
    informative,
    'receive QoS 0, listen, borrowed, without WebAssembly',
  ),
  receiving(
    { mode: 'owned', read: 'payload' },
    informative,
    'receive QoS 0, for await, owned, payload taken as an array',
  ),
  receiving(
    { mode: 'owned', read: 'text' },
    informative,
    'receive QoS 0, for await, owned, payload taken as text',
  ),
  receiving(
    { mode: 'owned', read: 'bytes' },
    informative,
    'receive QoS 0, for await, owned, every byte read',
  ),
  receiving(
    { mode: 'listen', read: 'bytes' },
    informative,
    'receive QoS 0, listen, borrowed, every byte read',
  ),
  receiving(
    { mode: 'owned', properties: 5 },
    informative,
    'receive QoS 0, for await, owned, 5 user properties',
  ),
  receiving(
    { mode: 'owned', qos: 1, receiveMaximum: 256 },
    informative,
    'receive QoS 1, for await, owned, Receive Maximum 256 (the default)',
  ),
  sending({ mode: 'posted' }, target(15, 25), 'send QoS 0, flow-controlled, not awaited', true),
  sending({ mode: 'awaited' }, target(10, 20), 'send QoS 0, each awaited', true),
  sending({ mode: 'window', window: 1000 }, target(12, 24), 'send QoS 1, 1,000 at a time', true),
  sending({ mode: 'window', window: 8 }, informative, 'send QoS 1, 8 at a time, to the peer'),
  sending({ mode: 'window', window: 1 }, informative, 'send QoS 1, one at a time, to the peer'),
  idle,
]
