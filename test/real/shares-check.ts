/** Defines the test of one broker: a member that leaves its group, in each way. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Broker } from './brokers.js'
import { type SiteName, site } from './programs/ordinary/sites.js'
import { leaving, ways } from './shares.js'
import { known } from './shares-known.js'
import { withoutBroker } from './target.js'

/** Q03, for a broker that `known` tells of. */
export async function checkShares(name: SiteName): Promise<void> {
  const made = await site(name)
  if ('missing' in made) return withoutBroker(made.name, made.missing)
  describe(`a member that leaves its group, on ${name}`, () => {
    let broker: Broker
    beforeAll(async () => {
      broker = await made.start('roomy')
    }, 120_000)
    afterAll(() => broker?.stop())

    it.each(ways)('%s', { timeout: 60_000 }, async (way) => {
      const seen = await leaving(broker, way)
      const expected = known[name]?.fates[way]
      expect(seen.later).toBeDefined()
      for (const what of ['inHand', 'waiting', 'later'] as const)
        if (seen[what] !== undefined)
          expect(expected?.[what], `${what}: ${seen[what]}`).toContain(seen[what])
    })
  })
}
