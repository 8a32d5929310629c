/** Every case in every state on a client over the memory transport, in a time that stands still: in pieces. */
import { describe, expect, it } from 'vitest'
import { cutJobs, jobs } from './run/jobs.js'
import { runMemory } from './run/memory.js'

const patience = 240_000

describe('the corpus on a client over memory, in pieces', () => {
  it(
    'MQTT 5.0: the same ends as whole',
    async () => expect(await runMemory(cutJobs(jobs(5)))).toEqual([]),
    patience,
  )

  it(
    'MQTT 3.1.1: the same ends as whole',
    async () => expect(await runMemory(cutJobs(jobs(4)))).toEqual([]),
    patience,
  )
})
