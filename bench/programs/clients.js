/**
 * Both clients, connected the same way: MQTT 5.0 over TCP, no keep-alive, no reconnect, and a receive window that is not the limit.
 */
import { once } from 'node:events'
import mqttjs from 'mqtt'
import { connect } from 'mqwire'

let clients = 0

/** A connected MQTT.js client. */
export async function openMqttJs(port, options = {}) {
  const client = mqttjs.connect(`mqtt://127.0.0.1:${port}`, {
    protocolVersion: 5,
    keepalive: 0,
    reconnectPeriod: 0,
    clientId: `js-${process.pid}-${clients++}`,
    ...options,
  })
  client.on('error', () => undefined)
  await once(client, 'connect')
  return client
}

/** A connected mqwire client. */
export function openMqwire(port, options = {}) {
  return connect(`mqtt://127.0.0.1:${port}`, {
    keepAlive: false,
    reconnect: false,
    receiveMaximum: 65_535,
    clientId: `wire-${process.pid}-${clients++}`,
    ...options,
  })
}
