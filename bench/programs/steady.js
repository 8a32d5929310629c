/**
 * Garbage and delays of the event loop while messages come at a steady rate. Wants `--expose-gc`.
 *
 * Settings: `port`, `mode`, `rate` (messages a second), `seconds` of each turn, `turns`. MQTT.js and mqwire take turns.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { median } from '../statistics.js'
import { consumers, mqttJsConsumer, unlessClosed } from '../workloads/consumers.js'
import { openMqttJs, openMqwire } from './clients.js'
import { allocated } from './heap.js'
import { finish, settings } from './rounds.js'

const { port, mode = 'listen', rate = 100_000, seconds = 4, turns = 3 } = settings
const wishOf = (count) => ({
  filters: ['plants/#', `N${count}/256/0/${rate}`],
  qos: 0,
  count,
  read: false,
})

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
    const delays = monitorEventLoopDelay({ resolution: 1 })
    const garbage = await allocated(async () => {
      delays.enable()
      await done()
      delays.disable()
    })
    close()
    // The first turn warms up.
    if (turn >= 0)
      results[name].push({
        bytes: garbage.heap / count,
        outside: garbage.external / count,
        p99: delays.percentile(99) / 1e6,
      })
  }
}
const middle = (name, key) => median(results[name].map((result) => result[key]))
const of = (name) => ({
  bytes: middle(name, 'bytes'),
  outside: middle(name, 'outside'),
  p99: middle(name, 'p99'),
})
finish({ mqwire: of('mqwire'), 'MQTT.js': of('MQTT.js') })
