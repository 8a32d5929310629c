/**
 * Requests and answers (section 4.10). Types only.
 */
import type { QoS } from '../../wire/packets.js'
import type { Message, Payload } from './message.js'
import type { PublishProperties } from './publish.js'
import type { Handling, ListenOptions } from './subscribe.js'

/** Options of `request`. */
export interface RequestOptions {
  /** Milliseconds for everything: the wait for a connection, the response subscription, the answer. Default 30,000. */
  readonly timeout?: number | undefined
  /** Of the request. Default 0. */
  readonly qos?: QoS | undefined
  /** Of the request. Response topic and correlation data are set here and may not be given. */
  readonly properties?: Omit<PublishProperties, 'responseTopic' | 'correlationData'> | undefined
  /** Gives the request up. */
  readonly signal?: AbortSignal | undefined
}

/** An answer with properties of its own. */
export interface Reply {
  /** Default empty. */
  readonly payload?: Payload | undefined
  /** The correlation data is the request's and may not be given. */
  readonly properties?: Omit<PublishProperties, 'correlationData'> | undefined
  /** Default: that of the request, as it arrived. */
  readonly qos?: QoS | undefined
}

/** What is answered: undefined is an empty answer, `null` is no answer. */
export type Answer = Payload | Reply | null | undefined

/**
 * Answers one request. A throw goes the way of `onError`; where that rejects the message, an error is answered: the User Property `error` with a code,
 * `ERR_HANDLER_FAILED`. `throw new MqttError('ERR_REMOTE', text, { reasonName: code })` sends code and text to the caller, up to 256 characters each.
 */
export type Responding =
  | ((message: Message) => Answer | Promise<Answer>)
  | ((message: Message) => void | Promise<void>)

/** Options of `respond`: those of `listen` (`order` is `'none'` unless it is given), and where answers may go. */
export interface RespondOptions extends ListenOptions {
  /**
   * Which response topics are answered: prefixes of whole levels (`'tenant-1/replies'` allows it and everything below it), or a function.
   * Default: all but those that begin with `$`. Topics with wildcards never are.
   */
  readonly allow?:
    | string
    | readonly string[]
    | ((responseTopic: string, message: Message) => boolean)
    | undefined
}

/** A running `respond`. */
export interface Responder extends Handling {
  /** Messages that were not answered because they had no response topic, or none that is allowed. */
  readonly ignored: number
  /** Answers that could not be published; each shows as a `drop` event. */
  readonly failed: number
}
