/** Medians, verdicts, rows, tables, the alarm and the ledger of the benchmarks: what turns times into words is right. */
import { describe, expect, it } from 'vitest'
import { Decoder } from '../../../src/wire/index.js'
import {
  baseline,
  child,
  compare,
  compareAsync,
  ledgers,
  measurements,
  type Report,
  report,
  statistics,
  streams,
} from './bench.js'

describe('statistics', () => {
  it('the median is the middle, or the mean of both middles, and leaves its argument alone', () => {
    const values = [9, 1, 5]
    expect(statistics.median(values)).toBe(5)
    expect(values).toEqual([9, 1, 5])
    expect(statistics.median([4, 1, 3, 2])).toBe(2.5)
    expect(statistics.median([100, 20, 3])).toBe(20)
    expect(statistics.median([])).toBeNaN()
  })

  it('a quantile is the value below which the share lies', () => {
    const values = Array.from({ length: 100 }, (_, index) => 99 - index)
    expect(statistics.quantile(values, 0.99)).toBe(99)
    expect(statistics.quantile(values, 0.5)).toBe(50)
  })

  it('a figure meets its limit on the right side, the limit included; no number never does', () => {
    expect(statistics.verdict(7, { atLeast: 7 })).toBe('met')
    expect(statistics.verdict(6.99, { atLeast: 7 })).toBe('missed')
    expect(statistics.verdict(0.1, { atMost: 0.1 })).toBe('met')
    expect(statistics.verdict(0.11, { atMost: 0.1 })).toBe('missed')
    expect(statistics.verdict(Number.NaN, { atLeast: 7 })).toBe('missed')
    expect(statistics.verdict(Number.NaN, { atMost: 7 })).toBe('missed')
  })
})

describe('compare', () => {
  it('gives nanoseconds an operation, by the clock that it is given, of what was really done', () => {
    let now = 0
    const takes =
      (each: number, done: (count: number) => number | undefined) => (count: number) => {
        now += (done(count) ?? count) * each
        return done(count)
      }
    const candidates = {
      exact: takes(0.001, () => undefined),
      wholeHundreds: takes(0.01, (count) => Math.ceil(count / 100) * 100),
    }
    const { exact = 0, wholeHundreds = 0 } = compare(candidates, {
      rounds: 5,
      roundTime: 10,
      clock: () => now,
    })
    expect(exact).toBeCloseTo(1000)
    expect(wholeHundreds).toBeCloseTo(10_000)
  })

  it('calls each in turn, once a round, after one call that does not count', () => {
    let now = 0
    const calls: string[] = []
    const named = (name: string) => (count: number) => {
      calls.push(name)
      now += count
      return undefined
    }
    compare(
      { one: named('one'), other: named('other') },
      { rounds: 4, roundTime: 1, clock: () => now },
    )
    const calibration = ['one', 'one', 'one', 'other', 'other', 'other']
    expect(calls).toEqual([...calibration, ...Array(5).fill(['one', 'other']).flat()])
  })

  it('waits for those that take their time, each round as long as it was', async () => {
    let now = 0
    const run = async (count: number) => {
      await Promise.resolve()
      now += count * (now === 0 ? 5 : 2)
      return 2 * count
    }
    expect(
      await compareAsync({ run }, { rounds: 3, warmUp: 1, count: 10, clock: () => now }),
    ).toEqual({ run: [1e6, 1e6, 1e6] })
  })

  it('one slow round does not move the median', () => {
    let now = 0
    let calls = 0
    const run = (count: number) => {
      calls++
      now += count * 0.001 * (calls === 30 ? 1000 : 1)
      return undefined
    }
    expect(compare({ run }, { rounds: 9, roundTime: 1, clock: () => now })['run']).toBeCloseTo(1000)
  })
})

const measured = { ratio: 8, mqwire: 800, peer: 100, peerName: 'MQTT.js', figures: 'msgs/s' }
const fast = report.rowOf('receive', 'fast', { target: '≥ 7×', atLeast: 7 }, measured)
const slow = report.rowOf(
  'receive',
  'slow',
  { target: '≥ 7×', atLeast: 7 },
  { ...measured, ratio: 0.5, mqwire: 50 },
)
const costly = report.rowOf(
  'broker',
  'costly',
  { target: '≤ 1/3', atMost: 1 / 3 },
  { ...measured, ratio: 2, mqwire: 20, peer: 10, figures: 's' },
)
const known = report.rowOf('receive', 'known', {}, measured)
const whole: Report = {
  machine: 'two processors',
  peers: 'Peer: written in C.',
  rows: [fast, slow, costly, known],
  skipped: [{ name: 'native', reason: 'cargo not found' }],
  failed: [],
  date: '2026-01-01',
}

describe('the report', () => {
  it('a row has its verdict, and none without a target', () => {
    expect(fast).toMatchObject({ name: 'fast', target: '≥ 7×', ratio: 8, verdict: 'met' })
    expect(slow.verdict).toBe('missed')
    expect(costly.verdict).toBe('missed')
    expect(known.verdict).toBeUndefined()
  })

  it('as JSON: the machine, rows with a target and a verdict, the others apart', () => {
    const json = JSON.parse(JSON.stringify(report.jsonOf(whole))) as ReturnType<
      typeof report.jsonOf
    >
    expect(json.machine).toBe('two processors')
    expect(json.rows.map(({ name, verdict }) => [name, verdict])).toEqual([
      ['fast', 'met'],
      ['slow', 'missed'],
      ['costly', 'missed'],
    ])
    for (const row of json.rows)
      expect(row).toMatchObject({
        name: expect.any(String),
        target: expect.any(String),
        ratio: expect.any(Number),
      })
    expect(json.figures.map(({ name }) => name)).toEqual(['known'])
    expect(json.skipped).toEqual(whole.skipped)
  })

  it('as a table: a line for each row, with target, ratio and verdict', () => {
    const lines = report.tableOf(whole.rows).split('\n')
    expect(lines).toHaveLength(6)
    expect(lines[2]).toMatch(
      /^\| fast \| ≥ 7× \| 8× \| met \| 800 msgs\/s \| 100 msgs\/s \(MQTT\.js\) \|/,
    )
    expect(lines[5]).toContain('| known | – | 8× | – |')
  })

  it('says plainly what is missed, what is slower than a peer, and what was not measured', () => {
    expect(report.slowerRows(whole.rows).map(({ name }) => name)).toEqual(['slow', 'costly'])
    const text = report.documentOf(whole)
    expect(text).toContain('1 of 3 rows are met')
    expect(text).toMatch(/## Missed\n\n- slow: 0\.5×, target ≥ 7×\n- costly/)
    expect(text).toMatch(/## Slower than a peer\n\n- slow/)
    expect(text).toContain('- native: cargo not found')
  })
})

describe('the alarm', () => {
  const committed = { decode: 30, encode: 20 }

  it('is silent at 60 % of the committed ratio and above it', () => {
    expect(baseline.regressions(committed, { decode: 18, encode: 100 })).toEqual([])
  })

  it('names each ratio under 60 %, and each that is missing or no number', () => {
    expect(baseline.regressions(committed, { decode: 17.9, encode: 20 })).toEqual([
      { name: 'decode', committed: 30, measured: 17.9 },
    ])
    expect(baseline.regressions(committed, { encode: Number.NaN }).map(({ name }) => name)).toEqual(
      ['decode', 'encode'],
    )
  })
})

describe('the ledger of a profile', () => {
  const payload = (publisher: number, number: number, size = 16) => {
    const bytes = new Uint8Array(size)
    ledgers.stamp(bytes, publisher, number)
    return bytes
  }

  it('counts what is missing, twice, out of order and wrong', async () => {
    const ledger = new ledgers.Ledger([3, 70_000], 3, 16)
    for (const [publisher, number] of [
      [3, 0],
      [70_000, 1],
      [70_000, 0],
      [70_000, 1],
    ] as const)
      ledger.take(payload(publisher, number))
    ledger.take(payload(5, 0))
    ledger.take(payload(3, 3))
    ledger.take(payload(3, 1, 17))
    expect(ledger).toMatchObject({ received: 4, twice: 1, disordered: 1, wrong: 3, missing: 3 })
    let finished = false
    const end = ledger.finished.then(() => {
      finished = true
    })
    ledger.take(payload(3, ledgers.lastNumber))
    await Promise.resolve()
    expect(finished).toBe(false)
    ledger.take(payload(70_000, ledgers.lastNumber))
    await end
    expect(ledger.received).toBe(4)
  })
})

describe('the peer', () => {
  it.each([
    [0, 256, 0],
    [1, 16, 5],
    [1, 65_536, 0],
  ])(
    'streams PUBLISH packets that the codec takes: QoS %i, %i bytes, %i user properties',
    (qos, size, properties) => {
      const { bytes, count, frame } = streams.makeBlock(qos, size, properties)
      expect(bytes.length).toBe(count * frame)
      const packets = [...new Decoder({ from: 'server' }).push(bytes)]
      expect(packets).toHaveLength(count)
      const topics = new Set<string>()
      for (const [index, packet] of packets.entries()) {
        if (packet.type !== 'publish') throw new Error(packet.type)
        topics.add(packet.topic)
        expect([packet.qos, packet.payload.length, packet.topic.length]).toEqual([qos, size, 20])
        expect(packet.packetId).toBe(qos === 0 ? undefined : index + 1)
        expect(packet.properties.userProperties?.length ?? 0).toBe(properties)
      }
      expect(topics.size).toBeGreaterThan(count > 1000 ? 99 : 30)
    },
  )

  it('streams to clients of MQTT 3.1.1 too', () => {
    const { bytes, count } = streams.makeBlock(1, 256, 5, 4)
    const packets = [...new Decoder({ from: 'server', protocolVersion: 4 }).push(bytes)]
    expect(
      packets.filter((packet) => packet.type === 'publish' && packet.payload.length === 256),
    ).toHaveLength(count)
  })
})

describe('the list of measurements', () => {
  const rows = measurements.flatMap((measurement) => Object.entries(measurement.rows))

  it('names no row twice', () => {
    const names = rows.map(([name]) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThan(80)
  })

  it('has a limit for each target, and a target for each limit', () => {
    for (const [name, { target, atLeast, atMost }] of rows)
      expect([name, target !== undefined]).toEqual([name, (atLeast ?? atMost) !== undefined])
  })
})

describe('a profile', () => {
  it('gives functions by their own time, added up over their callers, without what was idle', () => {
    const frame = (functionName: string, url = '', lineNumber = -1) => ({
      functionName,
      url,
      lineNumber,
    })
    const nodes = [
      { id: 1, callFrame: frame('(idle)') },
      { id: 2, callFrame: frame('read', 'file:///a/b/framer.js', 9) },
      { id: 3, callFrame: frame('read', 'file:///a/b/framer.js', 9) },
      { id: 4, callFrame: frame('(garbage collector)') },
    ]
    const times = child.ownTimes({
      nodes,
      samples: [1, 2, 3, 4, 2],
      timeDeltas: [1000, 10, 20, 20, 30],
    })
    expect(times).toEqual([
      { name: 'read', place: 'framer.js:10', share: 0.75 },
      { name: '(garbage collector)', place: '', share: 0.25 },
    ])
  })
})
