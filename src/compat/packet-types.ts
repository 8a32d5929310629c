/**
 * Packets as MQTT.js shows them. Types only.
 */
/** Type of payloads: Buffer if Node's types are available, otherwise Uint8Array. */
export type PayloadBytes =
  typeof globalThis extends GlobalBuffer<infer Allocated> ? Allocated : Uint8Array

/** A global scope that has Node's Buffer. */
export interface GlobalBuffer<Allocated> {
  /** The class. */
  readonly Buffer: BufferMaker<Allocated>
}

/** Creates buffers. */
export interface BufferMaker<Allocated> {
  /** Creates a buffer of zeros. */
  alloc(size: number): Allocated
}

/** Quality of Service (section 4.3). */
export type QoS = 0 | 1 | 2

/** User properties by name; a name that occurs more than once has a list. */
export type UserProperties = Record<string, string | string[]>

/** Properties of PUBLISH (section 3.3.2.3). MQTT 5.0 only. */
export interface IPublishProperties {
  /** True: UTF-8 text. */
  payloadFormatIndicator?: boolean
  /** Seconds after which the message expires. */
  messageExpiryInterval?: number
  /**
   * Absent in received messages, because aliases are resolved. Refused when publishing: the client
   * assigns aliases.
   */
  topicAlias?: number
  /** Topic for the answer. */
  responseTopic?: string
  /** Data that the answer must carry. */
  correlationData?: PayloadBytes
  /** User properties. */
  userProperties?: UserProperties
  /** Identifiers of the subscriptions that a message matched. */
  subscriptionIdentifier?: number | number[]
  /** Type of the payload. */
  contentType?: string
}

/** Names of packets. */
export type PacketCmd =
  | 'auth'
  | 'connack'
  | 'connect'
  | 'disconnect'
  | 'pingreq'
  | 'pingresp'
  | 'puback'
  | 'pubcomp'
  | 'publish'
  | 'pubrel'
  | 'pubrec'
  | 'suback'
  | 'subscribe'
  | 'unsuback'
  | 'unsubscribe'

/** Common fields of all packets. */
export interface IPacket {
  /** Kind of packet. */
  cmd: PacketCmd
  /** Packet Identifier. Absent in received messages. */
  messageId?: number
}

/** PUBLISH. */
export interface IPublishPacket extends IPacket {
  /** Kind of packet. */
  cmd: 'publish'
  /** Quality of Service. */
  qos: QoS
  /** DUP flag. */
  dup: boolean
  /** RETAIN flag. */
  retain: boolean
  /** Topic Name. */
  topic: string
  /** The message. */
  payload: string | PayloadBytes
  /** Properties, if there are any. */
  properties?: IPublishProperties
}

/** CONNACK. */
export interface IConnackPacket extends IPacket {
  /** Kind of packet. */
  cmd: 'connack'
  /** On 3.1.1. */
  returnCode?: number
  /** On 5.0. */
  reasonCode?: number
  /** True if the broker resumed a session. */
  sessionPresent: boolean
  /** Properties, if there are any. */
  properties?: IConnackProperties
}

/** Properties of CONNACK (section 3.2.2.3). */
export interface IConnackProperties {
  /** Seconds. */
  sessionExpiryInterval?: number
  /** Unacknowledged QoS 1 and 2 messages that the broker accepts. */
  receiveMaximum?: number
  /** Highest QoS that it accepts. */
  maximumQoS?: number
  /** Whether it accepts retained messages. */
  retainAvailable?: boolean
  /** Largest packet that it accepts, in bytes. */
  maximumPacketSize?: number
  /** The client identifier that the broker assigned. */
  assignedClientIdentifier?: string
  /** Topic aliases that it accepts. */
  topicAliasMaximum?: number
  /** Text for diagnosis. */
  reasonString?: string
  /** User properties. */
  userProperties?: UserProperties
  /** Whether it supports wildcards. */
  wildcardSubscriptionAvailable?: boolean
  /** Whether it supports Subscription Identifiers. */
  subscriptionIdentifiersAvailable?: boolean
  /** Whether it supports shared subscriptions. */
  sharedSubscriptionAvailable?: boolean
  /** Keep-alive in seconds, in place of the client's. */
  serverKeepAlive?: number
  /** Basis for response topics. */
  responseInformation?: string
  /** Another server to use. */
  serverReference?: string
}

/** SUBACK. */
export interface ISubackPacket extends IPacket {
  /** Kind of packet. */
  cmd: 'suback'
  /** A reason code for each filter. */
  granted: number[]
}

/** UNSUBACK. */
export interface IUnsubackPacket extends IPacket {
  /** Kind of packet. */
  cmd: 'unsuback'
  /** A reason code for each filter. */
  granted: number[]
}

/** DISCONNECT. */
export interface IDisconnectPacket extends IPacket {
  /** Kind of packet. */
  cmd: 'disconnect'
  /** Reason code (section 3.14.2.1). */
  reasonCode?: number
  /** Properties, if there are any. */
  properties?: IDisconnectProperties
}

/** Properties of DISCONNECT (section 3.14.2.2). */
export interface IDisconnectProperties {
  /** Seconds until the session expires. */
  sessionExpiryInterval?: number
  /** Text for diagnosis. */
  reasonString?: string
  /** User properties. */
  userProperties?: UserProperties
  /** Another server to use. */
  serverReference?: string
}

/** Any other packet, as `packetsend` and `packetreceive` show it. */
export interface IOtherPacket extends IPacket {
  /** Kind of packet. */
  cmd: Exclude<PacketCmd, 'publish' | 'connack' | 'suback' | 'unsuback' | 'disconnect'>
  /** Reason code of acknowledgements. */
  reasonCode?: number
}

/** Any packet. */
export type Packet =
  | IPublishPacket
  | IConnackPacket
  | ISubackPacket
  | IUnsubackPacket
  | IDisconnectPacket
  | IOtherPacket
