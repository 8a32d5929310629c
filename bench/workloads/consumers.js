/**
 * The programs that receive: one for each way to read, as a user would write it. Runs in browsers as well.
 *
 * Each reads `count` messages and gives what topic and payload lengths add up to. They share no code, so that each is compiled for itself. `read` says
 * what else is done with a payload: `'payload'` takes it as an array, `'text'` as a string, `'json'` as the JSON of that workload, `'bytes'` adds up all its bytes; a function is given the payload,
 * and its result is what counts.
 */

const uses = {
  payload: (payload) => payload.length,
  text: (payload) => payload.toString().length,
  json: (payload) => JSON.parse(payload.toString()).size,
  bytes: (payload) => sumOf(payload),
}

function used(message, read) {
  if (read === 'text') return message.text().length
  if (read === 'json') return message.json().size
  return (uses[read] ?? read)(message.payload)
}

/** All bytes, added up. */
export function sumOf(bytes) {
  let value = 0
  for (let index = 0; index < bytes.length; index++) value += bytes[index]
  return value
}

async function owned(client, { filters, qos, count, read }) {
  let left = count
  let work = 0
  for await (const message of await client.subscribe(filters, { qos })) {
    work += message.topic.length + (read ? used(message, read) : message.payloadLength)
    if (--left === 0) break
  }
  return work
}

async function borrowed(client, { filters, qos, count, read }) {
  let left = count
  let work = 0
  for await (const message of await client.subscribe(filters, { qos, lifetime: 'borrowed' })) {
    work += message.topic.length + (read ? used(message, read) : message.payloadLength)
    if (--left === 0) break
  }
  return work
}

async function batches(client, { filters, qos, count, read }) {
  let left = count
  let work = 0
  const subscription = await client.subscribe(filters, { qos })
  for await (const batch of subscription.batches()) {
    for (const message of batch)
      work += message.topic.length + (read ? used(message, read) : message.payloadLength)
    left -= batch.length
    if (left <= 0) break
  }
  return work
}

function listening(lifetime) {
  return (client, { filters, qos, count, read }) => {
    let left = count
    let work = 0
    return new Promise((resolve, reject) => {
      const handler = (message) => {
        work += message.topic.length + (read ? used(message, read) : message.payloadLength)
        if (--left === 0) resolve(work)
      }
      client.listen(filters, handler, { qos, lifetime }).catch(reject)
    })
  }
}

/** By mode. */
export const consumers = {
  owned,
  borrowed,
  batches,
  listen: listening('borrowed'),
  'listen-owned': listening('owned'),
}

/** The same with MQTT.js: its `message` event. */
export function mqttJsConsumer(client, { filters, qos, count, read }) {
  let left = count
  let work = 0
  return new Promise((resolve) => {
    client.on('message', (topic, payload) => {
      work += topic.length + (read ? (uses[read] ?? read)(payload) : payload.length)
      if (--left === 0) resolve(work)
    })
    client.subscribe(filters, { qos })
  })
}

/**
 * `work`, unless the client ends or the time is over first: nothing here may hang.
 * @param {{ closed: Promise<unknown> }} client an mqwire client
 */
export async function unlessClosed(client, work, milliseconds, what) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`${what}: not done within ${milliseconds} ms`)),
      milliseconds,
    )
  })
  const lost = client.closed.then((error) =>
    Promise.reject(error ?? new Error('the client was closed')),
  )
  try {
    return await Promise.race([work, late, lost])
  } finally {
    clearTimeout(timer)
  }
}
