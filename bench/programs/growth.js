/**
 * Whether memory grows with the number of messages. Wants `--expose-gc`. Settings: `port`, `mode`, `qos`, `messages`.
 *
 * One client on one connection; after each tenth of the messages the heap is collected and looked at, and the first tenth does not count.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openMqwire } from './clients.js'
import { finish, settings } from './rounds.js'

const { port, mode = 'owned', qos = 0, messages = 10_000_000, size = 256 } = settings
const client = await openMqwire(port)
const part = messages / 10
const heaps = []
const outside = []

async function look() {
  for (let turn = 0; turn < 3; turn++) {
    globalThis.gc()
    await sleep(20)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  heaps.push(heapUsed)
  outside.push(arrayBuffers)
}

const options = { qos, lifetime: mode === 'borrowed' || mode === 'listen' ? 'borrowed' : 'owned' }
let seen = 0
let turn = () => undefined
const tell = () => {
  if (seen % part === 0) turn()
}

async function reading(subscription) {
  if (mode === 'batches') {
    for await (const batch of subscription.batches()) {
      for (const message of batch) if (message.payload.length === size) seen++
      tell()
    }
    return
  }
  for await (const message of subscription) {
    if (message.payload.length === size) seen++
    tell()
  }
}

const handler = (message) => {
  if (message.payload.length === size) seen++
  tell()
}
if (mode === 'listen') await client.listen('plants/#', handler, options)
else reading(await client.subscribe('plants/#', options)).catch(() => undefined)

for (let index = 0; index < 10; index++) {
  const arrived = new Promise((resolve) => {
    turn = resolve
  })
  const wish = await client.subscribe(`N${part}/${size}`, { qos })
  await arrived
  await wish.unsubscribe()
  await look()
}
finish({
  seen,
  heap: heaps.at(-1) - heaps[0],
  outside: outside.at(-1) - outside[0],
  heaps,
  arrays: outside,
})
