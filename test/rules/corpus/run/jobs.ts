/**
 * What is to be run: every case in every state of its version, or the share of it for transports on which each run is dear.
 */
import { corpus } from '../index.js'
import { judge } from '../oracle.js'
import { statesOf } from '../states.js'
import { someCuts } from './cuts.js'
import type { Job } from './verdict.js'

/** Every case in every state, whole. */
export function jobs(version: 4 | 5): Job[] {
  const states = statesOf(version)
  return corpus(version).flatMap((sequence) =>
    states.map(
      (state): Job => ({
        sequence,
        state,
        expected: judge(version, sequence.meanings, state),
        cuts: [],
      }),
    ),
  )
}

/**
 * The jobs of a whole client. It bears two things that the standard forbids, as servers do them: acknowledgements with identifier 0, and the Will Delay
 * Interval in a PUBLISH. `test/unit/client` has what comes of these.
 */
export function ofClient(list: readonly Job[]): Job[] {
  const bears = ({ sequence: { type, name, meanings } }: Job): boolean =>
    name.includes('Will Delay Interval')
      ? type === 'publish'
      : type !== 'publish' &&
        meanings.some(
          (meaning) => meaning.kind === 'broken' && meaning.rule === 'packet identifier 0',
        )
  return list.filter((job) => !bears(job))
}

/** The same, in a few pieces. */
export const cutJobs = (list: readonly Job[]): Job[] =>
  list.map((job) => ({
    ...job,
    cuts: someCuts(`${job.sequence.name} ${job.state.name}`, job.sequence.bytes.length),
  }))

/**
 * Every case once, in one of the states: they go round, so that each packet type meets each state. `offset` says where they begin; every other
 * case is cut into pieces.
 */
export function shareOf(version: 4 | 5, offset: number): Job[] {
  const states = statesOf(version).length
  const all = jobs(version)
  const mine = corpus(version).map(
    (_, index) => all[index * states + ((index + offset) % states)] as Job,
  )
  const cut = cutJobs(mine)
  // In the next round of the states it is the other half.
  return mine.map((job, index) =>
    (index + Math.floor(index / states)) % 2 === 0 ? job : (cut[index] as Job),
  )
}
