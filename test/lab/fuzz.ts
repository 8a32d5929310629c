/** Inputs at random against codec and session, guided by coverage (`test/fuzz`), and random properties at full length. */
import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { builtWorker, hunt, keep, replayed, targetNames } from '../fuzz/hunt.js'
import { type Lab, type Result, together } from './lab.js'

export const about =
  'a search guided by coverage: `wire`, `session`; `suites` of tests that are random or try each byte; `long`: random properties at full length; `defects`: with a defect, which has to be found; `keep` writes test/fuzz/seeds.txt; --replay "TARGET HEX"'
export const minutes = 3

/** Random properties and faults at each byte or event that are too long for the gate. */
const suites = [
  'test/unit/wasm/',
  'test/fuzz/search',
  'test/unit/client/registry-model.test.ts',
  ...['faults/', 'latest-attacks', 'operation.test.ts'].map((name) => `test/unit/typed/${name}`),
]
/** Suites that have a long form, which takes as long as it takes. */
const longSuites = ['test/unit/client/hostile-mutated.test.ts']

async function search(lab: Lab, file: string, target: string, share: number): Promise<Result> {
  const { inputs, edges, findings } = await hunt(
    file,
    target,
    lab.seed,
    lab.minutes * 60 * share,
    availableParallelism(),
  )
  lab.say(`${target}: ${inputs} inputs, ${edges} edges covered, ${findings.length} findings`)
  return {
    did: `${inputs} inputs of ${target}`,
    findings: findings.map(({ detail, bytes }) => ({
      what: `${target} ${detail}`,
      command: `npm run lab -- fuzz --replay "${target} ${bytes}"`,
    })),
  }
}

export async function run(lab: Lab): Promise<Result> {
  const unknown = lab.words.filter(
    (word) => ![...targetNames, 'suites', 'long', 'keep', 'defects'].includes(word),
  )
  if (unknown.length > 0)
    throw new Error(
      `there is no ${unknown.join(', ')} in fuzz; there are: ${targetNames.join(', ')}, suites, long, keep, defects`,
    )
  if (lab.words.includes('long')) return lab.vitest(longSuites, { env: { MQWIRE_LONG: '1' } })
  if (lab.words.includes('defects'))
    return (await import('../support/checkers.js')).tryDefects(lab, 'fuzz', [
      'fuzz session',
      'fuzz wire',
    ])
  const file = await builtWorker()
  try {
    if (lab.replay !== undefined) {
      const [target = '', hex = ''] = lab.replay.split(' ')
      const what = await replayed(file, target, hex)
      lab.say(what ?? 'nothing is wrong with it')
      const command = `npm run lab -- fuzz --replay "${lab.replay}"`
      return { did: 'one input', findings: what === undefined ? [] : [{ what, command }] }
    }
    if (lab.words.includes('keep')) return { did: (await keep(file)).join('; '), findings: [] }
    const chosen =
      lab.words.length === 0 ? targetNames : targetNames.filter((name) => lab.words.includes(name))
    const results: Result[] = []
    if (lab.words.length === 0 || lab.words.includes('suites'))
      results.push(await lab.vitest(suites))
    for (const target of chosen) results.push(await search(lab, file, target, 1 / chosen.length))
    return together(...results)
  } finally {
    rmSync(file, { force: true })
  }
}
