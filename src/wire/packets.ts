/**
 * The shapes of the 15 MQTT control packets as plain objects: a union discriminated on `type`.
 *
 * Decoding makes every field present (`undefined` for what was absent); encoding accepts the looser `…Input` shapes. Types only: no code here.
 */

/** Bytes in an ArrayBuffer of their own kind; spelled this way so that the type fits `Blob` and `fetch` in TypeScript 5.2 to 7. */
export type Bytes = ReturnType<Uint8Array['slice']>

/** Quality of Service (section 4.3). */
export type QoS = 0 | 1 | 2

/** 5 is MQTT 5.0, 4 is MQTT 3.1.1, by the protocol level on the wire. */
export type ProtocolVersion = 4 | 5

/** User Property: names may repeat and order is kept, hence pairs (section 2.2.2.2). */
export type UserProperties = [name: string, value: string][]

/** Every property of section 2.2.2.2 by name; one packet type allows some of them. One-byte flags are numbers 0 and 1. */
export interface Properties {
  payloadFormatIndicator?: number | undefined
  /** Seconds. */
  messageExpiryInterval?: number | undefined
  contentType?: string | undefined
  responseTopic?: string | undefined
  correlationData?: Bytes | undefined
  subscriptionIdentifiers?: number[] | undefined
  /** Seconds; 4,294,967,295 means never. */
  sessionExpiryInterval?: number | undefined
  assignedClientIdentifier?: string | undefined
  /** Seconds. */
  serverKeepAlive?: number | undefined
  authenticationMethod?: string | undefined
  authenticationData?: Bytes | undefined
  requestProblemInformation?: number | undefined
  /** Seconds. */
  willDelayInterval?: number | undefined
  requestResponseInformation?: number | undefined
  responseInformation?: string | undefined
  serverReference?: string | undefined
  reasonString?: string | undefined
  receiveMaximum?: number | undefined
  topicAliasMaximum?: number | undefined
  topicAlias?: number | undefined
  maximumQoS?: number | undefined
  retainAvailable?: number | undefined
  userProperties?: UserProperties | undefined
  maximumPacketSize?: number | undefined
  wildcardSubscriptionAvailable?: number | undefined
  subscriptionIdentifierAvailable?: number | undefined
  sharedSubscriptionAvailable?: number | undefined
}

/** The Will Message of a CONNECT (section 3.1.2.5). */
export interface Will {
  topic: string
  payload: Bytes
  qos: QoS
  retain: boolean
  properties: Properties
}

/** Section 3.1. */
export interface ConnectPacket {
  type: 'connect'
  protocolName: string
  protocolVersion: ProtocolVersion
  cleanStart: boolean
  /** Seconds; 0 is off. */
  keepAlive: number
  clientId: string
  will: Will | undefined
  username: string | undefined
  password: Bytes | undefined
  properties: Properties
}

/** Section 3.2. On 3.1.1 `reasonCode` holds the raw return code. */
export interface ConnackPacket {
  type: 'connack'
  sessionPresent: boolean
  reasonCode: number
  properties: Properties
}

/** Section 3.3. */
export interface PublishPacket {
  type: 'publish'
  dup: boolean
  qos: QoS
  retain: boolean
  /** Empty when a topic alias stands for it. */
  topic: string
  /** `undefined` at QoS 0. */
  packetId: number | undefined
  properties: Properties
  payload: Bytes
}

interface Acknowledgement<T extends string> {
  type: T
  packetId: number
  reasonCode: number
  properties: Properties
}

/** Section 3.4. */
export type PubackPacket = Acknowledgement<'puback'>
/** Section 3.5. */
export type PubrecPacket = Acknowledgement<'pubrec'>
/** Section 3.6. */
export type PubrelPacket = Acknowledgement<'pubrel'>
/** Section 3.7. */
export type PubcompPacket = Acknowledgement<'pubcomp'>

/** One filter of a SUBSCRIBE with its Subscription Options (section 3.8.3.1). */
export interface SubscriptionRequest {
  filter: string
  qos: QoS
  noLocal: boolean
  retainAsPublished: boolean
  retainHandling: 0 | 1 | 2
}

/** Section 3.8. */
export interface SubscribePacket {
  type: 'subscribe'
  packetId: number
  properties: Properties
  subscriptions: SubscriptionRequest[]
}

/** Section 3.9. */
export interface SubackPacket {
  type: 'suback'
  packetId: number
  properties: Properties
  reasonCodes: number[]
}

/** Section 3.10. */
export interface UnsubscribePacket {
  type: 'unsubscribe'
  packetId: number
  properties: Properties
  filters: string[]
}

/** Section 3.11. On 3.1.1 `reasonCodes` is empty. */
export interface UnsubackPacket {
  type: 'unsuback'
  packetId: number
  properties: Properties
  reasonCodes: number[]
}

/** Section 3.12. */
export interface PingreqPacket {
  type: 'pingreq'
}

/** Section 3.13. */
export interface PingrespPacket {
  type: 'pingresp'
}

/** Section 3.14. */
export interface DisconnectPacket {
  type: 'disconnect'
  reasonCode: number
  properties: Properties
}

/** Section 3.15. */
export interface AuthPacket {
  type: 'auth'
  reasonCode: number
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
