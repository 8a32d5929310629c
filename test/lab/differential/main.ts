/**
 * The differential run as the lab starts it: builds the foreign codecs, and tells each kind of finding once.
 */
import { join } from 'node:path'
import { buildGo } from '../brokers/building.js'
import type { Codec } from './foreign.js'
import { judgements } from './judged.js'
import { type Finding, type Report, type RunOptions, run } from './run.js'

/** The foreign codecs; the latter two need Go. */
export const codecNames: readonly Codec[] = ['mqtt-packet', 'paho.golang', 'mochi-mqtt']
const sources = '../differential/foreign'
/** With so many packets every judgement applies. */
const longRun = 100_000
const shownBytes = 2000

/** A finding as text. */
function shown({ kind, detail, each, verdicts, count }: Finding & { count: number }): string {
  const hex = Buffer.from(each.bytes).toString('hex')
  const bytes =
    hex.length > shownBytes ? `${hex.slice(0, shownBytes)}... (${each.bytes.length} bytes)` : hex
  return [
    `${kind} (${count} times): ${detail}`,
    `  packet ${each.number} (${each.kind}), version ${each.version} from the ${each.from}`,
    `  ${bytes}`,
    ...Object.entries(verdicts).map(
      ([name, verdict]) => `  ${name}: ${verdict.slice(0, shownBytes)}`,
    ),
  ].join('\n')
}

/** What came of a run. */
export interface Compared {
  readonly report: Report
  readonly findings: readonly { readonly what: string; readonly number: number | undefined }[]
  /** Why the codecs written in Go were left out. */
  readonly missing: string | undefined
}

/** Compares until so many packets are done, or the limit in seconds is reached. `only`: one codec alone. */
export async function compare(
  options: Pick<RunOptions, 'packets' | 'seed' | 'limit' | 'number'>,
  only?: string,
): Promise<Compared> {
  // Refusals are errors, and their stacks cost time.
  Error.stackTraceLimit = 3
  const built = await buildGo(sources)
  const there = built.missing === undefined ? codecNames : codecNames.slice(0, 1)
  const codecs = only === undefined ? there : there.filter((codec) => codec === only)
  if (codecs.length === 0)
    throw new Error(`there is no ${only} here; there are: ${there.join(', ')}`)
  const program =
    built.missing === undefined && codecs.some((codec) => codec !== 'mqtt-packet')
      ? join(built.folder, 'broker')
      : undefined
  const report = await run({ ...options, codecs, program })
  const complete = codecs.length === codecNames.length && report.packets >= longRun
  const idle = complete ? judgements.filter((judgement) => !report.applied.has(judgement)) : []
  return {
    report,
    missing: built.missing,
    findings: [
      ...[...report.findings.values()].map((finding) => ({
        what: shown(finding),
        number: finding.each.number,
      })),
      ...idle.map(({ name }) => ({
        what: `a judgement that never applied: ${name}`,
        number: undefined,
      })),
    ],
  }
}
