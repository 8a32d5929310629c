/**
 * Delivery without sockets: both clients over memory, the same chunks. Runs in browsers as well.
 */
import { Client } from 'mqwire'
import { encode } from 'mqwire/wire'
import { consumers, mqttJsConsumer, unlessClosed } from './consumers.js'
import { StreamSource } from './mqttjs-source.js'
import { Source } from './source.js'
import { streamOf, workloads } from './workload.js'

const patience = 60_000
// Both have subscribed by then.
const settling = 5

/**
 * Candidates `(count) => Promise<{ seconds, … }>` that receive `count` messages of a workload.
 * @param {object} settings `mode` and `read` of `consumers`, `name` of a workload, `scanner` for mqwire; `consume` in place of a mode, and what the mqwire
 * client does before; `clients`: so many receive each message, one in each task
 * @param {{ mqttjs: object, timed: (work: () => Promise<void>) => Promise<{ seconds: number }> }} tools MQTT.js, and what tells the time
 */
export function deliverers(
  {
    mode = 'owned',
    read = false,
    name = 'plain',
    scanner,
    consume = consumers[mode],
    prepare,
    clients,
  },
  { mqttjs, timed },
) {
  const stream = streamOf(workloads[name], encode)
  const { chunks, count: perPass, sum } = clients === undefined ? stream : oneByOne(stream)

  /** `starts`: for each client its source, and what makes it receive. */
  async function round(count, starts) {
    const passes = Math.ceil(count / starts.length / perPass)
    const stream = (times) => Promise.all(starts.map(({ source }) => source.stream(chunks, times)))
    // Of many clients each has had a pass before: what its first messages cost is not the cost of a message.
    const before = clients === undefined ? 0 : 1
    const wish = { filters: 'plants/#', qos: 0, count: (before + passes) * perPass, read }
    const done = starts.map(({ start }) => start(wish))
    await new Promise((resolve) => setTimeout(resolve, settling))
    await stream(before)
    let work = 0
    const { seconds, ...more } = await timed(async () => {
      stream(passes)
      for (const each of await Promise.all(done)) work += each
    })
    const wanted = (before + passes) * sum * starts.length
    if (work !== wanted) throw new Error(`${work} of ${wanted} bytes were counted`)
    // For `count` of the messages.
    const share = count / (passes * perPass * starts.length)
    const figures = Object.fromEntries(
      Object.entries(more).map(([key, value]) => [key, value * share]),
    )
    return { seconds: seconds * share, ...figures }
  }

  const open = {
    async mqwire() {
      const source = new Source()
      const options = {
        clientId: 'memory',
        keepAlive: false,
        reconnect: false,
        ...(scanner !== undefined && { scanner }),
      }
      const client = new Client({ url: 'mqtt://memory', transport: () => source }, options)
      await client.connect()
      await prepare?.(client)
      const start = (wish) => unlessClosed(client, consume(client, wish), patience, mode)
      return { source, start, close: () => client.destroy() }
    },
    async 'MQTT.js'() {
      const source = new StreamSource()
      const client = new mqttjs.MqttClient(() => source, {
        protocolVersion: 5,
        keepalive: 0,
        reconnectPeriod: 0,
        clientId: 'memory',
      })
      client.on('error', () => undefined)
      await new Promise((resolve) => client.once('connect', resolve))
      const start = (wish) => mqttJsConsumer(client, wish)
      return { source, start, close: () => client.end(true) }
    },
  }
  const roundOf = (opener) => async (count) => {
    const starts = await Promise.all(Array.from({ length: clients ?? 1 }, opener))
    const time = await round(count, starts)
    for (const { close } of starts) close()
    return time
  }
  return { mqwire: roundOf(open.mqwire), 'MQTT.js': roundOf(open['MQTT.js']) }
}

/** The first packets of a stream, each a chunk. */
function oneByOne({ frames, count, sum }) {
  const chunks = frames.slice(0, 20)
  // All packets of a workload have one length of topic and payload.
  return { chunks, count: chunks.length, sum: (sum / count) * chunks.length }
}
