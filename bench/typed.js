/**
 * Typed subscriptions beside what one writes by hand, and beside MQTT.js: JSON telemetry of 120 bytes at QoS 0, from a server that does nothing but write.
 *
 *     node bench/typed.js [--rounds N] [--messages N]
 *
 * All clients in one process, in turns, every other round backwards; medians of its processor time, so that a busy machine changes little. The server has
 * another process, and is the same for all; so are the bytes. Exits with 1 when a target is missed: without a schema at most 15 % slower than by hand, 3 times as fast as MQTT.js with
 * JSON.parse, and a message among 1,000 bound channels at 1.3 times the cost of one among one.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import mqtt from 'mqtt'
import { Client } from 'mqwire'
import * as mq from 'mqwire/typed'
import { Decoder, encode } from 'mqwire/wire'
import { argumentsOf } from '../examples/arguments.js'
import { machine } from './measure.js'
import { median, verdict } from './statistics.js'

const { values } = argumentsOf({
  usage: 'node bench/typed.js [options]',
  about: 'Times typed JSON subscriptions beside message.json() and MQTT.js with JSON.parse.',
  options: {
    rounds: {
      value: 'N',
      number: [1, 1000],
      whole: true,
      initial: 15,
      text: 'rounds; each has every contestant once',
    },
    messages: {
      value: 'N',
      number: [1000, 10_000_000],
      whole: true,
      initial: 100_000,
      text: 'messages a round',
    },
    serve: { text: 'is the server: for processes of this program' },
  },
})

const reading = {
  device: 'sensor-0042',
  at: 1_760_000_000_000,
  celsius: 21.53,
  humidity: 48.1,
  battery: 3.71,
  status: 'ok',
  seq: 123_456,
}
const payload = new TextEncoder().encode(JSON.stringify(reading).padEnd(120))
const topicOf = (n) => `plant/${n}/temperature`
const packet = (n) => encode({ type: 'publish', topic: topicOf(n), qos: 0, payload })
const chunk = Buffer.concat(Array.from({ length: 500 }, () => packet(7)))

/** Answers what it must, and writes so many messages when it is sent any. Tells its parent the port. */
async function serve() {
  const server = createServer({ noDelay: true }, (socket) => {
    const decoder = new Decoder({ from: 'client' })
    const flood = () => {
      for (let left = values.messages; left > 0; left -= 500)
        socket.write(
          left >= 500 ? chunk : Buffer.concat(Array.from({ length: left }, () => packet(7))),
        )
    }
    socket.on('data', (bytes) => {
      for (const received of decoder.push(bytes)) {
        if (received.type === 'connect')
          socket.write(
            encode({ type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} }),
          )
        if (received.type === 'subscribe')
          socket.write(
            encode({
              type: 'suback',
              packetId: received.packetId,
              reasonCodes: received.subscriptions.map(() => 0),
              properties: {},
            }),
          )
        if (received.type === 'pingreq') socket.write(encode({ type: 'pingresp' }))
        if (received.type === 'publish') flood()
      }
    })
    socket.on('error', () => {})
  })
  process.once('disconnect', () => process.exit())
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}

/** A schema as libraries make them, at the least cost that one can have. */
const schema = {
  '~standard': {
    version: 1,
    vendor: 'bench',
    validate: (value) =>
      typeof value?.celsius === 'number' && typeof value.device === 'string'
        ? { value }
        : { issues: [{ message: 'no reading' }] },
  },
}

let url = ''
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

/** Processor time from the first message to the last, in microseconds. */
async function timed(ask, ended) {
  const began = process.cpuUsage()
  ask()
  await ended
  const { user, system } = process.cpuUsage(began)
  return user + system
}

async function withClient(subscribe) {
  const client = new Client(url)
  await client.connect()
  const { ended, one } = counter()
  await subscribe(client, one)
  const time = await timed(() => client.post('go', ''), ended)
  client.destroy()
  return time
}

const byHand = (lifetime) => (client, one) =>
  client.listen(
    'plant/+/temperature',
    (message) => {
      take(message.json())
      one()
    },
    { lifetime },
  )

const typed =
  (codec, lifetime, channels = 1) =>
  async (client, one) => {
    const channel = mq.channel('plant/{line}/temperature', codec)
    for (let n = 1; n < channels; n++)
      await mq
        .channel(`other/${n}/{x}`, codec)
        .on(client)
        .listen(() => {})
    await channel.on(client).listen(
      ({ value }) => {
        take(value)
        one()
      },
      { lifetime },
    )
  }

const loops = (codec) => async (client, one) => {
  const read = async (subscription, payloadOf) => {
    for await (const each of subscription) {
      take(payloadOf(each))
      one()
    }
  }
  if (codec === undefined)
    read(await client.subscribe('plant/+/temperature'), (message) => message.json()).catch(() => {})
  else
    read(
      await mq.channel('plant/{line}/temperature', codec).on(client).subscribe(),
      ({ value }) => value,
    ).catch(() => {})
}

async function withMqttJs() {
  const client = await mqtt.connectAsync(url, { protocolVersion: 5 })
  const { ended, one } = counter()
  client.on('message', (_topic, bytes) => {
    take(JSON.parse(bytes.toString()))
    one()
  })
  await client.subscribeAsync('plant/+/temperature')
  const time = await timed(() => client.publish('go', ''), ended)
  client.end(true)
  return time
}

const byMqttJs = 'MQTT.js, JSON.parse'
const contestants = {
  'listen, message.json()': byHand(),
  'listen, typed json()': typed(mq.json()),
  'listen, typed json(schema)': typed(mq.json(schema)),
  'listen, borrowed, message.json()': byHand('borrowed'),
  'listen, borrowed, typed json()': typed(mq.json(), 'borrowed'),
  'listen, borrowed, typed json(schema)': typed(mq.json(schema), 'borrowed'),
  'for await, message.json()': loops(),
  'for await, typed json()': loops(mq.json()),
  'for await, typed json(schema)': loops(mq.json(schema)),
  'listen, typed json(), 1,000 channels': typed(mq.json(), undefined, 1000),
}

/** What one costs beside another. */
const targets = ['listen', 'listen, borrowed', 'for await'].flatMap((how) => [
  { one: `${how}, typed json()`, other: `${how}, message.json()`, atMost: 1.15 },
  { one: byMqttJs, other: `${how}, typed json()`, atLeast: 3 },
  { one: byMqttJs, other: `${how}, typed json(schema)`, atLeast: 3 },
])
targets.push({
  one: 'listen, typed json(), 1,000 channels',
  other: 'listen, typed json()',
  atMost: 1.3,
})

async function compare() {
  const runs = new Map(
    Object.entries(contestants).map(([name, subscribe]) => [name, () => withClient(subscribe)]),
  )
  runs.set(byMqttJs, withMqttJs)
  const times = new Map([...runs.keys()].map((name) => [name, []]))
  for (let round = -2; round < values.rounds; round++) {
    const order = [...runs]
    if (round % 2 !== 0) order.reverse()
    for (const [name, run] of order) {
      const time = await run()
      // The first rounds are for the compiler.
      if (round >= 0) times.get(name).push(time)
    }
  }
  return (name) => median(times.get(name)) / values.messages
}

/** Prints what each costs, and what that is beside others; gives whether all targets are met. */
function told(cost) {
  console.log(
    `${machine()}. ${values.messages.toLocaleString('en')} messages of ${payload.length} bytes a round, ${values.rounds} rounds.\n`,
  )
  console.log('| processor time | µs a message | messages a second |\n| --- | ---: | ---: |')
  for (const name of [...Object.keys(contestants), byMqttJs])
    console.log(
      `| ${name} | ${cost(name).toFixed(2)} | ${Math.round(1e6 / cost(name)).toLocaleString('en')} |`,
    )
  console.log('\n| cost | beside | ratio | target | |\n| --- | --- | ---: | ---: | --- |')
  const verdicts = targets.map(({ one, other, ...limits }) => {
    const ratio = cost(one) / cost(other)
    const target = limits.atMost === undefined ? `≥ ${limits.atLeast}` : `≤ ${limits.atMost}`
    console.log(
      `| ${one} | ${other} | ${ratio.toFixed(2)} | ${target} | ${verdict(ratio, limits)} |`,
    )
    return verdict(ratio, limits)
  })
  return verdicts.every((each) => each === 'met') && Number.isFinite(sum)
}

if (values.serve) await serve()
else {
  const server = fork(fileURLToPath(import.meta.url), [
    '--serve',
    '--messages',
    String(values.messages),
  ])
  const [port] = await once(server, 'message')
  url = `mqtt://127.0.0.1:${port}`
  const met = told(await compare())
  server.disconnect()
  process.exit(met ? 0 : 1)
}
