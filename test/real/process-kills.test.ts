/**
 * A process with a durable session and a queue in one store is killed with SIGKILL at random moments, 20 times, and with MQWIRE_LONG 300 times: what was
 * stored arrives, at QoS 2 once, and each message that it gets has one id.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { requireDist } from '../package/fixture.js'
import { withMosquitto } from './brokers.js'
import { type KillsPlan, type KillsResult, runKills } from './process-kills.js'

const kills = process.env['MQWIRE_LONG'] === undefined ? 20 : 300
/** `concurrency` of a queue. */
const mostInFlight = 64
const timeout = 120_000 + kills * 5000

beforeAll(requireDist)

async function killed(
  plan: Pick<KillsPlan, 'store' | 'durability' | 'broker'>,
): Promise<KillsResult> {
  const result = await runKills({ ...plan, kills, seed: 1 })
  expect(result.trouble).toEqual([])
  expect(result.lost).toEqual([])
  expect(result.twice).toEqual([])
  expect(result.disordered).toEqual([])
  expect(result.missing).toEqual([])
  expect(result.confused).toEqual([])
  expect(result.stored).toBeGreaterThan(kills)
  expect(result.consumed).toBeGreaterThan(kills)
  return result
}

/** A process that dies between CONNECT and CONNACK leaves open which session the next one finds: what was in flight at QoS 2 is a dead letter then, and nothing else. */
function expectCertain({ dead, early, restarts }: KillsResult): void {
  expect(dead.filter((line) => !line.startsWith('ERR_SESSION_LOST '))).toEqual([])
  expect(dead.length).toBeLessThanOrEqual((early + restarts) * mostInFlight)
}

withMosquitto(['TCP'], () => {
  describe(`${kills} kills with SIGKILL`, () => {
    it.each([
      ['levelStore', 'sync'],
      ['fileStore', 'os'],
    ] as const)(
      '%s, with durability %s: nothing is lost, doubled or confused',
      { timeout },
      async (store, durability) => {
        const result = await killed({ store, durability, broker: 'stays' })
        expectCertain(result)
        expect(result.sessionsLost).toBe(0)
      },
    )

    it('nor where the broker is restarted meanwhile, and remembers', { timeout }, async () => {
      const plan = { store: 'levelStore', durability: 'sync', broker: 'comes back' } as const
      const result = await killed(plan)
      expectCertain(result)
      expect(result.sessionsLost).toBe(0)
      expect(result.restarts).toBeGreaterThan(0)
    })

    it('a broker that forgets loses no entry in silence: at QoS 2 one whose outcome is unknown is a dead letter, and none arrives twice', {
      timeout,
    }, async () => {
      const { dead, restarts, sessionsLost } = await killed({
        store: 'levelStore',
        durability: 'sync',
        broker: 'forgets',
      })
      expect(restarts).toBeGreaterThan(0)
      expect(sessionsLost).toBeGreaterThan(0)
      expect(dead.filter((line) => !line.startsWith('ERR_SESSION_LOST '))).toEqual([])
    })
  })
})
