/**
 * Messages sent per second: to a peer that swallows and acknowledges, or to mosquitto.
 *
 * Settings: `port`, `mode` (`posted`: QoS 0, flow-controlled, not awaited; `awaited`: QoS 0, each awaited; `window`: QoS 1, `window` at a time),
 * `window`, `size`, `ca` (the file of a certificate: over TLS), `bare` (a bare socket as well: `posted`, and `window` of one), `compat` (`mqwire/compat` runs the program for
 * MQTT.js), `clients` (so many connections share the work of `window`), and those of `alternate`. A round ends when a QoS 1 publish behind the others was acknowledged: the peer has read all of them.
 */
import { once } from 'node:events'
import { startPeer } from '../peers/index.js'
import { pingPongBare, sendBare } from './bare.js'
import { openCompat, openMqttJs, openMqwire, secured } from './clients.js'
import { alternate, finish, settings, timed } from './rounds.js'

const {
  mode = 'posted',
  window = 1000,
  size = 256,
  ca,
  bare = false,
  compat = false,
  clients = 1,
  only,
} = settings
const secure = secured(ca)
// Alone, for a profile, it starts its own peer.
const port = settings.port ?? (await startPeer()).port
const payload = Buffer.alloc(size, 'x')
const topics = Array.from(
  { length: 100 },
  (_, index) => `plants/hall-${String(index).padStart(2, '0')}/level`,
)
const fence = 'fence'
// Both programs let the event loop turn now and then, as programs with anything else to do will.
const turn = () => new Promise((resolve) => setImmediate(resolve))

const viaMqwire = {
  async posted(client, count) {
    for (let index = 0; index < count; ) {
      // A false means that nothing was taken: there is room again once `writable` settles.
      if (client.post(topics[index % 100], payload)) index++
      else await client.writable
      if (index % 256 === 0) await client.writable
      if (index % 4096 === 0) await turn()
    }
    await client.publish(fence, '', { qos: 1 })
  },
  async awaited(client, count) {
    for (let index = 0; index < count; index++) {
      await client.publish(topics[index % 100], payload)
      if (index % 4096 === 0) await turn()
    }
    await client.publish(fence, '', { qos: 1 })
  },
  async window(client, count) {
    let index = 0
    const work = async () => {
      while (index < count) await client.publish(topics[index++ % 100], payload, { qos: 1 })
    }
    await Promise.all(Array.from({ length: window }, work))
  },
}

const viaMqttJs = {
  async posted(client, count) {
    const { stream } = client
    for (let index = 0; index < count; index++) {
      client.publish(topics[index % 100], payload)
      if ((index & 31) === 31 && stream.writableNeedDrain) await once(stream, 'drain')
      if (index % 4096 === 0) await turn()
    }
    await client.publishAsync(fence, '', { qos: 1 })
  },
  async awaited(client, count) {
    for (let index = 0; index < count; index++) {
      await client.publishAsync(topics[index % 100], payload)
      if (index % 4096 === 0) await turn()
    }
    await client.publishAsync(fence, '', { qos: 1 })
  },
  // With callbacks: its faster way.
  window: (client, count) =>
    new Promise((resolve, reject) => {
      let index = 0
      let done = 0
      const next = (error) => {
        if (error) reject(error)
        if (++done === count) resolve()
        if (index < count) client.publish(topics[index++ % 100], payload, { qos: 1 }, next)
      }
      while (index < Math.min(window, count))
        client.publish(topics[index++ % 100], payload, { qos: 1 }, next)
    }),
}

/** Opens the clients, some at a time, and shares the work among them. What only the first messages of a client cost is paid before. */
async function shared(open, work, count) {
  const opened = []
  const opener = async () => {
    while (opened.length < clients) {
      const place = opened.push(undefined) - 1
      opened[place] = await open()
    }
  }
  await Promise.all(Array.from({ length: Math.min(clients, 100) }, opener))
  const each = (share) => Promise.all(opened.map((client) => work(client, share)))
  if (clients > 1) await each(2)
  const time = await timed(() => each(Math.ceil(count / clients)))
  return { opened, time }
}

async function byMqttJs(open, count) {
  const openOne = async () => {
    const client = await open(port, secure)
    client.stream.setNoDelay?.(true)
    return client
  }
  const { opened, time } = await shared(openOne, viaMqttJs[mode], count)
  for (const client of opened) client.end(true)
  return time
}

const candidates = {
  async mqwire(count) {
    if (compat) return byMqttJs(openCompat, count)
    const open = () => openMqwire(port, secure && { tls: secure })
    const { opened, time } = await shared(open, viaMqwire[mode], count)
    for (const client of opened) client.destroy()
    return time
  },
  'MQTT.js': (count) => byMqttJs(openMqttJs, count),
}
if (bare && mode === 'posted')
  candidates['bare socket'] = (count) => sendBare({ port, secure, size }, count, timed)
if (bare && mode === 'window')
  candidates['bare ping-pong'] = (count) => pingPongBare({ port, size, qos: 1 }, count, timed)
if (only !== undefined)
  for (const name of Object.keys(candidates)) if (name !== only) delete candidates[name]
finish({ results: await alternate(candidates, settings) })
