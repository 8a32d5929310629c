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
export type { BrokerSession } from './common/broker-session.js'
export type { BrokerClock } from './common/clock.js'
export type {
  AcceptedMessage,
  BrokerClient,
  BrokerEvents,
  HookError,
  HookName,
  Violation,
} from './common/events.js'
export type {
  Fault,
  FaultAction,
  FaultTable,
  FiredFault,
  RefusedPacket,
  ReplacedPacket,
} from './common/fault-table.js'
export type { BrokerMessage } from './common/message.js'
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
} from './common/options.js'
