/**
 * The result of a load: as text, as JSON, and as a page.
 */
import type { RecordableHistogram } from 'node:perf_hooks'
import uplot from 'uplot/dist/uPlot.iife.min.js'
import style from 'uplot/dist/uPlot.min.css'
import type { Storm, Sums, Totals } from './ledger.js'
import { commandsOf, expectedByStorm, expectedOf, hasDevices, type Plan } from './plan.js'

/** How far it was at some time. */
export interface Sample {
  /** Seconds since the first message was due. */
  readonly time: number
  readonly sent: number
  readonly received: number
  /** Bytes of memory of the process. */
  readonly rss: number
}

/** Milliseconds by percentile. */
export interface Percentiles {
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** What was sent, and what became of it. */
export interface Counts {
  readonly sent: number
  readonly failed: number
  readonly received: number
  readonly expected: number
  readonly lost: number
  readonly dropped: number
  readonly twice: number
  readonly disordered: number
  readonly latency: Percentiles
}

/** How the devices came back after a storm. */
export interface StormResult {
  /** Devices that were connected and subscribed again at the end. */
  readonly back: number
  /** Milliseconds until this share of all devices was back; null when it never was. */
  readonly half: number | null
  readonly p99: number | null
  readonly all: number | null
  /** Telemetry and commands that were lost, of those due nearest to this storm. */
  readonly lost: number
}

/** All that a run has measured. Of devices, the counts are those of telemetry. */
export interface Result extends Counts {
  readonly scenario: string
  readonly plan: Plan
  readonly connectSeconds: number
  readonly connect: Percentiles
  readonly seconds: number
  /** Messages received a second. */
  readonly throughput: number
  /** Seconds of processor time of this side. */
  readonly cpu: number
  /** Most memory of this side, in bytes. */
  readonly rss: number
  readonly samples: readonly Sample[]
  /** Of devices only. */
  readonly commands?: Counts
  /** Of devices only. */
  readonly storms?: readonly StormResult[]
}

function percentilesOf(histogram: RecordableHistogram): Percentiles {
  const at = (percentile: number): number =>
    histogram.count === 0 ? 0 : histogram.percentile(percentile) / 1000
  return {
    p50: at(50),
    p90: at(90),
    p99: at(99),
    p999: at(99.9),
    max: histogram.count === 0 ? 0 : histogram.max / 1000,
  }
}

function countsOf(sums: Sums, expected: number): Counts {
  const { sent, failed, received, twice, disordered, dropped, latency } = sums
  const lost = Math.max(0, expected - received)
  return {
    sent,
    failed,
    received,
    expected,
    lost,
    dropped,
    twice,
    disordered,
    latency: percentilesOf(latency),
  }
}

function stormOf({ back, received }: Storm, devices: number, expected: number): StormResult {
  const after = (share: number): number | null =>
    back.count < share * devices
      ? null
      : back.percentile(Math.min(100, (100 * share * devices) / back.count)) / 1000
  return {
    back: back.count,
    half: after(0.5),
    p99: after(0.99),
    all: after(1),
    lost: Math.max(0, expected - received),
  }
}

function devicesOf(plan: Plan, sums: Totals): Pick<Result, 'commands' | 'storms'> {
  if (!hasDevices(plan)) return {}
  const expected = expectedByStorm(plan)
  return {
    commands: countsOf(sums.commands, expectedOf(commandsOf(plan))),
    storms: sums.storms.map((storm, index) =>
      stormOf(storm, plan.publishers, expected[index] as number),
    ),
  }
}

/** Puts a result together. */
export function resultOf({
  name,
  plan,
  samples,
  expected,
  sums,
  connecting,
  seconds,
  cpu,
}: {
  readonly name: string
  readonly plan: Plan
  readonly samples: readonly Sample[]
  readonly expected: number
  readonly sums: Totals
  readonly connecting: number
  readonly seconds: number
  readonly cpu: NodeJS.CpuUsage
}): Result {
  const { connects, received } = sums
  // Up to the last message, not to the end of waiting for more.
  const last = samples.find((sample) => sample.received >= received)?.time ?? seconds
  return {
    scenario: name,
    plan,
    connectSeconds: connecting,
    connect: percentilesOf(connects),
    seconds: last,
    ...countsOf(sums, expected),
    throughput: last > 0 ? received / last : 0,
    cpu: (cpu.user + cpu.system) / 1e6,
    rss: Math.max(process.memoryUsage.rss(), ...samples.map(({ rss }) => rss)),
    samples,
    ...devicesOf(plan, sums),
  }
}

const number = (value: number, digits = 0): string =>
  value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits })
const shown = ({ p50, p90, p99, p999, max }: Percentiles): string =>
  // The clock has microseconds, so what was measured is not 0.
  max === 0
    ? '–'
    : [
        ['p50', p50],
        ['p90', p90],
        ['p99', p99],
        ['p99.9', p999],
        ['max', max],
      ]
        .map(([name, value]) => `${name} ${number(value as number, 1)}`)
        .join(', ')

/** A line of a result: what it is, and the value. */
type Row = readonly [name: string, value: string]

function countRows(counts: Counts): Row[] {
  const { sent, failed, received, expected, lost, twice, disordered } = counts
  return [
    ['sent', `${number(sent)}${failed > 0 ? `, ${number(failed)} failed` : ''}`],
    [
      'received',
      `${number(received)} of ${number(expected)}, ${expected === 0 ? '–' : `${number((100 * received) / expected, received === expected ? 1 : 4)} %`}`,
    ],
    [
      'lost, twice, out of order',
      [lost, twice, disordered].map((value) => number(value)).join(', '),
    ],
  ]
}

function commandRows(counts: Counts): Row[] {
  const texts = countRows(counts).map((row) => row.join(' '))
  return [
    ['commands', texts.join('; ')],
    ['commands, latency in ms', shown(counts.latency)],
  ]
}

function stormRow(
  { back, half, p99, all, lost }: StormResult,
  index: number,
  devices: number,
): Row {
  const times = [
    ['half', half],
    ['99 %', p99],
    ['all', all],
  ] as const
  const text = times.map(([name, time]) => `${name} ${time === null ? '–' : number(time, 1)}`)
  return [
    `storm ${index + 1}`,
    `${number(back)} of ${number(devices)} back; in ms: ${text.join(', ')}; ${number(lost)} messages lost`,
  ]
}

/** The lines of a result. */
function rowsOf(result: Result): Row[] {
  const { plan } = result
  const clients = hasDevices(plan)
    ? `${number(plan.publishers)} devices, ${plan.commands} commands/s`
    : `${number(plan.publishers)} publishers, ${number(plan.subscribers)} subscribers, ${number(plan.topics)} topics`
  const connecting = [
    ['connecting', `${number(result.connectSeconds, 2)} s; each in ms: ${shown(result.connect)}`],
  ] as const
  if (result.scenario === 'connect')
    return [
      ['load', `${number(plan.publishers + plan.subscribers)} clients`],
      ...connecting,
      ['processor', `${number(result.cpu, 2)} s`],
      ['memory', `${number(result.rss / 1e6)} MB`],
    ]
  return [
    [
      'load',
      `${clients}; ${plan.rate} messages/s each, ${number(plan.size)} B at QoS ${plan.qos} for ${plan.duration / 1000} s`,
    ],
    ...connecting,
    ...countRows(result),
    ['throughput', `${number(result.throughput)} messages/s`],
    ['latency in ms', shown(result.latency)],
    ...(result.commands === undefined ? [] : commandRows(result.commands)),
    ...(result.storms ?? []).map((storm, index) => stormRow(storm, index, plan.publishers)),
    ['processor', `${number(result.cpu, 2)} s of this side`],
    ['memory', `${number(result.rss / 1e6)} MB of this side`],
  ]
}

/** The result for a terminal. */
export function textOf(result: Result): string {
  const rows = rowsOf(result)
  const widest = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(widest)}  ${value}\n`).join('')
}

const compared: readonly (readonly [name: string, of: (result: Result) => number])[] = [
  ['throughput', ({ throughput }) => throughput],
  ['latency p50', ({ latency }) => latency.p50],
  ['latency p99', ({ latency }) => latency.p99],
  ['latency p99.9', ({ latency }) => latency.p999],
  ['processor', ({ cpu }) => cpu],
  ['memory, MB', ({ rss }) => rss / 1e6],
]

/** True when an earlier result has all that is compared. */
export function isComparable(before: Result): boolean {
  try {
    return (
      compared.every(([, of]) => typeof of(before) === 'number') && before.plan instanceof Object
    )
  } catch {
    return false
  }
}

/** The ratios to an earlier result. */
export function comparison(result: Result, before: Result): string {
  const lines = compared.map(([name, of]) => {
    const [now, then] = [of(result), of(before)]
    return `${name.padEnd(14)}  ${then > 0 ? `${number(now / then, 2)} ×` : '–'}  (${number(then, 1)} → ${number(now, 1)})\n`
  })
  return `\nbeside the earlier result${differences(result.plan, before.plan)}:\n${lines.join('')}`
}

/** In what an earlier load differs, except for its topics. */
function differences(now: Plan, then: Plan): string {
  const names = (Object.keys(now) as (keyof Plan)[]).filter(
    (name) => name !== 'prefix' && now[name] !== then?.[name],
  )
  const found = names.map((name) => `${name} ${then?.[name]}, not ${now[name]}`)
  return found.length === 0 ? '' : ` (another load: ${found.join('; ')})`
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** The result as a page of its own, with plots. */
export function page(result: Result, before?: Result): string {
  const rows = rowsOf(result).map(
    ([name, value]) => `<tr><th>${escaped(name)}</th><td>${escaped(value)}</td></tr>`,
  )
  const rates = result.samples.map((sample, index) => {
    const previous = result.samples[index - 1] ?? { time: 0, sent: 0, received: 0 }
    const span = Math.max(0.001, sample.time - previous.time)
    return {
      ...sample,
      sent: (sample.sent - previous.sent) / span,
      received: (sample.received - previous.received) / span,
    }
  })
  const data = [
    rates.map(({ time }) => time),
    rates.map(({ sent }) => sent),
    rates.map(({ received }) => received),
    rates.map(({ rss }) => rss / 1e6),
  ]
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>mqwire bench ${escaped(result.scenario)}</title>
<style>${style}
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
th { text-align: left; padding-right: 1.5rem; font-weight: 600; vertical-align: top }
pre { overflow-x: auto }
</style>
<h1>mqwire bench ${escaped(result.scenario)}</h1>
<table>${rows.join('\n')}</table>
${before === undefined ? '' : `<pre>${escaped(comparison(result, before).trim())}</pre>`}
<h2>Messages a second</h2><div id="rates"></div>
<h2>Memory, MB</h2><div id="memory"></div>
<script>${uplot}</script>
<script>
const [time, sent, received, memory] = ${JSON.stringify(data)}
const width = document.getElementById('rates').clientWidth
const dark = matchMedia('(prefers-color-scheme: dark)').matches
const axes = [{}, {}].map(() => ({ stroke: dark ? '#ddd' : '#222', grid: { stroke: dark ? '#444' : '#ddd' } }))
const plot = (id, series, values) => new uPlot({ width, height: 260, scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, (most || 1) * 1.1] } }, axes, series: [{ label: 's' }, ...series] }, [time, ...values], document.getElementById(id))
plot('rates', [{ label: 'sent', stroke: '#4a7dff', width: 4 }, { label: 'received', stroke: '#e07a1f' }], [sent, received])
plot('memory', [{ label: 'MB', stroke: '#3a9a5b' }], [memory])
</script>
</html>
`
}
