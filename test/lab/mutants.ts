/** Defects planted one at a time, drawn from all of `src`: what notices each, a test, the virtual world, or nothing. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Lab, Result } from './lab.js'
import { judgeAll, type Verdict } from './mutants/court.js'
import {
  type Chosen,
  draw,
  type Explained,
  type Mutant,
  readSources,
  type Sources,
  withIds,
} from './mutants/draw.js'

export const about =
  'planted defects that a test or the world must notice: so many random ones (40), or those of `list=FILE`; `out=FILE` keeps the verdicts'
/** Of judging; learning which test reaches what comes first, and is kept for the next run. */
export const minutes = 4

interface Explanation extends Verdict {
  readonly reason: string | undefined
}

/** The mutants to judge. A list is what `out` wrote, or any array of objects with an `id`. */
function choose(lab: Lab, sources: Sources, list: string | undefined): Chosen {
  const { words, replay, seed } = lab
  const named =
    list === undefined
      ? undefined
      : (JSON.parse(readFileSync(list, 'utf8')) as Mutant[]).map(({ id }) => id)
  const ids = replay === undefined ? named : [replay]
  if (ids !== undefined) return withIds(sources, ids)
  const number = words.find((word) => /^\d+$/.test(word))
  return { mutants: draw(sources, Number(number ?? 40), seed), gone: [] }
}

const place = ({ file, line, change }: Mutant): string => `${file}:${line} | ${change}`

function keep(out: string, verdicts: readonly Explanation[], gone: readonly string[]): void {
  const judged = verdicts.map(
    ({ mutant: { id, file, lineText, change }, by, tests, seconds, reason }) => {
      const verdict = by !== undefined ? 'killed' : reason !== undefined ? 'explained' : 'survived'
      return { id, file, line: lineText, change, verdict, by, reason, tests, seconds }
    },
  )
  writeFileSync(
    out,
    `${JSON.stringify([...judged, ...gone.map((id) => ({ id, verdict: 'gone' }))], undefined, 1)}\n`,
  )
}

function textOf({ by, tests, reason }: Explanation): string {
  if (by !== undefined) return `noticed by ${by}`
  return reason === undefined ? `SURVIVED ${tests} tests and the world` : `explained: ${reason}`
}

export async function run(lab: Lab): Promise<Result> {
  const wordOf = (name: string): string | undefined =>
    lab.words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const unknown = lab.words.filter((word) => !/^(\d+|list=.+|out=.+)$/.test(word))
  if (unknown.length > 0)
    throw new Error(`mutants know a number, list=FILE and out=FILE, but not ${unknown.join(', ')}`)
  const sources = readSources(lab.root)
  const { mutants, gone } = choose(lab, sources, wordOf('list'))
  if (mutants.length === 0) throw new Error('the text of each of these mutants is gone')
  const explanations = JSON.parse(
    readFileSync(path.join(lab.root, 'test', 'lab', 'mutants', 'explained.json'), 'utf8'),
  ) as Explained[]
  const reasons = new Map(explanations.map(({ id, reason }) => [id, reason]))
  const verdicts: Explanation[] = []
  const out = wordOf('out')
  await judgeAll(lab, sources, mutants, (verdict) => {
    const told = {
      ...verdict,
      reason: verdict.by === undefined ? reasons.get(verdict.mutant.id) : undefined,
    }
    verdicts.push(told)
    lab.say(
      `${verdicts.length}/${mutants.length} ${place(verdict.mutant)} | ${textOf(told)} | ${verdict.seconds} s`,
    )
    if (out !== undefined) keep(out, verdicts, gone)
  })
  const killed = verdicts.filter(({ by }) => by !== undefined).length
  const unnoticed = verdicts.filter(({ by, reason }) => by === undefined && reason === undefined)
  const survivors = unnoticed.filter(({ tests }) => tests > 0)
  // Such as hooks of React, which run in a browser.
  const unreached = unnoticed.filter(({ tests }) => tests === 0)
  const seconds =
    verdicts.reduce((sum, verdict) => sum + verdict.seconds, 0) / Math.max(1, verdicts.length)
  const stale = withIds(sources, [...reasons.keys()]).gone.length
  const explained = verdicts.length - killed - unnoticed.length
  const counts = `${verdicts.length} of ${mutants.length} mutants, ${killed} noticed, ${explained} explained, ${seconds.toFixed(1)} s each`
  return {
    did: `${counts}; gone: ${gone.length} mutants, ${stale} explanations`,
    findings: survivors.map(({ mutant, tests }) => ({
      what: `${place(mutant)}: survives ${tests} tests and the world`,
      command: `npm run lab -- mutants --replay '${mutant.id}'`,
    })),
    ...(unreached.length > 0 && {
      skipped: `no test that judges reaches ${unreached.map(({ mutant }) => place(mutant)).join('; ')}`,
    }),
  }
}
