/**
 * Entries stored, and drained, a second by a queue over LevelDB, and the same batches in the same order on a LevelDB without anything around it.
 *
 * Settings: `port` of a broker, `durability`, `shared` (the client's session lies in the same store), `entries` of a round that is drained, `rounds`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { levelStore } from 'mqwire/store/level'
import { finish, settings } from '../programs/rounds.js'
import { bareLevel, recorded, replay, replayInSteps } from './recorded.js'

const { port, durability, shared, entries, rounds } = settings
const sync = durability === 'sync'
const warmUp = 3
const payload = Buffer.alloc(256, 'x')
const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-queue-'))
const store = await levelStore(path.join(folder, 'queue'), { durability })
const level = await bareLevel(path.join(folder, 'bare'))
const client = await connect(`mqtt://127.0.0.1:${port}`, {
  clientId: `queue-${process.pid}`,
  ...(shared ? { store } : { cleanStart: true }),
})

/** Nothing leaves. */
const nowhere = {
  ordered: true,
  writable: new Promise(() => undefined),
  publish: () => new Promise(() => undefined),
}
const limits = { store, maxEntries: Infinity, maxBytes: Infinity }

async function rate(count, work) {
  const start = performance.now()
  await work()
  return (1000 * count) / (performance.now() - start)
}

/** Rates of mqwire and of LevelDB, in turns. */
async function beside(count, work, results) {
  const { result, batches } = await recorded(() => rate(count, work))
  results.mqwire.push(result)
  results.arrays.push(await rate(count, () => replay(level, batches, sync)))
  results.steps.push(await rate(count, () => replayInSteps(level, batches, sync)))
}

const noResults = () => ({ mqwire: [], arrays: [], steps: [] })

async function storeAll(queue, count, atOnce) {
  for (let done = 0; done < count; done += atOnce) {
    await Promise.all(
      Array.from({ length: atOnce }, (_, at) =>
        queue.publish(`plants/hall-${at % 10}/level`, payload),
      ),
    )
  }
}

async function drain() {
  const queue = await openQueue(client, limits)
  while (queue.size > 0) await new Promise((resolve) => setTimeout(resolve, 1))
  return queue
}

const stored = { 1: noResults(), 100: noResults() }
const drained = noResults()

// The first rounds are for the compiler.
for (let round = -warmUp; round < rounds; round++) {
  const into = (results) => (round < 0 ? noResults() : results)
  const filling = await openQueue(nowhere, limits)
  await beside(
    Math.ceil(entries / 20),
    () => storeAll(filling, Math.ceil(entries / 20), 1),
    into(stored[1]),
  )
  await beside(entries, () => storeAll(filling, entries, 100), into(stored[100]))
  const count = filling.size
  await filling.close({ timeout: 0 })
  let queue
  await beside(
    count,
    async () => {
      queue = await drain()
    },
    into(drained),
  )
  await queue.close()
}

await client.disconnect()
await store.close()
await level.close()
rmSync(folder, { recursive: true, force: true })
finish({ stored, drained })
