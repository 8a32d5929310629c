/**
 * Checks the arguments of the client's methods before anything happens.
 *
 * Pure functions from `unknown` to complete values; they never change what they are given.
 */

import {
  assertHandler,
  assertNone,
  boolean,
  callable,
  duration,
  givenBytes,
  integer,
  invalid,
  type Options,
  object,
  oneOf,
  optional,
  optionError,
  orFunction,
  type Parsed,
  type Parser,
  quoted,
  type Schema,
  settingsIn,
  signal,
  string,
  text,
  that,
  userProperties,
  withDefault,
} from '../../common/schema.js'
import { programFault } from '../../errors.js'
import { DISCONNECT } from '../../wire/constants.js'
import type { Properties, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import { hasWildcard, isShared, validateTopicFilter, validateTopicName } from '../../wire/topics.js'
import {
  bufferOptions,
  type Config,
  expiryInterval,
  messageOptions,
  offlinePolicy,
  outboundOverflow,
  publishProperties,
  qos,
} from './check-options.js'
import { type EntryLink, isStored, oneCopy, type StoredPublish } from './hidden.js'
import type {
  AckMode,
  Filters,
  ListenOptions,
  Message,
  Negotiated,
  NextOptions,
  Overflow,
  SubscribeOptions,
} from './index.js'

/** Default of `buffer`: messages of a subscription that may wait to be read. */
const mostBuffered = 1024

const publishSchema = {
  qos: withDefault(qos, 0),
  retain: withDefault(boolean, false),
  properties: optional(publishProperties),
  flush: optional(boolean),
  ...messageOptions,
  overflow: optional(outboundOverflow),
  offline: optional(offlinePolicy),
  signal: optional(signal),
}
const publishOptions = object<Parsed<typeof publishSchema>>(publishSchema, ', as in { qos: 1 }')
const noOptions = publishOptions({})

/** The options that determine how a PUBLISH is written. */
export interface Sending {
  readonly qos: 0 | 1 | 2
  readonly retain: boolean
  readonly properties: Properties | undefined
}

/** Checked options of `publish`. */
export type CheckedPublish = typeof noOptions & {
  /** The queue entry that this publish belongs to. */
  readonly link?: EntryLink | undefined
  /** The caller stores the message itself. */
  readonly [isStored]?: true | StoredPublish
}

const { Buffer: nodeBuffer } = globalThis as { readonly Buffer?: unknown }

/**
 * Bytes of a payload: text is encoded, bytes are not copied. May return a Node Buffer, whose
 * `slice` does not copy.
 */
export function payloadBytes(payload: unknown): Uint8Array {
  return payload instanceof Uint8Array && payload.constructor === nodeBuffer
    ? payload
    : givenBytes(payload, 'payload')
}

/** Checks and copies the options of `publish`; the encoder checks most properties. */
export function checkedPublish(given: unknown): CheckedPublish {
  if (given === undefined) return noOptions
  const checked = onlyQos(given) ?? publishOptions(given)
  const stored = (given as Partial<CheckedPublish>)[isStored]
  return stored === undefined ? checked : { ...checked, [isStored]: stored }
}

/** Checked arguments of `publish`. */
export interface CheckedCall {
  readonly topic: string
  readonly payload: Uint8Array
  readonly options: CheckedPublish
}

/** Checks the arguments of `publish`. */
export function publishCall(topic: unknown, payload: unknown, given: unknown): CheckedCall {
  return {
    topic: checkedTopic(topic),
    payload: payloadBytes(payload),
    options: checkedPublish(given),
  }
}

/** Checks the type of a topic; the encoder checks its text. */
export function checkedTopic(topic: unknown): string {
  if (typeof topic !== 'string')
    throw programFault(
      optionError('ERR_INVALID_TOPIC', 'topic', `topic must be a string, not ${typeof topic}`),
    )
  return topic
}

const plain = new Map<unknown, CheckedPublish>(
  [0, 1, 2].map((qos) => [qos, publishOptions({ qos })]),
)

// Fast path: shared options for a plain object with nothing but a QoS.
function onlyQos(given: unknown): CheckedPublish | undefined {
  if (given?.constructor !== Object) return undefined
  for (const name in given) if (name !== 'qos') return undefined
  return plain.get((given as { qos?: unknown }).qos)
}

const properties = object<NonNullable<SubscribeOptions['properties']>>({
  userProperties: optional(userProperties),
  subscriptionIdentifier: optional(integer(1, 268_435_455)),
})

type FilterOptions = Omit<SubscriptionRequest, 'filter'>

// Options that can be given for each filter, and for all filters of a call.
function filterOptions(defaults: FilterOptions): Schema<FilterOptions> {
  return {
    qos: withDefault(qos, defaults.qos),
    noLocal: withDefault(boolean, defaults.noLocal),
    retainAsPublished: withDefault(boolean, defaults.retainAsPublished),
    // Retain Handling has the same values as QoS.
    retainHandling: withDefault(qos, defaults.retainHandling),
  }
}

const common = {
  ...filterOptions({ qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 }),
  requireQos: withDefault(boolean, false),
  onExit: optional(oneOf('unsubscribe', 'detach')),
  lifetime: withDefault(oneOf('owned', 'borrowed'), 'owned'),
  onDrop: optional(callable),
  properties,
  signal: optional(signal),
  until: optional(signal),
  ...bufferOptions,
}

const ack = oneOf('auto', 'manual', 'on-receive')
const subscribeSchema = { ...common, ack: withDefault(ack, 'auto') }
type Subscribing = Parsed<typeof subscribeSchema>
const subscribeOptions = object<Subscribing>(
  subscribeSchema,
  ', as in { qos: 1 }',
  'listen(filters, handler) takes one',
)

/** What a failed handler means. */
export const onFailure = optional<ListenOptions['onError']>(
  orFunction(oneOf('retry', 'reject', 'stop')),
)
const listenSchema = {
  ...common,
  ack: withDefault(oneOf('auto', 'on-receive'), 'auto'),
  concurrency: withDefault(integer(1, 65_535), 1),
  onError: onFailure,
  order: optional<ListenOptions['order']>(orFunction(oneOf('topic', 'none'))),
}
/** Checked options of `listen`. */
export type CheckedListen = Parsed<typeof listenSchema>
const listenOptions = object<CheckedListen>(listenSchema)
type Ordering = Partial<Pick<CheckedListen, 'order' | 'concurrency'>> &
  Pick<ConsumerConfig, 'group'>

/** The behaviour of one subscription, with all defaults filled in. */
export interface ConsumerConfig {
  readonly ack: AckMode
  readonly onExit: 'unsubscribe' | 'detach'
  readonly buffer: number
  readonly bufferBytes: number
  readonly overflow: Overflow
  readonly lifetime: 'owned' | 'borrowed'
  readonly onDrop: ((message: Message) => void) | undefined
  /** Messages with the same key are handled one after the other; undefined: no keys. */
  readonly keyOf?: ((message: Message) => unknown) | undefined
  /** Consumers of one group together get one copy of a message. Undefined: the consumer alone. */
  readonly group?: unknown
}

/** Options of a subscription with all defaults filled in. */
export type CheckedSubscribe = ConsumerConfig &
  Pick<Subscribing, 'requireQos' | 'properties' | 'signal' | 'until'>

/** A checked subscription call. */
export interface CheckedSubscription {
  readonly requests: readonly SubscriptionRequest[]
  readonly options: CheckedSubscribe
}

/** Checks the arguments of `subscribe` and `subscription`. */
export function subscriptionCall(
  filters: Filters,
  given: unknown,
  config: Config,
): CheckedSubscription {
  return joinCall(filters, subscribeOptions(given), config)
}

/**
 * Checks the arguments of `listen`. Its handler loop settles messages itself, so its consumer uses
 * manual acknowledgement.
 */
export function listenCall(
  filters: Filters,
  handler: unknown,
  given: unknown,
  config: Config,
): CheckedSubscription & { readonly listen: CheckedListen } {
  assertHandler(handler, 'handler', ': listen(filters, handler, options)')
  const listen = listenOptions(given)
  const { [oneCopy]: group } = handler as { readonly [oneCopy]?: unknown }
  return {
    ...joinCall(
      filters,
      { ...listen, group, ack: listen.ack === 'auto' ? 'manual' : listen.ack },
      config,
    ),
    listen,
  }
}

// The key function of a given `order`. Without one, the topic is the key where several messages of
// a wildcard filter that is not shared are handled at a time.
function keyOf(
  { order, concurrency = 1 }: Ordering,
  requests: readonly SubscriptionRequest[],
): ConsumerConfig['keyOf'] {
  if (typeof order === 'function') return order
  const many =
    concurrency > 1 && requests.some(({ filter }) => hasWildcard(filter) && !isShared(filter))
  return order === 'topic' || (order === undefined && many) ? (message) => message.topic : undefined
}

function joinCall(
  filters: Filters,
  options: Subscribing & Ordering,
  { subscriptions, cleanStart, receiveMaximum }: Config,
): CheckedSubscription {
  const requests = filterRequests(filters, options)
  const onReceive = options.ack === 'on-receive'
  const durable = !cleanStart || requests.some((request) => isShared(request.filter))
  const {
    bufferBytes = subscriptions.bufferBytes,
    overflow: policy = subscriptions.overflow ?? (onReceive ? 'drop-oldest' : 'backpressure'),
    onExit = durable ? 'detach' : 'unsubscribe',
  } = options
  // By default the buffer fills before Receive Maximum stops the server; otherwise the policy could
  // never act.
  const acknowledges =
    policy !== 'backpressure' && !onReceive && requests.some((request) => request.qos > 0)
  const buffer =
    options.buffer ??
    subscriptions.buffer ??
    Math.min(mostBuffered, acknowledges ? Math.max(1, receiveMaximum >> 1) : mostBuffered)
  if (onReceive && policy === 'backpressure') invalid('overflow', 'one that drops, with on-receive')
  return {
    requests,
    options: {
      ...options,
      buffer,
      bufferBytes,
      overflow: policy,
      onExit,
      keyOf: keyOf(options, requests),
    },
  }
}

function filterRequests(filters: unknown, options: Subscribing): readonly SubscriptionRequest[] {
  const parse = object<SubscriptionRequest>({ filter: string, ...filterOptions(options) })
  return eachFilter(filters, (item, path) => {
    if (typeof item !== 'string' && typeof item !== 'object')
      invalid(path, 'a topic filter, or an object that has one')
    const request = parse(typeof item === 'string' ? { filter: item } : item, path)
    topicFilter(request.filter, path)
    // [MQTT-3.8.3-4]
    if (request.noLocal && isShared(request.filter))
      invalid(`${path}.noLocal`, 'false on a shared subscription')
    return request
  })
}

function eachFilter<T>(filters: unknown, parse: Parser<T>): T[] {
  const list: readonly unknown[] = Array.isArray(filters) ? filters : [filters]
  if (list.length === 0) invalid('filters', 'at least one topic filter', true)
  return list.map((item, index) => {
    const path = list === filters ? `filters[${index}]` : 'filter'
    return parse(item ?? invalid(path, 'a topic filter'), path)
  })
}

const topicFilter: Parser<string> = (value, path) => {
  assertTopic(validateTopicFilter(string(value, path)), value, path)
  return value as string
}

/** Checks a topic that is not encoded at once. @throws MqttError ERR_INVALID_TOPIC */
export function assertTopicName(topic: string): void {
  assertTopic(validateTopicName(topic), topic, 'topic')
}

/** Throws if there is an objection to a topic. @throws MqttError ERR_INVALID_TOPIC */
function assertTopic(objection: string | undefined, given: unknown, path: string): void {
  if (objection !== undefined)
    throw optionError('ERR_INVALID_TOPIC', path, `${path} ${quoted(given as string)} ${objection}`)
}

/** The parts of a client that determine its protocol version. */
export interface Spoken {
  readonly options: Pick<Config, 'protocolVersion'>
  readonly session: { readonly negotiated: Pick<Negotiated, 'protocolVersion'> | undefined }
}

/** True on 3.1.1. Before the first CONNACK `'auto'` is taken for 5.0. */
export function isVersion4({ options, session }: Spoken): boolean {
  return (session.negotiated?.protocolVersion ?? options.protocolVersion) === 4
}

// On 3.1.1, refuses all of these options that have a value.
function assertSpoken(spoken: Spoken, given: object): void {
  if (isVersion4(spoken)) assertNone(settingsIn(given))
}

/** A checked `unsubscribe`. */
export interface CheckedUnsubscribe {
  readonly filters: readonly string[]
  readonly userProperties: UserProperties | undefined
  readonly signal: AbortSignal | undefined
}

const unsubscribeSchema = {
  properties: object<{ readonly userProperties: UserProperties | undefined }>({
    userProperties: optional(userProperties),
  }),
  signal: optional(signal),
}
const unsubscribeOptions = object<Parsed<typeof unsubscribeSchema>>(unsubscribeSchema)

/** Checks the arguments of `unsubscribe`. */
export function unsubscribeCall(
  filters: unknown,
  given: unknown,
  spoken: Spoken,
): CheckedUnsubscribe {
  const options = unsubscribeOptions(given)
  const { userProperties: pairs } = options.properties
  assertSpoken(spoken, { 'properties.userProperties': pairs })
  return {
    filters: [...new Set(eachFilter(filters, topicFilter))],
    userProperties: pairs,
    signal: options.signal,
  }
}

/** A checked `disconnect()`. */
export interface Goodbye {
  readonly reasonCode: number
  readonly properties: Properties
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

const disconnectSchema = {
  reasonCode: withDefault<number>(
    that(
      (value) => typeof value === 'number' && isReasonCode(DISCONNECT, value, 'client'),
      'a reason code of DISCONNECT',
    ),
    0,
  ),
  reasonString: optional(text),
  sessionExpiryInterval: optional(expiryInterval),
  userProperties: optional(userProperties),
  timeout: withDefault(duration, 5000),
  signal: optional(signal),
}
/** Checked options of `disconnect` and `drain`, as far as they do not depend on the connection. */
export type CheckedDisconnect = Parsed<typeof disconnectSchema>

/** Checks the options of `disconnect` and `drain`. @throws MqttError ERR_INVALID_OPTION */
export const disconnectOptions: Options<CheckedDisconnect> = object<CheckedDisconnect>(
  disconnectSchema,
  ', as in { timeout: 0 }; destroy() ends without DISCONNECT',
)

/** Checks the arguments of `disconnect`. */
export function goodbye(
  given: unknown,
  client: Spoken & {
    readonly options: Pick<Config, 'cleanStart'>
    readonly session: { readonly openedFor: number }
  },
): Goodbye {
  const { openedFor: opened } = client.session
  const { reasonCode, timeout, signal, ...properties } = disconnectOptions(given)
  assertSpoken(client, { ...properties, reasonCode: reasonCode || undefined })
  const { sessionExpiryInterval = client.options.cleanStart && opened > 0 ? 0 : undefined } =
    properties
  // [MQTT-3.14.2-2] forbids raising it from 0.
  if (opened === 0 && sessionExpiryInterval)
    invalid('sessionExpiryInterval', '0, as the session was opened with 0')
  return { reasonCode, timeout, signal, properties: { ...properties, sessionExpiryInterval } }
}

/** Checks the arguments of `reconnect`. */
export const reconnectCall: Options<{
  readonly force: boolean
  readonly reason: string | undefined
}> = object({
  force: withDefault(boolean, false),
  reason: optional(string),
})

/** Checks the options of `next`. */
export const nextOptions: Options<NextOptions> = object<NextOptions>({
  signal: optional(signal),
  timeout: optional(duration),
})
