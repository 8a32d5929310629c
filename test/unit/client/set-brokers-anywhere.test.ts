/** `setBrokers()` from every place that calls back, over endpoints that hang, refuse, reset and come: at random, by seed. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { Random } from '../../world/random.js'
import { eventNames } from './event-names.js'
import { agreeable } from './harness.js'
import { type Behaviour, down, Rig, refusing, welcoming } from './rig.js'

const hosts = ['a', 'b', 'c', 'd']

async function life(seed: number): Promise<void> {
  const random = new Random(seed)
  const silent: Behaviour = () => undefined
  const behaviours: Behaviour[] = [down, 'hang', silent, refusing(0x84), refusing(0x86), refusing(0x8a), refusing(0x88), agreeable, welcoming()]
  let calls = 0
  const change = (): void => {
    if (random.chance(0.5) || calls++ > 200 || ['closed', 'disconnecting'].includes(rig.client.state)) return
    rig.client.setBrokers(Array.from({ length: 1 + random.below(3) }, () => rig.endpoint(random.pick(hosts))))
  }
  const maxAttempts = random.pick([1, 3, Number.POSITIVE_INFINITY])
  const backoff = (): number => {
    change()
    return 500
  }
  const decide = (): undefined => {
    change()
  }
  const options: ClientOptions = {
    protocolVersion: random.pick([5, 'auto'] as const),
    firstConnect: random.pick(['wait', 'reject'] as const),
    reconnect: random.pick([false, { backoff, maxAttempts, decide, stableAfter: 1000 }]),
    connectTimeout: 2000,
    ...(random.chance(0.5) && {
      credentials: () => {
        change()
        return random.chance(0.2)
          ? (new Promise(() => undefined) as never)
          : random.chance(0.1)
            ? ({ url: 'x://a#b', connect: { keepAlive: -1 } } as never)
            : {}
      },
    }),
  }
  const rig: Rig = new Rig(options, { hosts: ['a', 'b'], seed, behave: () => random.pick(behaviours) })
  let most = 0
  for (const type of eventNames)
    rig.client.on(type, () => {
      most = Math.max(most, rig.open)
      change()
    })
  const connecting = rig.client.connect().then(
    () => 'connected',
    () => 'failed',
  )
  for (let step = 0; step < 30; step++) {
    await rig.advance(random.pick([0, 10, 300, 1000, 2500]))
    if (random.chance(0.3)) change()
    if (random.chance(0.2) && rig.peers.some((peer) => peer.ended === undefined)) await rig.cut()
  }
  expect(most, 'streams at a time').toBeLessThanOrEqual(1)
  // The rounds over a list are without delay: at most three endpoints, each at two versions and with fresh credentials, and a new list a call.
  expect(rig.dials.length, 'dials').toBeLessThan(400)
  await rig.finish()
  await rig.advance(5000)
  expect(['connected', 'failed']).toContain(await connecting)
  expect(rig.client.state).toBe('closed')
  expect(rig.open, 'streams left').toBe(0)
  expect(rig.clock.pending, 'timers left').toBe(0)
}

describe('setBrokers() in every event, in credentials(), backoff() and decide()', () => {
  it.each([0, 1, 2, 3, 4])('one stream at a time, no storm, nothing left: seeds from %i00', async (hundred) => {
    for (let seed = 0; seed < 60; seed++)
      await life(hundred * 100 + seed + 1).catch((error: unknown) => Promise.reject(new Error(`seed ${hundred * 100 + seed + 1}`, { cause: error })))
  })
})
