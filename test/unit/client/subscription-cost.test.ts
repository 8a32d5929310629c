/** What many SUBSCRIBE and UNSUBSCRIBE cost: four times as many, at most six times the work. */
import { describe, expect, it } from 'vitest'
import type { BrokerSubscription } from '../../../src/client/subscribing/broker-subscription.js'
import { Identifiers } from '../../../src/client/subscribing/pending-packets.js'
import type { SubscribingHost } from '../../../src/client/subscribing/ports.js'
import { Registry } from '../../../src/client/subscribing/registry.js'
import { unsubscribe } from '../../../src/client/subscribing/unsubscribing.js'
import { MqttError } from '../../../src/errors.js'
import { countWork } from './counted-work.js'

function expectLinear(run: (count: number) => void): void {
  expect(countWork(() => run(2000)) / countWork(() => run(500))).toBeLessThan(6)
}

/** A registry on a connection that swallows everything; gives how many packets left. */
function offhand(): { readonly registry: Registry; readonly sent: () => number } {
  let packets = 0
  const writer = {
    packetLimit: 1_000_000,
    writeAcks: () => 0,
    send: () => undefined,
    queueFlush: () => undefined,
  }
  const sendWindow = { hasIdentifier: true, request: () => ++packets }
  const host = {
    platform: { random: () => 0 },
    options: { maxFiltersPerSubscribe: 1 },
    session: { sendWindow, negotiated: {} },
    links: { connection: { writer } },
    states: { stopping: false },
    router: { handleForgotten: () => undefined },
    handleTurnEnd: () => undefined,
  }
  return { registry: new Registry(host as unknown as SubscribingHost), sent: () => packets }
}

describe('cost', () => {
  it.each([true, false])('one call, a packet for each filter; answered: %s', (holds) => {
    expectLinear((count) => {
      const { registry, sent } = offhand()
      const filters = Array.from({ length: count }, (_, index) => `f/${index}`)
      unsubscribe(registry, filters)
      registry.sender.flush()
      expect(sent()).toBe(count)
      if (holds)
        for (let packetId = 1; packetId <= count; packetId++)
          registry.handleAnswer({ type: 'unsuback', packetId, reasonCodes: [0], properties: {} })
      else {
        registry.sender.handleLost(new MqttError('ERR_CONNECTION_LOST'), undefined)
        registry.sender.flush()
        expect(sent()).toBe(2 * count)
      }
    })
  })

  it('automatic identifiers after many of the application', () => {
    expectLinear((count) => {
      const identifiers = new Identifiers(0)
      const entries: BrokerSubscription[] = []
      for (let identifier = 1; identifier <= count; identifier++) {
        entries.push({ identifier } as BrokerSubscription)
        identifiers.take(identifier, entries)
      }
      const given = new Set(Array.from({ length: count / 10 }, () => identifiers.fresh(entries)))
      expect(given.size).toBe(count / 10)
      expect(Math.min(...given)).toBe(count + 1)
    })
  })
})

it('an identifier that the application chose is not given out while a subscription has it, and may be once none has', () => {
  const entry = { identifier: 1 } as BrokerSubscription
  const identifiers = new Identifiers(0)
  for (let identifier = 2; identifier <= 1000; identifier++) identifiers.take(identifier, [entry])
  identifiers.take(1, [entry])
  const first = identifiers.fresh([entry])
  expect(first).toBeGreaterThan(1)
  expect(first).toBeLessThan(1000)
})
