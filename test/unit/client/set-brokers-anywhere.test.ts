/** `setBrokers()` from every place that calls back, over endpoints that hang, refuse, reset and come: at random, by seed. */
import { expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { Random } from '../../world/random.js'
import { eventNames } from './event-names.js'
import { agreeable } from './harness.js'
import { type Behaviour, down, Rig, refusing, welcoming } from './rig.js'

const refusals = [0x84, 0x86, 0x8a, 0x88].map((code) => refusing(code))
const behaviours: Behaviour[] = [down, 'hang', () => undefined, ...refusals, agreeable, welcoming()]

async function life(seed: number): Promise<void> {
  const random = new Random(seed)
  let calls = 0
  const change = (): undefined => {
    if (random.chance(0.5) || calls++ > 200 || /^(closed|disconnecting)$/.test(rig.client.state))
      return
    const list = Array.from({ length: 1 + random.below(3) }, () =>
      random.pick(['a', 'b', 'c', 'd']),
    )
    rig.client.setBrokers(list.map((host) => rig.endpoint(host)))
  }
  const maxAttempts = random.pick([1, 3, Number.POSITIVE_INFINITY])
  const backoff = (): number => change() ?? 500
  const credentials = () => {
    change()
    if (random.chance(0.2)) return new Promise(() => undefined) as never
    return random.chance(0.1) ? ({ url: 'x://a#b', connect: { keepAlive: -1 } } as never) : {}
  }
  const options: ClientOptions = {
    protocolVersion: random.pick([5, 'auto'] as const),
    firstConnect: random.pick(['wait', 'reject'] as const),
    reconnect: random.pick([false, { backoff, maxAttempts, decide: change, stableAfter: 1000 }]),
    connectTimeout: 2000,
    ...(random.chance(0.5) && { credentials }),
  }
  const rig: Rig = new Rig(options, {
    hosts: ['a', 'b'],
    seed,
    behave: () => random.pick(behaviours),
  })
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
    if (random.chance(0.2) && rig.open > 0) await rig.cut()
  }
  expect(most, 'streams at a time').toBeLessThanOrEqual(1)
  // The rounds over a list are without delay: at most three endpoints, each at two versions and with fresh credentials, and a new list a call.
  expect(rig.dials.length, 'dials').toBeLessThan(400)
  await rig.finish()
  await rig.advance(5000)
  expect(['connected', 'failed']).toContain(await connecting)
  const left = { state: rig.client.state, streams: rig.open, timers: rig.clock.pending }
  expect(left).toEqual({ state: 'closed', streams: 0, timers: 0 })
}

it.each([0, 100, 200, 300, 400])(
  'setBrokers() in every event, credentials(), backoff() and decide(): one stream at a time, no storm: seeds from %i',
  async (from) => {
    for (let seed = from + 1; seed <= from + 60; seed++)
      await life(seed).catch((cause: unknown) =>
        Promise.reject(new Error(`seed ${seed}`, { cause })),
      )
  },
)
