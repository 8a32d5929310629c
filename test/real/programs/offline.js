/**
 * Publishes again and again while there is no broker, and says what that cost: memory of the process, what became of each publish.
 *
 * PUBLISHES is how many, TTL the milliseconds that each may wait. Run with --expose-gc. Nobody listens at MQTT_URL.
 */
import { Client } from 'mqwire'
import { print } from './print.js'

const publishes = Number(process.env.PUBLISHES)
/** Until every pool has its size, and code is compiled. */
const warmUp = 20_000
const maxQueuedBytes = 1024 * 1024

const client = new Client(process.env.MQTT_URL, {
  firstConnect: 'wait',
  outbound: {
    maxQueuedBytes,
    maxQueuedMessages: 1_000_000,
    overflow: 'drop-oldest',
    ttl: Number(process.env.TTL),
  },
})
client.connect().catch(() => undefined)

const codes = {}
let settled = 0
let mostQueued = 0

function note({ code, outcome }) {
  settled += 1
  codes[`${code} ${outcome}`] = (codes[`${code} ${outcome}`] ?? 0) + 1
}

async function publish(count) {
  let rss = 0
  for (let index = 0; index < count; index += 1) {
    client.publish('offline/t', `${index}`.padEnd(100), { qos: 1 }).catch(note)
    if (index % 1000 === 999) {
      mostQueued = Math.max(mostQueued, client.outbound.size)
      await new Promise((resolve) => setImmediate(resolve))
      rss = Math.max(rss, process.memoryUsage().rss)
    }
  }
  return rss
}

await publish(warmUp)
globalThis.gc()
const before = process.memoryUsage().rss
const most = await publish(publishes)
const left = client.outbound.size
await client.disconnect({ timeout: 0 })
await new Promise((resolve) => setImmediate(resolve))
print({
  before,
  most,
  mostQueued,
  left,
  codes,
  settled,
  published: warmUp + publishes,
  maxQueuedBytes,
})
