/**
 * What many connected, quiet clients cost in one process: time to connect, heap and resident memory each, and processor time at rest.
 *
 * Settings: `port`, `client` (`mqwire`, `MQTT.js`), `count`, `batches` in which they connect. Wants `--expose-gc`, and a process of its own for each client.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openMqttJs, openMqwire } from './clients.js'
import { finish, settings, timed, turn } from './rounds.js'

const { port, client, count = 2000, atOnce = 100, batches = 1 } = settings
// With the keep-alive that each has when nothing is said: both wait for it, as clients at rest do.
const open = {
  mqwire: () => openMqwire(port, { keepAlive: 60 }),
  'MQTT.js': () => openMqttJs(port, { keepalive: 60 }),
}[client]

async function settledMemory() {
  for (let turn = 0; turn < 4; turn++) {
    globalThis.gc()
    await sleep(50)
  }
  return process.memoryUsage()
}

// Code is compiled, and structures that all share are made, before anything is counted.
const first = await Promise.all(Array.from({ length: 20 }, open))
const before = await settledMemory()
const clients = []
let opened = 0
const openUpTo = (most) =>
  Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (opened < most) {
        opened++
        clients.push(await open())
      }
    }),
  )
const connecting = []
for (let batch = 1; batch <= batches; batch++) {
  turn()
  connecting.push(await timed(() => openUpTo((count * batch) / batches)))
}
const after = await settledMemory()
const rest = await timed(() => sleep(settings.rest ?? 3000))
finish({
  milliseconds: connecting.reduce((total, { seconds }) => total + seconds * 1000, 0),
  processor: connecting.map(({ user, system }) => user + system),
  heap: (after.heapUsed - before.heapUsed) / count,
  outside: (after.external - before.external) / count,
  resident: (after.rss - before.rss) / count,
  rest: (rest.user + rest.system) / rest.seconds,
  clients: clients.length + first.length,
})
