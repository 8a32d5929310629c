/**
 * Ordinary programs on real brokers with default options: nothing lost, nothing twice at QoS 2, no connection ended by us.
 *
 * What is run here is chosen to end within 90 seconds on two processors; `npm run lab -- brokers programs all` runs every program on every broker. What a
 * broker does wrong is in `expectations.ts`, by name, and counts only if the tap saw it.
 */
import { afterAll, describe, expect, it } from 'vitest'
import type { TransportName } from '../brokers.js'
import { type SiteName, site } from '../sites.js'
import { verdictOf } from './expectations.js'
import { lineOf } from './figures.js'
import { programs } from './programs.js'
import { Runner } from './run.js'

/** Programs with how much of their work, and the window of their receivers where that is not the default. */
const chosen: readonly (readonly [SiteName, TransportName, string])[] = [
  [
    'mosquitto',
    'TCP',
    `durable ingest × 0.5 | durable ingest × 0.5 @ 3
    | durable service × 1 | durable service, 3.1.1 × 0.5 | busy listen × 0.3
    | narrow QoS 2 × 1 | 50 devices in a loop × 0.5 | 50 devices, acknowledged by hand × 0.2
    | fan-out × 0.2 | retained state × 1 | wills × 1 | responder leaves × 0.5 | slow handler × 0.4
    | fleet of consumers × 0.5 | $share, 3.1.1 × 1 | 5 MB × 1 | 50 MB × 1 | broker restarted × 0.2
    | takeover × 1 | overlapping filters × 0.5 | dead link × 1 | dying broker × 0.3
    | dying broker, silent × 0.3 | large through cuts × 0.2`,
  ],
  ['mosquitto', 'WebSocket', '50 devices × 0.2 | durable service × 1 | 5 MB × 1'],
  [
    'mochi',
    'TCP',
    `durable service × 1 | busy listen × 0.2 | slow handler × 0.4 | fleet of consumers × 0.3
    | overlapping filters × 0.3`,
  ],
  ['mochi', 'WebSocket', '50 devices × 0.2 | $share, 3.1.1 × 1'],
  ['aedes', 'TCP', 'durable service × 1 | busy listen × 0.2 | narrow QoS 2 × 1'],
  ['aedes', 'WebSocket', 'durable service × 0.5 | takeover × 1'],
  [
    'MemoryBroker',
    'TCP',
    `durable ingest × 0.3 | responder leaves × 0.5 | fleet of consumers × 0.3 | narrow QoS 2 × 1
    | broker restarted × 0.2`,
  ],
  ['MemoryBroker', 'WebSocket', 'retained state × 0.5'],
]

const sites = await Promise.all([...new Set(chosen.map(([broker]) => broker))].map(site))
const runner = await Runner.start(sites, 3)
afterAll(() => runner.stop())

describe.each(chosen)(
  'ordinary programs on %s over %s',
  {
    concurrent: true,
    timeout: 400_000,
  },
  (broker, transport, rows) => {
    const found = sites.find(({ name }) => name === broker)
    if (found === undefined || 'missing' in found)
      return it(`${broker}: ${found?.missing}`, () => expect(process.env['CI']).toBeUndefined())
    for (const row of rows.split(/\s*\|\s*/)) {
      const [, name, scale, window] = /^(.*) × ([\d.]+)(?: @ (\d+))?$/.exec(row) ?? []
      const program = programs.find((each) => each.name === name)
      if (program === undefined) throw new Error(`no program ${row}`)
      it(`${row}: ${program.title}`, async () => {
        const own = window === undefined ? {} : { window: Number(window) }
        const result = await runner.run({
          program,
          broker,
          transport,
          scale: Number(scale),
          ...own,
        })
        if (result === undefined) throw new Error(`${broker} does not listen on ${transport}`)
        expect(verdictOf(result).word, lineOf(result)).not.toBe('fails')
      })
    }
  },
)
