/**
 * MQTT over WebSocket: the URL is all that changes. In Node, and not in a page, the handshake may carry headers, for a proxy that wants a token.
 *
 *     node examples/small/websocket.js    at MQTT_URL, or ws://127.0.0.1:9001; TOKEN, where it is set, is sent as a bearer token
 */
import { connect } from 'mqwire'

const { MQTT_URL, TOKEN } = process.env
const url = MQTT_URL || 'ws://127.0.0.1:9001'

const client = await connect(TOKEN ? { url, headers: { authorization: `Bearer ${TOKEN}` } } : url)
console.log(
  `Connected over ${new URL(url).protocol === 'wss:' ? 'a secure' : 'a plain'} WebSocket.`,
)

// A retained message is there for whoever subscribes later, ourselves included.
await client.publish('websocket/greeting', 'Hello over WebSocket', { qos: 1, retain: true })

for await (const message of await client.subscribe('websocket/greeting', { qos: 1 })) {
  console.log(`${message.topic}: ${message.text()}${message.retain ? ' (retained)' : ''}`)
  break
}

await client.disconnect()
