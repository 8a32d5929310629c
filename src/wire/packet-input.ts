/**
 * Packets as the encoder takes them: what was decoded, and looser forms. Types only.
 */
import type { ConnectInput, SubscribeInput, UnsubscribeInput } from './encode-client.js'
import type { PublishInput } from './encode-publish.js'
import type { ConnackInput, SubackInput } from './encode-server.js'
import type { Properties } from './packets.js'

/** An acknowledgement of a PUBLISH as it is given: absent is reason code 0. */
export interface AckInput {
  /** 1 to 65,535. */
  packetId: number
  /** One of this packet. MQTT 5.0 only. Default 0. */
  reasonCode?: number | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/** A DISCONNECT as it is given: absent is reason code 0. */
export interface DisconnectInput {
  /** One of this packet. MQTT 5.0 only. Default 0. */
  reasonCode?: number | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/** An AUTH as it is given: absent is reason code 0; the method is mandatory. */
export interface AuthInput {
  /** 0x00, 0x18 or 0x19. Default 0. */
  reasonCode?: number | undefined
  /** With the authentication method. */
  properties: Properties
}

/** What {@link encode} takes: what was decoded, and looser forms in which what has a natural default may be absent. */
export type PacketInput =
  | ({ type: 'connect' } & ConnectInput)
  | ({ type: 'connack' } & ConnackInput)
  | ({ type: 'publish' } & PublishInput)
  | ({ type: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp' } & AckInput)
  | ({ type: 'subscribe' } & SubscribeInput)
  | ({ type: 'suback' | 'unsuback' } & SubackInput)
  | ({ type: 'unsubscribe' } & UnsubscribeInput)
  | { type: 'pingreq' | 'pingresp' }
  | ({ type: 'disconnect' } & DisconnectInput)
  | ({ type: 'auth' } & AuthInput)
