/**
 * The broker of the demo: that of `mqwire/testing` in this process, over TCP and WebSocket on free ports, or the one that MQTT_URL names.
 *
 * The embedded one can be told to lose or repeat messages, to show that the check at the other end notices.
 */
import { MemoryBroker } from 'mqwire/testing'

/** A broker that is there already. */
export function foreignBroker(url) {
  const { host, protocol } = new URL(url)
  return { urls: [url], name: `${protocol}//${host}`, foreign: true, stop: async () => {} }
}

/** Starts a broker in this process; `faults.lose(qos)` and `faults.repeat(qos)` decide for each message whether that happens to it. */
export async function startBroker({ lose, repeat }) {
  const broker = new MemoryBroker({
    // Devices publish at their rate, and the page may stand still for a while: what waits is bounded by bytes, and so is the log.
    maxQueuedMessages: 100_000,
    maxLog: 1000,
    // Asked for each message and receiver.
    authorizeDelivery: (_receiver, { qos }) => (lose(qos) ? 'discard' : true),
  })
  broker.on('publish', ({ message: { topic, payload, qos, from } }) => {
    // What the broker publishes itself comes from nobody.
    if (from !== undefined && repeat(qos)) broker.publish({ topic, payload, qos })
  })
  const { urls } = await broker.serve({ tcp: 0, ws: 0 })
  return { urls, name: 'MemoryBroker, in this process', foreign: false, stop: () => broker.close() }
}
