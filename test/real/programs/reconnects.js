/**
 * Loses its connection again and again, with messages in flight both ways, and says what that left behind: heap after garbage collection, listeners,
 * timers and handles before and after.
 *
 * RECONNECTS is how often, TRANSPORT `tcp` or `websocket`. `hang-up.js` is the server. Run with --expose-gc, and with --no-opt --no-sparkplug
 * --no-flush-bytecode, or the figures are those of the compiler. The process must end by itself.
 */
import { getEventListeners, once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { Client, constant } from 'mqwire'
import { print } from './print.js'

const reconnects = Number(process.env.RECONNECTS)
const websocket = process.env.TRANSPORT === 'websocket'
/** Until code is compiled and every pool has its size. */
const warmUp = 100
/** Timers of a client at rest: keep-alive, and the renewal of credentials. */
const timers = 2

const faults = []
process.on('warning', (warning) => faults.push(`warning: ${warning.message}`))

const server = new Worker(new URL('hang-up.js', import.meta.url), { workerData: { websocket } })
const [{ port }] = await once(server, 'message')
const until = new AbortController()
const client = new Client(`${websocket ? 'ws' : 'mqtt'}://127.0.0.1:${port}`, {
  clientId: 'reconnects',
  cleanStart: false,
  reconnect: { backoff: constant(0) },
  credentials: async () => ({ username: 'u', password: 'p', expiresAt: Date.now() + 3_600_000 }),
})
const counts = { connects: 0, acknowledged: 0, received: 0, disconnects: 0 }
client.on('disconnect', () => {
  counts.disconnects += 1
})
client.on('connect', () => {
  counts.connects += 1
  client
    .publish('up', `${counts.connects}`, { qos: 1, signal: until.signal, ackTimeout: 60_000 })
    .then(
      () => {
        counts.acknowledged += 1
      },
      (error) => faults.push(`publish: ${error.code}`),
    )
})

async function receive(subscription) {
  for await (const _ of subscription) counts.received += 1
}

function resources() {
  const kinds = {}
  for (const kind of process.getActiveResourcesInfo()) kinds[kind] = (kinds[kind] ?? 0) + 1
  return kinds
}

// At rest: connected, nothing in flight, no timer that only runs out, garbage collected.
async function rest() {
  await settled(() => client.state === 'connected' && counts.acknowledged === counts.connects)
  const deadline = performance.now() + 3000
  await settled(() => resources().Timeout === timers || performance.now() > deadline)
  for (let round = 0; round < 5; round += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc()
  }
  return {
    heap: process.memoryUsage().heapUsed,
    resources: resources(),
    listeners: {
      process: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
      abort: getEventListeners(until.signal, 'abort').length,
    },
  }
}

// A busy machine may take its time, as long as something goes on.
async function settled(probe) {
  let deadline = performance.now() + 60_000
  let connects = 0
  while (!probe()) {
    if (counts.connects !== connects) deadline = performance.now() + 60_000
    connects = counts.connects
    if (performance.now() > deadline)
      throw new Error(`not settled: ${JSON.stringify({ state: client.state, counts })}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

async function lose(times) {
  const last = counts.connects + times
  server.postMessage(last)
  await once(server, 'message')
  // The one that lasted so far goes the same way.
  if (client.state === 'connected') await client.reconnect({ force: true })
  else await client.connect()
  await settled(() => counts.connects === last)
}

receive(client.subscription('down', { qos: 1, until: until.signal }))
const started = performance.now()
await lose(warmUp)
await rest()
await lose(warmUp)
const before = await rest()
await lose(reconnects)
const after = await rest()
const seconds = (performance.now() - started) / 1000
await client.disconnect({ timeout: 0 })
await server.terminate()
print({ before, after, counts, faults, seconds, state: client.state })
