/**
 * The arguments of the client's calls, checked: what a caller may pass wrong is told here, before anything happens.
 *
 * Pure functions from `unknown` to complete values; they never write to what they are given.
 */
import { MqttError } from '../../errors.js'
import { DISCONNECT } from '../../wire/constants.js'
import type { Properties, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import { isShared, validateTopicFilter } from '../../wire/topics.js'
import type { Filters, ListenOptions, NextOptions, SubscribeOptions } from '../api.js'
import {
  boolean,
  callable,
  duration,
  integer,
  invalid,
  object,
  oneOf,
  optional,
  type Parsed,
  type Parser,
  signal,
  string,
  text,
  that,
  userProperties,
  viewBytes,
  withDefault,
} from '../common/schema.js'
import type { ConsumerConfig } from '../delivery/consumer.js'
import type { PublishCall } from '../publishing/publish-item.js'
import { type Config, offlinePolicy, onSessionLost, outboundOverflow, overflow, publishProperties, qos } from './options.js'

const encoder = new TextEncoder()
const publishSchema = {
  qos: withDefault(qos, 0),
  retain: withDefault(boolean, false),
  properties: optional(publishProperties),
  flush: optional(boolean),
  ackTimeout: optional(duration),
  overflow: optional(outboundOverflow),
  offline: optional(offlinePolicy),
  ttl: optional(duration),
  onSessionLost: optional(onSessionLost),
  signal: optional(signal),
}
const publishOptions = object<Parsed<typeof publishSchema>>(publishSchema)
const noOptions = publishOptions({}, '')

/** Options of `publish`, checked. */
export type CheckedPublish = typeof noOptions

const { Buffer: nodeBuffer } = globalThis as { readonly Buffer?: unknown }

/** Bytes of a payload: text is encoded, bytes stay where they are. May be a Node Buffer, whose own `slice` does not copy. */
export function payloadBytes(payload: unknown): Uint8Array {
  if (typeof payload === 'string') return encoder.encode(payload)
  if (payload instanceof Uint8Array && payload.constructor === nodeBuffer) return payload
  return viewBytes(payload) ?? invalid('payload', 'a string or bytes')
}

/** Checks the arguments of `publish`. The topic's text and most properties are checked by the encoder. */
export function publishCall(topic: unknown, payload: unknown, given?: unknown): PublishCall {
  return {
    topic: checkedTopic(topic),
    payload: payloadBytes(payload),
    options: given === undefined ? noOptions : (onlyQos(given) ?? publishOptions(given, '')),
  }
}

/** Checks the topic of `post`. */
export function checkedTopic(topic: unknown): string {
  if (typeof topic !== 'string') throw new MqttError('ERR_INVALID_TOPIC', undefined, { option: 'topic' })
  return topic
}

const plain = [noOptions, publishOptions({ qos: 1 }, ''), publishOptions({ qos: 2 }, '')]

// The usual options, which need no object of their own: a plain one that says nothing but the QoS.
function onlyQos(given: unknown): CheckedPublish | undefined {
  if (typeof given !== 'object' || given === null || Object.getPrototypeOf(given) !== Object.prototype) return undefined
  for (const name in given) if (name !== 'qos') return undefined
  const { qos } = given as { qos?: unknown }
  return qos === 0 || qos === 1 || qos === 2 ? plain[qos] : undefined
}

const retainHandling: Parser<0 | 1 | 2> = oneOf(0, 1, 2)

const properties = object<NonNullable<SubscribeOptions['properties']>>({
  userProperties: optional(userProperties),
  subscriptionIdentifier: optional(integer(1, 268_435_455)),
})

const common = {
  qos: withDefault(qos, 0),
  noLocal: withDefault(boolean, false),
  retainAsPublished: withDefault(boolean, false),
  retainHandling: withDefault(retainHandling, 0),
  requireQos: withDefault(boolean, false),
  onExit: optional(oneOf('unsubscribe', 'detach')),
  lifetime: withDefault(oneOf('owned', 'borrowed'), 'owned'),
  onDrop: optional(callable),
  properties,
  signal: optional(signal),
  until: optional(signal),
  buffer: optional(integer(1, 1_000_000_000)),
  bufferBytes: optional(integer(1, Number.MAX_SAFE_INTEGER)),
  overflow: optional(overflow),
}

const ack = oneOf('auto', 'manual', 'on-receive')
const subscribeSchema = { ...common, ack: withDefault(ack, 'auto') }
type Subscribing = Parsed<typeof subscribeSchema>
const subscribeOptions = object<Subscribing>(subscribeSchema)

const onFailure = oneOf('retry', 'reject', 'stop')
const listenSchema = {
  ...common,
  ack: withDefault(oneOf('auto', 'on-receive'), 'auto'),
  concurrency: withDefault(integer(1, 65_535), 1),
  onError: optional<ListenOptions['onError']>((value, path) => (typeof value === 'function' ? (value as never) : onFailure(value, path))),
}
/** Options of `listen`, checked. */
export type CheckedListen = Parsed<typeof listenSchema>
const listenOptions = object<CheckedListen>(listenSchema)

/** Options of a subscription, every default filled in. */
export type CheckedSubscribe = ConsumerConfig & Pick<Subscribing, 'requireQos' | 'properties' | 'signal' | 'until'>

/** A subscription call, checked. */
export interface SubscriptionCall {
  readonly requests: readonly SubscriptionRequest[]
  readonly options: CheckedSubscribe
}

/** Checks the arguments of `subscribe` and `subscription`. */
export function subscriptionCall(filters: Filters, given: unknown, config: Config): SubscriptionCall {
  return joinCall(filters, subscribeOptions(given, ''), config)
}

/** Checks the arguments of `listen`: its consumer settles by itself, so its turns are manual. */
export function listenCall(
  filters: Filters,
  handler: unknown,
  given: unknown,
  config: Config,
): SubscriptionCall & { readonly listen: CheckedListen } {
  if (typeof handler !== 'function') throw new MqttError('ERR_INVALID_HANDLER', undefined, { option: 'handler' })
  const listen = listenOptions(given, '')
  return { ...joinCall(filters, { ...listen, ack: listen.ack === 'auto' ? 'manual' : listen.ack }, config), listen }
}

function joinCall(filters: Filters, options: Subscribing, { subscriptions, cleanStart }: Config): SubscriptionCall {
  const requests = filterRequests(filters, options)
  const onReceive = options.ack === 'on-receive'
  const durable = !cleanStart || requests.some((request) => isShared(request.filter))
  const {
    buffer = subscriptions.buffer,
    bufferBytes = subscriptions.bufferBytes,
    overflow: policy = subscriptions.overflow ?? (onReceive ? 'drop-oldest' : 'backpressure'),
    onExit = durable ? 'detach' : 'unsubscribe',
  } = options
  if (onReceive && policy === 'backpressure') invalid('overflow', 'one that drops, with on-receive')
  return { requests, options: { ...options, buffer, bufferBytes, overflow: policy, onExit } }
}

function filterRequests(filters: unknown, options: Subscribing): readonly SubscriptionRequest[] {
  const parse = object<SubscriptionRequest>({
    filter: string,
    qos: withDefault(qos, options.qos),
    noLocal: withDefault(boolean, options.noLocal),
    retainAsPublished: withDefault(boolean, options.retainAsPublished),
    retainHandling: withDefault(retainHandling, options.retainHandling),
  })
  return eachFilter(filters, (item, path) => {
    const request = parse(typeof item === 'string' ? { filter: item } : item, path)
    topicFilter(request.filter, path)
    // [MQTT-3.8.3-4]
    if (request.noLocal && isShared(request.filter)) invalid(`${path}.noLocal`, 'false on a shared subscription')
    return request
  })
}

function eachFilter<T>(filters: unknown, parse: Parser<T>): T[] {
  const list: readonly unknown[] = Array.isArray(filters) ? filters : [filters]
  if (list.length === 0) invalid('filters', 'at least one topic filter')
  return list.map((item, index) => parse(item, list === filters ? `filters[${index}]` : 'filter'))
}

const topicFilter: Parser<string> = (value, path) => {
  const objection = validateTopicFilter(string(value, path))
  if (objection !== undefined) throw new MqttError('ERR_INVALID_TOPIC', `${path} ${objection}`, { option: path })
  return value as string
}

/** A checked `unsubscribe`. */
export interface UnsubscribeCall {
  readonly filters: readonly string[]
  readonly userProperties: UserProperties | undefined
  readonly signal: AbortSignal | undefined
}

const unsubscribeSchema = {
  properties: object<{ readonly userProperties: UserProperties | undefined }>({ userProperties: optional(userProperties) }),
  signal: optional(signal),
}
const unsubscribeOptions = object<Parsed<typeof unsubscribeSchema>>(unsubscribeSchema)

/** Checks the arguments of `unsubscribe`. */
export function unsubscribeCall(filters: unknown, given: unknown): UnsubscribeCall {
  const options = unsubscribeOptions(given, '')
  return { filters: [...new Set(eachFilter(filters, topicFilter))], userProperties: options.properties.userProperties, signal: options.signal }
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
    that((value) => typeof value === 'number' && isReasonCode(DISCONNECT, value, 'client'), 'a reason code of DISCONNECT'),
    0,
  ),
  reasonString: optional(text),
  sessionExpiryInterval: optional(integer(0, 4_294_967_295)),
  userProperties: optional(userProperties),
  timeout: withDefault(duration, 5000),
  signal: optional(signal),
}
const disconnectOptions = object<Parsed<typeof disconnectSchema>>(disconnectSchema)

/** Checks the arguments of `disconnect`. */
export function goodbye(given: unknown, { cleanStart }: Config, opened: number): Goodbye {
  const {
    sessionExpiryInterval = cleanStart && opened > 0 ? 0 : undefined,
    reasonString,
    userProperties: pairs,
    ...rest
  } = disconnectOptions(given, '')
  // [MQTT-3.14.2-2] forbids raising it from 0.
  if (opened === 0 && sessionExpiryInterval) invalid('sessionExpiryInterval', '0, as the session was opened with 0')
  return { ...rest, properties: { sessionExpiryInterval, reasonString, userProperties: pairs } }
}

const reconnectOptions = object<{ readonly force: boolean; readonly reason: string | undefined }>({
  force: withDefault(boolean, false),
  reason: optional(string),
})

/** Checks the arguments of `reconnect`. */
export function reconnectCall(given: unknown): { readonly force: boolean; readonly reason: string | undefined } {
  return reconnectOptions(given, '')
}

/** Checks the options of `next`. */
export const nextOptions: Parser<NextOptions> = object<NextOptions>({ signal: optional(signal), timeout: optional(duration) })
