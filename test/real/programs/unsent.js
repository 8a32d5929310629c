/** Ends with `process.exit()` once clients that were never ended are collected: then nothing listens for the end any more. Run with --expose-gc. */
import { Client } from 'mqwire'
import { print } from './print.js'

/** Node has listeners of its own. */
const before = process.listenerCount('exit')
for (let count = 0; count < 1000; count++)
  new Client(process.env.MQTT_URL).publish('unsent', 'x', { qos: 1 })
for (let round = 0; round < 50 && process.listenerCount('exit') > before; round++) {
  globalThis.gc()
  await new Promise((resolve) => setTimeout(resolve, 10))
}
print({ listeners: process.listenerCount('exit') - before })
process.exit(0)
