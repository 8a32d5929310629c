/** The checkers by name, each as one function of a defect and a seed, and the proof that each reports the defects that are named for it. */
import fc from 'fast-check'
import { type Input, sessionInputs, wireInputs } from '../fuzz/arbitraries.js'
import { OracleError } from '../fuzz/oracle.js'
import { run as runSession } from '../fuzz/session.js'
import { run as runWire } from '../fuzz/wire.js'
import type { Lab, Result } from '../lab/lab.js'
import { planFrom } from '../unit/typed/faults/plan.js'
import { run as runPlan } from '../unit/typed/faults/world.js'
import { always, differs, instantiate, tellFramer, tellScanner } from '../unit/wasm/scanner.js'
import { streams } from '../unit/wasm/streams.js'
import { type KindName, kinds } from '../world/kinds.js'
import { scenarios } from '../world/scenarios.js'
import { wideScenarios } from '../world/wide-scenarios.js'
import type { Checker, Defect } from './defective.js'
import { defectsFor } from './defects.js'

type Found = readonly string[]

/** The first seeds of the world stand for its scenarios. */
const fixed = [...scenarios, ...wideScenarios]

const played =
  (name: KindName) =>
  async (defect: Defect, seed: number): Promise<Found> => {
    const { generate, make } = kinds[name]
    const { findings } = await make(
      (name === 'world' ? fixed[seed - 1] : undefined) ?? generate(seed),
      defect,
    ).run()
    return findings.map(({ rule }) => rule)
  }

async function fuzzed(
  run: (bytes: Uint8Array, defect: Defect) => void,
  inputs: fc.Arbitrary<Input>,
  defect: Defect,
  seed: number,
) {
  const [input] = fc.sample(inputs, { seed, numRuns: 1 }) as [Input]
  try {
    run(input.bytes, defect)
    return []
  } catch (error) {
    if (error instanceof OracleError) return [error.rule]
    throw error
  }
}

export const checkers: Readonly<Record<Checker, (defect: Defect, seed: number) => Promise<Found>>> =
  {
    world: played('world'),
    programs: played('programs'),
    durable: played('durable'),
    many: played('many'),
    'fuzz session': (defect, seed) => fuzzed(runSession, sessionInputs, defect, seed),
    'fuzz wire': (defect, seed) => fuzzed(runWire, wireInputs, defect, seed),
    typed: async (defect, seed) =>
      (await runPlan(planFrom(seed), defect)).findings.map(() => 'typed'),
    wasm: async (defect, seed) => {
      const [{ setting, deliveries }] = fc.sample(streams, { seed, numRuns: 1 }) as [
        { setting: never; deliveries: never },
      ]
      const sound = tellFramer(setting, deliveries)
      return differs(sound, tellScanner(instantiate(), setting, deliveries, always, defect)) ===
        undefined
        ? []
        : ['wasm']
    },
  }

/** The first seed, from `first` on, with which a checker reports a defect by a rule that is named for it; undefined where none of so many does. */
export async function seedThatFinds(
  checker: Checker,
  defect: Defect,
  first: number,
  most: number,
): Promise<number | undefined> {
  for (let seed = first; seed < first + most; seed++) {
    const found = await checkers[checker](defect, seed)
    if (found.some((rule) => defect.by[checker]?.slice(1).includes(rule))) return seed
  }
  return undefined
}

/** Each defect of these checkers in turn, with the seeds of the lab; a finding is a defect that none of so many shows. @param part of the lab */
export async function tryDefects(
  lab: Lab,
  part: string,
  names: readonly Checker[],
  most = 1000,
): Promise<Result> {
  const findings: Result['findings'][number][] = []
  let count = 0
  for (const checker of names) {
    for (const defect of defectsFor(checker)) {
      const seed = await seedThatFinds(checker, defect, lab.seed, most)
      count += 1
      lab.say(`${checker} | ${defect.name} | ${seed === undefined ? 'NOT FOUND' : `seed ${seed}`}`)
      if (seed === undefined)
        findings.push({
          what: `${checker} does not notice: ${defect.name}`,
          command: `npm run lab -- ${part} defects --seed ${lab.seed}`,
        })
    }
  }
  return { did: `${count} defects`, findings }
}
