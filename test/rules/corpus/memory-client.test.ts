/** Every case in every state on a client over the memory transport, in a time that stands still: whole, in pieces, and byte by byte. */
import { describe, expect, it } from 'vitest'
import type { Expected } from './oracle.js'
import { byteJobs, cutJobs, type Job, jobs } from './run/jobs.js'
import { runMemory } from './run/memory.js'

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

function misjudged(): Job[] {
  const all = jobs(5).filter(({ sequence }) => sequence.bytes.length < 100)
  return twists.map((twist, index) => {
    // Not always the first that fits.
    const fitting = all.filter(({ expected }) => twist(expected) !== undefined)
    const job = fitting[Math.floor((fitting.length * (index + 1)) / (twists.length + 1))] as Job
    return { ...job, expected: twist(job.expected) as Expected }
  })
}

describe('the corpus on a client over memory: each end, reason code and answer', () => {
  it.each([
    [
      '5.0 [MQTT-2.1.3-1] [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-3.2.0-2] [MQTT-3.2.2-1] [MQTT-3.2.2-4] [MQTT-3.2.2-6] [MQTT-3.3.1-4] [MQTT-3.3.2-2] [MQTT-3.3.2-8] [MQTT-3.3.2-10] [MQTT-4.12.0-5]',
      5,
    ],
    ['3.1.1', 4],
  ] as const)(
    'MQTT %s, whole, in pieces and byte by byte',
    { timeout: 480_000 },
    async (_name, version) => {
      expect(await runMemory(jobs(version))).toEqual([])
      expect(await runMemory(cutJobs(jobs(version)))).toEqual([])
      expect(await runMemory(byteJobs(jobs(version)))).toEqual([])
    },
  )

  it('would notice: each wrong expectation is found', async () => {
    const wrong = misjudged()
    expect(await runMemory(wrong)).toHaveLength(wrong.length)
  })
})
