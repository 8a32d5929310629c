/**
 * Arguments of callbacks and listeners, as in MQTT.js. Types only.
 */
import type {
  IConnackPacket,
  IDisconnectPacket,
  IPublishPacket,
  ISubackPacket,
  Packet,
  PayloadBytes,
} from './packet-types.js'
import type { ISubscriptionGrant } from './types.js'

/** Called with CONNACK. */
export type OnConnectCallback = (packet: IConnackPacket) => void
/** Called with the broker's DISCONNECT. */
export type OnDisconnectCallback = (packet: IDisconnectPacket) => void
/** Called with a message. */
export type OnMessageCallback = (
  topic: string,
  payload: PayloadBytes,
  packet: IPublishPacket,
) => void
/** Called with a packet. */
export type OnPacketCallback = (packet: Packet) => void
/** Called when a connection or an attempt has ended. */
export type OnCloseCallback = () => void
/** Called with an error. */
export type OnErrorCallback = (error: Error & { code?: number | string }) => void
/** Called with the grant, or with the error in its place. */
export type ClientSubscribeCallback = (
  err: Error | null,
  granted?: ISubscriptionGrant[],
  packet?: ISubackPacket,
) => void
/** Called when a call has ended; of a publish at QoS 1 and 2 with its packet. */
export type PacketCallback = (error?: Error | null, packet?: Packet) => unknown
/** Called when it is done. */
export type DoneCallback = (error?: Error) => void
/** Called when it is done. */
export type CloseCallback = (error?: Error) => void
/** Called when it happened. */
export type VoidCallback = () => void

/** Events, with the arguments of their listeners. */
export interface MqttClientEventCallbacks {
  /** A connection is up. */
  connect: OnConnectCallback
  /** A message came in. */
  message: OnMessageCallback
  /** A packet was written. */
  packetsend: OnPacketCallback
  /** A packet came in. */
  packetreceive: OnPacketCallback
  /** The broker said goodbye. */
  disconnect: OnDisconnectCallback
  /** An attempt failed, or a connection broke. No listener is needed. */
  error: OnErrorCallback
  /** A connection, or an attempt, is over. */
  close: OnCloseCallback
  /** The client has ended. */
  end: VoidCallback
  /** An attempt is made to come back. */
  reconnect: VoidCallback
  /** The connection is lost, and reconnecting starts. */
  offline: VoidCallback
  /** The client is ending and nothing is in flight any more. */
  outgoingEmpty: VoidCallback
}
