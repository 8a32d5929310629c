/**
 * What runs in the page: codec and delivery, as in Node, called by name from outside.
 */
import mqttjs from 'mqtt'
import * as mqttPacket from 'mqtt-packet'
import { connect } from 'mqwire'
import { compare } from '../compare.js'
import { median } from '../statistics.js'
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

async function viaMqwire(url, mode, count, scanner) {
  const options = {
    clientId: `wire-${clients++}`,
    keepAlive: false,
    reconnect: false,
    receiveMaximum: 65_535,
    ...(scanner && { scanner }),
  }
  const client = await connect(url, options)
  const start = performance.now()
  check(count, await unlessClosed(client, consumers[mode](client, wishOf(count)), 60_000, mode))
  const took = performance.now() - start
  client.destroy()
  return took
}

function viaMqttJs(url, count) {
  return new Promise((resolve, reject) => {
    const client = mqttjs.connect(url, {
      protocolVersion: 5,
      keepalive: 0,
      reconnectPeriod: 0,
      clientId: `js-${clients++}`,
    })
    client.once('error', reject)
    client.once('connect', async () => {
      const start = performance.now()
      check(count, await mqttJsConsumer(client, wishOf(count)))
      const took = performance.now() - start
      client.end(true)
      resolve(took)
    })
  })
}

/** Messages per second of each, in turns. */
async function delivery({ url, mode, counts, rounds, webAssembly }) {
  const { wasm } = await ours()
  if (webAssembly && wasm === undefined) return undefined
  const scanner = webAssembly ? wasm : undefined
  const rates = { mqwire: [], 'MQTT.js': [] }
  for (let round = -2; round < rounds; round++) {
    const mine = counts.mqwire / (await viaMqwire(url, mode, counts.mqwire, scanner))
    const theirs = counts['MQTT.js'] / (await viaMqttJs(url, counts['MQTT.js']))
    if (round < 0) continue
    rates.mqwire.push(mine * 1000)
    rates['MQTT.js'].push(theirs * 1000)
  }
  return { mqwire: median(rates.mqwire), 'MQTT.js': median(rates['MQTT.js']) }
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
  const rates = {}
  for (let round = -2; round < rounds; round++) {
    for (const [name, run] of Object.entries(candidates)) {
      const { seconds } = await run(counts[name])
      rates[name] ??= []
      if (round >= 0) rates[name].push(counts[name] / seconds)
    }
  }
  return { mqwire: median(rates.mqwire), 'MQTT.js': median(rates['MQTT.js']) }
}

globalThis.bench = { codec, delivery, memory }
