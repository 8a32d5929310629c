/** The server forgets everything with a connection that is cut anywhere: each message is accounted for, and its fate is what the caller was told. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { MqttError } from '../../../src/errors.js'
import { type Cut, cutting } from './cutting.js'
import { SmallBroker } from './small-broker.js'

const texts = Array.from({ length: 60 }, (_, index) => String(index))
const levelOf = (text: string): 1 | 2 => (Number(text) % 2 === 0 ? 1 : 2)

interface Run {
  readonly broker: SmallBroker
  readonly fulfilled: readonly string[]
  readonly rejected: ReadonlyMap<string, MqttError>
  /** Told by `sessionlost` events. */
  readonly told: { readonly republished: number; readonly rejected: number; readonly events: number }
}

/** Publishes all texts; after the first connection the server has forgotten the session. */
async function run(cut: Cut, options: ClientOptions = {}): Promise<Run> {
  const broker = new SmallBroker({ receiveMaximum: 20 })
  const fulfilled: string[] = []
  const rejected = new Map<string, MqttError>()
  const told = { republished: 0, rejected: 0, events: 0 }
  const world = cutting(broker, [cut], { firstConnect: 'wait', ...options })
  world.client.on('disconnect', () => broker.forget())
  world.client.on('sessionlost', (event) => {
    told.events += 1
    told.republished += event.republished.length
    told.rejected += event.rejected.length
  })
  world.client.connect().catch(() => undefined)
  for (const text of texts) {
    world.client.publish('t', text, { qos: levelOf(text) }).then(
      () => fulfilled.push(text),
      (error: MqttError) => rejected.set(text, error),
    )
  }
  await world.clock.advance(100)
  world.client.destroy()
  await world.settle()
  return { broker, fulfilled, rejected, told }
}

const times = ({ broker }: Run, text: string): number => broker.accepted.filter((one) => one.text === text).length

describe('restart and lose the session', () => {
  it.each(['forward', 'backward'] as const)(
    'a cut anywhere, %s: every call settles once, with the truth',
    { timeout: 120_000 },
    async (direction) => {
      for (let at = 0; at <= (direction === 'forward' ? 700 : 380); at += 5) {
        const result = await run({ [direction]: at })
        const { broker, fulfilled, rejected, told } = result
        const where = `byte ${at}`
        expect(fulfilled.length + rejected.size, where).toBe(texts.length)
        // QoS 1 is published anew: nothing is lost.
        for (const text of texts) if (levelOf(text) === 1) expect(times(result, text), `${where}: ${text}`).toBeGreaterThanOrEqual(1)
        for (const text of fulfilled) expect(times(result, text), `${where}: ${text}`).toBeGreaterThanOrEqual(1)
        // QoS 2 that was sent may have arrived, and is not sent again.
        for (const text of texts) if (levelOf(text) === 2) expect(times(result, text), `${where}: ${text}`).toBeLessThanOrEqual(1)
        for (const [text, error] of rejected) {
          expect([levelOf(text), error.code, error.outcome], `${where}: ${text}`).toEqual([2, 'ERR_SESSION_LOST', 'unknown'])
        }
        expect(told.rejected, where).toBe(rejected.size)
        expect(told.events, where).toBeLessThanOrEqual(1)
        expect(broker.broken, where).toEqual([])
      }
    },
  )

  it('with `onSessionLost: "republish"` everything arrives, at the risk that the design names', { timeout: 60_000 }, async () => {
    for (let at = 0; at <= 700; at += 11) {
      const result = await run({ forward: at }, { outbound: { onSessionLost: 'republish' } })
      expect(result.fulfilled.length, `byte ${at}`).toBe(texts.length)
      for (const text of texts) expect(times(result, text), `byte ${at}: ${text}`).toBeGreaterThanOrEqual(1)
      expect(result.told.rejected).toBe(0)
    }
  })
})
