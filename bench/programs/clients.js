/**
 * Both clients, connected the same way: MQTT 5.0 over TCP, no keep-alive, no reconnect, and a receive window that is not the limit.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'
import mqttjs from 'mqtt'
import { connect } from 'mqwire'
import compat from 'mqwire/compat'

let clients = 0

/** What a connection over TLS needs to trust a certificate; undefined without a file. */
export function secured(file) {
  return file === undefined ? undefined : { ca: readFileSync(file) }
}

/** A connected MQTT.js client; with `mqwire/compat` as `library`, what stands in for it. */
export async function openMqttJs(port, options = {}, library = mqttjs) {
  const client = library.connect(`${options.ca ? 'mqtts' : 'mqtt'}://127.0.0.1:${port}`, {
    protocolVersion: 5,
    keepalive: 0,
    reconnectPeriod: 0,
    clientId: `js-${process.pid}-${threadId}-${clients++}`,
    ...options,
  })
  client.on('error', () => undefined)
  await once(client, 'connect')
  return client
}

/** A connected client of `mqwire/compat`. */
export function openCompat(port, options) {
  return openMqttJs(port, options, compat)
}

/** A connected mqwire client. */
export function openMqwire(port, options = {}) {
  const { tls, ...others } = options
  const url = `${tls ? 'mqtts' : 'mqtt'}://127.0.0.1:${port}`
  return connect(tls ? { url, tls } : url, {
    keepAlive: false,
    reconnect: false,
    receiveMaximum: 65_535,
    clientId: `wire-${process.pid}-${threadId}-${clients++}`,
    ...others,
  })
}
