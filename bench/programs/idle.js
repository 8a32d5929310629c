/**
 * What many connected, quiet clients cost: time and processor time to connect, heap and resident memory each, and processor time at rest; or, with `storm`,
 * what it costs until all are back, each with its subscription, after the server has ended all connections at once.
 *
 * Settings: `port`, `client` (`mqwire`, `MQTT.js`, `bare socket`), `count`, `batches` in which they connect, `threads` (worker threads that share the clients; 1: none),
 * `rest` (milliseconds), `storm` (the server is the peer). Wants `--expose-gc`, and a process of its own for each client.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { subscribeTo } from '../peers/stream.js'
import { openBare } from './bare.js'
import { openMqttJs, openMqwire } from './clients.js'
import { finish, settings, timed, turn } from './rounds.js'

const {
  port,
  client,
  count = 2000,
  batches = 1,
  threads = 1,
  atOnce = 100,
  rest = 3000,
  storm,
} = settings
// With the keep-alive that each has when nothing is said: both wait for it, as clients at rest do.
const open = {
  mqwire: (more) => openMqwire(port, { keepAlive: 60, ...more }),
  'MQTT.js': (more) => openMqttJs(port, { keepalive: 60, ...more }),
  'bare socket': () => openBare(port),
}[client]
const nothing = () => undefined

let subacks = 0
let heard = nothing

// Reconnects after a millisecond: MQTT.js takes no shorter delay.
const openSubscribed = {
  async mqwire() {
    const made = await open({ reconnect: { backoff: () => 1 } })
    await made.listen('quiet', nothing)
    made.on('packet', ({ packet }) => packet.type === 'suback' && heard(++subacks))
  },
  async 'MQTT.js'() {
    const made = await open({ reconnectPeriod: 1 })
    made.on('message', nothing)
    await made.subscribeAsync('quiet')
    made.on('packetreceive', (packet) => packet.cmd === 'suback' && heard(++subacks))
  },
}[client]

const tasks = {
  async open(number, make = open) {
    let left = number
    const worker = async () => {
      while (left-- > 0) kept.push(await make())
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
  },
  async settle() {
    for (let turn = 0; turn < 4; turn++) {
      globalThis.gc()
      await sleep(50)
    }
  },
}
const kept = []

const workers = []

/** Does a task here, or a share of it in each of the threads. */
async function all(task, number) {
  if (threads === 1) return tasks[task](number)
  await Promise.all(
    workers.map((worker) => {
      worker.postMessage([task, Math.ceil(number / threads)])
      return once(worker, 'message')
    }),
  )
}

async function settledMemory() {
  await all('settle', 0)
  return process.memoryUsage()
}

async function quiet() {
  for (let thread = 0; threads > 1 && thread < threads; thread++)
    workers.push(new Worker(fileURLToPath(import.meta.url), { argv: [JSON.stringify(settings)] }))
  // Code is compiled, and structures that all share are made, before anything is counted.
  await all('open', 20 * threads)
  const before = await settledMemory()
  const connecting = []
  for (let batch = 0; batch < batches; batch++) {
    turn()
    connecting.push(await timed(() => all('open', count / batches)))
  }
  const after = await settledMemory()
  const resting = await timed(() => sleep(rest))
  return {
    milliseconds: connecting.reduce((total, { seconds }) => total + seconds * 1000, 0),
    processor: connecting.reduce((total, { user, system }) => total + user + system, 0),
    batches: connecting.map(({ user, system }) => user + system),
    heap: (after.heapUsed - before.heapUsed) / count,
    outside: (after.external - before.external) / count,
    resident: (after.rss - before.rss) / count,
    rest: (resting.user + resting.system) / resting.seconds,
  }
}

async function stormed() {
  await tasks.open(count, openSubscribed)
  await tasks.settle()
  const control = await openBare(port)
  const back = await timed(
    () =>
      new Promise((resolve) => {
        heard = (number) => number === count && resolve()
        control.write(subscribeTo('X'))
      }),
  )
  return { milliseconds: back.seconds * 1000, processor: back.user + back.system }
}

if (isMainThread) finish(await (storm ? stormed() : quiet()))
else
  parentPort.on('message', async ([task, number]) => {
    await tasks[task](number)
    parentPort.postMessage('done')
  })
