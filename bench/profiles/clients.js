/**
 * What a profile needs of a client, with mqwire and with MQTT.js: the same program runs with either.
 *
 * `subscribe` calls back for each payload; `publish` settles with the last acknowledgement; `room` settles when more may be posted.
 */
import { once } from 'node:events'
import mqttjs from 'mqtt'
import { connect } from 'mqwire'

/** What ended connections that should have stayed. */
export const ends = []

// With the receive window that MQTT.js has: mosquitto before 2.0.13 exceeds a smaller one, and is then disconnected for it.
const wire = {
  async open(port, clientId) {
    const client = await connect(`mqtt://127.0.0.1:${port}`, {
      clientId,
      keepAlive: 60,
      reconnect: false,
      receiveMaximum: 65_535,
    })
    client.closed.then(
      (error) => error !== undefined && ends.push(`${clientId}: ${error.code} ${error.message}`),
    )
    return {
      async subscribe(filter, qos, callback) {
        const subscription = await client.subscribe(filter, { qos })
        const reading = (async () => {
          for await (const message of subscription) callback(message.payload)
        })()
        reading.catch(() => undefined)
        return () => subscription.dropped
      },
      publish: (topic, payload, qos) => client.publish(topic, payload, { qos }),
      async post(topic, payload) {
        while (!client.post(topic, payload)) await client.writable
      },
      room: () => client.writable,
      close: () => client.destroy(),
    }
  },
}

const js = {
  async open(port, clientId) {
    const client = mqttjs.connect(`mqtt://127.0.0.1:${port}`, {
      protocolVersion: 5,
      clientId,
      keepalive: 60,
      reconnectPeriod: 0,
    })
    client.on('error', () => undefined)
    await once(client, 'connect')
    client.on('close', () => ends.push(`${clientId}: closed`))
    const { stream } = client
    stream.setNoDelay(true)
    return {
      async subscribe(filter, qos, callback) {
        client.on('message', (_, payload) => callback(payload))
        await client.subscribeAsync(filter, { qos })
        return () => 0
      },
      publish: (topic, payload, qos) => client.publishAsync(topic, payload, { qos }),
      // It keeps the payload until it is written, so that it needs one of its own.
      async post(topic, payload) {
        client.publish(topic, Buffer.from(payload))
      },
      async room() {
        if (stream.writableNeedDrain) await once(stream, 'drain')
      },
      close: () => client.end(true),
    }
  },
}

/** By name. */
export const clients = { mqwire: wire, 'MQTT.js': js }

/** Opens many clients, some at a time. */
export async function openAll(kind, port, names, atOnce = 64) {
  const opened = new Array(names.length)
  let next = 0
  const work = async () => {
    while (next < names.length) {
      const index = next++
      opened[index] = await clients[kind].open(port, names[index])
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, names.length) }, work))
  return opened
}
