/**
 * The differential run as a program: takes the options, builds the foreign codecs, prints findings and one summary line.
 *
 * Bundled and started by `.ci/differential.mjs`.
 */
import { join } from 'node:path'
import { buildGo } from '../interop/building.js'
import type { Codec } from './foreign.js'
import { judgements } from './judged.js'
import { type Finding, type Report, type RunOptions, run, sought } from './run.js'

const all: readonly Codec[] = ['mqtt-packet', 'paho.golang', 'mochi-mqtt']
const sources = '../differential/foreign'
/** With so many packets every judgement applies. */
const longRun = 100_000
const shownBytes = 2000

/** What a run prints of one finding. */
function print({ kind, detail, each, verdicts, count }: Finding & { count: number }, seed: number): void {
  const hex = Buffer.from(each.bytes).toString('hex')
  const bytes = hex.length > shownBytes ? `${hex.slice(0, shownBytes)}... (${each.bytes.length} bytes)` : hex
  console.log(`FINDING ${kind} (${count} times): ${detail}`)
  console.log(`  seed ${seed}, packet ${each.number} (${each.kind}), version ${each.version} from the ${each.from}\n  ${bytes}`)
  for (const [name, verdict] of Object.entries(verdicts)) console.log(`  ${name}: ${verdict.slice(0, shownBytes)}`)
}

function printJudgements({ applied }: Report, complete: boolean): number {
  for (const judgement of judgements) {
    const times = applied.get(judgement) ?? 0
    if (times > 0) console.log(`judged ${String(times).padStart(7)}  ${judgement.name}; section ${judgement.section}: ${judgement.reason}`)
  }
  const idle = complete ? judgements.filter((judgement) => !applied.has(judgement)) : []
  for (const { name } of idle) console.log(`NEVER APPLIED ${name}`)
  return idle.length
}

/** The options of the command line. */
export interface Settings {
  readonly packets: number
  readonly seed: number
  /** One codec alone. */
  readonly only: string | undefined
  /** Seconds. */
  readonly limit: number
}

/** Runs with the options of a command line; true when nothing was found. */
export async function main({ packets, seed, only, limit }: Settings): Promise<boolean> {
  const started = performance.now()
  // Refusals are errors, and nobody reads where they were thrown.
  Error.stackTraceLimit = 3
  const built = await buildGo(sources)
  if (built.missing !== undefined) console.log(`without paho.golang and mochi-mqtt: ${built.missing}`)
  const there = built.missing === undefined ? all : all.slice(0, 1)
  const codecs = only === undefined ? there : there.filter((codec) => codec === only)
  if (codecs.length === 0) throw new Error(`there is no such codec; there are: ${there.join(', ')}`)
  const program = built.missing === undefined && codecs.some((codec) => codec !== 'mqtt-packet') ? join(built.folder, 'broker') : undefined
  const options: RunOptions = { seed, packets, limit, codecs, program }
  const report = await run(options)
  return tell(report, options, codecs.length === all.length, (performance.now() - started) / 1000)
}

/** Looks for a finding whose kind begins so, in a few thousand packets of seed 1. */
export async function search(until: string): Promise<{ finding: string | undefined; packets: number }> {
  const built = await buildGo(sources)
  if (built.missing !== undefined) throw new Error(`the defects need the codecs written in Go: ${built.missing}`)
  const options = { seed: 1, packets: 5000, limit: 60, codecs: all, program: join(built.folder, 'broker'), until }
  const report = await run(options)
  const found = sought(report, options)
  return { finding: found && `${found.kind}, packet ${found.each.number}`, packets: report.packets }
}

function tell(report: Report, { seed }: RunOptions, everyCodec: boolean, seconds: number): boolean {
  for (const finding of report.findings.values()) print(finding, seed)
  const idle = printJudgements(report, everyCodec && report.packets >= longRun)
  for (const [codec, { asked, accepted, written }] of report.asked) {
    console.log(`${codec}: asked ${asked}, accepted ${accepted}, wrote ${written}; ours accepted ${report.accepted} of ${report.packets}`)
  }
  const judged = [...report.applied.values()].reduce((sum, times) => sum + times, 0)
  const codecs = `${report.asked.size} foreign codecs`
  console.log(`differential: ${report.packets} packets, ${codecs}, ${judged} judged, ${report.found} findings, ${seconds.toFixed(1)} s`)
  return report.found === 0 && idle === 0 && report.packets > 0
}
