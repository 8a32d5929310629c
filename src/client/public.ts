/**
 * What every entry of the client exports besides `connect` and `Client`: the error class and the public types.
 */
export { MqttError, type MqttErrorCode, type Outcome, printable } from '../errors.js'
export type { Listener, Sink, SocketOptions, TlsOptions, Transport } from '../transport/transport.js'
export type { Bytes, Packet, Properties, QoS, UserProperties } from '../wire/packets.js'
export type {
  AckMode,
  ClientOptions,
  ClientState,
  Credentials,
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
  OfflinePolicy,
  OutboundOptions,
  Overflow,
  Payload,
  PublishOptions,
  PublishProperties,
  Receipt,
  SubscribeOptions,
  Subscription,
  SubscriptionDefaults,
  UnsubscribeOptions,
  UnsubscribeResult,
  WillOptions,
  WillProperties,
} from './api.js'
export type { BaseClient, ConnectOptions, OutboundView } from './client.js'
export type { Unlisten } from './emitter.js'
export type { ClientEvents } from './events.js'
export type { Message, MessageProperties } from './message.js'
export type { Negotiated } from './session/limits.js'
