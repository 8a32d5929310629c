/**
 * Runs cases on the bare core: whole, cut at every place where they are short and at a few where they are long, and byte by byte.
 */

import { Core } from './core.js'
import { bytewise, pieces, someCuts } from './cuts.js'
import { quietly } from './quietly.js'
import { disagreement, finding, type Job } from './verdict.js'

/** Cut at every place, up to this length. */
const short = 40
/** Byte by byte in every state up to this length, above it in one: what is so long is a matter of the framer alone. */
const long = 5000

function run(job: Job, feed: (core: Core) => void): string | undefined {
  const core = new Core(job.sequence.version, job.state)
  try {
    feed(core)
  } catch (error) {
    return finding('core', job, core.observe(), `it threw: ${error}`)
  }
  const observed = core.observe()
  const wrong = disagreement(job.expected, observed)
  return wrong === undefined ? undefined : finding('core', job, observed, wrong)
}

const cutAt = (job: Job, cuts: readonly number[]): string | undefined =>
  run({ ...job, cuts }, (core) => {
    for (const piece of pieces(job.sequence.bytes, cuts)) core.feed(piece)
  })

/** Every byte in an array of its own, which is gone when the next one comes. */
const byBytes = (job: Job): string | undefined =>
  run({ ...job, cuts: bytewise(Math.min(job.sequence.bytes.length, 20)) }, (core) => {
    const one = new Uint8Array(1)
    for (const byte of job.sequence.bytes) {
      one[0] = byte
      core.feed(one)
    }
  })

/** What is wrong with a job, in whichever way it is run. */
function judge(job: Job): string | undefined {
  const { sequence, state } = job
  const { length } = sequence.bytes
  const ways =
    length <= short
      ? bytewise(length).map((at) => [at])
      : [someCuts(`${sequence.name} ${state.name}`, length)]
  for (const cuts of [[], ...ways]) {
    const wrong = cutAt(job, cuts)
    if (wrong !== undefined) return wrong
  }
  return length <= long || state.name === 'idle' ? byBytes(job) : undefined
}

/** Runs all; gives what was not as expected, one finding a job. */
export const runCore = (jobs: readonly Job[]): Promise<string[]> =>
  quietly(() => jobs.flatMap((job) => judge(job) ?? []))
