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
/** Called when a call has ended; for a publish at QoS 1 and 2, with its packet. */
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
  /** A message was received. */
  message: OnMessageCallback
  /** A packet was written. */
  packetsend: OnPacketCallback
  /** A packet was received. */
  packetreceive: OnPacketCallback
  /** The broker sent DISCONNECT. */
  disconnect: OnDisconnectCallback
  /** An attempt failed, or a connection broke. No listener is needed. */
  error: OnErrorCallback
  /** A connection or an attempt has ended. */
  close: OnCloseCallback
  /** The client has ended. */
  end: VoidCallback
  /** An attempt to reconnect begins. */
  reconnect: VoidCallback
  /** The connection is lost, and reconnecting starts. */
  offline: VoidCallback
  /** The client is ending and nothing is in flight any more. */
  outgoingEmpty: VoidCallback
}
