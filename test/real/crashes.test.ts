/** mosquitto is killed with SIGKILL under load and started again: the client comes back, and what it says of its publishes is true. */
import { describe, expect, it } from 'vitest'
import { withMosquitto } from './brokers.js'
import { runCrashes } from './crashes.js'
import type { Memory } from './restartable.js'

const kills = 3

withMosquitto(['TCP'], () => {
  describe.each<Memory>(['most of it', 'every second', 'nothing'])(
    'a broker that remembers %s',
    (memory) => {
      it(`${kills} kills under load: publishes are acknowledged, or reported, and subscriptions go on`, async () => {
        const result = await runCrashes({ kills, memory, seed: 1 })
        expect(result.contradictions).toEqual([])
        expect(result.kills).toBe(kills)
        expect(result.fulfilled).toBeGreaterThan(100)
        if (memory === 'nothing') {
          expect(result.sessionsLost).toBe(kills)
          expect(result.republished + result.rejected).toBeGreaterThan(0)
        }
      })
    },
  )
})
