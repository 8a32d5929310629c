/**
 * A service that does every job at least once: a job is written to a file before it is acknowledged, and the broker keeps what comes while the
 * service is down.
 *
 * MQTT_URL, CLIENT_ID, FILTER and FILE say where it works. SIGTERM lets the job in hand end, and then says goodbye.
 */
import { open } from 'node:fs/promises'
import { connect, constant } from 'mqwire'
import { print } from './print.js'

const { MQTT_URL, CLIENT_ID, FILTER, FILE } = process.env
const file = await open(FILE, 'a')
const client = await connect(MQTT_URL, {
  clientId: CLIENT_ID,
  cleanStart: false,
  sessionExpiryInterval: 3600,
  // All that the broker may have in flight: mosquitto sends one more than it is told before version 2.0.13.
  receiveMaximum: 65_535,
  reconnect: { backoff: constant(20) },
})

async function handle(message) {
  await file.appendFile(`${message.text()}\n`)
  await file.datasync()
}

await client.listen(FILTER, handle, { qos: 1 })
process.once('SIGTERM', () => client.disconnect())
print({ state: 'ready' })

const error = await client.closed
await file.close()
print({ state: 'closed', error: error?.code })
