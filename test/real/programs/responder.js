/** Answers requests on service/square with the square of the number in them. MQTT_URL says where; SIGTERM ends it. */
import { connect, constant } from 'mqwire'
import { print } from './print.js'

const client = await connect(process.env.MQTT_URL, { reconnect: { backoff: constant(20) } })
await client.respond('service/square', (message) => String(Number(message.text()) ** 2), { qos: 1 })
process.once('SIGTERM', () => client.disconnect())
print({ state: 'ready' })

const error = await client.closed
print({ state: 'closed', error: error?.code })
