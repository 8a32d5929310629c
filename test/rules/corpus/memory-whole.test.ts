/** Every case in every state on a client over the memory transport, in a time that stands still: whole. */
import { describe, expect, it } from 'vitest'
import { jobs } from './run/jobs.js'
import { runMemory } from './run/memory.js'
import { misjudged } from './run/misjudged.js'

const patience = 240_000

describe('the corpus on a client over memory, whole', () => {
  it(
    'MQTT 5.0, each end, each reason code, each answer: [MQTT-2.1.3-1] [MQTT-1.5.4-1] [MQTT-1.5.4-2]',
    async () => {
      expect(await runMemory(jobs(5))).toEqual([])
    },
    patience,
  )

  it(
    'MQTT 3.1.1, each end, each answer, nothing announced',
    async () => {
      expect(await runMemory(jobs(4))).toEqual([])
    },
    patience,
  )

  it('would notice: each wrong expectation is found', async () => {
    const wrong = misjudged()
    expect(await runMemory(wrong)).toHaveLength(wrong.length)
  })
})
