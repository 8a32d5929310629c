/**
 * The in-memory broker, as `mqwire/testing` exports it.
 */
export {
  type BrokerListener,
  type BrokerListeners,
  type BrokerPublish,
  type BrokerServeOptions,
  type BrokerTcpOptions,
  type BrokerWebSocketOptions,
  MemoryBroker,
} from './broker.js'
export type { BrokerClock } from './clock.js'
export type { AcceptedMessage, BrokerClient, BrokerEvents, HookError, HookName, Violation } from './events.js'
export type { Fault, FaultAction, FaultTable, FiredFault, RefusedPacket, ReplacedPacket } from './fault-table.js'
export type { BrokerMessage } from './message.js'
export type {
  BrokerAuthContext,
  BrokerAuthMethod,
  BrokerAuthStep,
  BrokerBounds,
  BrokerHooks,
  BrokerLimits,
  Interception,
  MemoryBrokerOptions,
  Refusal,
  Verdict,
} from './options.js'
export type { BrokerSession } from './session.js'
