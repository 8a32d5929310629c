/**
 * Each client behind the same few calls, with its own defaults wherever it has one: what `versus-features.js` asks about is the client, not its settings.
 *
 * `open(urls, { version, kept })` connects and gives `{ subscribe, publish, readers, close }`: `subscribe(filter, handler)` at QoS 1, `publish(topic,
 * payload)` at QoS 1 as a promise, and `readers(filter)`: what a program may try to iterate. `kept` asks for a session that outlives the connection; reconnecting is switched on where it has to be.
 */
import { once } from 'node:events'
import mqttjs from 'mqtt'
import { connect } from 'mqwire'
import { WebSocket } from 'ws'
import { load } from '../versus/install.js'

let clients = 0
const newId = () => `feature-${process.pid}-${clients++}`

function paho() {
  // It was made for browsers.
  globalThis.WebSocket ??= WebSocket
  const stored = new Map()
  globalThis.localStorage ??= {
    setItem: (key, value) => stored.set(key, value),
    getItem: (key) => stored.get(key) ?? null,
    removeItem: (key) => stored.delete(key),
  }
  return load('paho-mqtt')
}

export const adapters = {
  mqwire: {
    versions: [5, 4],
    async open({ tcp }, { version = 5, kept = false } = {}) {
      const client = await connect(tcp, {
        clientId: newId(),
        protocolVersion: version,
        cleanStart: !kept,
      })
      client.closed.catch(() => undefined)
      return {
        subscribe: (filter, handler) => client.listen(filter, handler, { qos: 1 }),
        publish: (topic, payload) => client.publish(topic, payload, { qos: 1 }),
        readers: async (filter) => [client, await client.subscribe(filter)],
        close: () => client.destroy(),
      }
    },
  },

  'MQTT.js': {
    versions: [5, 4],
    async open({ tcp }, { version = 5, kept = false } = {}) {
      const client = mqttjs.connect(tcp, {
        clientId: newId(),
        protocolVersion: version,
        clean: !kept,
      })
      client.on('error', () => undefined)
      await once(client, 'connect')
      return {
        async subscribe(filter, handler) {
          client.on('message', (topic, payload) => handler({ topic, payload }))
          await client.subscribeAsync(filter, { qos: 1 })
        },
        publish: (topic, payload) => client.publishAsync(topic, payload, { qos: 1 }),
        readers: async (filter) => [client, await client.subscribeAsync(filter)],
        close: () => client.end(true),
      }
    },
  },

  'u8-mqtt': {
    versions: [5, 4],
    async open({ tcp }, { version = 5, kept = false } = {}) {
      const module = load('u8-mqtt')
      const make = version === 5 ? (module.mqtt_v5 ?? module.default) : module.mqtt_v4
      const client = make().with_tcp(tcp.replace('mqtt:', 'tcp:')).with_autoreconnect()
      await client.connect({ client_id: newId(), keep_alive: 30, flags: { clean_start: !kept } })
      return {
        async subscribe(filter, handler) {
          client.on_topic('*', handler)
          await client.subscribe([[filter, { qos: 1 }]])
        },
        publish: (topic, payload) => client.send(topic, payload),
        readers: async (filter) => [client, await client.subscribe([filter])],
        close: () => client.disconnect().catch(() => undefined),
      }
    },
  },

  'paho-mqtt': {
    versions: [4],
    async open({ ws }, { kept = false } = {}) {
      const module = paho()
      const client = new module.Client(ws, newId())
      const waiting = new Map()
      client.onMessageDelivered = (message) => waiting.get(message)?.()
      await new Promise((resolve, reject) =>
        client.connect({
          onSuccess: resolve,
          onFailure: reject,
          mqttVersion: 4,
          cleanSession: !kept,
          reconnect: true,
        }),
      )
      return {
        subscribe(filter, handler) {
          client.onMessageArrived = handler
          return new Promise((onSuccess, onFailure) =>
            client.subscribe(filter, { qos: 1, onSuccess, onFailure }),
          )
        },
        publish: (topic, payload) =>
          new Promise((resolve) => {
            const message = new module.Message(payload)
            message.destinationName = topic
            message.qos = 1
            waiting.set(message, resolve)
            client.send(message)
          }),
        readers: async (filter) => [client, client.subscribe(filter)],
        close: () => client.disconnect(),
      }
    },
  },

  'aws-crt': {
    versions: [5, 4],
    async open({ tcp }, { version = 5, kept = false } = {}) {
      const { mqtt, mqtt5, io } = load('aws-crt')
      const { hostname, port } = new URL(tcp)
      if (version === 4) return openOld(mqtt, io, hostname, Number(port), kept)
      const client = new mqtt5.Mqtt5Client({
        hostName: hostname,
        port: Number(port),
        sessionBehavior: kept
          ? mqtt5.ClientSessionBehavior.RejoinAlways
          : mqtt5.ClientSessionBehavior.Default,
        connectProperties: {
          clientId: newId(),
          keepAliveIntervalSeconds: 1200,
          ...(kept && { sessionExpiryIntervalSeconds: 3600 }),
        },
      })
      client.on('error', () => undefined)
      const up = once(client, 'connectionSuccess')
      client.start()
      await up
      return {
        async subscribe(filter, handler) {
          client.on('messageReceived', ({ message }) => handler(message))
          await client.subscribe({ subscriptions: [{ topicFilter: filter, qos: 1 }] })
        },
        publish: (topic, payload) => client.publish({ topicName: topic, payload, qos: 1 }),
        readers: async (topicFilter) => [
          client,
          await client.subscribe({ subscriptions: [{ topicFilter, qos: 1 }] }),
        ],
        close: () => client.stop(),
      }
    },
  },
}

/** Its client of 3.1.1, which is another one. */
async function openOld(mqtt, io, host_name, port, kept) {
  const client = new mqtt.MqttClient(new io.ClientBootstrap())
  const connection = client.new_connection({
    client_id: newId(),
    host_name,
    port,
    clean_session: !kept,
    socket_options: new io.SocketOptions(),
  })
  connection.on('error', () => undefined)
  await connection.connect()
  return {
    subscribe: (filter, handler) =>
      connection.subscribe(filter, 1, (topic, payload) => handler({ topic, payload })),
    publish: (topic, payload) => connection.publish(topic, payload, 1),
    close: () => connection.disconnect(),
  }
}
