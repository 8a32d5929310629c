/**
 * QoS 1 publishes a second of clients that keep them in LevelDB until they are acknowledged: mqwire, synced and not, and a queue of mqwire, beside MQTT.js
 * with mqtt-level-store, which does not sync; nor does the queue.
 *
 * Settings: `port` of a broker, `atOnce`, `only`, and those of `alternate`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import mqttjs from 'mqtt'
import levelManager from 'mqtt-level-store'
import { connect } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { levelStore } from 'mqwire/store/level'
import { startPeer } from '../peers/index.js'
import { alternate, finish, settings, timed } from '../programs/rounds.js'

const { atOnce, only } = settings
// Alone, for a profile, it starts its own peer.
const port = settings.port ?? (await startPeer()).port
const url = `mqtt://127.0.0.1:${port}`
const payload = Buffer.alloc(256, 'x')
const topics = Array.from(
  { length: 100 },
  (_, index) => `plants/hall-${String(index).padStart(2, '0')}/level`,
)
const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-publish-'))

/** Times `count` publishes: as many as fill whole groups, and the share of them that was asked for. */
async function timedPublishes(count, publish) {
  const groups = Math.ceil(count / atOnce)
  const times = await timed(async () => {
    for (let group = 0; group < groups; group++)
      await Promise.all(Array.from({ length: atOnce }, (_, at) => publish(topics[at])))
  })
  const share = count / (groups * atOnce)
  return Object.fromEntries(Object.entries(times).map(([name, time]) => [name, time * share]))
}

async function mqwire(durability) {
  const store = await levelStore(path.join(folder, durability), { durability })
  const client = await connect(url, { clientId: `durable-${durability}`, store })
  return (count) => timedPublishes(count, (topic) => client.publish(topic, payload, { qos: 1 }))
}

async function queue() {
  const store = await levelStore(path.join(folder, 'queue'), { durability: 'os' })
  const client = await connect(url, { clientId: 'durable-queue', cleanStart: true })
  const kept = await openQueue(client, { store })
  return (count) =>
    timedPublishes(count, async (topic) => {
      const { delivered } = await kept.publish(topic, payload, { qos: 1 })
      await delivered
    })
}

async function mqttJs() {
  const { incoming, outgoing } = levelManager(path.join(folder, 'mqttjs'))
  const options = {
    protocolVersion: 5,
    clientId: 'durable-mqttjs',
    clean: false,
    incomingStore: incoming,
    outgoingStore: outgoing,
  }
  const client = await mqttjs.connectAsync(url, options)
  client.stream.setNoDelay(true)
  return (count) =>
    timedPublishes(count, (topic) => client.publishAsync(topic, payload, { qos: 1 }))
}

const openers = { os: () => mqwire('os'), sync: () => mqwire('sync'), queue, 'MQTT.js': mqttJs }
const candidates = {}
for (const [name, open] of Object.entries(openers))
  if (only === undefined || only === name) candidates[name] = await open()
const results = await alternate(candidates, { first: atOnce, ...settings })
rmSync(folder, { recursive: true, force: true })
finish(results)
