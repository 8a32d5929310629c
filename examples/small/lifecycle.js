/**
 * What happens to a connection, as events: the first attempt, a loss, the waits, the return. The subscription below is made once, and goes on.
 *
 *     node examples/small/lifecycle.js                     reads lifecycle/# at MQTT_URL, or mqtt://127.0.0.1:1883; Ctrl-C stops
 *     mosquitto_pub -q 1 -t lifecycle/hello -m "still there?"    is printed; stop the broker and start it again, and send another
 */
import { Client, exponential } from 'mqwire'

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'

const client = new Client(url, {
  firstConnect: 'wait', // the broker need not be there yet
  reconnect: { backoff: exponential({ min: 200, max: 10_000 }) },
})

client.on('state', ({ previous, state }) => console.log(`[${previous} -> ${state}]`))
client.on('dial', ({ attempt, endpoint }) => console.log(`Attempt ${attempt} at ${endpoint}`))
client.on('connecterror', ({ error }) => console.log(`It failed: ${error.message}`))
client.on('connect', ({ sessionPresent }) =>
  console.log(sessionPresent ? 'Connected, with our session' : 'Connected, with a new session'),
)
client.on('disconnect', ({ error }) =>
  console.log(error === undefined ? 'Disconnected, as we wanted' : `Lost: ${error.message}`),
)
client.on('reconnecting', ({ attempt, delay }) =>
  console.log(`Attempt ${attempt} comes in ${Math.round(delay)} ms`),
)
client.on('sessionlost', ({ republished }) =>
  console.log(`The broker has forgotten us; ${republished.length} publishes are sent anew`),
)

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => client.disconnect())

const subscription = client.subscription('lifecycle/#', { qos: 1 }) // before there is a connection
client.connect().catch(() => {}) // what comes of it is told by the events, and by the loop
for await (const message of subscription) console.log(`${message.topic}: ${message.text()}`)
