/** The kinds of worlds: one client, the same with calls that no sensible application makes, a device with a store, and many connections. */
import type { Defect } from '../support/defective.js'
import { generate as durable } from './durable/schedule.js'
import { DurableWorld } from './durable/world.js'
import { generate as world } from './generate.js'
import { generate as many } from './many/schedule.js'
import { ManyWorld } from './many/world.js'
import type { AnyWorld, Findings } from './play.js'
import { generate as programs } from './programs.js'
import type { Shrinkable } from './runner.js'
import { World } from './world.js'

type Run = Pick<AnyWorld<Shrinkable, Findings>, 'history' | 'run' | 'told'>

export interface Kind {
  generate(seed: number): Shrinkable
  /** @param defect what is wrong with the clients, which has to be found */
  make(schedule: Shrinkable, defect?: Defect): Run
}

function kind<S extends Shrinkable>(
  generate: (seed: number) => S,
  Made: new (schedule: S, defect?: Defect) => Run,
): Kind {
  return { generate, make: (schedule, defect) => new Made(schedule as S, defect) }
}

export const kinds = {
  world: kind(world, World),
  programs: kind(programs, World),
  durable: kind(durable, DurableWorld),
  many: kind(many, ManyWorld),
} satisfies Record<string, Kind>
export type KindName = keyof typeof kinds

/** Everything that happens in a run, a line each. */
export async function traced(name: KindName, schedule: Shrinkable): Promise<string[]> {
  const lines: string[] = []
  const run = kinds[name].make(schedule)
  run.history.trace = (line) => lines.push(line)
  const { findings } = await run.run()
  return [
    ...lines,
    ...run.told(),
    ...findings.map(({ rule, detail }) => `FINDING ${rule}: ${detail}`),
  ]
}
