/**
 * One differential run: batches of packets go to every codec, and each difference that no judgement covers is a finding. A clock is read for the
 * limit only.
 */
import {
  type Difference,
  decodeOurs,
  differences,
  type Ours,
  type Standard,
  shownPlace,
  standardOf,
  strays,
} from './compare.js'
import { askMqttPacket, type Codec, GoCodecs, type Verdicts } from './foreign.js'
import { batchSize, type Case, generate } from './generate.js'
import { type Judgement, judgements } from './judged.js'

/** What to run. */
export interface RunOptions {
  readonly seed: number
  readonly packets: number
  /** Seconds. */
  readonly limit: number
  /** The codecs to compare with. */
  readonly codecs: readonly Codec[]
  /** The program with the codecs written in Go, where it could be built. */
  readonly program: string | undefined
  /** Only the batch of this packet. */
  readonly number?: number | undefined
  /** What stands for our codec, to see the comparison fail. Default `decodeOurs`. */
  readonly decode?: typeof decodeOurs
}

/** A difference that no judgement covers, or a place where our codec strays from the standard. */
export interface Finding {
  /** Findings of one class differ in nothing but the packet. */
  readonly kind: string
  readonly detail: string
  readonly each: Case
  readonly verdicts: Readonly<Record<string, string>>
}

/** What a run found. */
export interface Report {
  packets: number
  /** Questions to each codec, and how many it accepted. */
  readonly asked: Map<Codec, { asked: number; accepted: number; written: number }>
  readonly applied: Map<Judgement, number>
  /** The first of each kind. */
  readonly findings: Map<string, Finding & { count: number }>
}

/** Findings of so many kinds are kept. */
const kept = 500
/** So many batches are asked about before the answer to the first is looked at. */
const ahead = 3

interface Prepared {
  readonly cases: readonly Case[]
  readonly answer: Promise<Verdicts[]> | undefined
}
type Context = Pick<Finding, 'each' | 'verdicts'>

/** Runs to the end or the limit. */
export async function run(options: RunOptions): Promise<Report> {
  const report: Report = { packets: 0, asked: new Map(), applied: new Map(), findings: new Map() }
  const go = options.program === undefined ? undefined : new GoCodecs(options.program)
  const until = performance.now() + options.limit * 1000
  const first = Math.floor((options.number ?? 0) / batchSize)
  const batches = options.number === undefined ? Math.ceil(options.packets / batchSize) : first + 1
  const prepare = (batch: number): Prepared => {
    const most = options.number === undefined ? options.packets - batch * batchSize : batchSize
    const cases = generate(options.seed, batch).slice(0, most)
    return { cases, answer: go?.ask(cases) }
  }
  const waiting = Array.from({ length: Math.min(ahead, batches - first) }, (_, index) =>
    prepare(first + index),
  )
  for (let batch = first; batch < batches; batch++) {
    const { cases, answer } = waiting.shift() as Prepared
    if (batch + ahead < batches) waiting.push(prepare(batch + ahead))
    const answers = (await answer) ?? []
    for (const [index, each] of cases.entries()) {
      const ours = (options.decode ?? decodeOurs)(each.bytes, each)
      check(each, ours, verdictsOf(each, answers[index] ?? {}, options.codecs), report)
    }
    if (performance.now() > until) break
  }
  // Answers that nobody waits for any more.
  for (const { answer } of waiting) answer?.catch(() => undefined)
  go?.end()
  return report
}

function verdictsOf(each: Case, fromGo: Verdicts, codecs: readonly Codec[]): Verdicts {
  const asked = codecs.includes('mqtt-packet') ? { 'mqtt-packet': askMqttPacket(each) } : {}
  const all = Object.entries({ ...fromGo, ...asked })
  return Object.fromEntries(all.filter(([codec]) => codecs.includes(codec as Codec)))
}

function check(each: Case, ours: Ours, verdicts: Verdicts, report: Report): void {
  const standard = standardOf(each)
  const context = (): Context => ({ each, verdicts: shownVerdicts(ours, standard, verdicts) })
  report.packets += 1
  const stray = strays(each, ours, standard)
  if (stray !== undefined) note(report, 'standard', stray, context())
  for (const [codec, verdict] of Object.entries(verdicts) as [
    Codec,
    NonNullable<Verdicts[Codec]>,
  ][]) {
    count(report, codec, verdict)
    for (const difference of differences(each, ours, standard, codec, verdict)) {
      const judgement = judgements.find((each) => each.codec === codec && each.applies(difference))
      if (judgement === undefined) note(report, kindOf(difference), detailOf(difference), context())
      else report.applied.set(judgement, (report.applied.get(judgement) ?? 0) + 1)
    }
  }
}

function count(
  report: Report,
  codec: Codec,
  { fields, again }: NonNullable<Verdicts[Codec]>,
): void {
  const counts = report.asked.get(codec) ?? { asked: 0, accepted: 0, written: 0 }
  report.asked.set(codec, counts)
  counts.asked += 1
  if (fields !== undefined) counts.accepted += 1
  if (again !== undefined) counts.written += 1
}

function note(report: Report, kind: string, detail: string, context: Context): void {
  const known = report.findings.get(kind)
  if (known !== undefined) known.count += 1
  else if (report.findings.size < kept)
    report.findings.set(kind, { kind, detail, ...context, count: 1 })
}

function kindOf({ codec, kind, type, rule, place }: Difference): string {
  return `${codec} ${kind}: ${type} ${kind === 'accepts' ? `(${rule})` : place.path}`
}

function detailOf({ kind, place, error, rule }: Difference): string {
  if (kind === 'accepts')
    return `ours refuses: ${error}; the standard's tables: ${rule || 'nothing is wrong'}`
  return place.path === '' ? error : shownPlace(place)
}

function shownVerdicts(ours: Ours, standard: Standard, verdicts: Verdicts): Record<string, string> {
  const { fields, rule: error } = standard
  const all = Object.entries({ ours, standard: { fields, error }, ...verdicts })
  return Object.fromEntries(
    all.map(([name, said]) => [
      name,
      said.fields === undefined
        ? `refused: ${said.error}`
        : `accepted: ${JSON.stringify(said.fields)}`,
    ]),
  )
}
