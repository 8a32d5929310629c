/**
 * A thousand devices in one process: each connects with its own credentials and publishes its readings; those that the broker does not know fail,
 * alone.
 *
 * MQTT_URL says where the broker is, DEVICES how many there are, UNKNOWN that each such one has a wrong password, READINGS how many each sends.
 */
import { connect } from 'mqwire'
import { print } from './print.js'

const { MQTT_URL } = process.env
const [devices, unknown, readings] = [
  process.env.DEVICES,
  process.env.UNKNOWN,
  process.env.READINGS,
].map(Number)
const refusals = {}
const clients = []

async function start(index) {
  const password = index % unknown === 0 ? 'wrong' : 'secret'
  try {
    clients.push([
      index,
      await connect(MQTT_URL, {
        clientId: `device-${index}`,
        username: 'device',
        password,
        keepAlive: 60,
      }),
    ])
  } catch (error) {
    const reason = `${error.code} ${error.reasonName}`
    refusals[reason] = (refusals[reason] ?? 0) + 1
  }
}

async function report([index, client]) {
  for (let number = 0; number < readings; number += 1)
    await client.publish(`fleet/${index}`, String(number), { qos: 1 })
}

// As a fleet does that is not switched on in one instant.
for (let first = 0; first < devices; first += 100) {
  await Promise.all(
    Array.from({ length: Math.min(100, devices - first) }, (_, offset) => start(first + offset)),
  )
}
const connected = clients.filter(([, client]) => client.state === 'connected').length
await Promise.all(clients.map(report))
await Promise.all(clients.map(([, client]) => client.disconnect()))
print({ connected, refusals })
