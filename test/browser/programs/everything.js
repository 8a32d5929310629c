/**
 * What a program does with a broker, once through: the same in a page, a dedicated worker and a shared worker. It tells what came of it as plain data.
 *
 * It knows nothing of where it runs but the name of its global scope.
 */
import { connect, MqttError } from 'mqwire'

const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)
const long = Uint8Array.from({ length: 20_000 }, (_, index) => index % 251)

const properties = {
  contentType: 'application/octet-stream',
  payloadFormatIndicator: 0,
  messageExpiryInterval: 600,
  correlationData: Uint8Array.of(0, 255, 128),
  responseTopic: 'somewhere/else',
  userProperties: [
    ['name', 'värde'],
    ['other', ''],
  ],
}

function told(message) {
  const { contentType, payloadFormatIndicator, correlationData, responseTopic, userProperties } =
    message.properties
  return {
    topic: message.topic,
    qos: message.qos,
    retain: message.retain,
    bytes: [...message.payload],
    properties: {
      contentType,
      payloadFormatIndicator,
      correlationData: correlationData && [...correlationData],
      responseTopic,
      userProperties,
    },
  }
}

/** One message at each QoS, read with `for await`, which is left when they are all there. */
async function roundTrips(client, topic) {
  const subscription = await client.subscribe(`${topic}/+`, { qos: 2 })
  const receipts = []
  const publishing = (async () => {
    for (const qos of [0, 1, 2])
      receipts.push(
        (await client.publish(`${topic}/${qos}`, everyByte, { qos, properties })).reasonCode,
      )
  })()
  const messages = []
  for await (const message of subscription) {
    messages.push(told(message))
    if (messages.length === 3) break
  }
  await publishing
  return {
    granted: subscription.granted.map(({ qos }) => qos),
    receipts,
    messages: messages.sort((one, other) => one.qos - other.qos),
  }
}

/** A payload that takes many WebSocket messages, unchanged. */
async function longPayload(client, topic) {
  const subscription = await client.subscribe(topic, { qos: 1 })
  await client.publish(topic, long, { qos: 1 })
  const { payload } = await subscription.next()
  await subscription.unsubscribe()
  return payload.length === long.length && payload.every((byte, index) => byte === long[index])
}

async function retained(client, topic) {
  await client.publish(topic, 'kept', { qos: 1, retain: true })
  const subscription = await client.subscribe(topic, { qos: 1 })
  const message = await subscription.next()
  const found = { text: message.text(), retain: message.retain }
  message.ack()
  await subscription.unsubscribe()
  await client.publish(topic, '', { qos: 1, retain: true })
  return found
}

/** Of two filters one is given up: what is published to both afterwards comes once. */
async function unsubscribed(client, topic) {
  const left = await client.subscribe(`${topic}/left`, { qos: 1 })
  const kept = await client.subscribe(`${topic}/kept`, { qos: 1 })
  await left.unsubscribe()
  await client.publish(`${topic}/left`, 'lost', { qos: 1 })
  await client.publish(`${topic}/kept`, 'found', { qos: 1 })
  const message = await kept.next()
  const came = [message.text()]
  message.ack()
  await kept.unsubscribe()
  return { came, leftOver: left.size, ended: (await left.next()) === undefined }
}

async function listened(client, topic) {
  const texts = []
  let done
  const all = new Promise((resolve) => {
    done = resolve
  })
  const handling = await client.listen(
    topic,
    async (message) => {
      texts.push(message.text())
      if (texts.length === 5) done()
    },
    { qos: 1 },
  )
  for (let index = 0; index < 5; index++) await client.publish(topic, String(index), { qos: 1 })
  await all
  await handling.unsubscribe()
  await handling.done
  return texts
}

async function asked(client, topic) {
  const responder = await client.respond(topic, (request) =>
    request.payload.map((byte) => byte ^ 0xff),
  )
  const answer = await client.request(topic, Uint8Array.of(0, 1, 254), { timeout: 5000 })
  await responder.unsubscribe()
  return [...answer.payload]
}

/** Code of what a promise rejects with. */
async function failed(promise) {
  try {
    await promise
    return 'nothing'
  } catch (error) {
    return MqttError.is(error) ? error.code : String(error)
  }
}

/** Does it all, under topics that begin with the name. */
export async function everything(url, name) {
  const client = await connect(url, { clientId: name, stats: true })
  const states = [client.state]
  client.on('state', ({ state }) => states.push(state))
  const result = {
    scope: globalThis.constructor.name,
    roundTrips: await roundTrips(client, `${name}/qos`),
    longPayload: await longPayload(client, `${name}/long`),
    retained: await retained(client, `${name}/retained`),
    unsubscribed: await unsubscribed(client, `${name}/unsubscribe`),
    listened: await listened(client, `${name}/listen`),
    asked: await asked(client, `${name}/ask`),
    invalid: await failed(client.publish('a/#', 'x')),
    nobody: await failed(connect('ws://127.0.0.1:1')),
    headers: await failed(connect({ url, headers: { a: 'b' } })),
  }
  await client.disconnect()
  result.closed = (await client.closed) === undefined
  result.after = await failed(client.publish('a', 'x', { qos: 1 }))
  const { connects, disconnects, sessionsLost } = client.stats()
  return { ...result, states, stats: { connects, disconnects, sessionsLost } }
}

/** As data that can be posted from a worker: `{ result }`, or `{ failure }` as text. */
export async function outcome(url, name) {
  try {
    return { result: await everything(url, name) }
  } catch (error) {
    return { failure: `${error.code ?? error.name}: ${error.message} ${error.stack}` }
  }
}
