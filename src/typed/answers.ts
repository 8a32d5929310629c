/**
 * Answer streams: the protocol, and code that both sides share. `asking.ts` is the calling side,
 * `answering.ts` the serving side.
 *
 * A request for a stream has the User Property `stream` (how many answers may be sent without
 * further credit) and, like any request, Response Topic and Correlation Data. Each answer has the
 * Correlation Data and the User Property `seq`, counted from 0. The first answer has a Response
 * Topic that belongs to this stream alone, to which the caller sends `credit` (how many answers may
 * be sent in total) or `cancel`, as User Properties. The last answer has `end` and no value;
 * `error` (a code; the payload is a text) also ends the stream.
 *
 * At QoS 1 any message may arrive twice: an answer already counted is ignored, and credit that is
 * not higher than before has no effect.
 */

import type { ListenOptions, Message, Publisher, Subscriber } from '../client/options/index.js'

/** Options of `stream`. */
export interface StreamOptions {
  /** Milliseconds to wait for each answer, 1 to 2,147,483,647. Default 30,000. */
  readonly timeout?: number | undefined
  /** Ends the stream and its generator. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Most unread answers, 1 to 65,535; limits how many the responder sends ahead. Default 16. */
  readonly window?: number | undefined
}

/** The client of either side. */
export type StreamClient = Publisher<unknown> & Subscriber

/** Options with which both sides listen on their own topics. */
export const ownTopicOptions: ListenOptions = { qos: 1, retainHandling: 2, onExit: 'unsubscribe' }

/** 16 random bytes. */
export function random(): ReturnType<Uint8Array['slice']> {
  return crypto.getRandomValues(new Uint8Array(16))
}

/** Correlation Data as a key of a map. */
export function keyOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : String.fromCharCode(...bytes.subarray(0, 64))
}

/**
 * A response topic of our own: below the server's Response Information (section 3.2.2.3.15), if
 * there is any.
 */
export function ownTopic(client: object): string {
  const { negotiated } = client as {
    readonly negotiated?: { readonly responseInformation?: string }
  }
  const base = negotiated?.responseInformation || 'mqwire'
  return `${base.endsWith('/') ? base.slice(0, -1) : base}/${Array.from(random(), (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** The first User Property of this name. */
export function propertyOf(message: Message, name: string): string | undefined {
  return message.properties.userProperties?.find(([given]) => given === name)?.[1]
}
