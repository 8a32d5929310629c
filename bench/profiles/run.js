/**
 * One profile with one client, in a process of its own: many clients against one mosquitto, every delivery checked.
 *
 *     node bench/profiles/run.js '{"port":1883,"profile":"mesh","client":"mqwire"}'
 *
 * Settings: `port`, `profile`, `client` (`mqwire`, `MQTT.js`), `count` (messages of each publisher). Prints rate, processor time and what was lost.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { finish, settings, timed } from '../programs/rounds.js'
import { median } from '../statistics.js'
import { ends, openAll } from './clients.js'
import { Ledger, lastNumber, stamp } from './ledger.js'

const { port, profile, client } = settings
const size = 256
const range = (count) => Array.from({ length: count }, (_, index) => index)

/** Publishers, subscribers, and who hears whom: `topicOf(publisher)`, `filterOf(subscriber)`, `hears(subscriber)`. */
const profiles = {
  stress: {
    qos: 2,
    publishers: 2000,
    subscribers: 100,
    count: 20,
    topicOf: (publisher) => `stress/${publisher % 100}`,
    filterOf: (subscriber) => `stress/${subscriber}`,
    hears: (subscriber) => range(2000).filter((publisher) => publisher % 100 === subscriber),
  },
  'fan-in': fan(20, 1, 15_000),
  'fan-out 20': fan(1, 20, 15_000),
  'fan-out 1,000': fan(1, 1000, 400),
  mesh: fan(20, 20, 1000),
}

function fan(publishers, subscribers, count) {
  const hears = () => range(publishers)
  return {
    qos: 0,
    publishers,
    subscribers,
    count,
    topicOf: (publisher) => `fan/${publisher}`,
    filterOf: () => 'fan/#',
    hears,
  }
}

const { qos, publishers, subscribers, topicOf, filterOf, hears, count: usual } = profiles[profile]
const count = settings.count ?? usual
const turn = () => new Promise((resolve) => setImmediate(resolve))

const waits = []

// Each message at QoS 2 is awaited; at QoS 0 they flow as fast as the transport takes them, and the event loop turns in between.
async function send(publisher, number) {
  const payload = new Uint8Array(size)
  const topic = topicOf(number)
  for (let index = 0; index < count; index++) {
    stamp(payload, number, index)
    if (qos > 0) {
      const start = performance.now()
      await publisher.publish(topic, payload, qos)
      waits.push(performance.now() - start)
      continue
    }
    await publisher.post(topic, payload)
    if (index % 32 === 31) {
      await publisher.room()
      await turn()
    }
  }
  stamp(payload, number, lastNumber)
  await publisher.publish(topic, payload, Math.max(1, qos))
}

const mesh = profile === 'mesh'
const readers = await openAll(
  client,
  port,
  range(subscribers).map((index) => `reader-${index}`),
)
const writers = mesh
  ? readers
  : await openAll(
      client,
      port,
      range(publishers).map((index) => `writer-${index}`),
    )
const ledgers = range(subscribers).map((index) => new Ledger(hears(index), count, size))
const drops = await Promise.all(
  readers.map((reader, index) =>
    reader.subscribe(filterOf(index), Math.max(1, qos), (payload) => ledgers[index].take(payload)),
  ),
)
await sleep(200)
globalThis.gc?.()
const time = await timed(async () => {
  const all = Promise.all([...writers.map(send), ...ledgers.map((ledger) => ledger.finished)])
  await Promise.race([all, sleep(settings.patience ?? 60_000, undefined, { ref: false })])
})
const total = (key) => ledgers.reduce((sum, ledger) => sum + ledger[key], 0)
const received = total('received')
finish({
  received,
  rate: received / time.seconds,
  processor: ((time.user + time.system) / received) * 1e6,
  p50: waits.length > 0 ? median(waits) : undefined,
  missing: total('missing'),
  twice: total('twice'),
  wrong: total('wrong'),
  disordered: total('disordered'),
  ends: ends.slice(0, 5),
  dropped: drops.reduce((sum, dropped) => sum + dropped(), 0),
})
