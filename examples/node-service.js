/**
 * A service that handles jobs at QoS 1 and loses none: a job is acknowledged when its handler is done, and the session outlives the process, so
 * that the broker keeps what comes in while it is down. It reconnects by itself. SIGTERM lets the running job end, then says goodbye.
 *
 *     node examples/node-service.js            subscribes to jobs/# at MQTT_URL, or mqtt://127.0.0.1:1883
 *     mosquitto_pub -q 1 -t jobs/1 -m hello    gives it something to do
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'mqwire'

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'

// A session belongs to a client id: give each instance of the service one of its own.
const clientId = process.env.CLIENT_ID || 'node-service'
const client = await connect(url, {
  clientId,
  cleanStart: false,
  sessionExpiryInterval: 24 * 60 * 60,
})

async function handle(message) {
  console.log(`${message.topic}: begun${message.redelivered ? ', once more' : ''}`)
  await sleep(100) // the work itself
  console.log(`${message.topic}: done (${message.text()})`)
}

await client.listen('jobs/#', handle, { qos: 1 })
client.on('disconnect', ({ error }) => {
  if (error !== undefined) console.log(`Connection lost (${error.code}): trying again.`)
})
client.on('connect', ({ sessionPresent }) =>
  console.log(
    sessionPresent ? 'Connected again.' : 'Connected again, to a broker that has forgotten us.',
  ),
)

for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => {
    console.log('Stopping after the job in hand.')
    client.disconnect({ timeout: 10_000 })
  })
}

console.log(`Waiting for jobs as ${client.clientId}. SIGTERM or Ctrl-C stops.`)
const error = await client.closed
console.log(error === undefined ? 'Stopped.' : `Stopped: ${error.message}`)
process.exitCode = error === undefined ? 0 : 1
