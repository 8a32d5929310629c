/**
 * Calls `disconnect({ timeout: 0 })` in one of the states of a client, and must then end by itself.
 *
 * STATE says in which; MQTT_URL is a broker, SILENT_URL a port that takes connections and says nothing, CLOSED_URL one where nobody listens.
 */
import { Client, constant } from 'mqwire'
import { print } from './print.js'

const { MQTT_URL, SILENT_URL, CLOSED_URL, STATE } = process.env
const long = {
  reconnect: { backoff: constant(3_600_000) },
  firstConnect: 'wait',
  connectTimeout: 3_600_000,
}
const forever = new Promise(() => undefined)

function next(client, type) {
  return new Promise((resolve) => client.on(type, resolve, { once: true }))
}

// Each gives a client in its state, with everything pending that can be.
const states = {
  idle: async () => new Client(MQTT_URL, long),
  async connected() {
    const client = new Client(MQTT_URL, {
      ...long,
      stats: true,
      credentials: async () => ({ expiresAt: Date.now() + 3_600_000 }),
    })
    await client.connect()
    return client
  },
  async handshake() {
    const client = new Client(SILENT_URL, long)
    const dialled = next(client, 'dial')
    client.connect().catch(() => undefined)
    await dialled
    await new Promise((resolve) => setTimeout(resolve, 50))
    return client
  },
  async credentials() {
    const client = new Client(MQTT_URL, { ...long, credentials: () => forever })
    client.connect().catch(() => undefined)
    return client
  },
  async waiting() {
    const client = new Client(CLOSED_URL, long)
    const waiting = next(client, 'reconnecting')
    client.connect().catch(() => undefined)
    await waiting
    return client
  },
  async reconnecting() {
    const client = new Client(MQTT_URL, long)
    await client.connect()
    client.setBrokers(CLOSED_URL)
    // The one that it chose itself is at once.
    const waiting = new Promise((resolve) => {
      client.on('reconnecting', ({ delay }) => delay > 0 && resolve())
    })
    client.reconnect({ force: true }).catch(() => undefined)
    await waiting
    return client
  },
}

const client = await states[STATE]()
const pending = [
  client.publish('exit', 'x', { qos: 1, ackTimeout: 3_600_000, ttl: 3_600_000 }),
  client.subscription('exit', { qos: 1 }).next(),
]
const settled = Promise.allSettled(pending)
const state = client.state
const started = performance.now()
await client.disconnect({ timeout: 0 })
const outcomes = (await settled).map(
  ({ reason, value }) => reason?.code ?? String(value?.reasonCode ?? value),
)
print({ state, now: client.state, outcomes, milliseconds: Math.round(performance.now() - started) })
