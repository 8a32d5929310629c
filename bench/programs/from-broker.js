/**
 * Processor time of a client that receives from a broker, beside MQTT.js and a bare socket: another process floods the broker, one client a round reads.
 *
 * Settings: `port`, `mode`, `size`, `only`, and those of `alternate`. The broker is the limit, so that only processor time says anything.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { consumers, mqttJsConsumer, unlessClosed } from '../workloads/consumers.js'
import { receiveBare } from './bare.js'
import { openMqttJs, openMqwire } from './clients.js'
import { alternate, finish, settings, timed } from './rounds.js'

const { port, mode = 'owned', size = 256, only } = settings
const flood = fork(
  fileURLToPath(new URL('flood.js', import.meta.url)),
  [JSON.stringify({ port, size })],
  { stdio: 'inherit' },
)
await once(flood, 'message')
const wishOf = (count) => ({ filters: 'plants/#', qos: 0, count, read: false })
const settle = () => new Promise((resolve) => setTimeout(resolve, 50))

async function round(count, start) {
  let work = 0
  // The subscription is there before the flood begins.
  const time = await timed(async () => {
    const done = start(wishOf(count))
    await settle()
    flood.send({ count })
    work = await done
  })
  if (work !== count * (20 + size)) throw new Error(`${work} bytes were counted`)
  return { ...time, seconds: time.seconds - 0.05 }
}

const candidates = {
  async mqwire(count) {
    const client = await openMqwire(port)
    const time = await round(count, (wish) =>
      unlessClosed(client, consumers[mode](client, wish), 60_000, mode),
    )
    client.destroy()
    return time
  },
  async 'MQTT.js'(count) {
    const client = await openMqttJs(port)
    const time = await round(count, (wish) => mqttJsConsumer(client, wish))
    client.end(true)
    return time
  },
  'bare socket': (count) =>
    receiveBare({ port, size, filter: 'plants/#' }, count, (read) =>
      round(count, () => read().then(() => count * (20 + size))),
    ),
}
if (only !== undefined)
  for (const name of Object.keys(candidates)) if (name !== only) delete candidates[name]
const results = await alternate(candidates, settings)
finish({ results })
