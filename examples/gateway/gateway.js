/**
 * A gateway: it reads a line of sensors from its standard input, and loses nothing that it took, whatever happens to the network, the broker or its power.
 *
 *     node examples/gateway/gateway.js < readings.jsonl    publishes to MQTT_URL, or mqtt://127.0.0.1:1883
 *
 * Each line of input is a reading in JSON: `{"sensor":"oven","number":1,"celsius":181.5}`. A reading is taken once it is on the disk. Measurements are
 * delivered at least once (QoS 1). Pieces are counted by whoever reads them, so those arrive exactly once (QoS 2): for that the queue and the session of
 * the client share one store. On a terminal a bar shows how far the queue has come; elsewhere each line of output is JSON, for the program that started it.
 */
import { createInterface } from 'node:readline'
import { Client, exponential } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { levelStore } from 'mqwire/store/level'
import { argumentsOf } from '../arguments.js'
import { ProgressBar } from './progress.js'

/** Readings that are on their way to the disk at once. */
const together = 100

const { values } = argumentsOf({
  usage: 'node examples/gateway/gateway.js [options] < READINGS',
  about:
    'Takes readings, one line of JSON each, keeps them on the disk, and delivers them whenever there is a broker.',
  options: {
    data: {
      value: 'FOLDER',
      initial: './gateway-data',
      text: 'where they are kept until they are delivered',
    },
    id: {
      value: 'NAME',
      initial: 'gateway',
      text: 'client identifier, to which the session belongs',
    },
  },
  notes: [
    'MQTT_URL names the broker: mqtt://127.0.0.1:1883, if it is not given. Ctrl-C stops; what is not delivered waits for the next start.',
  ],
})

const store = await levelStore(values.data)
const client = new Client(process.env.MQTT_URL || 'mqtt://127.0.0.1:1883', {
  clientId: values.id,
  store,
  // The first connection is waited for like any other.
  firstConnect: 'wait',
  reconnect: { backoff: exponential({ min: 100, max: 1000 }) },
})
const queue = await openQueue(client, {
  store,
  onDeadLetter: ({ entry, error }) => tell({ gaveUp: entry.topic, error: error.code }),
})
// Not awaited: readings are taken from the first moment, whether there is a broker or not. How the connection ends, `closed` says.
client.connect().catch(() => undefined)

const bar = process.stdout.isTTY ? new ProgressBar(process.stdout) : undefined
const lines = createInterface({ input: process.stdin })
let stopped = false

function tell(event) {
  if (bar === undefined) console.log(JSON.stringify(event))
  else if (event.status !== undefined) bar.show(event.status)
  else if (event.gaveUp !== undefined) bar.print(`${event.gaveUp} was given up: ${event.error}`)
}

function stop(error) {
  if (error !== undefined) {
    console.error(`The gateway stops: ${error.message}`)
    process.exitCode = 1
  }
  stopped = true
  lines.close()
}

async function take(line) {
  const reading = JSON.parse(line)
  const qos = 'pieces' in reading ? 2 : 1
  await queue.publish(`plant/${reading.sensor}`, line, { qos })
  tell({ taken: [reading.sensor, reading.number] })
}

async function watch() {
  for await (const status of queue.status()) tell({ status })
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop())
client.closed.then((error) => error && stop(error))
const watching = watch()

const taking = new Set()
for await (const line of lines) {
  if (stopped) break
  const taken = take(line)
    .catch((error) => console.error(`Not taken: ${error.message}`))
    .finally(() => taking.delete(taken))
  taking.add(taken)
  // Readings that come together share one write to the disk.
  if (taking.size >= together) await Promise.race(taking)
}
await Promise.all(taking)
// The input has ended: what is left is delivered before the program ends.
for await (const { pending } of queue.status()) if (pending === 0 || stopped) break

await queue.close()
await watching
await client.disconnect()
await store.close()
bar?.end()
