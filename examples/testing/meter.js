/**
 * A water meter: it publishes a reading each minute, and says whether it is online.
 *
 *     node examples/testing/meter.js    connects to MQTT_URL, or mqtt://127.0.0.1:1883; Ctrl-C stops it
 *
 * What it takes from the outside world is its third argument, so that a test can put another world in its place: see meter.test.js.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, exponential } from 'mqwire'

const real = { connect, sleep, now: Date.now }
const status = 'meters/7/status'
const kept = { qos: 1, retain: true }

/** Runs until the signal aborts; gives how many readings arrived, and how many were too old when the link was back. */
export async function runMeter(url, signal, { connect, sleep, now } = real) {
  const client = await connect(url, {
    clientId: 'meter-7',
    keepAlive: 60, // seconds
    cleanStart: false, // the broker keeps our session while we are away
    sessionExpiryInterval: 3600, // seconds
    will: { topic: status, payload: 'offline', ...kept, properties: { willDelayInterval: 300 } }, // seconds: short losses are not reported
    reconnect: { backoff: exponential({ max: 60_000 }) },
  })
  const result = { arrived: 0, expired: 0 }
  const report = async () => {
    const reading = JSON.stringify({ at: now() })
    try {
      // A reading that could not be delivered for ten minutes is worth nothing.
      await client.publish('meters/7/reading', reading, {
        qos: 1,
        properties: { messageExpiryInterval: 600 },
      })
      result.arrived += 1
    } catch (error) {
      if (error.code !== 'ERR_EXPIRED') throw error
      result.expired += 1
    }
  }

  client.on('connect', () => void client.publish(status, 'online', kept)) // after each reconnect
  await client.publish(status, 'online', kept)
  while (!signal.aborted) {
    void report()
    await sleep(60_000, undefined, { signal }).catch(() => undefined)
  }
  await client.publish(status, 'offline', kept)
  await client.disconnect()
  return result
}

if (globalThis.process?.argv[1]?.endsWith('meter.js')) {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())
  console.log('Ctrl-C stops the meter.')
  console.log(await runMeter(process.env.MQTT_URL || 'mqtt://127.0.0.1:1883', stop.signal))
}
