/**
 * Garbage and delays of the event loop while messages come at a steady rate. Wants `--expose-gc`.
 *
 * Settings: `port`, `mode`, `rate` (messages a second), `seconds` of each turn, `turns`, `latency`. MQTT.js and mqwire take turns.
 *
 * With `latency`, how late messages are read instead, in milliseconds: since the time in their payload at which they were due, whether or not the peer could
 * send them then. What waits behind a message that is late is late as well.
 */
import { createHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { median } from '../statistics.js'
import { consumers, mqttJsConsumer, unlessClosed } from '../workloads/consumers.js'
import { openMqttJs, openMqwire } from './clients.js'
import { allocated } from './heap.js'
import { finish, settings } from './rounds.js'

const { port, mode = 'listen', rate = 100_000, seconds = 4, turns = 3, latency = false } = settings
let late = createHistogram()
// From the clock of this process to the one of the machine, in microseconds.
const apart = Number(process.hrtime.bigint() / 1000n) - performance.now() * 1000

function recordDelay(payload) {
  const due = (payload[0] << 24) | (payload[1] << 16) | (payload[2] << 8) | payload[3]
  late.record(Math.max(1, (Math.round(performance.now() * 1000 + apart) - due) | 0))
  return payload.length
}

const wishOf = (count) => ({
  filters: ['plants/#', `N${count}/256/0/${rate}${latency ? '/1' : ''}`],
  qos: 0,
  count,
  read: latency ? recordDelay : false,
})

async function measured(work, count) {
  if (latency) {
    late = createHistogram()
    await work()
    const of = (share) => late.percentile(share) / 1000
    return { p50: of(50), p99: of(99), p999: of(99.9) }
  }
  const delays = monitorEventLoopDelay({ resolution: 1 })
  const garbage = await allocated(async () => {
    delays.enable()
    await work()
    delays.disable()
  })
  return {
    bytes: garbage.heap / count,
    outside: garbage.external / count,
    p99: delays.percentile(99) / 1e6,
  }
}

const candidates = {
  async mqwire(count) {
    const client = await openMqwire(port)
    return {
      done: () => unlessClosed(client, consumers[mode](client, wishOf(count)), 60_000, mode),
      close: () => client.destroy(),
    }
  },
  async 'MQTT.js'(count) {
    const client = await openMqttJs(port)
    return { done: () => mqttJsConsumer(client, wishOf(count)), close: () => client.end(true) }
  },
}

const results = { mqwire: [], 'MQTT.js': [] }
for (let turn = -1; turn < turns; turn++) {
  for (const [name, open] of Object.entries(candidates)) {
    const count = Math.round(rate * (turn < 0 ? 2 : seconds))
    const { done, close } = await open(count)
    const result = await measured(done, count)
    close()
    // The first turn warms up.
    if (turn >= 0) results[name].push(result)
  }
}
const middle = (name, key) => median(results[name].map((result) => result[key]))
const of = (name) =>
  Object.fromEntries(Object.keys(results[name][0]).map((key) => [key, middle(name, key)]))
finish({ mqwire: of('mqwire'), 'MQTT.js': of('MQTT.js') })
