/**
 * What runs in the page: codec and delivery, as in Node, called by name from outside.
 */
import mqttjs from 'mqtt'
import * as mqttPacket from 'mqtt-packet'
import { connect } from 'mqwire'
import { compare } from '../compare.js'
import { asking, hello } from '../peers/stream.js'
import { quantile } from '../statistics.js'
import { consumers, mqttJsConsumer, unlessClosed } from '../workloads/consumers.js'
import { decoders } from '../workloads/decoding.js'
import { deliverers } from '../workloads/delivering.js'
import { encoders } from '../workloads/encoding.js'
import { ours } from '../workloads/libraries.js'
import { workloads } from '../workloads/workload.js'

async function codec({ what, name, only, ...options }) {
  const libraries = { ...(await ours()), mqttPacket: mqttPacket.default ?? mqttPacket }
  const candidates =
    what === 'decode' ? decoders(libraries, workloads[name], { only }) : encoders(libraries, name)
  return compare(candidates, options)
}

const size = 256
const wishOf = (count) => ({
  filters: ['plants/#', `N${count}/${size}/0`],
  qos: 0,
  count,
  read: false,
})

function check(count, work) {
  if (work !== count * (20 + size)) throw new Error(`${work} bytes were counted`)
}

let clients = 0

function openMqwire(url, scanner) {
  return connect(url, {
    clientId: `wire-${clients++}`,
    keepAlive: false,
    reconnect: false,
    receiveMaximum: 65_535,
    ...(scanner && { scanner }),
  })
}

function openMqttJs(url) {
  return new Promise((resolve, reject) => {
    const client = mqttjs.connect(url, {
      protocolVersion: 5,
      keepalive: 0,
      reconnectPeriod: 0,
      clientId: `js-${clients++}`,
    })
    client.once('error', reject)
    client.once('connect', () => resolve(client))
  })
}

async function viaMqwire(url, mode, count, scanner) {
  const client = await openMqwire(url, scanner)
  const start = performance.now()
  check(count, await unlessClosed(client, consumers[mode](client, wishOf(count)), 60_000, mode))
  const took = performance.now() - start
  client.destroy()
  return took
}

async function viaMqttJs(url, count) {
  const client = await openMqttJs(url)
  const start = performance.now()
  check(count, await mqttJsConsumer(client, wishOf(count)))
  const took = performance.now() - start
  client.end(true)
  return took
}

/** The limit: a bare WebSocket is given the same bytes and looks at none of them. */
async function viaBare(url, count) {
  const socket = new WebSocket(url, 'mqtt')
  socket.binaryType = 'arraybuffer'
  const { subscribe, answered } = asking(count, size, 0)
  await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send(hello())
    socket.onmessage = resolve
    socket.onclose = () => reject(new Error('the bare WebSocket was closed'))
  })
  const start = performance.now()
  let left = answered
  await new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => {
      left -= data.byteLength
      if (left <= 0) resolve()
    }
    socket.onclose = () => reject(new Error(`${left} bytes are missing`))
    socket.send(subscribe)
  })
  const took = performance.now() - start
  if (left !== 0) throw new Error(`${-left} bytes too many`)
  socket.close()
  return took
}

/** Messages per second of each in each round, in turns. */
async function delivery({ url, mode, counts, rounds, webAssembly }) {
  const { wasm } = await ours()
  if (webAssembly && wasm === undefined) return undefined
  const scanner = webAssembly ? wasm : undefined
  const candidates = {
    mqwire: (count) => viaMqwire(url, mode, count, scanner),
    'MQTT.js': (count) => viaMqttJs(url, count),
    'bare WebSocket': (count) => viaBare(url, count),
  }
  return inTurns(candidates, counts, rounds)
}

async function inTurns(candidates, counts, rounds) {
  const rates = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]))
  for (let round = -2; round < rounds; round++) {
    for (const [name, run] of Object.entries(candidates)) {
      const count = counts[name] ?? counts.mqwire
      const took = await run(count)
      if (round >= 0) rates[name].push((count * 1000) / took)
    }
  }
  return rates
}

async function timed(work) {
  const start = performance.now()
  await work()
  return { seconds: (performance.now() - start) / 1000 }
}

/** The same without a network. */
async function memory({ mode, counts, rounds, webAssembly }) {
  const { wasm } = await ours()
  if (webAssembly && wasm === undefined) return undefined
  const candidates = deliverers(
    { mode, scanner: webAssembly ? wasm : undefined },
    { mqttjs, timed },
  )
  const milliseconds = Object.entries(candidates).map(([name, run]) => [
    name,
    async (count) => (await run(count)).seconds * 1000,
  ])
  return inTurns(Object.fromEntries(milliseconds), counts, rounds)
}

/** Ways to call back with each message of a stream. */
const readers = {
  async mqwire(url, filters, take) {
    const client = await openMqwire(url)
    for await (const _ of await client.subscribe(filters)) if (take()) break
    client.destroy()
  },
  async 'MQTT.js'(url, filters, take) {
    const client = await openMqttJs(url)
    await new Promise((resolve) => {
      client.on('message', () => {
        if (take()) resolve()
      })
      client.subscribe(filters)
    })
    client.end(true)
  },
}

const nextFrame = () => new Promise(requestAnimationFrame)

/**
 * A page that counts messages and shows the number once a frame: milliseconds from frame to frame, and how many tasks were longer than 50 ms, both without
 * the first second. `late`: by how much the time from the first message to the last is longer than the stream.
 */
async function frames({ url, client, rate, seconds }) {
  const shown = document.body.appendChild(document.createElement('output'))
  const total = rate * (seconds + 1)
  let [count, longTasks, over, began, ended] = [0, 0, false, 0, 0]
  const take = () => {
    if (count === 0) began = performance.now()
    if (++count < total) return false
    ended = performance.now()
    return true
  }
  const read = readers[client](url, ['plants/#', `N${total}/${size}/0/${rate}`], take).finally(
    () => {
      over = true
    },
  )
  const latest = performance.now() + 3000 * (seconds + 1)
  const intervals = []
  const watcher = new PerformanceObserver((list) => {
    longTasks += list.getEntries().length
  })
  for (let before; !over; ) {
    const now = await nextFrame()
    if (now > latest) throw new Error(`${client}: ${count} of ${total} messages came`)
    shown.textContent = `${count} messages`
    if (count < rate) continue
    if (before === undefined) watcher.observe({ type: 'longtask' })
    else intervals.push(now - before)
    before = now
  }
  await read
  watcher.disconnect()
  const [p50, p95] = [0.5, 0.95].map((share) => quantile(intervals, share))
  const late = ended - began - 1000 * (seconds + 1)
  return { p50, p95, worst: Math.max(...intervals), longTasks, late }
}

globalThis.bench = { codec, delivery, memory, frames }
