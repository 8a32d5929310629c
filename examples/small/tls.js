/**
 * MQTT over TLS. The broker's certificate is verified, chain and name; where it is not good, nothing is sent.
 *
 *     node examples/small/tls.js    at MQTT_URL, or mqtts://localhost:8883
 *
 * CA_FILE is the authority that signed the broker's certificate, where the platform does not know it. CERT_FILE and KEY_FILE are our own certificate
 * and its key, for a broker that asks for one. All of them are PEM.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'mqwire'

const { MQTT_URL, CA_FILE, CERT_FILE, KEY_FILE } = process.env
const url = MQTT_URL || 'mqtts://localhost:8883'
const content = (file) => (file ? readFileSync(file) : undefined)

try {
  const client = await connect({
    url,
    tls: {
      ca: content(CA_FILE),
      cert: content(CERT_FILE),
      key: content(KEY_FILE),
      minVersion: 'TLSv1.2',
    },
  })
  console.log('Connected; the certificate of the broker is good.')
  await client.publish('tls/hello', 'nobody read this on the way', { qos: 1 })
  console.log('Published.')
  await client.disconnect()
} catch (error) {
  if (error.code !== 'ERR_TLS') throw error
  console.log(`Not connected (${error.code}): ${error.message}`)
  process.exitCode = 1
}
