/**
 * The same three jobs with each client, in its own faster way: receive a stream, send at QoS 0, send at QoS 1 with so many at a time.
 *
 * `open(url)` gives `{ receive, send0, send1, close }`. Receiving adds up topic and payload lengths; sending at QoS 0 ends with an acknowledged message.
 */
import { once } from 'node:events'
import mqttjs from 'mqtt'
import { connect } from 'mqwire'
import { WebSocket } from 'ws'
import { load } from '../versus/install.js'
import { consumers, mqttJsConsumer } from '../workloads/consumers.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))
let clients = 0
const newId = () => `versus-${process.pid}-${clients++}`

/** Runs `count` publishes, `window` at a time. */
async function windowed(count, window, publish) {
  let index = 0
  const work = async () => {
    while (index < count) await publish(index++)
  }
  await Promise.all(Array.from({ length: Math.min(window, count) }, work))
}

/** Counts messages to a total. */
function counter(count) {
  let [left, work] = [count, 0]
  let finish
  const done = new Promise((resolve) => {
    finish = resolve
  })
  const take = (topic, payload) => {
    work += topic.length + payload.length
    if (--left === 0) finish(work)
  }
  return { done, take }
}

export const opened = {
  async mqwire(url) {
    const client = await connect(url, {
      clientId: newId(),
      keepAlive: false,
      reconnect: false,
      receiveMaximum: 65_535,
    })
    return {
      receive: (filters, count) => consumers.owned(client, { filters, qos: 0, count, read: false }),
      async send0(topics, payload, count) {
        for (let index = 0; index < count; ) {
          if (client.post(topics[index % topics.length], payload)) index++
          else await client.writable
          if (index % 256 === 0) await client.writable
          if (index % 4096 === 0) await turn()
        }
        await client.publish('fence', '', { qos: 1 })
      },
      send1: (topics, payload, count, window) =>
        windowed(count, window, (index) =>
          client.publish(topics[index % topics.length], payload, { qos: 1 }),
        ),
      close: () => client.destroy(),
    }
  },

  async 'MQTT.js'(url) {
    const client = mqttjs.connect(url, {
      protocolVersion: 5,
      keepalive: 0,
      reconnectPeriod: 0,
      clientId: newId(),
    })
    client.on('error', () => undefined)
    await once(client, 'connect')
    const { stream } = client
    return {
      receive: (filters, count) => mqttJsConsumer(client, { filters, qos: 0, count, read: false }),
      async send0(topics, payload, count) {
        for (let index = 0; index < count; index++) {
          client.publish(topics[index % topics.length], payload)
          if ((index & 31) === 31 && stream.writableNeedDrain) await once(stream, 'drain')
          if (index % 4096 === 0) await turn()
        }
        await client.publishAsync('fence', '', { qos: 1 })
      },
      send1: (topics, payload, count, window) =>
        new Promise((resolve, reject) => {
          let [index, done] = [0, 0]
          const next = (error) => {
            if (error) reject(error)
            if (++done === count) resolve()
            if (index < count)
              client.publish(topics[index++ % topics.length], payload, { qos: 1 }, next)
          }
          while (index < Math.min(window, count))
            client.publish(topics[index++ % topics.length], payload, { qos: 1 }, next)
        }),
      close: () => client.end(true),
    }
  },

  async 'u8-mqtt'(url) {
    const make = load('u8-mqtt').default ?? load('u8-mqtt')
    const client = make()
    if (url.startsWith('mqtt:')) client.with_tcp(url.replace('mqtt:', 'tcp:'))
    else client.with_websock(new WebSocket(url, ['mqtt']))
    await client.connect({ client_id: newId(), keep_alive: 0 })
    return {
      async receive(filters, count) {
        const { done, take } = counter(count)
        client.on_topic('plants/*', (packet) => take(packet.topic, packet.payload))
        await client.subscribe(filters)
        return done
      },
      // It has no flow control: awaiting is all that can be done.
      async send0(topics, payload, count) {
        for (let index = 0; index < count; index++) {
          await client.post(topics[index % topics.length], payload)
          if (index % 512 === 0) await turn()
        }
        await client.send('fence', 'x')
      },
      send1: (topics, payload, count, window) =>
        windowed(count, window, (index) => client.send(topics[index % topics.length], payload)),
      close: () => client.disconnect().catch(() => undefined),
    }
  },

  async 'aws-crt'(url) {
    const { mqtt5 } = load('aws-crt')
    const { hostname, port } = new URL(url)
    const client = new mqtt5.Mqtt5Client({
      hostName: hostname,
      // Its default keeps to the quotas of one cloud.
      extendedValidationAndFlowControlOptions: mqtt5.ClientExtendedValidationAndFlowControl.None,
      port: Number(port),
      connectProperties: {
        clientId: newId(),
        keepAliveIntervalSeconds: 1200,
        receiveMaximum: 65_535,
      },
    })
    const up = once(client, 'connectionSuccess')
    client.start()
    await up
    const publish = (topic, payload, qos) => client.publish({ topicName: topic, payload, qos })
    return {
      async receive(filters, count) {
        const { done, take } = counter(count)
        client.on('messageReceived', ({ message }) =>
          take(message.topicName, { length: message.payload.byteLength }),
        )
        await client.subscribe({
          subscriptions: filters.map((topicFilter) => ({ topicFilter, qos: 0 })),
        })
        return done
      },
      async send0(topics, payload, count) {
        // Many at a time is its faster way.
        await windowed(count, 256, (index) => publish(topics[index % topics.length], payload, 0))
        await publish('fence', 'x', 1)
      },
      send1: (topics, payload, count, window) =>
        windowed(count, window, (index) => publish(topics[index % topics.length], payload, 1)),
      async close() {
        const stopped = once(client, 'stopped')
        client.stop()
        await stopped
        client.close()
      },
    }
  },

  async 'paho-mqtt'(url) {
    // It was made for browsers.
    globalThis.WebSocket ??= WebSocket
    const stored = new Map()
    globalThis.localStorage ??= {
      setItem: (key, value) => stored.set(key, value),
      getItem: (key) => stored.get(key) ?? null,
      removeItem: (key) => stored.delete(key),
    }
    const paho = load('paho-mqtt')
    const { hostname, port } = new URL(url)
    const client = new paho.Client(hostname, Number(port), '/mqtt', newId())
    await new Promise((onSuccess, reject) =>
      client.connect({
        onSuccess: () => onSuccess(),
        onFailure: reject,
        keepAliveInterval: 0,
        mqttVersion: 4,
      }),
    )
    const waiting = new Map()
    client.onMessageDelivered = (message) => {
      const resolve = waiting.get(message)
      waiting.delete(message)
      resolve?.()
    }
    const publish = (topic, payload, qos) =>
      new Promise((resolve) => {
        const message = new paho.Message(payload)
        message.destinationName = topic
        message.qos = qos
        if (qos > 0) waiting.set(message, resolve)
        client.send(message)
        if (qos === 0) resolve()
      })
    return {
      async receive(filters, count) {
        const { done, take } = counter(count)
        client.onMessageArrived = (message) => take(message.destinationName, message.payloadBytes)
        for (const filter of filters)
          await new Promise((resolve) =>
            client.subscribe(filter, { qos: 0, onSuccess: () => resolve() }),
          )
        return done
      },
      async send0(topics, payload, count) {
        for (let index = 0; index < count; index++) {
          await publish(topics[index % topics.length], payload, 0)
          if (index % 512 === 0) await turn()
        }
        await publish('fence', 'x', 1)
      },
      send1: (topics, payload, count, window) =>
        windowed(count, window, (index) => publish(topics[index % topics.length], payload, 1)),
      close: () => client.disconnect(),
    }
  },
}
