/**
 * The table that compares clients, made of what was found (`features.json`), of the results of the benchmarks, and of the sizes that CI holds.
 *
 * Pure: text and objects in, text out. A figure that nobody measured is an empty cell, never a guess.
 */

/** The clients, as columns. */
export const clients = ['mqwire', 'MQTT.js', 'u8-mqtt', 'paho-mqtt', 'aws-crt']

const unknown = 'not measured'
const yes = (value) => (value === true ? 'yes' : value === false ? 'no' : unknown)
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]

/** What delays between attempts look like: whether they grow, and whether two clients that lost their connection at once come back at once. */
export function delaysInWords(delays) {
  if (!Array.isArray(delays) || delays.some((each) => each.length < 2)) return unknown
  const grows = delays.every((each) => Math.max(...each) > 1.7 * each[0])
  const pairs = delays[0]
    .slice(0, delays[1].length)
    .map((delay, index) => Math.abs(delay - delays[1][index]) / Math.max(delay, delays[1][index]))
  const jitter = median(pairs) > 0.03
  return `${grows ? 'growing' : `about ${(median(delays.flat()) / 1000).toFixed(0)} s`}, ${jitter ? 'jitter' : 'no jitter'}`
}

const queues = { bounded: 'yes', unbounded: 'no', 'refuses all': 'nothing is queued' }
const repeats = { 'with DUP': 'yes', 'without DUP': 'yes, without DUP', no: 'no' }

/** Rows of features: what they say, and how an answer reads. */
const features = [
  ['MQTT versions', ({ versions }) => (Array.isArray(versions) ? versions.join(', ') : unknown)],
  ['`for await` over messages', ({ iterates }) => yes(iterates)],
  [
    'acknowledges when your async handler is done',
    ({ acknowledgesWhenDone }) => yes(acknowledgesWhenDone),
  ],
  ['resends QoS 1 after a reconnect', ({ resends }) => repeats[resends] ?? unknown],
  ['delay between attempts', ({ delays }) => delaysInWords(delays)],
  ['queue is bounded by default', ({ boundsItsQueue }) => queues[boundsItsQueue] ?? unknown],
  [
    "honours the broker's Receive Maximum",
    ({ keepsToReceiveMaximum, versions }) => ofFive(keepsToReceiveMaximum, versions),
  ],
  [
    "honours the broker's Maximum Packet Size",
    ({ keepsToMaximumPacketSize, versions }) => ofFive(keepsToMaximumPacketSize, versions),
  ],
  [
    'stops when another client takes its session',
    ({ stopsWhenTakenOver, versions }) => ofFive(stopsWhenTakenOver, versions),
  ],
  ['refuses a topic that is not UTF-8', ({ refusesMalformed }) => yes(refusesMalformed)],
  ['TypeScript declarations', ({ declarations }) => yes(declarations)],
  ['packages installed', ({ packages }) => (packages === undefined ? unknown : String(packages))],
  [
    'gzip in a browser bundle',
    ({ gzip }) => (gzip == null ? 'does not bundle as it is' : `${Math.round(gzip / 1000)} kB`),
  ],
]

// These are of MQTT 5.0.
const ofFive = (value, versions) =>
  Array.isArray(versions) && !versions.includes('5.0') ? 'no MQTT 5.0' : yes(value)

/** Rows of speed, by the titles of the benchmarks. */
const speeds = [
  ['receive at QoS 0 over TCP', 'receive QoS 0 over TCP'],
  ['send at QoS 0 over TCP', 'send QoS 0 over TCP'],
  ['send at QoS 1 over TCP', 'send QoS 1, 100 at a time over TCP'],
  ['receive at QoS 0 over WebSocket', 'receive QoS 0 over WebSocket'],
  ['send at QoS 1 over WebSocket', 'send QoS 1, 100 at a time over WebSocket'],
]

/** How many times as fast mqwire was as a client, by the row of the results; undefined where there is none. */
export function ratioIn(results, title, client) {
  const row = results.split('\n').find((line) => line.startsWith(`| ${title}, against ${client} |`))
  const ratio = Number(/([\d.]+)×/.exec(row?.split('|')[3] ?? '')?.[1])
  return Number.isNaN(ratio) ? undefined : ratio
}

function speedCells(results, title) {
  return clients.map((client) => {
    if (client === 'mqwire') return '1'
    const ratio = ratioIn(results, title, client)
    if (ratio === undefined) return unknown
    return ratio >= 1
      ? `1/${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)}`
      : (1 / ratio).toFixed(2)
  })
}

/** The table, as Markdown. */
export function markdown({ found, results, sizes }) {
  const answers = clients.map((client) => ({
    ...found[client],
    ...(client === 'mqwire' && { gzip: sizes['connect from mqwire'] * 1000 }),
  }))
  const rows = [
    [
      '',
      ...clients.map(
        (client) =>
          `${client}${found[client]?.version === undefined || client === 'mqwire' ? '' : ` ${found[client].version}`}`,
      ),
    ],
    ['---', ...clients.map(() => '---')],
    ...features.map(([title, cell]) => [title, ...answers.map(cell)]),
    ...speeds.map(([title, name]) => [`speed: ${title}`, ...speedCells(results, name)]),
  ]
  return `${rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`
}

const block = /(<!-- comparison -->\n)[\s\S]*?(<!-- \/comparison -->)/

/** A page with the table in its block. */
export const withTable = (page, table) =>
  page.replace(block, (_, start, end) => `${start}${table}${end}`)
