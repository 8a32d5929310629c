/**
 * The public types of MQTT.js that `mqwire/compat` supports: options of calls. Types only.
 *
 * Names have the meaning that they have in MQTT.js. Unsupported options have no field, so that the
 * compiler reports them.
 */
import type { IPublishProperties, QoS, UserProperties } from './packet-types.js'

/**
 * Schemes, with `+unix` for a Unix domain socket. Those of mini programs are absent, because they
 * are refused.
 */
export type MqttProtocol = BaseMqttProtocol | MqttProtocolWithUnix
/** Schemes. */
export type BaseMqttProtocol = 'wss' | 'ws' | 'mqtt' | 'mqtts' | 'tcp' | 'ssl' | 'tls' | 'unix'
/** Schemes for a Unix domain socket. */
export type MqttProtocolWithUnix = `${BaseMqttProtocol}+unix`

/** Settings of TLS. Node only. */
export interface ISecureClientOptions {
  /** Client key, PEM. With `cert` it turns mqtt into mqtts, and ws into wss. */
  key?: string | Uint8Array | readonly (string | Uint8Array)[]
  /** Client certificate, PEM. */
  cert?: string | Uint8Array | readonly (string | Uint8Array)[]
  /** Trusted certificate authorities, PEM. Default: the platform's. */
  ca?: string | Uint8Array | readonly (string | Uint8Array)[]
  /** Password of `key`. */
  passphrase?: string
  /** False turns verification off, and each connect prints a warning. Default true. */
  rejectUnauthorized?: boolean
  /** ALPN protocols, preferred first. */
  ALPNProtocols?: readonly (string | Uint8Array)[]
  /** Name for SNI and for the certificate check. Default: the host. */
  servername?: string
}

/** Options of the WebSocket handshake. Node only. */
export interface IWebSocketOptions extends ISecureClientOptions {
  /** HTTP headers. */
  headers?: Record<string, string>
  /** Sub-protocols. Default `['mqtt']`. */
  protocols?: readonly string[]
  /** Local address to bind. */
  localAddress?: string
  /** IP version to dial. */
  family?: 4 | 6
}

/** A member of `servers`. */
export interface IServer {
  /** Name or address. */
  host: string
  /** Port. Default: that of the scheme. */
  port?: number
  /** Scheme. Default: that of the options. */
  protocol?: MqttProtocol
}

/** The will (section 3.1.2.5). */
export interface IWill {
  /** Topic Name. */
  topic: string
  /** The payload. */
  payload: string | Uint8Array
  /** Quality of Service. Default 0. */
  qos?: QoS
  /** Whether it is retained. Default false. */
  retain?: boolean
  /** Properties of the will. MQTT 5.0 only. */
  properties?: IWillProperties
}

/** Properties of the will (section 3.1.3.2). */
export interface IWillProperties {
  /** Seconds until it is published. */
  willDelayInterval?: number
  /** True: UTF-8 text. */
  payloadFormatIndicator?: boolean
  /** Seconds after which it expires. */
  messageExpiryInterval?: number
  /** Type of the payload. */
  contentType?: string
  /** Where an answer is wanted. */
  responseTopic?: string
  /** Data that the answer must carry. */
  correlationData?: Uint8Array
  /** User properties. */
  userProperties?: UserProperties
}

/** Properties of CONNECT (section 3.1.2.11). MQTT 5.0 only. */
export interface IConnectProperties {
  /** Seconds that the session outlives the connection. Default 300. */
  sessionExpiryInterval?: number
  /** QoS 1 and 2 messages that the broker may have unacknowledged. Default 65,535. */
  receiveMaximum?: number
  /** Largest packet that the client accepts, in bytes. Default 16 MiB. */
  maximumPacketSize?: number
  /** Topic aliases that the broker may use. Default none. */
  topicAliasMaximum?: number
  /** Ask for Response Information. Default false. */
  requestResponseInformation?: boolean
  /** Ask for reason strings. Default true. */
  requestProblemInformation?: boolean
  /** User properties. */
  userProperties?: UserProperties
}

/**
 * Options of `connect`. Options of MQTT.js that are not listed are refused
 * (`ERR_UNSUPPORTED_OPTION`); options that MQTT.js ignores are ignored and logged.
 */
export interface IClientOptions extends ISecureClientOptions {
  /** Scheme. Default: that of the URL. */
  protocol?: MqttProtocol
  /** Scheme if there is no other. */
  defaultProtocol?: MqttProtocol
  /** Name or address. Default: that of the URL. */
  host?: string
  /** As `host`, which it overrides. */
  hostname?: string
  /** Port. Default: that of the URL, or of the scheme. */
  port?: number
  /** Path of a WebSocket, or of a Unix domain socket. Default: that of the URL. */
  path?: string
  /** Query of the URL; `clientId` in it is the client identifier. */
  query?: Record<string, string>
  /** `user:password`; overrides `username` and `password`. */
  auth?: string
  /** True if the path is that of a Unix domain socket. */
  unixSocket?: boolean
  /** Endpoints, tried in order, in place of `host` and `port`. */
  servers?: readonly IServer[]
  /** User Name. */
  username?: string
  /** Password. */
  password?: string | Uint8Array
  /** Client Identifier. Default: `mqttjs_` and eight hexadecimal digits. */
  clientId?: string
  /**
   * False: the session is kept and resumed. Default true; on 5.0, a reconnect resumes the session
   * all the same.
   */
  clean?: boolean
  /** Keep-alive in seconds; 0 turns it off. Default 60. */
  keepalive?: number
  /** 4 is 3.1.1, 5 is 5.0; 3 is refused. Default 4. */
  protocolVersion?: 3 | 4 | 5
  /** Only `'MQTT'`; `'MQIsdp'` is refused. */
  protocolId?: 'MQTT' | 'MQIsdp'
  /** Milliseconds from dialling to CONNACK. Default 30,000. */
  connectTimeout?: number
  /**
   * Milliseconds between attempts; 0: no further attempt. Default: 1 to 30 s, growing, with jitter.
   */
  reconnectPeriod?: number
  /** True: a refused CONNECT is tried again, false: never. Default: its reason code decides. */
  reconnectOnConnackError?: boolean
  /** False: subscriptions end with the connection if `clean` is true. Default true. */
  resubscribe?: boolean
  /** Filters in one SUBSCRIBE. Default: no limit. */
  subscribeBatchSize?: number
  /** False: QoS 0 messages are not queued without a connection. Default true. */
  queueQoSZero?: boolean
  /** True: `client.connect()` dials. Default false. */
  manualConnect?: boolean
  /** The will. */
  will?: IWill
  /** Properties of CONNECT. */
  properties?: IConnectProperties
  /** Called with lines of the log. */
  log?: (...line: never[]) => void
  /** No effect: at QoS 0, aliases are used if the broker accepts them. */
  autoUseTopicAlias?: boolean
  /** The same. */
  autoAssignTopicAlias?: boolean
  /** Only true. */
  reschedulePings?: boolean
  /** Only `'auto'`. */
  timerVariant?: 'auto'
  /** Only true. */
  writeCache?: boolean
  /** Options of the WebSocket handshake. */
  wsOptions?: IWebSocketOptions
  /** Called before each attempt over a WebSocket; returns the URL to dial. */
  transformWsUrl?: (url: string, options: IClientOptions, client: never) => string
}

/** Options of `publish`. */
export interface IClientPublishOptions {
  /** Quality of Service. Default 0. */
  qos?: QoS
  /** Whether it is retained. Default false. */
  retain?: boolean
  /** Only false: the client sets DUP on resent messages. */
  dup?: boolean
  /** Properties. MQTT 5.0 only. */
  properties?: IPublishProperties
  /** Called at QoS 1 and 2 when the message is in the memory of the client: immediately. */
  cbStorePut?: () => void
}

/** Properties of SUBSCRIBE. MQTT 5.0 only. */
export interface IClientSubscribeProperties {
  /** Properties of the packet. */
  properties?: ISubscribeProperties
}

/** Properties of SUBSCRIBE (section 3.8.2.1). */
export interface ISubscribeProperties {
  /**
   * Identifier that each matching message carries. Default: one chosen by the client, if the broker
   * supports them.
   */
  subscriptionIdentifier?: number
  /** User properties. */
  userProperties?: UserProperties
}

/** Options of `subscribe`. */
export interface IClientSubscribeOptions extends IClientSubscribeProperties {
  /** Highest QoS. Default 0. */
  qos: QoS
  /** No Local. MQTT 5.0 only. */
  nl?: boolean
  /** Retain As Published. MQTT 5.0 only. */
  rap?: boolean
  /** Retain Handling. MQTT 5.0 only. */
  rh?: number
}

/** A filter with its options. */
export interface ISubscriptionRequest extends IClientSubscribeOptions {
  /** Topic filter. */
  topic: string
}

/** A filter and its grant. */
export interface ISubscriptionGrant extends Omit<ISubscriptionRequest, 'qos' | 'properties'> {
  /** The granted QoS; 128 or more: refused. */
  qos: QoS | 128
}

/**
 * Filters with their options; `resubscribe: true` requests filters again that are already
 * subscribed.
 */
export type ISubscriptionMap = {
  [topic: string]: IClientSubscribeOptions
} & ISubscriptionMapOptions

/** Options for all filters of a map. */
export interface ISubscriptionMapOptions {
  /** Request filters again that are already subscribed. Default false. */
  resubscribe?: boolean
}

/** Filters in each form. */
export type SubscribeTopics = string | readonly string[] | ISubscriptionMap

/** Options of `unsubscribe`. */
export interface IClientUnsubscribeProperties {
  /** Properties of UNSUBSCRIBE. MQTT 5.0 only. */
  properties?: {
    /** User properties. */
    userProperties?: UserProperties
  }
}
