/** Resets at random bytes between client and mosquitto: nothing is lost, and nothing comes twice at QoS 2. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withMosquitto } from './brokers.js'
import { type ResetsPlan, runResets, type Tally } from './resets.js'
import { Restartable } from './restartable.js'

const messages = 3000
const seeds = [1, 2]
const perfect: Tally = {
  fulfilled: messages,
  rejected: 0,
  lost: 0,
  disordered: 0,
  again: 0,
  begunAnew: 0,
}

withMosquitto(['TCP'], () => {
  let broker: Restartable | undefined
  beforeAll(async () => {
    broker = await Restartable.start()
  })
  afterAll(async () => {
    await broker?.stop()
  })

  const run = (subscriber: ResetsPlan['subscriber'], seed: number): void => {
    it(`${messages} messages at QoS 1 and 2 arrive although the proxy resets at random bytes, subscriber ${subscriber}, seed ${seed}`, async () => {
      if (broker === undefined) throw new Error('the broker did not start')
      const result = await runResets(broker, {
        messages,
        seed,
        meanBytes: 800,
        subscriber,
        deadline: 18_000,
      })
      expect(result.resets).toBeGreaterThan(30)
      expect({ ...result.qos2, begunAnew: 0 }).toEqual(perfect)
      if (subscriber === 'direct') expect(result.qos2.begunAnew).toBe(0)
      expect({ ...result.qos1, again: 0 }).toEqual(perfect)
      expect(result.contradictions).toEqual([])
      expect(result.sessionsLost).toBe(0)
    })
  }
  for (const seed of seeds) {
    run('direct', seed)
    run('through the proxy', seed)
  }
})
