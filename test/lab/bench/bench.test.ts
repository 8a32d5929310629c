/** The benches: times become the right words, what is measured is what was done, and each target is judged. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { Decoder } from '../../../src/wire/index.js'
import { requireDist, root } from '../../package/fixture.js'

interface Row {
  readonly name: string
  readonly target?: string
  readonly verdict?: string
}
interface Report {
  readonly machine: string
  readonly peers: string
  readonly rows: readonly Row[]
  readonly skipped: readonly { readonly name: string; readonly reason: string }[]
  readonly failed: readonly unknown[]
}

/** `bench` is plain JavaScript, so what a module holds has no types. */
const load = (name: string) => import(new URL(`../../../bench/${name}`, import.meta.url).href)
const { median, paired, quantile, verdict } = await load('statistics.js')
const { curvesOf, documentOf, rowOf } = await load('report.js')
const { drawing } = await load('drawing.js')
const { compare, compareAsync } = await load('compare.js')
const { Ledger, lastNumber, stamp } = await load('profiles/ledger.js')
const { makeBlock } = await load('peers/stream.js')
const { measurements } = await load('parts/index.js')

beforeAll(requireDist)

it('medians, quantiles and verdicts', () => {
  expect([median([9, 1, 5]), median([4, 1, 3, 2]), median([])]).toEqual([5, 2.5, Number.NaN])
  const values = Array.from({ length: 100 }, (_, index) => 99 - index)
  expect([quantile(values, 0.99), quantile(values, 0.5)]).toEqual([99, 50])
  // One that was disturbed, and a machine that is slower from then on, are no difference.
  expect(paired([10, 10, 10, 20, 20], [11, 11, 50, 22, 22])).toBeCloseTo(1.1)
  expect(verdict(7, { atLeast: 7 })).toBe('met')
  expect(verdict(6.99, { atLeast: 7 })).toBe('missed')
  expect(verdict(0.11, { atMost: 0.1 })).toBe('missed')
  expect(verdict(Number.NaN, { atMost: 7 })).toBe('missed')
})

it('nanoseconds an operation, of what was really done; one slow round does not move the median', async () => {
  let now = 0
  let calls = 0
  const exact = (count: number) => {
    calls += 1
    now += count * 0.001 * (calls === 30 ? 1000 : 1)
    return undefined
  }
  const hundreds = (count: number) => {
    const done = Math.ceil(count / 100) * 100
    now += done * 0.01
    return done
  }
  const found = compare({ exact, hundreds }, { rounds: 9, roundTime: 10, clock: () => now })
  expect(found.exact).toBeCloseTo(1000)
  expect(found.hundreds).toBeCloseTo(10_000)
  const slow = async (count: number) => {
    await Promise.resolve()
    now += count * 2
    return 2 * count
  }
  const options = { rounds: 3, warmUp: 1, count: 10, clock: () => now }
  expect(await compareAsync({ slow }, options)).toEqual({ slow: [1e6, 1e6, 1e6] })
})

it('the report names what is missed, what is slower than a peer, and what was not measured', () => {
  const limits = { target: '≥ 7×', atLeast: 7 }
  const limitedTo = { target: '≥ 50 %', leastShare: 0.5 }
  const measured = { ratio: 8, mqwire: 800, peer: 100, peerName: 'MQTT.js', figures: 'msgs/s' }
  const rows = [
    rowOf('receive', 'fast', limits, measured),
    rowOf('receive', 'slow', limits, { ...measured, ratio: 0.5, mqwire: 50 }),
    rowOf('receive', 'known', {}, measured),
    ...[0.2, 0.3].map((spread) =>
      rowOf('receive', `below the limit ${spread}`, limitedTo, {
        ...measured,
        limit: { of: 'bare socket', share: 0.4, spread },
      }),
    ),
  ]
  const skipped = [{ name: 'native', reason: 'cargo not found' }]
  const about = { machine: 'two processors', peers: 'C', failed: [], date: '2026-01-01' }
  const text = documentOf({ ...about, rows, skipped })
  expect(text).toContain('1 of 4 rows are met')
  // A limit that is not steady is not judged.
  expect(text).toMatch(
    /## Missed\n\n- slow: 0\.5×, target ≥ 7×\n- below the limit 0\.2: 8×, 40 % of a bare socket, target ≥ 50 %\n\n/,
  )
  expect(text).toMatch(/## Slower than a peer\n\n- slow/)
  expect(text).toContain('- native: cargo not found')
})

it('curves are drawn within the picture, each line with its name, and tabled by their growth', () => {
  const pointOf = (at: number, costs: { mqwire: number; peer?: number }) =>
    rowOf(
      'growth',
      `${at} filters`,
      {},
      {
        ...costs,
        ratio: 1,
        peerName: 'MQTT.js',
        figures: 'ns',
        point: { curve: 'Filters', axis: 'filters', about: 'over memory', at, label: String(at) },
      },
    )
  // A peer that is not measured to the end has a shorter line.
  const rows = [
    pointOf(1, { mqwire: 300, peer: 2000 }),
    pointOf(10, { mqwire: 330, peer: 4000 }),
    pointOf(100, { mqwire: 4500 }),
  ]
  const picture: string = drawing([...curvesOf(rows), ...curvesOf(rows)])
  for (const words of ['Filters', 'mqwire ×15', 'MQTT.js ×2', '>100<', '>1 µs<'])
    expect(picture.split(words).length, words).toBeGreaterThan(2)
  const [, width = 0, height = 0] = /viewBox="0 0 (\d+) (\d+)"/.exec(picture)?.map(Number) ?? []
  const places = [...picture.matchAll(/[ML"](\d+(?:\.\d+)?)(?: |" c?y=")([^"L mh]+)/g)]
  expect(places.length).toBeGreaterThan(30)
  for (const [, x, y] of places) {
    expect(Number(x)).toBeLessThan(width)
    expect(Number(y)).toBeLessThan(height)
  }
  expect(picture).not.toMatch(/NaN|Infinity|undefined/)
  const about = { machine: 'two processors', peers: 'C', skipped: [], failed: [] }
  const text = documentOf({ ...about, rows, date: '2026-01-01' })
  expect(text).toContain('| Filters | 100 | 4,500 ns | – (MQTT.js) | 15× | – |')
})

it('the ledger of a profile counts what is missing, twice, out of order and wrong', async () => {
  const ledger = new Ledger([3, 70_000], 3, 16)
  const take = (publisher: number, number: number, size = 16): void => {
    const bytes = new Uint8Array(size)
    stamp(bytes, publisher, number)
    ledger.take(bytes)
  }
  take(3, 0)
  for (const number of [1, 0, 1]) take(70_000, number)
  take(5, 0)
  take(3, 3)
  take(3, 1, 17)
  expect(ledger).toMatchObject({ received: 4, twice: 1, disordered: 1, wrong: 3, missing: 3 })
  for (const publisher of [3, 70_000]) take(publisher, lastNumber)
  await ledger.finished
})

it.each([
  [0, 256, 0, 5],
  [1, 65_536, 0, 5],
  [1, 16, 5, 5],
  [1, 256, 0, 4],
] as const)(
  'the peer streams packets that the codec takes: QoS %i, %i bytes, %i properties, version %i',
  (qos, size, properties, protocolVersion) => {
    const { bytes, count } = makeBlock(qos, size, properties, protocolVersion)
    const packets = [...new Decoder({ from: 'server', protocolVersion }).push(bytes)]
    expect(packets).toHaveLength(count)
    for (const [index, packet] of packets.entries()) {
      if (packet.type !== 'publish') throw new Error(packet.type)
      expect([packet.qos, packet.payload.length]).toEqual([qos, size])
      expect(packet.packetId).toBe(qos === 0 ? undefined : index + 1)
      expect(packet.properties.userProperties?.length ?? 0).toBe(properties)
    }
  },
)

it('no row is measured twice, and each target has a limit', () => {
  type Limits = { readonly target?: string } & Record<string, number>
  const rows = (measurements as { readonly rows: Record<string, Limits> }[]).flatMap(
    (measurement) => Object.entries(measurement.rows),
  )
  expect(new Set(rows.map(([name]) => name)).size).toBe(rows.length)
  for (const [name, { target, atLeast, atMost, leastShare }] of rows)
    expect([name, target !== undefined]).toEqual([
      name,
      (atLeast ?? atMost ?? leastShare) !== undefined,
    ])
})

describe('the program', { timeout: 120_000 }, () => {
  function bench(program: string, parameters: readonly string[], without = '') {
    const file = path.join(root, 'bench', program)
    const env = { ...process.env, BENCH_WITHOUT: without }
    const options = { cwd: root, env, encoding: 'utf8', timeout: 110_000 } as const
    return spawnSync(process.execPath, [file, ...parameters], options)
  }

  it('prints one object, with a verdict for each row', () => {
    const name = 'heap a packet, encode PUBLISH'
    const { status, stdout } = bench('main.js', ['--quick', '--json', '--only', name], 'cc')
    const { rows, machine, peers } = JSON.parse(stdout) as Report
    expect(rows).toMatchObject([
      { name, target: '≤ 0.5 B', verdict: expect.stringMatching(/^(met|missed)$/) },
    ])
    expect(machine).toContain(process.versions.node)
    expect(peers).toContain('written in Node')
    expect(status).toBe(0)
  })

  it('compares two builds, and skips that without the commit', () => {
    const row = ['--only', 'encode AUTH', '--pairs', '1']
    const { status, stdout, stderr } = bench('alarm.js', ['--against', 'HEAD', ...row])
    expect(stderr).toBe('')
    const [, costsMore] =
      /encode AUTH +[\d,.]+ ns → +[\d,.]+ ns +[\d.]+×(?: {2}(costs more))?\n/.exec(stdout) ?? []
    expect(status).toBe(costsMore === undefined ? 0 : 1)
    const without = bench('alarm.js', ['--against', '0'.repeat(40)])
    expect([without.status, without.stdout]).toEqual([0, expect.stringContaining('skipped: ')])
  })

  it('skips what the machine lacks, says why, and fails for none of it', () => {
    const parts = ['broker', 'native', 'profiles', 'browser'].flatMap((part) => ['--only', part])
    const { status, stdout } = bench('main.js', ['--json', ...parts], 'mosquitto,cc,chromium')
    const { rows, failed, skipped } = JSON.parse(stdout) as Report
    expect([rows, failed, status]).toEqual([[], [], 0])
    expect(skipped.length).toBeGreaterThan(30)
    expect(new Set(skipped.map(({ reason }) => reason))).toEqual(
      new Set(['mosquitto not found', 'cc not found', 'chromium not found']),
    )
  })

  it.each([
    'QoS 1 kept in LevelDB, 100 at once',
    'over memory, JSON of 120 B, one of 1,000 typed channels: CPU',
  ])('measures and judges: %s', (name) => {
    const { status, stdout } = bench('main.js', ['--quick', '--json', '--only', name], 'mosquitto')
    const { rows, failed } = JSON.parse(stdout) as Report
    expect([rows.map((row) => row.name), failed, status]).toEqual([[name], [], 0])
    expect(rows[0]?.verdict).toMatch(/^(met|missed)$/)
  })
})
