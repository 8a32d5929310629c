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
 * client does before
 * @param {{ mqttjs: object, timed: (work: () => Promise<void>) => Promise<{ seconds: number }> }} tools MQTT.js, and what tells the time
 */
export function deliverers(
  { mode = 'owned', read = false, name = 'plain', scanner, consume = consumers[mode], prepare },
  { mqttjs, timed },
) {
  const { chunks, count: perPass, sum } = streamOf(workloads[name], encode)

  async function round(count, source, start) {
    const passes = Math.ceil(count / perPass)
    let work = 0
    const { seconds, ...more } = await timed(async () => {
      const done = start({ filters: 'plants/#', qos: 0, count: passes * perPass, read })
      await new Promise((resolve) => setTimeout(resolve, settling))
      source.stream(chunks, passes)
      work = await done
    })
    if (work !== passes * sum) throw new Error(`${work} of ${passes * sum} bytes were counted`)
    // For `count` of the messages.
    const share = count / (passes * perPass)
    const figures = Object.fromEntries(
      Object.entries(more).map(([key, value]) => [key, value * share]),
    )
    return { seconds: (seconds - settling / 1000) * share, ...figures }
  }

  return {
    async mqwire(count) {
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
      const time = await round(count, source, (wish) =>
        unlessClosed(client, consume(client, wish), patience, mode),
      )
      client.destroy()
      return time
    },
    async 'MQTT.js'(count) {
      const source = new StreamSource()
      const client = new mqttjs.MqttClient(() => source, {
        protocolVersion: 5,
        keepalive: 0,
        reconnectPeriod: 0,
        clientId: 'memory',
      })
      client.on('error', () => undefined)
      await new Promise((resolve) => client.once('connect', resolve))
      const time = await round(count, source, (wish) => mqttJsConsumer(client, wish))
      client.end(true)
      return time
    },
  }
}
