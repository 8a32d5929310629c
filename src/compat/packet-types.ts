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
  /** Makes one of zeros. */
  alloc(size: number): Allocated
}

/** Quality of Service (section 4.3). */
export type QoS = 0 | 1 | 2

/** User properties by name; a name that comes more than once has a list. */
export type UserProperties = Record<string, string | string[]>

/** Properties of PUBLISH (section 3.3.2.3). MQTT 5.0 only. */
export interface IPublishProperties {
  /** True: UTF-8 text. */
  payloadFormatIndicator?: boolean
  /** Seconds that the message is worth delivering. */
  messageExpiryInterval?: number
  /** Of a message: none, as aliases are resolved. To publish with one is refused: the client gives them. */
  topicAlias?: number
  /** Where an answer is wanted. */
  responseTopic?: string
  /** Data that the answer must carry. */
  correlationData?: PayloadBytes
  /** User properties. */
  userProperties?: UserProperties
  /** Identifiers of the subscriptions that a message came for. */
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
  /** Packet Identifier. Messages that come in do not show theirs. */
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
  /** Properties, where there are any. */
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
  /** The broker goes on with a session. */
  sessionPresent: boolean
  /** Properties, where there are any. */
  properties?: IConnackProperties
}

/** Properties of CONNACK (section 3.2.2.3). */
export interface IConnackProperties {
  /** Seconds. */
  sessionExpiryInterval?: number
  /** QoS 1 and 2 messages that the broker takes at a time. */
  receiveMaximum?: number
  /** Highest QoS that it takes. */
  maximumQoS?: number
  /** Whether it takes retained messages. */
  retainAvailable?: boolean
  /** Bytes of a packet that it takes. */
  maximumPacketSize?: number
  /** The client identifier that it chose. */
  assignedClientIdentifier?: string
  /** Topic aliases that it takes. */
  topicAliasMaximum?: number
  /** Text for diagnosis. */
  reasonString?: string
  /** User properties. */
  userProperties?: UserProperties
  /** Whether it has wildcards. */
  wildcardSubscriptionAvailable?: boolean
  /** Whether it has Subscription Identifiers. */
  subscriptionIdentifiersAvailable?: boolean
  /** Whether it has shared subscriptions. */
  sharedSubscriptionAvailable?: boolean
  /** Seconds, in place of the client's. */
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
  /** Why (section 3.14.2.1). */
  reasonCode?: number
  /** Properties, where there are any. */
  properties?: IDisconnectProperties
}

/** Properties of DISCONNECT (section 3.14.2.2). */
export interface IDisconnectProperties {
  /** Seconds that the session lives on. */
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
