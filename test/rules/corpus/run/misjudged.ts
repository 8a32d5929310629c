/** Jobs whose expectation is wrong on purpose: a runner that lets one pass does not look. */
import type { Expected } from '../oracle.js'
import { jobs } from './jobs.js'
import type { Job } from './verdict.js'

/** One way to be wrong for each thing that is compared. */
const twists: readonly ((expected: Expected) => Expected | undefined)[] = [
  // Closed, instead of kept; kept, instead of closed.
  (it) =>
    it.end === 'open' && !it.mute
      ? { ...it, end: 'closed', announced: 0x82, cause: 0x82, rule: 'second CONNACK' }
      : undefined,
  (it) =>
    it.end === 'closed' && it.announced !== undefined
      ? { ...it, end: 'open', announced: undefined, mute: true }
      : undefined,
  // Another reason code, or none; one where there is none.
  (it) => (it.announced === 0x81 ? { ...it, announced: 0x82, cause: 0x82 } : undefined),
  (it) => (it.announced === 0x94 ? { ...it, announced: undefined } : undefined),
  (it) =>
    it.end === 'closed' && it.announced === undefined && it.cause === 0x81
      ? { ...it, announced: 0x81 }
      : undefined,
  // Another cause.
  (it) => (it.end === 'refused' ? { ...it, cause: 0x02 } : undefined),
  (it) => (it.end === 'disconnected' ? { ...it, cause: 0x02 } : undefined),
  // Other acknowledgements: one less, another code.
  (it) =>
    it.end === 'open' && !it.mute && it.acks.length > 0
      ? { ...it, acks: it.acks.slice(1) }
      : undefined,
  (it) =>
    it.end === 'open' && !it.mute && it.acks.length > 0
      ? { ...it, acks: it.acks.map((ack) => ack.replace(/..$/, '99')) }
      : undefined,
]

export function misjudged(): Job[] {
  const all = jobs(5).filter(({ sequence }) => sequence.bytes.length < 100)
  return twists.map((twist, index) => {
    // Not always the first that fits.
    const fitting = all.filter(({ expected }) => twist(expected) !== undefined)
    const job = fitting[Math.floor((fitting.length * (index + 1)) / (twists.length + 1))] as Job
    return { ...job, expected: twist(job.expected) as Expected }
  })
}
