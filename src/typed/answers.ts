/**
 * Streams of answers: the convention, and what both ends of it share. `asking.ts` is the calling end, `answering.ts` the serving end.
 *
 * A request for a stream has the User Property `stream` with how many answers may come unasked, and, as any request, Response Topic and Correlation Data.
 * Each answer has the Correlation Data and the User Property `seq`, counted from 0; the first one a Response Topic of this stream alone, where the caller
 * sends credit (User Property `credit`: how many answers may come in all) or `cancel`. The last one has `end` and no value; `error` (a code; the payload is a
 * text) ends it too. At QoS 1 everything may come twice: an answer that was counted is passed over, and credit that is no more than before changes nothing.
 */

import type { ListenOptions, Message, Publisher, Subscriber } from '../client/options/index.js'

/** Options of `stream`. */
export interface StreamOptions {
  /** Milliseconds to wait for each answer, 1 to 2,147,483,647. Default 30,000. */
  readonly timeout?: number | undefined
  /** Ends the stream, and its generator. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Answers that may be under way, 1 to 65,535. Default 16. */
  readonly window?: number | undefined
}

/** The side that asks for streams, or gives them. */
export type StreamClient = Publisher<unknown> & Subscriber

/** How both ends listen on topics of their own. */
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
