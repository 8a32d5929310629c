/** Our codec beside three foreign ones: the same packets with the same fields, or a judgement that says who is wrong (`test/lab/differential`). */
import { join } from 'node:path'
import { buildGo } from './brokers/building.js'
import type { Codec } from './differential/foreign.js'
import { judgements } from './differential/judged.js'
import { run as compare, type Finding } from './differential/run.js'
import type { Lab, Result } from './lab.js'

export const about =
  'our codec beside mqtt-packet, paho.golang and mochi-mqtt (Go); a word takes one of them; --replay NUMBER repeats the batch of a packet'
export const minutes = 2

/** The foreign codecs; the latter two need Go. */
const codecNames: readonly Codec[] = ['mqtt-packet', 'paho.golang', 'mochi-mqtt']
/** With so many packets every judgement applies. */
const longRun = 100_000
const shownBytes = 2000

/** A finding as text. */
function shown({ kind, detail, each, verdicts, count }: Finding & { count: number }): string {
  const hex = Buffer.from(each.bytes).toString('hex')
  return [
    `${kind} (${count} times): ${detail}`,
    `  packet ${each.number} (${each.kind}), version ${each.version} from the ${each.from}`,
    `  ${hex.slice(0, shownBytes)} (${each.bytes.length} bytes)`,
    ...Object.entries(verdicts).map(
      ([name, verdict]) => `  ${name}: ${verdict.slice(0, shownBytes)}`,
    ),
  ].join('\n')
}

export async function run(lab: Lab): Promise<Result> {
  // Refusals are errors, and their stacks cost time.
  Error.stackTraceLimit = 3
  const [only] = lab.words
  const built = await buildGo('../differential/foreign')
  const there = built.missing === undefined ? codecNames : codecNames.slice(0, 1)
  const codecs = only === undefined ? there : there.filter((codec) => codec === only)
  if (codecs.length === 0)
    throw new Error(`there is no ${only} here; there are: ${there.join(', ')}`)
  const needsGo = codecs.some((codec) => codec !== 'mqtt-packet')
  const report = await compare({
    seed: lab.seed,
    packets: 10_000_000,
    limit: lab.minutes * 60,
    number: lab.replay === undefined ? undefined : Number(lab.replay),
    codecs,
    program: built.missing === undefined && needsGo ? join(built.folder, 'broker') : undefined,
  })
  for (const [codec, { asked, accepted, written }] of report.asked)
    lab.say(`${codec}: asked ${asked}, accepted ${accepted}, wrote ${written}`)
  const complete = codecs.length === codecNames.length && report.packets >= longRun
  const idle = complete ? judgements.filter((judgement) => !report.applied.has(judgement)) : []
  const judged = [...report.applied.values()].reduce((sum, times) => sum + times, 0)
  const command = `npm run lab -- differential ${only ?? ''} --seed ${lab.seed}`
  return {
    did: `${report.packets} packets, ${report.asked.size} foreign codecs, ${judged} differences judged`,
    findings: [
      ...[...report.findings.values()].map((finding) => ({
        what: shown(finding),
        command: `${command} --replay ${finding.each.number}`,
      })),
      ...idle.map(({ name }) => ({ what: `a judgement that never applied: ${name}`, command })),
    ],
    ...(built.missing !== undefined && { skipped: `paho.golang and mochi-mqtt: ${built.missing}` }),
  }
}
