/** Every case in every state on a client over the memory transport, in a time that stands still: whole, in pieces, and byte by byte. */
import { describe, expect, it } from 'vitest'
import { byteJobs, cutJobs, jobs } from './run/jobs.js'
import { runMemory } from './run/memory.js'
import { misjudged } from './run/misjudged.js'

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
