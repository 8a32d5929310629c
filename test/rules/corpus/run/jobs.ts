/** What is to be run: every case in every state of its version, whole or cut at places that its name decides. */
import { hex } from '../bytes.js'
import type { Case } from '../case.js'
import { corpus } from '../index.js'
import { type Expected, judge } from '../oracle.js'
import { type State, statesOf } from '../states.js'

/** What was seen of a client, from the first byte of a sequence on. */
export interface Observed {
  /** What it said, in the words of `Hearing`. */
  readonly said: readonly string[]
  /** The stream: up, ended in order, cut, or ended somehow. */
  readonly stream: 'up' | 'ended' | 'cut' | 'over'
  /** Reason code of the error that it ended with. */
  readonly cause: number | undefined
  /** Where the client says that it stands; undefined where there is no client. */
  readonly state: string | undefined
}

export interface Job {
  readonly sequence: Case
  readonly state: State
  readonly expected: Expected
  /** Where the bytes are cut: strictly rising offsets. */
  readonly cuts: readonly number[]
}

const states = {
  open: 'connected',
  waiting: 'connecting',
  refused: 'closed',
  closed: 'closed',
  disconnected: 'closed',
  dropped: 'closed',
} as const
const isAck = (word: string): boolean => word.startsWith('pub') && !word.startsWith('publish')
const isRequest = (word: string): boolean =>
  word.startsWith('subscribe ') || word.startsWith('unsubscribe ')
const count = (words: readonly string[], start: string): number =>
  words.filter((word) => word.startsWith(start)).length

export function disagreement(expected: Expected, observed: Observed): string | undefined {
  const { end, announced } = expected
  const { said, state } = observed
  const kept = end === 'open' || end === 'waiting'
  const goodbye = announced === undefined ? [] : [`disconnect ${announced.toString(16)}`]
  const strange = said.find(
    (word) =>
      !isAck(word) &&
      !isRequest(word) &&
      !word.startsWith('auth ') &&
      !word.startsWith('disconnect '),
  )
  if (strange !== undefined) return `it said ${strange}`
  const requests = said.filter(isRequest).map((word) => word.split(' ', 1)[0])
  if (requests.join() !== expected.repeats.slice(0, requests.length).join())
    return `it said ${requests.join()} once more`
  if (said.filter((word) => word.startsWith('disconnect ')).join() !== goodbye.join())
    return 'the wrong DISCONNECT, or none, or too many'
  if (goodbye.length > 0 && said.at(-1) !== goodbye[0]) return 'something behind DISCONNECT'
  const acks = said.filter(isAck)
  // Where a link ends, what was queued stays behind: any number of them, from the first on.
  const wanted = kept ? expected.acks : expected.acks.slice(0, acks.length)
  if (acks.join() !== wanted.join()) return 'wrong acknowledgements'
  const auths = count(said, 'auth ')
  if (auths < expected.auths[0] || auths > expected.auths[1] || count(said, 'auth 18') !== auths)
    return 'wrong AUTH'
  if (kept !== (observed.stream === 'up')) return kept ? 'the link is gone' : 'the link is still up'
  if (
    end === 'closed' &&
    observed.stream !== 'over' &&
    (observed.stream === 'ended') !== (announced !== undefined)
  )
    return 'the wrong end of the stream'
  if (end !== 'dropped' && !kept && observed.cause !== expected.cause) return 'the wrong cause'
  if (state !== undefined && state !== states[end]) return `the client is ${state}`
  return undefined
}

/** A finding as text, with all that it takes to see it again. */
export function finding(
  where: string,
  { sequence, state, expected, cuts }: Job,
  observed: Observed,
  what: string,
): string {
  const { end, acks, auths, announced, cause, rule } = expected
  const bytes = hex([...sequence.bytes.subarray(0, 80)])
  return [
    `${where}, ${state.name}: ${sequence.name}: ${what}`,
    `  bytes ${bytes}${sequence.bytes.length > 80 ? ` and ${sequence.bytes.length - 80} more` : ''}, cut at [${cuts.slice(0, 20).join(' ')}]`,
    `  expected ${end}${rule === undefined ? '' : ` (${rule})`}, announced ${announced?.toString(16)}, cause ${cause?.toString(16)}, acks [${acks.join(', ')}], auths ${auths.join(' to ')}`,
    `  observed ${observed.stream}, cause ${observed.cause?.toString(16)}, ${observed.state ?? ''}, said [${observed.said.join(', ')}]`,
  ].join('\n')
}

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
