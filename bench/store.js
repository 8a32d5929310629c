/**
 * A store in LevelDB beside bare LevelDB: batches of the same size, with the same `sync` flag, in the same run. Then a store with a million entries: how
 * long it takes to open, and how much memory, beside one with half as many.
 *
 *     node bench/store.js [--rounds N] [--entries N] [--skip-large]
 *
 * All in turns, medians. Memory is what a process of its own holds for itself (in Linux: RssAnon; mapped files do not count) once it has opened the store,
 * and once it has read every entry.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { ClassicLevel } from 'classic-level'
import { levelStore } from 'mqwire/store/level'
import { argumentsOf } from '../examples/arguments.js'
import { machine } from './measure.js'
import { median } from './statistics.js'

const { values } = argumentsOf({
  usage: 'node bench/store.js [options]',
  about: 'Times stores in LevelDB beside bare LevelDB batches of the same size and sync flag.',
  options: {
    rounds: {
      value: 'N',
      number: [1, 1000],
      whole: true,
      initial: 51,
      text: 'rounds; each has every contestant once',
    },
    entries: {
      value: 'N',
      number: [10_000, 10_000_000],
      whole: true,
      initial: 1_000_000,
      text: 'entries of the large store',
    },
    only: {
      value: 'PLACE',
      text: 'reads the store at this place and prints what it took, as JSON: for processes of this program',
    },
    'skip-large': { text: 'leaves the large store out' },
  },
})

const value = new Uint8Array(256).fill(7)
const keyOf = (number) => `q/${String(number).padStart(15, '0')}`

/** Writes so many entries in batches, so many calls at a time; gives entries a second. */
async function timed({ write, next }, { entries, size, atOnce }) {
  const end = next.number + entries
  const worker = async () => {
    while (next.number < end) {
      const operations = []
      for (let count = 0; count < size; count++)
        operations.push({ type: 'put', key: keyOf(next.number++), value })
      await write(operations)
    }
  }
  const since = performance.now()
  await Promise.all(Array.from({ length: atOnce }, worker))
  return (1000 * entries) / (performance.now() - since)
}

const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-store-'))
let count = 0
const place = () => path.join(folder, `store-${count++}`)

const contestants = {
  async LevelDB({ sync }) {
    const level = new ClassicLevel(place(), { valueEncoding: 'view', compression: false })
    await level.open()
    return {
      next: { number: 0 },
      write: (operations) => level.batch(operations, { sync }),
      close: () => level.close(),
    }
  },
  async mqwire({ sync }) {
    const store = await levelStore(place(), { durability: sync ? 'sync' : 'os' })
    return {
      next: { number: 0 },
      write: (operations) => store.batch(operations),
      close: () => store.close(),
    }
  },
}

/** Entries of one slice: what a disk needs for a sync changes from second to second, so the turns are short. */
const rows = {
  'sync, one batch of 1 at a time': { entries: 20, size: 1, atOnce: 1, sync: true },
  'sync, 100 batches of 1 at once': { entries: 500, size: 1, atOnce: 100, sync: true },
  'sync, one batch of 100 at a time': { entries: 1000, size: 100, atOnce: 1, sync: true },
  'os, one batch of 1 at a time': { entries: 500, size: 1, atOnce: 1, sync: false },
  'os, 100 batches of 1 at once': { entries: 2000, size: 1, atOnce: 100, sync: false },
  'os, one batch of 100 at a time': { entries: 5000, size: 100, atOnce: 1, sync: false },
}

async function compare() {
  console.log(
    '| entries a second | mqwire | LevelDB | LevelDB ÷ mqwire (≤ 1.5) |\n| --- | ---: | ---: | ---: |',
  )
  for (const [name, row] of Object.entries(rows)) {
    const rates = { LevelDB: [], mqwire: [] }
    const open = { LevelDB: await contestants.LevelDB(row), mqwire: await contestants.mqwire(row) }
    for (let round = 0; round < values.rounds; round++) {
      const order = Object.keys(contestants)
      if (round % 2 === 1) order.reverse()
      for (const each of order) rates[each].push(await timed(open[each], row))
    }
    for (const { close } of Object.values(open)) await close()
    const ours = Math.round(median(rates.mqwire))
    const theirs = Math.round(median(rates.LevelDB))
    console.log(
      `| ${name} | ${ours.toLocaleString('en')} | ${theirs.toLocaleString('en')} | ${(theirs / ours).toFixed(2)} |`,
    )
  }
}

/** In MiB. */
function memory() {
  const [, kilobytes] = existsSync('/proc/self/status')
    ? /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))
    : []
  return kilobytes === undefined ? process.memoryUsage().rss / 1048576 : kilobytes / 1024
}

/** Reads everything, for its own process. */
async function readAll(at) {
  const since = performance.now()
  const store = await levelStore(at)
  await store.get(keyOf(0))
  const opened = performance.now() - since
  const small = memory()
  let entries = 0
  for await (const [key] of store.entries()) if (key !== '') entries++
  const read = performance.now() - since - opened
  console.log(JSON.stringify({ opened, read, entries, small, large: memory() }))
  await store.close()
}

async function large() {
  console.log(
    '\n| entries | opened (< 2,000 ms) | read a second | memory when open | when read |\n| ---: | ---: | ---: | ---: | ---: |',
  )
  for (const entries of [values.entries / 2, values.entries]) {
    const at = place()
    const store = await levelStore(at, { durability: 'os' })
    await timed(
      { write: (operations) => store.batch(operations), next: { number: 0 } },
      { entries, size: 1000, atOnce: 2 },
    )
    await store.close()
    const runs = Array.from({ length: 3 }, () =>
      JSON.parse(
        execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--only', at], {
          encoding: 'utf8',
        }),
      ),
    )
    const of = (name) => median(runs.map((run) => run[name]))
    const perSecond = Math.round((1000 * of('entries')) / of('read'))
    console.log(
      `| ${of('entries').toLocaleString('en')} | ${Math.round(of('opened'))} ms | ${perSecond.toLocaleString('en')} | ${Math.round(of('small'))} MiB | ${Math.round(of('large'))} MiB |`,
    )
  }
}

if (values.only !== undefined) await readAll(values.only)
else {
  console.log(`${machine()}. ${value.length} bytes an entry.\n`)
  try {
    await compare()
    if (!values['skip-large']) await large()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
