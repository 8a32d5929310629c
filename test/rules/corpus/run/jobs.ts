/** What is to be run: every case in every state of its version, whole or cut at places that its name decides. */
import type { Case } from '../case.js'
import { corpus } from '../index.js'
import { judge } from '../oracle.js'
import { statesOf } from '../states.js'
import type { Job } from './verdict.js'

/**
 * A client bears two things that the standard forbids, as servers do them: acknowledgements with identifier 0, and the Will Delay Interval in a PUBLISH.
 * `test/unit/client` has what comes of these.
 */
const bears = ({ type, name, meanings }: Case): boolean =>
  name.includes('Will Delay Interval')
    ? type === 'publish'
    : type !== 'publish' &&
      meanings.some(
        (meaning) => meaning.kind === 'broken' && meaning.rule === 'packet identifier 0',
      )

export function jobs(version: 4 | 5): Job[] {
  const states = statesOf(version)
  return corpus(version)
    .filter((sequence) => !bears(sequence))
    .flatMap((sequence) =>
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

export const cutJobs = (list: readonly Job[]): Job[] =>
  list.map((job) => ({
    ...job,
    cuts: someCuts(`${job.sequence.name} ${job.state.name}`, job.sequence.bytes.length),
  }))

/** Cut at every byte of the beginning: what is further on in a packet is a matter of the framer alone. */
export const byteJobs = (list: readonly Job[]): Job[] =>
  list.map((job) => ({
    ...job,
    cuts: Array.from({ length: Math.min(job.sequence.bytes.length, 60) }, (_, at) => at).slice(1),
  }))

export function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  return [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index] ?? bytes.length))
}

/** A few cuts, by chance, but the same for the same name. */
function someCuts(name: string, length: number, most = 3): number[] {
  let state = 2_166_136_261
  for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 16_777_619)
  const cuts = new Set<number>()
  for (let i = 0; i < most && length > 1; i++) {
    state = Math.imul(state ^ (state >>> 15), 2_246_822_519) + i
    // Half of the cuts fall near the beginning, where headers are.
    const range = i % 2 === 0 ? Math.min(length - 1, 12) : length - 1
    cuts.add(1 + ((state >>> 8) % range))
  }
  return [...cuts].sort((a, b) => a - b)
}
