/**
 * Ends with `process.exit()` while publishes are on their way, or not.
 *
 * MODE says which; MQTT_URL is a broker, CLOSED_URL a port where nobody listens.
 */
import { Client, connect } from 'mqwire'
import { print } from './print.js'

const { MQTT_URL, CLOSED_URL, MODE } = process.env
/** Node has listeners of its own. */
const before = process.listenerCount('exit')

const modes = {
  async flying() {
    const client = await connect(MQTT_URL, { clientId: 'sender' })
    client.publish('unsent', 'x', { qos: 1 })
    client.publish('unsent', 'x', { qos: 2 })
  },
  async disconnected() {
    const client = await connect(MQTT_URL, { clientId: 'sender' })
    let acknowledged = 0
    for (let count = 0; count < 200; count++)
      client.publish('unsent', 'x', { qos: 1 }).then(() => acknowledged++)
    await client.disconnect()
    print({ acknowledged })
  },
  async hurried() {
    const client = await connect(MQTT_URL, { clientId: 'sender' })
    for (let count = 0; count < 200; count++) client.publish('unsent', 'x', { qos: 1 })
    await client.disconnect({ timeout: 0 })
  },
  async queued() {
    const client = new Client(CLOSED_URL, { clientId: 'sender', firstConnect: 'wait' })
    client.connect().catch(() => undefined)
    client.publish('unsent', 'x', { qos: 1 })
  },
  // Nobody holds them, and they were never ended: they are collected, and then nothing listens for the end any more.
  async dropped() {
    for (let count = 0; count < 1000; count++)
      new Client(MQTT_URL).publish('unsent', 'x', { qos: 1 })
    for (let round = 0; round < 50 && process.listenerCount('exit') > before; round++) {
      globalThis.gc()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  },
}

await modes[MODE]()
print({ listeners: process.listenerCount('exit') - before })
process.exit(0)
