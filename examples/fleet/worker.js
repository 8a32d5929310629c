/**
 * One member of a fleet: it takes its share of the jobs, and leaves without losing any.
 *
 *     node examples/fleet/worker.js --id worker-1    works for MQTT_URL, or mqtt://127.0.0.1:1883
 *
 * Its session belongs to its client identifier, and outlives it: a broker keeps what a killed process had, and gives it to the process that comes back under the
 * same name. SIGTERM: it leaves the group, handles what it has, and ends its session. Each line of output is JSON, for the program that started it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, listenShared } from 'mqwire'
import { argumentsOf } from '../arguments.js'

const { values } = argumentsOf({
  usage: 'node examples/fleet/worker.js [options]',
  about: 'Handles its share of the messages of jobs/#, as a member of the group "fleet".',
  options: {
    id: {
      value: 'NAME',
      initial: 'worker-1',
      text: 'client identifier, to which the session belongs',
    },
    hand: {
      value: 'N',
      number: [1, 65_535],
      whole: true,
      initial: 20,
      text: 'jobs that the broker gives it before the first is done',
    },
    work: { value: 'MS', number: [0, 60_000], initial: 5, text: 'milliseconds that a job takes' },
  },
  notes: [
    'MQTT_URL names the broker: mqtt://127.0.0.1:1883, if it is not given. SIGTERM and Ctrl-C: it leaves.',
  ],
})

const tell = (event) => console.log(JSON.stringify(event))

async function work(message) {
  const job = message.topic.slice('jobs/'.length)
  tell({ began: job })
  await sleep(values.work)
  tell({ done: job })
}

const client = new Client(process.env.MQTT_URL || 'mqtt://127.0.0.1:1883', {
  clientId: values.id,
  cleanStart: false,
  sessionExpiryInterval: 3600,
  // What is in its hands is what a kill makes somebody do again.
  receiveMaximum: values.hand,
})
// Before the connection: what the session kept has a handler from the first moment.
const [jobs] = await Promise.all([
  listenShared(client, 'fleet', 'jobs/#', work, { qos: 1, concurrency: 4 }),
  client.connect(),
])
tell({ ready: values.id })

async function leave() {
  // The broker gives it nothing more; what it has is handled.
  await jobs
    .drain({ timeout: 20_000 })
    .catch((error) => console.error(`Not everything was handled: ${error.message}`))
  // Not coming back under this name: the session ends.
  await client.disconnect({ sessionExpiryInterval: 0 })
  tell({ left: values.id })
}

for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => void leave())
const error = await client.closed
if (error !== undefined) {
  console.error(`The worker stops: ${error.message}`)
  process.exitCode = 1
}
