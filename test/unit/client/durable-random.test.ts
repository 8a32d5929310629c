/** Random drops, losses and calls: every call settles once and truly, and the server never sees a rule broken. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { MqttError } from '../../../src/errors.js'
import { type Cut, cutting } from './cutting.js'
import { SmallBroker } from './small-broker.js'

const cut = fc.record({ forward: fc.integer({ min: 0, max: 160 }), backward: fc.integer({ min: 0, max: 90 }), forgets: fc.boolean() })
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('publish' as const), qos: fc.constantFrom(0, 1, 1, 2, 2) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('abort' as const), back: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('wait' as const), milliseconds: fc.constantFrom(0, 1, 10, 25) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('clear' as const) }) },
)
const setting = fc.record({
  receiveMaximum: fc.integer({ min: 1, max: 8 }),
  onSessionLost: fc.constantFrom('republish' as const, 'reject' as const, undefined),
  cuts: fc.array(cut, { maxLength: 6 }),
})

interface Call {
  readonly text: string
  readonly qos: number
  readonly abort: AbortController
  fulfilled: number
  rejected: MqttError[]
}

async function run(
  {
    receiveMaximum,
    onSessionLost,
    cuts,
  }: { receiveMaximum: number; onSessionLost: 'republish' | 'reject' | undefined; cuts: readonly (Cut & { forgets: boolean })[] },
  steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
): Promise<{ broker: SmallBroker; calls: Call[]; lost: boolean; told: number }> {
  const broker = new SmallBroker({ receiveMaximum })
  const world = cutting(broker, cuts, { firstConnect: 'wait', outbound: onSessionLost === undefined ? {} : { onSessionLost } })
  let told = 0
  let ends = 0
  let forgot = false
  world.client.on('disconnect', () => {
    if (cuts[ends++]?.forgets !== true) return
    forgot = true
    broker.forget()
  })
  world.client.on('sessionlost', (event) => {
    told += event.rejected.length
  })
  world.client.connect().catch(() => undefined)
  const calls: Call[] = []
  for (const one of steps) {
    if (one.type === 'wait') await world.clock.advance(one.milliseconds)
    else if (one.type === 'clear') world.client.outbound.clear()
    else if (one.type === 'abort') calls.at(-1 - one.back)?.abort.abort()
    else {
      const call: Call = { text: String(calls.length), qos: one.qos, abort: new AbortController(), fulfilled: 0, rejected: [] }
      calls.push(call)
      world.client.publish('t', call.text, { qos: one.qos as 0 | 1 | 2, signal: call.abort.signal }).then(
        () => {
          call.fulfilled += 1
        },
        (error: MqttError) => call.rejected.push(error),
      )
    }
  }
  await world.clock.advance(1000)
  // A loss may go unnoticed: when CONNACK with Session Present 0 is lost, the next one has Session Present 1. No client can tell.
  const lost = forgot || world.seen('sessionlost').length > 0
  world.client.destroy()
  await world.settle()
  return { broker, calls, lost, told }
}

it('random runs', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(setting, fc.array(step, { maxLength: 40 }), async (chosen, steps) => {
      const { broker, calls, lost, told } = await run(chosen, steps)
      expect(broker.broken).toEqual([])
      const times = (text: string): number => broker.accepted.filter((one) => one.text === text).length
      for (const { text, qos, fulfilled, rejected } of calls) {
        expect(fulfilled + rejected.length, `${text}: settled once`).toBe(1)
        const [error] = rejected
        if (fulfilled === 1 && qos > 0) expect(times(text), `${text}: fulfilled and there`).toBeGreaterThanOrEqual(1)
        if (error?.outcome === 'not-sent') expect(times(text), `${text}: not sent and not there`).toBe(0)
        if (error?.code === 'ERR_SESSION_LOST') expect([lost, error.outcome]).toEqual([true, 'unknown'])
        if (qos === 2 && !lost) expect(times(text), `${text}: QoS 2 at most once`).toBeLessThanOrEqual(1)
        if (qos === 1 && !lost) expect(error?.code === undefined || error.code === 'ERR_ABORTED' || error.code === 'ERR_DROPPED').toBe(true)
      }
      expect(calls.filter(({ rejected }) => rejected[0]?.code === 'ERR_SESSION_LOST')).toHaveLength(told)
      // First arrivals at QoS 1 and 2 come in the order of the calls, as long as nothing was forgotten.
      const first = [...new Set(broker.accepted.filter(({ qos }) => qos > 0).map(({ text }) => Number(text)))]
      if (!lost) expect(first).toEqual([...first].sort((one, other) => one - other))
    }),
    { numRuns: 1000 },
  )
})
