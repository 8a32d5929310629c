/**
 * The in-memory broker, as `mqwire/testing` exports it.
 */
export { type BrokerPublish, MemoryBroker } from './broker.js'
export type { BrokerClock } from './clock.js'
export type { AcceptedMessage, BrokerClient, BrokerEvents, Violation } from './events.js'
export type { Fault, FaultAction, FaultTable, FiredFault, RefusedPacket, ReplacedPacket } from './fault-table.js'
export type { BrokerMessage } from './message.js'
export type {
  BrokerAuthContext,
  BrokerAuthMethod,
  BrokerAuthStep,
  BrokerBounds,
  BrokerHooks,
  BrokerLimits,
  MemoryBrokerOptions,
  Refusal,
  Verdict,
} from './options.js'
export type { BrokerSession } from './session.js'
