/**
 * Connect, subscribe, publish, read three messages with `for await`, say goodbye.
 *
 *     node examples/small/basic.js    at MQTT_URL, or mqtt://127.0.0.1:1883
 */
import { connect } from 'mqwire'

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'

const client = await connect(url)
console.log(`Connected as ${client.clientId}.`)

const subscription = await client.subscribe('basic/+', { qos: 1 })
for (const colour of ['red', 'green', 'blue']) {
  await client.publish(`basic/${colour}`, JSON.stringify({ colour }), { qos: 1 }) // fulfils when the broker has it
}

let count = 0
for await (const message of subscription) {
  console.log(`${message.topic}: ${message.json().colour}`)
  count += 1
  if (count === 3) break // leaving the loop unsubscribes
}

await client.disconnect()
console.log('Disconnected.')
