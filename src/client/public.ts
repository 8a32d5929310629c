/**
 * What every entry of the client exports besides `connect` and `Client`: the error class and the public types.
 */
export { MqttError, type MqttErrorCode, type MqttErrorDetails, type Outcome, printable } from '../errors.js'
export type { Accept, Dial, DialOptions, Listener, Sink, SocketOptions, Target, TlsOptions, Transport } from '../transport/transport.js'
export type { Bytes, Packet, Properties, QoS, UserProperties } from '../wire/packets.js'
export type {
  AckMode,
  AuthContext,
  AuthData,
  AuthMechanism,
  ClientOptions,
  ClientState,
  Credentials,
  CredentialsConnect,
  CredentialsContext,
  CustomTransport,
  DisconnectOptions,
  Endpoint,
  EndpointOptions,
  FilterRequest,
  Filters,
  Grant,
  Handler,
  HandlerFailure,
  Handling,
  ListenOptions,
  Logger,
  NextOptions,
  OfflineOptions,
  OfflinePolicy,
  OutboundOptions,
  OutboundOverflow,
  Overflow,
  Payload,
  PublishOptions,
  PublishProperties,
  Receipt,
  ReconnectNow,
  ReconnectOptions,
  SubscribeOptions,
  SubscribeProperties,
  Subscription,
  SubscriptionDefaults,
  UnsubscribeOptions,
  UnsubscribeProperties,
  UnsubscribeResult,
  VirtualPlatform,
  WillOptions,
  WillProperties,
} from './api.js'
export { type Backoff, constant, type ExponentialOptions, exponential } from './backoff.js'
export type { BaseClient, ConnectOptions, OutboundView } from './client.js'
export type { ListenOptions as ListenerOptions, Unlisten } from './common/emitter.js'
export type { Message, MessageProperties } from './delivery/message.js'
export type { DecisionContext } from './dialling/supervisor.js'
export type { Verdict } from './dialling/verdicts.js'
export type { ClientEvents, ClientListeners, InFlight, RejectedInFlight } from './events.js'
export type { RequestOptions } from './requesting/request.js'
export type { Answer, Reply, Responder, Responding, RespondOptions } from './requesting/respond.js'
export type { Negotiated } from './session/limits.js'
export type { Stats } from './statistics.js'
