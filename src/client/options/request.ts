/**
 * Requests and answers (section 4.10). Types only.
 */
import type { QoS } from '../../wire/packets.js'
import type { Message, Payload } from './message.js'
import type { PublishProperties } from './publish.js'
import type { Handling, ListenOptions } from './subscribe.js'

/** Options of `request`. */
export interface RequestOptions {
  /** Milliseconds for everything: connection, response subscription and answer. Default 30,000. */
  readonly timeout?: number | undefined
  /** QoS of the request. Default 0. */
  readonly qos?: QoS | undefined
  /**
   * Properties of the request. Response topic and correlation data are set automatically and may
   * not be given.
   */
  readonly properties?: Omit<PublishProperties, 'responseTopic' | 'correlationData'> | undefined
  /** Gives up the request. */
  readonly signal?: AbortSignal | undefined
}

/** An answer with its own properties. */
export interface Reply {
  /** The payload. Default empty. */
  readonly payload?: Payload | undefined
  /** Properties of the answer. The correlation data is that of the request and may not be given. */
  readonly properties?: Omit<PublishProperties, 'correlationData'> | undefined
  /** QoS of the answer. Default: that of the request, as it arrived. */
  readonly qos?: QoS | undefined
}

/** The result of a responder: undefined sends an empty answer, `null` sends none. */
export type Answer = Payload | Reply | null | undefined

/**
 * Answers one request. If it throws, `onError` decides; if the message is rejected, an error answer
 * is sent: the User Property `error` with the code `ERR_HANDLER_FAILED`. To send a code and a text
 * of its own to the requester, up to 256 characters each, a handler throws
 * `new MqttError('ERR_REMOTE', text, { reasonName: code })`.
 */
export type Responding =
  | ((message: Message) => Answer | Promise<Answer>)
  | ((message: Message) => void | Promise<void>)

/**
 * Options of `respond`: those of `listen` (with `order` `'none'` by default), and the allowed
 * response topics.
 */
export interface RespondOptions extends ListenOptions {
  /**
   * The allowed response topics: prefixes of whole levels (`'tenant-1/replies'` allows it and
   * everything below it), or a function. Default: all but those that begin with `$`. Topics with
   * wildcards are never allowed.
   */
  readonly allow?:
    | string
    | readonly string[]
    | ((responseTopic: string, message: Message) => boolean)
    | undefined
}

/** A running `respond`. */
export interface Responder extends Handling {
  /** Messages not answered because they had no response topic, or one that is not allowed. */
  readonly ignored: number
  /** Answers that could not be published; each causes a `drop` event. */
  readonly failed: number
}
