/**
 * The rows of the browser: codec and delivery in headless Chromium, over WebSocket, with both scanners.
 */
import { findChromium, openPage } from '../browser/index.js'
import { median } from '../statistics.js'
import { limitOf } from './sockets.js'

const lacks = () => (findChromium() === undefined ? 'chromium not found' : undefined)
const name = (title) => `Chromium: ${title}`
const noWasm = { skipped: 'this build has no mqwire/wasm' }

/** One page for a measurement. */
async function inPage({ peer }, work) {
  const page = await openPage((await peer()).port)
  try {
    return await work(page)
  } finally {
    await page.close()
  }
}

const comparing = (quick) => (quick ? { rounds: 7, roundTime: 15 } : { rounds: 15, roundTime: 40 })

const ways = {
  TypeScript: 'TypeScript',
  WebAssembly: 'WebAssembly, in place',
  'WebAssembly, copied in': 'WebAssembly, copied in',
}

const decoding = (title, workload) => {
  const titleOf = (way) => name(`decode ${title}, ${way}`)
  return {
    part: 'browser',
    lacks,
    rows: Object.fromEntries(Object.keys(ways).map((way) => [titleOf(way), {}])),
    run: (context) =>
      inPage(context, async (page) => {
        const rows = {}
        for (const [way, candidate] of Object.entries(ways)) {
          const only = [candidate, 'mqtt-packet']
          const nanoseconds = await page.run('codec', {
            what: 'decode',
            name: workload,
            only,
            ...comparing(context.quick),
          })
          const [mqwire, peer] = [nanoseconds[candidate], nanoseconds['mqtt-packet']]
          rows[titleOf(way)] =
            mqwire === undefined
              ? noWasm
              : { ratio: peer / mqwire, mqwire, peer, peerName: 'mqtt-packet', figures: 'ns' }
        }
        return rows
      }),
  }
}

const encoding = {
  part: 'browser',
  lacks,
  rows: { [name('encode PUBLISH')]: {} },
  run: (context) =>
    inPage(context, async (page) => {
      const nanoseconds = await page.run('codec', {
        what: 'encode',
        name: 'PUBLISH',
        ...comparing(context.quick),
      })
      const [mqwire, peer] = [nanoseconds['mqwire'], nanoseconds['mqtt-packet']]
      return {
        [name('encode PUBLISH')]: {
          ratio: peer / mqwire,
          mqwire,
          peer,
          peerName: 'mqtt-packet',
          figures: 'ns',
        },
      }
    }),
}

const ofBare = { target: '≥ 60 % of a bare WebSocket', leastShare: 0.6 }

function comparedRates({ mqwire, 'MQTT.js': peer, 'bare WebSocket': bare }) {
  return {
    ratio: median(mqwire) / median(peer),
    ...(bare && { limit: limitOf(mqwire, bare, 'bare WebSocket') }),
    mqwire: median(mqwire),
    peer: median(peer),
    peerName: 'MQTT.js',
    figures: 'msgs/s',
  }
}

/** `how`: `delivery` over WebSocket, through a relay that is a limit of its own, or `memory`. */
const delivering = (mode, title, how, where) => {
  const rows = {
    [name(`receive QoS 0 ${where}, ${title}, TypeScript`)]: false,
    [name(`receive QoS 0 ${where}, ${title}, WebAssembly`)]: true,
  }
  return {
    part: 'browser',
    lacks,
    rows: Object.fromEntries(
      Object.keys(rows).map((row) => [row, how === 'delivery' ? ofBare : {}]),
    ),
    run: (context) =>
      inPage(context, async (page) => {
        const results = {}
        for (const [row, webAssembly] of Object.entries(rows)) {
          const counts = context.quick
            ? { mqwire: 60_000, 'MQTT.js': 20_000 }
            : { mqwire: 400_000, 'MQTT.js': 60_000 }
          const rates = await page.run(how, {
            url: page.url,
            mode,
            counts,
            rounds: context.quick ? 2 : 7,
            webAssembly,
          })
          results[row] = rates === undefined || rates === null ? noWasm : comparedRates(rates)
        }
        return results
      }),
  }
}

/** Both clients in turns: `run` gives an object of figures. */
async function inTurns(rounds, run) {
  const found = { mqwire: [], 'MQTT.js': [] }
  for (let round = 0; round < rounds; round++) {
    // The first of a round finds a browser that is less warm.
    const order = round % 2 === 0 ? Object.keys(found) : Object.keys(found).reverse()
    for (const client of order) found[client].push(await run(client))
  }
  return found
}

// A mid-range phone is about four times slower than a desktop computer.
const slower = 4
const slow = name(`CPU ÷ ${slower}`)

const frameTitle = `${slow}, 5,000 messages/s into a page`
const frameNames = {
  p50: `${frameTitle}: frame to frame, median`,
  p95: `${frameTitle}: frame to frame, p95`,
  worst: `${frameTitle}: frame to frame, worst`,
  longTasks: `${frameTitle}: tasks over 50 ms`,
  late: `${frameTitle}: the last message is late`,
}

const frames = {
  part: 'browser',
  lacks,
  // A frame is 16.7 ms.
  rows: {
    [frameNames.p50]: { target: '≤ 17 ms', atMost: 17, unit: 'ms' },
    [frameNames.p95]: { target: '≤ 17 ms', atMost: 17, unit: 'ms' },
    [frameNames.worst]: { target: '≤ 50 ms', atMost: 50, unit: 'ms' },
    [frameNames.longTasks]: { target: '0', atMost: 0, unit: '' },
    [frameNames.late]: { target: '≤ 100 ms', atMost: 100, unit: 'ms' },
  },
  run: (context) =>
    inPage(context, async (page) => {
      const { url } = page
      const seconds = context.quick ? 1 : 4
      const found = await inTurns(context.quick ? 2 : 5, (client) =>
        page.run('frames', { url, client, rate: 5000, seconds }, { slower }),
      )
      return Object.fromEntries(
        Object.entries(frameNames).map(([key, title]) => {
          const [mqwire, peer] = ['mqwire', 'MQTT.js'].map((client) =>
            median(found[client].map((figures) => figures[key])),
          )
          const figures = key === 'longTasks' ? '' : 'ms'
          return [title, { ratio: mqwire, mqwire, peer, peerName: 'MQTT.js', figures }]
        }),
      )
    }),
}

const firstName = `${slow}, from a cold load to the first message`
const first = {
  part: 'browser',
  lacks,
  rows: { [firstName]: { target: "≤ 0.7× MQTT.js's", atMost: 0.7 } },
  run: (context) =>
    inPage(context, async (page) => {
      const bytes = await page.prepareFirst()
      const found = await inTurns(context.quick ? 3 : 11, (client) =>
        page.first(client, { slower }),
      )
      const [mqwire, peer] = [median(found.mqwire), median(found['MQTT.js'])]
      const note = `bundles of ${Object.entries(bytes)
        .map(([client, length]) => `${Math.round(length / 1024)} KiB (${client})`)
        .join(' and ')}`
      return {
        [firstName]: {
          ratio: mqwire / peer,
          mqwire,
          peer,
          peerName: 'MQTT.js',
          figures: 'ms',
          note,
        },
      }
    }),
}

/** Measurements of this part, in order. */
export const browser = [
  decoding('256 B', 'plain'),
  decoding('256 B, 5 user properties, lazily', 'properties'),
  decoding('16 B', 'small'),
  encoding,
  ...[
    ['memory', 'over memory'],
    ['delivery', 'over WebSocket'],
  ].flatMap(([how, where]) => [
    delivering('owned', 'for await, owned', how, where),
    delivering('borrowed', 'for await, borrowed', how, where),
    delivering('listen', 'listen, borrowed', how, where),
  ]),
  frames,
  first,
]
