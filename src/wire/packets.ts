/**
 * The shapes of the 15 MQTT control packets as plain objects: a union discriminated on `type`.
 *
 * Decoding makes every field present (`undefined` for what was absent); encoding accepts the looser
 * `…Input` shapes. Types only: no code here.
 */

/**
 * Bytes in an ArrayBuffer; spelled this way so that the type fits `Blob` and `fetch` in TypeScript
 * 5.2 to 7.
 */
export type Bytes = ReturnType<Uint8Array['slice']>

/** Quality of Service (section 4.3). */
export type QoS = 0 | 1 | 2

/** 5 is MQTT 5.0, 4 is MQTT 3.1.1, by the protocol level on the wire. */
export type ProtocolVersion = 4 | 5

/** User Property: names may repeat and order is kept, hence pairs (section 2.2.2.2). */
export type UserProperties = [name: string, value: string][]

/**
 * Every property of section 2.2.2.2; each packet type allows some of them. One-byte flags are the
 * numbers 0 and 1.
 */
export interface Properties {
  /** PUBLISH, will. 0: bytes. 1: UTF-8 text. */
  payloadFormatIndicator?: number | undefined
  /** PUBLISH, will. Seconds. */
  messageExpiryInterval?: number | undefined
  /** PUBLISH, will. Type of the payload. */
  contentType?: string | undefined
  /** PUBLISH, will. Topic for an answer. */
  responseTopic?: string | undefined
  /** PUBLISH, will. Data that the answer must carry. */
  correlationData?: Bytes | undefined
  /** PUBLISH, SUBSCRIBE. 1 to 268,435,455 each; at most one in SUBSCRIBE. */
  subscriptionIdentifiers?: number[] | undefined
  /** CONNECT, CONNACK, DISCONNECT. Seconds; 4,294,967,295 means never. */
  sessionExpiryInterval?: number | undefined
  /** CONNACK. The client identifier that the server assigned. */
  assignedClientIdentifier?: string | undefined
  /** CONNACK. Seconds, instead of the client's. */
  serverKeepAlive?: number | undefined
  /** CONNECT, CONNACK, AUTH. Name of the mechanism. */
  authenticationMethod?: string | undefined
  /** CONNECT, CONNACK, AUTH. Data of the mechanism. */
  authenticationData?: Bytes | undefined
  /**
   * CONNECT. 0: send reason strings and user properties only where the standard always allows them.
   */
  requestProblemInformation?: number | undefined
  /** Will. Seconds. */
  willDelayInterval?: number | undefined
  /** CONNECT. 1 asks for Response Information. */
  requestResponseInformation?: number | undefined
  /** CONNACK. Basis for response topics. */
  responseInformation?: string | undefined
  /** CONNACK, DISCONNECT. Another server to use. */
  serverReference?: string | undefined
  /** Every answer, DISCONNECT, AUTH. Text for diagnosis. */
  reasonString?: string | undefined
  /** CONNECT, CONNACK. Unacknowledged QoS 1 and 2 messages that the sender accepts, 1 to 65,535. */
  receiveMaximum?: number | undefined
  /** CONNECT, CONNACK. Highest topic alias that the sender accepts. */
  topicAliasMaximum?: number | undefined
  /** PUBLISH. Stands for a topic, 1 to 65,535. */
  topicAlias?: number | undefined
  /** CONNACK. 0 or 1; absent for 2. */
  maximumQoS?: number | undefined
  /** CONNACK. 0: retained messages are not supported. */
  retainAvailable?: number | undefined
  /** Every packet except PINGREQ and PINGRESP. Pairs of name and value. */
  userProperties?: UserProperties | undefined
  /** CONNECT, CONNACK. Largest packet in bytes that the sender accepts. */
  maximumPacketSize?: number | undefined
  /** CONNACK. 0: no wildcards in filters. */
  wildcardSubscriptionAvailable?: number | undefined
  /** CONNACK. 0: no Subscription Identifiers. */
  subscriptionIdentifierAvailable?: number | undefined
  /** CONNACK. 0: no shared subscriptions. */
  sharedSubscriptionAvailable?: number | undefined
}

/** The Will Message of a CONNECT (section 3.1.2.5). */
export interface Will {
  /** Topic Name. */
  topic: string
  /** The payload. */
  payload: Bytes
  /** Quality of Service. */
  qos: QoS
  /** Whether it is published as a retained message. */
  retain: boolean
  /** Properties of the will; empty on 3.1.1. */
  properties: Properties
}

/** CONNECT (section 3.1). */
export interface ConnectPacket {
  /** Kind of packet. */
  type: 'connect'
  /** `'MQTT'`. */
  protocolName: string
  /** 5, or 4 for 3.1.1. */
  protocolVersion: ProtocolVersion
  /** Clean Start; Clean Session on 3.1.1. */
  cleanStart: boolean
  /** Seconds; 0 is off. */
  keepAlive: number
  /** Client Identifier; empty asks the server for one. */
  clientId: string
  /** The message that the server publishes if the client disappears. */
  will: Will | undefined
  /** User Name. */
  username: string | undefined
  /** Password. */
  password: Bytes | undefined
  /** Properties; empty on 3.1.1. */
  properties: Properties
}

/** CONNACK (section 3.2). */
export interface ConnackPacket {
  /** Kind of packet. */
  type: 'connack'
  /** The server resumed a session. */
  sessionPresent: boolean
  /** Reason code; on 3.1.1 the raw return code. */
  reasonCode: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
}

/** PUBLISH (section 3.3). */
export interface PublishPacket {
  /** Kind of packet. */
  type: 'publish'
  /** DUP flag. */
  dup: boolean
  /** Quality of Service. */
  qos: QoS
  /** RETAIN flag. */
  retain: boolean
  /** Empty when a topic alias is used instead. */
  topic: string
  /** Packet Identifier; undefined at QoS 0. */
  packetId: number | undefined
  /** Properties; empty on 3.1.1. */
  properties: Properties
  /** The application message. */
  payload: Bytes
}

/** Common fields of the four acknowledgements of a PUBLISH. */
export interface Acknowledgement<T extends string> {
  /** Kind of packet. */
  type: T
  /** Packet Identifier, 1 to 65,535. */
  packetId: number
  /** Reason code (section 2.4). */
  reasonCode: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
}

/** PUBACK (section 3.4). */
export type PubackPacket = Acknowledgement<'puback'>
/** PUBREC (section 3.5). */
export type PubrecPacket = Acknowledgement<'pubrec'>
/** PUBREL (section 3.6). */
export type PubrelPacket = Acknowledgement<'pubrel'>
/** PUBCOMP (section 3.7). */
export type PubcompPacket = Acknowledgement<'pubcomp'>

/** One filter of a SUBSCRIBE with its Subscription Options (section 3.8.3.1). */
export interface SubscriptionRequest {
  /** Topic filter. */
  filter: string
  /** Highest QoS at which the server sends messages. */
  qos: QoS
  /** Exclude messages that this client publishes. */
  noLocal: boolean
  /** Keep the RETAIN flag of live messages. */
  retainAsPublished: boolean
  /** Retained messages: 0 always, 1 only for a new subscription, 2 never. */
  retainHandling: 0 | 1 | 2
}

/** SUBSCRIBE (section 3.8). */
export interface SubscribePacket {
  /** Kind of packet. */
  type: 'subscribe'
  /** Packet Identifier, 1 to 65,535. */
  packetId: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
  /** At least one. */
  subscriptions: SubscriptionRequest[]
}

/** SUBACK (section 3.9). */
export interface SubackPacket {
  /** Kind of packet. */
  type: 'suback'
  /** Packet Identifier, 1 to 65,535. */
  packetId: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
  /** One for each filter, in order. */
  reasonCodes: number[]
}

/** UNSUBSCRIBE (section 3.10). */
export interface UnsubscribePacket {
  /** Kind of packet. */
  type: 'unsubscribe'
  /** Packet Identifier, 1 to 65,535. */
  packetId: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
  /** At least one. */
  filters: string[]
}

/** UNSUBACK (section 3.11). */
export interface UnsubackPacket {
  /** Kind of packet. */
  type: 'unsuback'
  /** Packet Identifier, 1 to 65,535. */
  packetId: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
  /** One for each filter, in order; none on 3.1.1. */
  reasonCodes: number[]
}

/** PINGREQ (section 3.12). */
export interface PingreqPacket {
  /** Kind of packet. */
  type: 'pingreq'
}

/** PINGRESP (section 3.13). */
export interface PingrespPacket {
  /** Kind of packet. */
  type: 'pingresp'
}

/** DISCONNECT (section 3.14). */
export interface DisconnectPacket {
  /** Kind of packet. */
  type: 'disconnect'
  /** Reason code (section 2.4). */
  reasonCode: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
}

/** AUTH (section 3.15). */
export interface AuthPacket {
  /** Kind of packet. */
  type: 'auth'
  /** Reason code (section 2.4). */
  reasonCode: number
  /** Properties; empty on 3.1.1. */
  properties: Properties
}

/** What a server may send. */
export type ServerPacket =
  | ConnackPacket
  | PublishPacket
  | PubackPacket
  | PubrecPacket
  | PubrelPacket
  | PubcompPacket
  | SubackPacket
  | UnsubackPacket
  | PingrespPacket
  | DisconnectPacket
  | AuthPacket

/** What a client may send. */
export type ClientPacket =
  | ConnectPacket
  | PublishPacket
  | PubackPacket
  | PubrecPacket
  | PubrelPacket
  | PubcompPacket
  | SubscribePacket
  | UnsubscribePacket
  | PingreqPacket
  | DisconnectPacket
  | AuthPacket

/** Any control packet. */
export type Packet = ServerPacket | ClientPacket
