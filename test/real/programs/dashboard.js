/**
 * A dashboard: holds the latest reading of every device, and shows them with the state of the connection whenever either changes.
 *
 * It starts whether or not the broker is there. MQTT_URL says where that is; SIGTERM ends it.
 */
import { Client, exponential } from 'mqwire'
import { print } from './print.js'

const client = new Client(process.env.MQTT_URL, {
  firstConnect: 'wait',
  reconnect: { backoff: exponential({ min: 20, max: 100 }) },
})
const values = new Map()

function show() {
  print({ state: client.state, values: Object.fromEntries(values) })
}

client.on('state', show)
process.once('SIGTERM', () => client.disconnect())

// Routed from now on, granted when there is a connection.
const readings = client.subscription('site/+/temperature', { qos: 1 })
client.connect().catch((error) => print({ failed: error.code }))

for await (const message of readings) {
  const [, device] = message.topic.split('/')
  values.set(device, message.json())
  show()
}
