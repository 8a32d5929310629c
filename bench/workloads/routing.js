/**
 * Finding the subscriptions of a message, through the public API: a client over memory, with few or many filters, that is delivered one stream.
 *
 * What a filter more costs is the difference between clients that differ in nothing else. Runs in browsers as well.
 */
import { Client } from 'mqwire'
import { encode } from 'mqwire/wire'
import { StreamSource } from './mqttjs-source.js'
import { Source } from './source.js'
import { packetOf, streamOf, workloads } from './workload.js'

const matching = 'plants/#'

/** Filters by the name of a scene; the first takes every message of the stream, the others (but for `wildcards`) none. */
export const scenes = {
  'one filter': () => [matching],
  '100 filters': () => [matching, ...other(99)],
  '1,000 filters': () => [matching, ...other(999)],
  '10,000 filters': () => [matching, ...other(9999)],
  '10,000 filters with wildcards that match': () => [
    matching,
    'plants/+/level',
    '+/+/level',
    '#',
    ...other(9996),
  ],
  '1,000 deep filters': () => [
    matching,
    ...Array.from({ length: 999 }, (_, index) => `plants/${'a/'.repeat(20)}${index}/+`),
  ],
}

function other(count) {
  return Array.from({ length: count }, (_, index) => {
    const place = `site-${index % 50}/hall-${index % 97}`
    return index % 3 === 0
      ? `${place}/+/m${index}`
      : index % 3 === 1
        ? `${place}/machine/m${index}`
        : `${place}/m${index}/#`
  })
}

async function openMqwire() {
  const source = new Source()
  const options = {
    clientId: 'router',
    keepAlive: false,
    reconnect: false,
    maximumPacketSize: 1 << 20,
  }
  const client = new Client({ url: 'mqtt://memory', transport: () => source }, options)
  await client.connect()
  return { source, client }
}

/** A connected client with these filters, listening; `run(count)` delivers at least `count` messages and gives how many. */
export async function router(filters, { churn = false, workload = workloads.small } = {}) {
  const { source, client } = await openMqwire()
  const { chunks, count: perPass } = streamOf({ ...workload, bytes: 1 << 18 }, encode)
  let left = 0
  let done = () => undefined
  const handler = () => {
    if (--left === 0) done()
  }
  await client.listen(filters, handler, { lifetime: 'borrowed' })
  const pass = (passes) =>
    new Promise((resolve) => {
      left = passes * perPass
      done = resolve
      source.stream(chunks, passes)
    })
  return {
    async run(count) {
      const passes = Math.ceil(count / perPass)
      if (!churn) await pass(passes)
      else {
        for (let index = 0; index < passes; index++) {
          const subscription = await client.subscribe(`plants/hall-${index % 100}/churn`)
          await pass(1)
          await subscription.unsubscribe()
        }
      }
      return passes * perPass
    },
    close: () => client.destroy(),
  }
}

const placeOf = (index) => `plants/${String(index).padStart(7, '0')}`

/** Calls `subscribe` for so many numbers, a thousand at a time. */
async function inParts(count, subscribe) {
  for (let from = 0; from < count; from += 1000)
    await Promise.all(
      Array.from({ length: Math.min(1000, count - from) }, (_, index) => subscribe(from + index)),
    )
}

/**
 * Both clients, with small messages over `topics` topics in turns: each topic has a filter and a handler of its own, or one filter takes them all.
 * MQTT.js has one event for all messages; its program finds the handler in a Map, by the part of the topic that the filter spells out.
 * @returns candidates `(count) => Promise<number>` by name; with `only`, that one
 */
export async function routers({ topics, filters = false, lifetime = 'owned', only }, mqttjs) {
  // A step that shares no factor with a power of ten: neighbours in the stream are far apart in memory.
  const topic = (index) => `${placeOf((index * 7919) % topics)}/level`
  const workload = { ...workloads.small, topic }
  const bytes = Math.max(1 << 18, topics * encode(packetOf(workload, 0)).length)
  const { chunks, count: perPass } = streamOf({ ...workload, bytes }, encode)
  let left = 0
  let done = () => undefined
  const handle = () => {
    if (--left === 0) done()
  }
  // A function for each filter, as programs have it.
  const handlerOf = () => () => handle()

  const opened = {
    async mqwire() {
      const { source, client } = await openMqwire()
      if (filters)
        await inParts(topics, (n) => client.listen(`${placeOf(n)}/+`, handlerOf(), { lifetime }))
      else await client.listen(matching, handle, { lifetime })
      return source
    },
    async 'MQTT.js'() {
      const source = new StreamSource()
      const options = { protocolVersion: 5, keepalive: 0, reconnectPeriod: 0, clientId: 'router' }
      const client = new mqttjs.MqttClient(() => source, options)
      await new Promise((resolve) => client.once('connect', resolve))
      const handlers = new Map()
      client.on('message', (name) =>
        filters ? handlers.get(name.slice(0, name.lastIndexOf('/')))() : handle(),
      )
      if (!filters) await client.subscribeAsync(matching)
      else
        await inParts(topics, (n) => {
          handlers.set(placeOf(n), handlerOf())
          return client.subscribeAsync(`${placeOf(n)}/+`)
        })
      return source
    },
  }
  const candidates = {}
  for (const [name, open] of Object.entries(opened)) {
    if (only !== undefined && name !== only) continue
    const source = await open()
    candidates[name] = (count) =>
      new Promise((resolve) => {
        const passes = Math.ceil(count / perPass)
        left = passes * perPass
        done = () => resolve(passes * perPass)
        source.stream(chunks, passes)
      })
  }
  return candidates
}
