/**
 * Two brokers, one client: it counts at the first that answers, and moves on to the other when that is gone. No number is left out; one may come
 * twice, because an acknowledgement may be lost together with its connection.
 *
 *     node examples/small/failover.js    with MQTT_URLS, or mqtt://127.0.0.1:1883 and mqtt://127.0.0.1:1884; Ctrl-C stops
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, exponential } from 'mqwire'

const urls = (process.env.MQTT_URLS || 'mqtt://127.0.0.1:1883 mqtt://127.0.0.1:1884').split(' ')

// Each failure moves on to the next in the list; what works is kept.
const client = new Client(urls, { reconnect: { backoff: exponential({ min: 200, max: 10_000 }) } })
client.on('connect', ({ endpoint }) => console.log(`Connected to ${endpoint}`))
client.on('disconnect', ({ error }) => error && console.log(`Lost: ${error.message}`))

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())

await client.connect()
try {
  for (let number = 1; ; number += 1) {
    // Fulfils with the acknowledgement, be it that of the other broker.
    await client.publish('failover/count', String(number), { qos: 1, signal: stop.signal })
    console.log(`Counted ${number}`)
    await sleep(100, undefined, { signal: stop.signal })
  }
} catch (error) {
  if (error.name !== 'AbortError') throw error
}
await client.disconnect()
console.log('Stopped.')
