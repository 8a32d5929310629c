/**
 * The rows of sockets: one connection to a peer that is not the limit, in a process of its own for each pair, MQTT.js and mqwire in turns.
 */
import { profileProgram, runProgram } from '../child.js'
import { median, spread } from '../statistics.js'

/** Rounds and their length, by thoroughness. */
export function effort(quick) {
  return quick ? { rounds: 3, seconds: 0.25 } : { rounds: 9, seconds: 0.4 }
}

/** Rates of each round as a share of a bare socket's. */
export function limitOf(rates, bareRates, of) {
  return {
    of,
    share: median(rates) / median(bareRates),
    spread: spread(rates.map((rate, round) => rate / bareRates[round])),
  }
}

/**
 * Ratio and figures of the results of `alternate`: messages per second, and microseconds of processor time a message. With a third candidate, such as a
 * bare socket, also the share of its rate.
 */
export function compared({ mqwire, 'MQTT.js': peer, ...limits }, name = 'MQTT.js') {
  const [[of, bare] = []] = Object.entries(limits)
  const rates = (results) => results.map(({ rate }) => rate)
  const middle = (results) => median(rates(results))
  const processor = (results) => median(results.map(({ user, system }) => user + system))
  return {
    ratio: middle(mqwire) / middle(peer),
    spread: spread(mqwire.map(({ rate }, round) => rate / peer[round].rate)),
    ...(bare && { limit: limitOf(rates(mqwire), rates(bare), of) }),
    mqwire: middle(mqwire),
    peer: middle(peer),
    peerName: name,
    figures: 'msgs/s',
    processor: {
      mqwire: processor(mqwire),
      peer: processor(peer),
      ratio: processor(mqwire) / processor(peer),
    },
  }
}

/** Processor time a million of one candidate beside that of another; `keys` are `user`, `system` or both. */
export function processorOf(results, keys, peerName = 'MQTT.js', name = 'mqwire') {
  const of = (side) => results[side].map((each) => keys.reduce((sum, key) => sum + each[key], 0))
  const [ours, theirs] = [of(name), of(peerName)]
  const [mqwire, peer] = [median(ours), median(theirs)]
  const apart = spread(ours.map((each, round) => each / theirs[round]))
  return { ratio: mqwire / peer, spread: apart, mqwire, peer, peerName, figures: 's' }
}

/** What explains a row that is missed: mqwire alone, under the profiler. */
const alone = (program, settings) => async (port) =>
  profileProgram(program, { port, ...settings, only: 'mqwire', rounds: 5, seconds: 0.4 })

const informative = {}

const against = (part, program) => (settings, target, name, basic) => ({
  part,
  basic,
  rows: { [name]: target },
  profile: async ({ peer }) => alone(program, settings)((await peer()).port),
  async run({ peer, quick }) {
    const { results } = await runProgram(program, {
      port: (await peer()).port,
      ...effort(quick),
      ...settings,
    })
    return { [name]: compared(results) }
  },
})
const receiving = against('receive', 'receive.js')
const sending = against('send', 'send.js')

/** The same over TLS: the peer in Node, with a certificate of its own. */
const overTls = (program, settings, target, name) => ({
  part: 'tls',
  lacks: ({ has }) => (has.openssl ? undefined : 'openssl not found'),
  rows: { [name]: target },
  async run({ tlsPeer, quick }) {
    const { port, ca } = await tlsPeer()
    const { results } = await runProgram(program, { port, ca, ...effort(quick), ...settings })
    return { [name]: compared(results) }
  },
})

/** The same over WebSocket, through a relay that is not the limit. */
const overWebSocket = (settings, target, name) => ({
  part: 'websocket',
  rows: { [name]: target },
  async run({ relay, quick }) {
    const { url } = await relay()
    const { results } = await runProgram('receive.js', { url, ...effort(quick), ...settings })
    return { [name]: compared(results) }
  },
})

/** What people get who move to `mqwire/compat`: one program for MQTT.js, run with both. */
const moving = (program, settings, name) =>
  against('compat', program)({ ...settings, compat: true }, informative, name)

const startName = "import 'mqwire' in Node: processor time"
const start = {
  part: 'start',
  rows: { [startName]: { lessIsBetter: true } },
  async run({ quick }) {
    const { mqwire, 'MQTT.js': peer } = await runProgram('start.js', { rounds: quick ? 5 : 15 })
    return {
      [startName]: { ratio: mqwire / peer, mqwire, peer, peerName: 'MQTT.js', figures: 'ms' },
    }
  },
}

const target = (atLeast, stretch) => ({ target: `≥ ${atLeast}×`, atLeast, stretch })
const ofBare = (leastShare) => ({
  target: `≥ ${leastShare * 100} % of a bare socket`,
  leastShare,
})
/** Measurements of this part, in order. */
export const sockets = [
  receiving({ mode: 'owned' }, target(7, 9), 'receive QoS 0, for await, owned', true),
  receiving({ mode: 'borrowed' }, target(10, 14), 'receive QoS 0, for await, borrowed', true),
  receiving({ mode: 'batches' }, target(9), 'receive QoS 0, batches'),
  receiving({ mode: 'listen', bare: true }, ofBare(0.5), 'receive QoS 0, listen, borrowed', true),
  receiving({ mode: 'owned', qos: 1 }, target(11, 15), 'receive QoS 1, for await, owned', true),
  receiving({ mode: 'borrowed', qos: 1 }, target(15, 22), 'receive QoS 1, for await, borrowed'),
  receiving({ mode: 'listen', qos: 1 }, target(20), 'receive QoS 1, listen, borrowed'),
  receiving(
    { mode: 'owned', size: 65_536, first: 100, bare: true },
    ofBare(0.8),
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
  sending(
    { mode: 'posted', bare: true },
    ofBare(0.5),
    'send QoS 0, flow-controlled, not awaited',
    true,
  ),
  sending({ mode: 'awaited' }, target(12), 'send QoS 0, each awaited', true),
  sending({ mode: 'window', window: 1000 }, target(15), 'send QoS 1, 1,000 at a time', true),
  sending({ mode: 'window', window: 8 }, informative, 'send QoS 1, 8 at a time, to the peer'),
  sending({ mode: 'window', window: 1 }, informative, 'send QoS 1, one at a time, to the peer'),
  overTls(
    'receive.js',
    { mode: 'owned', bare: true },
    ofBare(0.8),
    'receive QoS 0 over TLS, for await, owned',
  ),
  overTls(
    'receive.js',
    { mode: 'listen', bare: true },
    ofBare(0.8),
    'receive QoS 0 over TLS, listen, borrowed',
  ),
  overTls(
    'send.js',
    { mode: 'posted', bare: true },
    ofBare(0.8),
    'send QoS 0 over TLS, flow-controlled, not awaited',
  ),
  overTls(
    'send.js',
    { mode: 'window', window: 1000 },
    informative,
    'send QoS 1 over TLS, 1,000 at a time',
  ),
  overWebSocket(
    { mode: 'owned', bare: true },
    ofBare(0.7),
    'receive QoS 0 over WebSocket, for await, owned',
  ),
  overWebSocket(
    { mode: 'listen', bare: true },
    ofBare(0.7),
    'receive QoS 0 over WebSocket, listen, borrowed',
  ),
  moving('receive.js', {}, 'receive QoS 0, a program for MQTT.js with mqwire/compat'),
  moving('receive.js', { qos: 1 }, 'receive QoS 1, a program for MQTT.js with mqwire/compat'),
  moving(
    'send.js',
    { mode: 'window', window: 1000 },
    'send QoS 1, 1,000 at a time, a program for MQTT.js with mqwire/compat',
  ),
  start,
]
