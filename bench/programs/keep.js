/**
 * What stays in memory when a program keeps one message of every thousand. Wants `--expose-gc`. Settings: `port`, `count`, `every`, `size`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openMqwire } from './clients.js'
import { finish, settings } from './rounds.js'

const { port, count = 1_000_000, every = 1000, size = 256 } = settings

async function memory() {
  for (let turn = 0; turn < 4; turn++) {
    globalThis.gc()
    await sleep(30)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function receive(total, keep) {
  const client = await openMqwire(port)
  let left = total
  for await (const message of await client.subscribe(['plants/#', `N${total}/${size}`])) {
    if (left % every === 0) keep(message)
    if (--left === 0) break
  }
  client.destroy()
}

await receive(count / 10, () => undefined)
const before = await memory()
const kept = []
await receive(count, (message) => kept.push(message))
const after = await memory()
let largest = 0
for (const { payload } of kept) largest = Math.max(largest, payload.buffer.byteLength)
// What a kept message means to structuredClone, that is to postMessage as well.
const copied = structuredClone(kept[0].payload).buffer.byteLength
finish({
  kept: kept.length,
  grown: after - before,
  allowed: kept.length * (size + 8192),
  largest,
  copied,
  wrong: kept.filter((message) => message.payload.length !== size).length,
})
