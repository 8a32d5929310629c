/**
 * The broker of the durable world: that of `mqwire/testing`, with the habits of the run, refusals of single messages, and low identifiers.
 */
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import type { WorldClock } from '../clock.js'
import { interceptionOf } from '../habits.js'
import { payloadName } from '../reader.js'
import { LowIdentifiers } from './low-identifiers.js'
import type { Op, Refused, Setup } from './schedule.js'

/** What the broker needs. */
export interface BrokerMeans {
  readonly clock: WorldClock
  readonly setup: Setup
  readonly ops: readonly Op[]
  /** Cuts the link of the device. */
  readonly reset: () => void
  /** A hook of the broker threw. */
  readonly failed: (error: unknown) => void
}

/** The broker, and what stands between it and the wire. */
export interface DurableBroker {
  readonly broker: MemoryBroker
  readonly identifiers: LowIdentifiers
}

/** Makes the broker of one run. */
export function makeBroker({ clock, setup, ops, reset, failed }: BrokerMeans): DurableBroker {
  const identifiers = new LowIdentifiers()
  const habit = interceptionOf(setup.habit, { reset })
  const broker = new MemoryBroker({
    clock,
    receiveMaximum: setup.brokerReceiveMaximum,
    intercept: (direction, packet) => {
      const given = habit(direction, packet)
      return given === false || !setup.lowIdentifiers ? given : (identifiers.intercept(direction, given ?? packet) ?? given)
    },
    authorizePublish: refusing(ops, setup.version),
  })
  broker.on('hookerror', ({ error }) => failed(error))
  return { broker, identifiers }
}

// 3.1.1 has no way to say no.
function refusing(ops: readonly Op[], version: 4 | 5): (client: unknown, packet: { readonly payload: Uint8Array }) => number | true {
  const refused = new Map<string, Refused>()
  for (const op of ops) if ('refused' in op && op.refused !== undefined) refused.set(`${op.do === 'publish' ? 'p' : 'e'}${op.n}`, op.refused)
  const copies = new Map<string, number>()
  return (_client, { payload }) => {
    const name = payloadName(payload)
    const times = copies.get(name) ?? 0
    copies.set(name, times + 1)
    const refusal = refused.get(name)
    return refusal === undefined || version === 4 || times >= refusal.times ? true : refusal.code
  }
}
