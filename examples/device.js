/**
 * A device: tells whether it is online (a retained message, with a will for the case that it vanishes) and publishes a temperature every second.
 *
 *     node examples/device.js [name]    connects to MQTT_URL, or mqtt://127.0.0.1:1883
 */
import { setInterval } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { connect } from 'mqwire'

function nameOf(args) {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: { help: { type: 'boolean' } },
      allowPositionals: true,
    })
    if (values.help !== true) return positionals[0] ?? 'thermometer'
    console.log(
      'Usage: node examples/device.js [name]\n\nPublishes as the device of this name (default thermometer) at MQTT_URL (default mqtt://127.0.0.1:1883).',
    )
    process.exit(0)
  } catch (error) {
    console.error(`${error.message.split('. ')[0]}; --help shows what there is.`)
    process.exit(2)
  }
}

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'
const name = nameOf(process.argv.slice(2))
const topic = `devices/${name}`
const status = { qos: 1, retain: true }

const client = await connect(url, {
  clientId: name,
  keepAlive: 15,
  will: { topic: `${topic}/status`, payload: 'offline', ...status },
})
await client.publish(`${topic}/status`, 'online', status)

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())
client.closed.then(() => stop.abort())
console.log(`${name} is online. Ctrl-C stops it.`)

try {
  for await (const _ of setInterval(1000, undefined, { signal: stop.signal })) {
    const temperature = Math.round(200 + 20 * Math.random()) / 10
    await client.publish(
      `${topic}/temperature`,
      JSON.stringify({ temperature, at: new Date().toISOString() }),
      { qos: 1 },
    )
    console.log(`${topic}/temperature ${temperature}`)
  }
} catch (error) {
  if (error.name !== 'AbortError') throw error
}

if (client.state !== 'closed') await client.publish(`${topic}/status`, 'offline', status)
await client.disconnect()
console.log(`${name} is offline.`)
