/**
 * Opens a queue with many entries, in a process of its own: milliseconds until the first entry is published, and MiB of memory.
 *
 * Settings: `entries`, or `place` of a store that is filled: for processes of this program. Memory is what the process holds for itself (in Linux: RssAnon;
 * mapped files do not count).
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openQueue } from 'mqwire/queue'
import { levelStore } from 'mqwire/store/level'
import { runProgram } from '../child.js'
import { finish, settings } from '../programs/rounds.js'
import { median } from '../statistics.js'

const limits = { maxEntries: Infinity, maxBytes: Infinity }
const never = new Promise(() => undefined)
const nowhere = { ordered: true, writable: never, publish: () => never }

async function fill(place, entries) {
  const store = await levelStore(place, { durability: 'os' })
  const queue = await openQueue(nowhere, { ...limits, store })
  const payload = Buffer.alloc(256, 'x')
  for (let done = 0; done < entries; done += 1000) {
    await Promise.all(
      Array.from({ length: 1000 }, (_, at) =>
        queue.publish(`plants/hall-${at % 100}/level`, payload),
      ),
    )
  }
  await queue.close({ timeout: 0 })
  await store.close()
}

function memory() {
  const [, kilobytes] = existsSync('/proc/self/status')
    ? /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))
    : []
  return kilobytes === undefined ? process.memoryUsage().rss / 1048576 : kilobytes / 1024
}

async function open(place) {
  const start = performance.now()
  const store = await levelStore(place)
  let first
  const begun = new Promise((resolve) => {
    first = resolve
  })
  const publish = () => {
    first()
    return never
  }
  const queue = await openQueue(
    { ordered: true, writable: Promise.resolve(), publish },
    { ...limits, store },
  )
  await begun
  const opened = performance.now() - start
  // As far as it reads ahead.
  await new Promise((resolve) => setTimeout(resolve, 300))
  return { opened, size: queue.size, memory: memory() }
}

if (settings.place !== undefined) finish(await open(settings.place))
else {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-opening-'))
  try {
    await fill(folder, settings.entries)
    const runs = []
    for (let run = 0; run < 5; run++)
      runs.push(await runProgram('durable/opening.js', { place: folder }))
    if (runs.some(({ size }) => size !== settings.entries)) throw new Error('entries are missing')
    finish({
      opened: median(runs.map(({ opened }) => opened)),
      memory: median(runs.map((run) => run.memory)),
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
