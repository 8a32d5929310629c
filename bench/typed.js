/**
 * Typed subscriptions beside what one writes by hand, and beside MQTT.js: JSON telemetry of 120 bytes at QoS 0, from a server that does nothing but write.
 *
 *     node bench/typed.js [--rounds N] [--messages N]
 *
 * All in one process, in turns, medians. The server is the same for all, and so are the bytes. The last row is a message among 1,000 bound channels
 * against one among one.
 */
import { createServer } from 'node:net'
import mqtt from 'mqtt'
import { Client } from 'mqwire'
import * as mq from 'mqwire/typed'
import { Decoder, encode } from 'mqwire/wire'
import { argumentsOf } from '../examples/arguments.js'
import { machine } from './measure.js'

const { values } = argumentsOf({
  usage: 'node bench/typed.js [options]',
  about: 'Times typed JSON subscriptions beside message.json() and MQTT.js with JSON.parse.',
  options: {
    rounds: { value: 'N', number: [1, 1000], whole: true, initial: 7, text: 'rounds; each has every contestant once' },
    messages: { value: 'N', number: [1000, 10_000_000], whole: true, initial: 100_000, text: 'messages a round' },
  },
})

const reading = { device: 'sensor-0042', at: 1_760_000_000_000, celsius: 21.53, humidity: 48.1, battery: 3.71, status: 'ok', seq: 123_456 }
const payload = new TextEncoder().encode(JSON.stringify(reading).padEnd(120))
const topicOf = (n) => `plant/${n}/temperature`
const packet = (n) => encode({ type: 'publish', topic: topicOf(n), qos: 0, payload })
const chunk = Buffer.concat(Array.from({ length: 500 }, () => packet(7)))

/** Answers what it must, and writes so many messages when it is sent any. */
const server = createServer({ noDelay: true }, (socket) => {
  const decoder = new Decoder({ from: 'client' })
  const flood = () => {
    for (let left = values.messages; left > 0; left -= 500)
      socket.write(left >= 500 ? chunk : Buffer.concat(Array.from({ length: left }, () => packet(7))))
  }
  socket.on('data', (bytes) => {
    for (const received of decoder.push(bytes)) {
      if (received.type === 'connect') socket.write(encode({ type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} }))
      if (received.type === 'subscribe')
        socket.write(encode({ type: 'suback', packetId: received.packetId, reasonCodes: received.subscriptions.map(() => 0), properties: {} }))
      if (received.type === 'pingreq') socket.write(encode({ type: 'pingresp' }))
      if (received.type === 'publish') flood()
    }
  })
  socket.on('error', () => {})
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const url = `mqtt://127.0.0.1:${server.address().port}`

/** A schema as libraries make them, at the least cost that one can have. */
const schema = {
  '~standard': {
    version: 1,
    vendor: 'bench',
    validate: (value) =>
      typeof value?.celsius === 'number' && typeof value.device === 'string' ? { value } : { issues: [{ message: 'no reading' }] },
  },
}

let sum = 0
const take = ({ celsius }) => {
  sum += celsius
}

/** Counts to the end of a round. */
function counter() {
  let count = 0
  let done
  const ended = new Promise((resolve) => {
    done = resolve
  })
  return { ended, one: () => ++count === values.messages && done() }
}

async function withClient(subscribe) {
  const client = new Client(url)
  await client.connect()
  const { ended, one } = counter()
  await subscribe(client, one)
  const began = performance.now()
  client.post('go', '')
  await ended
  const time = performance.now() - began
  client.destroy()
  return time
}

const byHand = (client, one) =>
  client.listen('plant/+/temperature', (message) => {
    take(message.json())
    one()
  })

const typed =
  (codec, channels = 1) =>
  async (client, one) => {
    const channel = mq.channel('plant/{line}/temperature', codec)
    for (let n = 1; n < channels; n++)
      await mq
        .channel(`other/${n}/{x}`, codec)
        .on(client)
        .listen(() => {})
    await channel.on(client).listen(({ value }) => {
      take(value)
      one()
    })
  }

const loops = (codec) => async (client, one) => {
  const read = async (subscription, payloadOf) => {
    for await (const each of subscription) {
      take(payloadOf(each))
      one()
    }
  }
  if (codec === undefined) read(await client.subscribe('plant/+/temperature'), (message) => message.json()).catch(() => {})
  else read(await mq.channel('plant/{line}/temperature', codec).on(client).subscribe(), ({ value }) => value).catch(() => {})
}

async function withMqttJs() {
  const client = await mqtt.connectAsync(url, { protocolVersion: 5 })
  const { ended, one } = counter()
  client.on('message', (_topic, bytes) => {
    take(JSON.parse(bytes.toString()))
    one()
  })
  await client.subscribeAsync('plant/+/temperature')
  const began = performance.now()
  client.publish('go', '')
  await ended
  const time = performance.now() - began
  client.end(true)
  return time
}

const contestants = {
  'listen, message.json()': () => withClient(byHand),
  'listen, typed json()': () => withClient(typed(mq.json())),
  'listen, typed json(schema)': () => withClient(typed(mq.json(schema))),
  'listen, typed, 1,000 channels': () => withClient(typed(mq.json(), 1000)),
  'for await, message.json()': () => withClient(loops()),
  'for await, typed json()': () => withClient(loops(mq.json())),
  'MQTT.js, JSON.parse': withMqttJs,
}

const times = new Map(Object.keys(contestants).map((name) => [name, []]))
for (let round = -1; round < values.rounds; round++)
  for (const [name, run] of Object.entries(contestants)) {
    const time = await run()
    // The first round is for the compiler.
    if (round >= 0) times.get(name).push(time)
  }

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1]
const rate = (name) => values.messages / median(times.get(name))
console.log(machine())
for (const name of times.keys()) {
  const peer = name.startsWith('listen') ? 'listen, message.json()' : name.startsWith('for') ? 'for await, message.json()' : undefined
  const ratios = [`${(rate(name) / rate('MQTT.js, JSON.parse')).toFixed(2)} × MQTT.js`]
  if (peer !== undefined) ratios.push(`${(rate(name) / rate(peer)).toFixed(2)} × by hand`)
  console.log(`${name.padEnd(32)} ${rate(name).toFixed(3).padStart(8)} thousand messages/s ${ratios.join(', ')}`)
}
console.log(`among 1,000 channels ${(rate('listen, typed json()') / rate('listen, typed, 1,000 channels')).toFixed(2)} × the cost among one`)
server.close()
process.exit(Number.isNaN(sum) ? 1 : 0)
