/**
 * The rows of the browser: codec and delivery in headless Chromium, over WebSocket, with both scanners.
 */
import { findChromium, openPage } from '../browser/index.js'

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

/** `how`: `delivery` over WebSocket, through a relay that is a limit of its own, or `memory`. */
const delivering = (mode, title, how, where) => {
  const rows = {
    [name(`receive QoS 0 ${where}, ${title}, TypeScript`)]: false,
    [name(`receive QoS 0 ${where}, ${title}, WebAssembly`)]: true,
  }
  return {
    part: 'browser',
    lacks,
    rows: Object.fromEntries(Object.keys(rows).map((row) => [row, {}])),
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
          results[row] =
            rates === undefined || rates === null
              ? noWasm
              : {
                  ratio: rates.mqwire / rates['MQTT.js'],
                  mqwire: rates.mqwire,
                  peer: rates['MQTT.js'],
                  peerName: 'MQTT.js',
                  figures: 'msgs/s',
                }
        }
        return results
      }),
  }
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
]
