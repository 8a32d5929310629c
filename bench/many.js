/**
 * Several connections beside one, through mosquitto: publishes at QoS 1 of which eight wait for their answer at a time, by one client and by pools; then many
 * at a time over a way of 10 ms, where each connection may have 20 without an answer. Then a
 * group of three brokers, one of which falls silent: how long a broadcast takes to be told, and to reach the two others, before and after.
 *
 *     node bench/many.js [--rounds N]
 *
 * All in turns, medians. Processor time is that of this process, per 100,000 publishes.
 */
import { createServer, connect as dial } from 'node:net'
import { connect } from 'mqwire'
import { createGroup } from 'mqwire/group'
import { createPool } from 'mqwire/pool'
import { argumentsOf } from '../examples/arguments.js'
import { machine } from './measure.js'
import { startMosquitto } from './peers/index.js'
import { median } from './statistics.js'

const { values } = argumentsOf({
  usage: 'node bench/many.js [options]',
  about: 'Times pools beside one connection, and a group one member of which is silent.',
  options: {
    rounds: {
      value: 'N',
      number: [1, 1000],
      whole: true,
      initial: 15,
      text: 'rounds; each has every contestant once',
    },
  },
})

const payload = new Uint8Array(64).fill(7)
const eight = 8
const slice = 500

async function rate(publisher, window = eight) {
  const before = process.cpuUsage()
  const since = performance.now()
  let count = 0
  const worker = async (number) => {
    while (performance.now() - since < slice) {
      await publisher.publish(`bench/${number}`, payload, { qos: 1 })
      count += 1
    }
  }
  await Promise.all(Array.from({ length: window }, (_, number) => worker(number)))
  const { user, system } = process.cpuUsage(before)
  return {
    rate: (1000 * count) / (performance.now() - since),
    processor: (user + system) / count / 10,
  }
}

async function pools() {
  const broker = await startMosquitto()
  const url = `mqtt://127.0.0.1:${broker.port}`
  const contestants = {
    'one connection': await connect(url),
    'pool of 1': createPool(url, { size: 1 }),
    'pool of 4': createPool(url, { size: 4 }),
    'pool of 4, by hash': createPool(url, { size: 4, routing: 'hash' }),
    'pool of 4, least in flight': createPool(url, { size: 4, routing: 'least-in-flight' }),
  }
  const results = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]))
  for (let round = -1; round < values.rounds; round++) {
    const order = Object.entries(contestants)
    if (round % 2 === 0) order.reverse()
    for (const [name, publisher] of order) {
      const result = await rate(publisher)
      if (round >= 0) results[name].push(result)
    }
  }
  console.log(
    `| QoS 1, ${eight} at a time | publishes a second | beside one | processor time of 100,000 |\n| --- | ---: | ---: | ---: |`,
  )
  const of = (name, key) => median(results[name].map((result) => result[key]))
  for (const name of Object.keys(contestants)) {
    const ratio = of(name, 'rate') / of('one connection', 'rate')
    console.log(
      `| ${name} | ${Math.round(of(name, 'rate')).toLocaleString('en')} | ${ratio.toFixed(2)} | ${of(name, 'processor').toFixed(2)} s |`,
    )
  }
  for (const publisher of Object.values(contestants)) await publisher.disconnect()
  await broker.stop()
}

/** A way to a broker that takes 10 ms in each direction. */
async function distant(port) {
  const server = createServer((socket) => {
    const other = dial(port, '127.0.0.1')
    const pass = (from, to) =>
      from
        .on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), 10))
        .on('close', () => to.destroy())
        .on('error', () => to.destroy())
    pass(socket, other)
    pass(other, socket)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `mqtt://127.0.0.1:${server.address().port}`, stop: () => server.close() }
}

// Where each connection may have so many without an answer, as mosquitto has it by default, connections add up.
async function afar() {
  const broker = await startMosquitto()
  const way = await distant(broker.port)
  const options = { outbound: { maxInflight: 20 } }
  const contestants = {
    'one connection': await connect(way.url, options),
    'pool of 4': createPool(way.url, { size: 4, options }),
  }
  const results = { 'one connection': [], 'pool of 4': [] }
  for (let round = -1; round < values.rounds; round++) {
    for (const [name, publisher] of round % 2 === 0
      ? Object.entries(contestants).reverse()
      : Object.entries(contestants)) {
      const result = await rate(publisher, 200)
      if (round >= 0) results[name].push(result)
    }
  }
  console.log(
    '\n| QoS 1, 200 at a time, 10 ms away, 20 in flight each | publishes a second | beside one |\n| --- | ---: | ---: |',
  )
  const of = (name) => median(results[name].map((result) => result.rate))
  for (const name of Object.keys(contestants))
    console.log(
      `| ${name} | ${Math.round(of(name)).toLocaleString('en')} | ${(of(name) / of('one connection')).toFixed(2)} |`,
    )
  for (const publisher of Object.values(contestants)) await publisher.disconnect()
  way.stop()
  await broker.stop()
}

/** A way to a broker that swallows everything once it is told to. */
async function swallowing(port) {
  let silent = false
  const server = createServer((socket) => {
    const other = dial(port, '127.0.0.1')
    const pass = (from, to) =>
      from
        .on('data', (bytes) => silent || to.write(bytes))
        .on('close', () => to.destroy())
        .on('error', () => to.destroy())
    pass(socket, other)
    pass(other, socket)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `mqtt://127.0.0.1:${server.address().port}`,
    hush: () => (silent = true),
    stop: () => server.close(),
  }
}

async function group() {
  const brokers = await Promise.all([startMosquitto(), startMosquitto(), startMosquitto()])
  const [a, b, c] = brokers.map(({ port }) => `mqtt://127.0.0.1:${port}`)
  const way = await swallowing(Number(new URL(c).port))
  const three = createGroup({ members: { a, b, c: way.url } })
  await three.connect()
  const arrivals = new Map()
  const readers = await Promise.all([a, b].map((url) => connect(url)))
  for (const reader of readers)
    await reader.listen('bench', (message) => {
      const at = performance.now()
      const known = arrivals.get(message.text()) ?? []
      arrivals.set(message.text(), [...known, at])
    })
  let number = 0
  const times = async (count) => {
    const told = []
    const arrived = []
    for (let index = 0; index < count; index++) {
      const text = String(number++)
      const since = performance.now()
      await three.publish('bench', text, { qos: 1 })
      told.push(performance.now() - since)
      while ((arrivals.get(text)?.length ?? 0) < 2) await new Promise(setImmediate)
      arrived.push(Math.max(...arrivals.get(text)) - since)
    }
    return { told, arrived }
  }
  await times(200)
  const before = await times(500)
  way.hush()
  const first = await times(1)
  const after = await times(500)
  console.log(
    '\n| group of three, one falls silent | told after | at the two others after |\n| --- | ---: | ---: |',
  )
  const row = (name, { told, arrived }) =>
    console.log(`| ${name} | ${median(told).toFixed(2)} ms | ${median(arrived).toFixed(2)} ms |`)
  row('before', before)
  row('the first one afterwards', first)
  row('later ones', after)
  console.log(
    `\nlater ÷ before: told ${(median(after.told) / median(before.told)).toFixed(2)}, at the others ${(median(after.arrived) / median(before.arrived)).toFixed(2)}`,
  )
  await three.disconnect({ timeout: 0 })
  for (const reader of readers) reader.destroy()
  way.stop()
  await Promise.all(brokers.map((broker) => broker.stop()))
}

console.log(`${machine()}\n`)
await pools()
await afar()
await group()
process.exit()
