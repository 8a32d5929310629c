/**
 * Ordinary programs on real brokers with default options: nothing lost, nothing twice at QoS 2, no connection ended by us.
 *
 * What is run here is chosen to end within 90 seconds on two processors; `npm run lab -- brokers programs all` runs every program on every broker. What a broker
 * does wrong is in `ordinary/expectations.ts`, by name, and counts only if the tap saw it.
 */
import { rmSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import type { TransportName } from '../brokers.js'
import { bundleCell } from './ordinary/bundle.js'
import { verdictOf } from './ordinary/expectations.js'
import { programs } from './ordinary/programs.js'
import { Runner } from './ordinary/run.js'
import { type SiteName, site } from './ordinary/sites.js'
import { lineOf } from './ordinary/table.js'

/** Program, how much of its work, and the window that its receivers announce where that is not the default. */
type Row = readonly [program: string, scale: number, window?: number]

const chosen: readonly (readonly [
  broker: SiteName,
  transport: TransportName,
  rows: readonly Row[],
])[] = [
  [
    'mosquitto',
    'TCP',
    [
      ['random uploads', 1],
      ['random uploads, TCP', 1],
      ['durable ingest', 0.5],
      ['durable ingest', 0.5, 3],
      ['durable service', 1],
      ['durable service, 3.1.1', 0.5],
      ['durable service, auto', 1],
      ['busy listen', 0.3],
      ['narrow QoS 2', 1],
      ['50 devices in a loop', 0.5],
      ['50 devices, acknowledged by hand', 0.2],
      ['fan-out', 0.2],
      ['retained state', 1],
      ['wills', 1],
      ['responder leaves', 0.5],
      ['slow handler', 0.4],
      ['fleet of consumers', 0.5],
      ['$share, 3.1.1', 1],
      ['5 MB', 1],
      ['50 MB', 1],
      ['broker restarted', 0.2],
      ['takeover', 1],
      ['refusals', 1],
      ['overlapping filters', 0.5],
      ['dead link', 1],
      ['dying broker', 0.3],
      ['dying broker, silent', 0.3],
      ['large through cuts', 0.2],
    ],
  ],
  [
    'mosquitto',
    'WebSocket',
    [
      ['50 devices', 0.2],
      ['durable service', 1],
      ['5 MB', 1],
    ],
  ],
  [
    'mochi',
    'TCP',
    [
      ['durable service', 1],
      ['busy listen', 0.2],
      ['slow handler', 0.4],
      ['fleet of consumers', 0.3],
      ['overlapping filters', 0.3],
      ['throughput, QoS 1', 0.3],
    ],
  ],
  [
    'mochi',
    'WebSocket',
    [
      ['50 devices', 0.2],
      ['$share, 3.1.1', 1],
    ],
  ],
  [
    'aedes',
    'TCP',
    [
      ['durable service', 1],
      ['busy listen', 0.2],
      ['narrow QoS 2', 1],
      ['refusals', 1],
    ],
  ],
  [
    'aedes',
    'WebSocket',
    [
      ['durable service', 0.5],
      ['takeover', 1],
    ],
  ],
  [
    'MemoryBroker',
    'TCP',
    [
      ['durable ingest', 0.3],
      ['responder leaves', 0.5],
      ['fleet of consumers', 0.3],
      ['narrow QoS 2', 1],
      ['broker restarted', 0.2],
    ],
  ],
  ['MemoryBroker', 'WebSocket', [['retained state', 0.5]]],
]

const sites = await Promise.all(
  [...new Set(chosen.map(([broker]) => broker))].map((name) => site(name)),
)
const file = await bundleCell()
const runner = new Runner(file, sites, 3)

afterAll(async () => {
  await runner.stop()
  rmSync(file, { force: true })
})

for (const [broker, transport, rows] of chosen) {
  const missing = sites.flatMap((each) =>
    each.name === broker && 'missing' in each ? [each.missing] : [],
  )[0]
  describe(`ordinary programs on ${broker} over ${transport}`, {
    concurrent: true,
    timeout: 400_000,
  }, () => {
    if (missing !== undefined)
      it(`${broker}: ${missing}`, () => expect(process.env['CI']).toBeUndefined())
    else
      for (const [name, scale, window] of rows) {
        const program = programs.find((each) => each.name === name)
        it(`${name}${window === undefined ? '' : `, window ${window}`}: ${program?.title}`, async () => {
          if (program === undefined) throw new Error(`no program ${name}`)
          const result = await runner.run({
            program,
            party: 'mqwire',
            broker,
            transport,
            scale,
            seconds: 20,
            ...(window !== undefined && { window }),
          })
          if (result === undefined) throw new Error(`${broker} does not listen on ${transport}`)
          expect(verdictOf(result).word, lineOf(result)).not.toBe('fails')
        })
      }
  })
}
