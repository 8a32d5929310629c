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

/** A server is a port of this machine, or a URL. */
const urlOf = (scheme, server) =>
  typeof server === 'string' ? server : `${scheme}://127.0.0.1:${server}`

/** What a connection over TLS needs to trust a certificate; undefined without a file. */
export function secured(file) {
  return file === undefined ? undefined : { ca: readFileSync(file) }
}

/** A connected MQTT.js client; with `mqwire/compat` as `library`, what stands in for it. */
export async function openMqttJs(server, options = {}, library = mqttjs) {
  const client = library.connect(urlOf(options.ca ? 'mqtts' : 'mqtt', server), {
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
export function openMqwire(server, options = {}) {
  const { tls, ...others } = options
  const url = urlOf(tls ? 'mqtts' : 'mqtt', server)
  return connect(tls ? { url, tls } : url, {
    keepAlive: false,
    reconnect: false,
    receiveMaximum: 65_535,
    clientId: `wire-${process.pid}-${threadId}-${clients++}`,
    ...others,
  })
}
