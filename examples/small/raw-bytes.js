/**
 * Payloads are bytes. One message carries a record of seven of them, written and read with a DataView; another carries an array of numbers as it is.
 *
 *     node examples/small/raw-bytes.js    at MQTT_URL, or mqtt://127.0.0.1:1883
 */
import { connect } from 'mqwire'

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'

function encode({ sensor, celsius, humidity }) {
  const view = new DataView(new ArrayBuffer(7))
  view.setUint16(0, sensor)
  view.setFloat32(2, celsius)
  view.setUint8(6, humidity)
  return view
}

function decode({ buffer, byteOffset, byteLength }) {
  const view = new DataView(buffer, byteOffset, byteLength)
  return { sensor: view.getUint16(0), celsius: view.getFloat32(2), humidity: view.getUint8(6) }
}

const client = await connect(url)
const subscription = await client.subscribe(['raw/record', 'raw/samples'], { qos: 1 })

// Anything that is bytes may be published: ArrayBuffer, DataView, Uint8Array, Buffer, Float32Array.
const properties = { contentType: 'application/octet-stream' }
await client.publish('raw/record', encode({ sensor: 7, celsius: 21.5, humidity: 40 }), {
  qos: 1,
  properties,
})
await client.publish('raw/samples', Float32Array.of(0.25, -0.5, 1), { qos: 1, properties })

const record = await subscription.next()
console.log(
  `${record.topic}: ${record.payloadLength} bytes, ${Buffer.from(record.payload).toString('hex')}`,
)
console.log(decode(record.payload))

// A payload lies alone in its ArrayBuffer, so that other arrays can look at it without a copy.
const samples = await subscription.next()
console.log(`${samples.topic}: ${new Float32Array(samples.payload.buffer).join(', ')}`)

samples.ack() // asking for the next message would have done it
await client.disconnect()
