/**
 * The arguments of the client's calls, checked: what a caller may pass wrong is told here, before anything happens.
 *
 * Pure functions from `unknown` to complete values; they never write to what they are given.
 */
import { MqttError } from '../errors.js'
import { DISCONNECT } from '../wire/constants.js'
import type { Properties, QoS, SubscriptionRequest, UserProperties } from '../wire/packets.js'
import { isReasonCode } from '../wire/reason-codes.js'
import { isShared, validateTopicFilter } from '../wire/topics.js'
import type { DisconnectOptions, Filters, ListenOptions, NextOptions, PublishOptions, SubscribeOptions, UnsubscribeOptions } from './api.js'
import type { Goodbye } from './core.js'
import { type Config, overflow, publishProperties, qos, signal } from './options.js'
import type { PublishCall } from './outbound.js'
import {
  boolean,
  callable,
  duration,
  integer,
  invalid,
  object,
  oneOf,
  optional,
  type Parser,
  string,
  text,
  userProperties,
  viewBytes,
  withDefault,
} from './schema.js'
import type { ConsumerConfig } from './subscription.js'
import type { SubscribeCall } from './subscriptions.js'

const encoder = new TextEncoder()
const publishOptions = object<PublishOptions>({
  qos: optional(qos),
  retain: optional(boolean),
  properties: optional((value, path) => (typeof value === 'object' && value !== null ? value : invalid(path, 'an object'))),
  flush: optional(boolean),
  ackTimeout: optional(duration),
  signal: optional(signal),
})
const noOptions: PublishOptions = Object.freeze({})

/** Bytes of a payload: text is encoded, bytes stay where they are. */
export function payloadBytes(payload: unknown): Uint8Array {
  if (typeof payload === 'string') return encoder.encode(payload)
  return viewBytes(payload) ?? invalid('payload', 'a string, a Uint8Array or another view, or an ArrayBuffer')
}

/** Checks the arguments of `publish`. The topic's text is checked by the encoder. */
export function publishCall(topic: unknown, payload: unknown, given: unknown): PublishCall {
  if (typeof topic !== 'string') throw new MqttError('ERR_INVALID_TOPIC', 'the topic must be a string', { option: 'topic' })
  const bytes = payloadBytes(payload)
  if (given === undefined) return { topic, payload: bytes, qos: 0, retain: false, properties: undefined, options: noOptions }
  const options = publishOptions(given, '')
  const properties = options.properties === undefined ? undefined : publishProperties(options.properties, 'properties')
  return { topic, payload: bytes, qos: options.qos ?? 0, retain: options.retain ?? false, properties, options }
}

const retainHandling: Parser<0 | 1 | 2> = oneOf(0, 1, 2)

const filterRequest = object<Omit<SubscriptionRequest, 'qos' | 'noLocal' | 'retainAsPublished' | 'retainHandling'> & Partial<SubscriptionRequest>>({
  filter: string,
  qos: optional(qos) as Parser<QoS>,
  noLocal: optional(boolean) as Parser<boolean>,
  retainAsPublished: optional(boolean) as Parser<boolean>,
  retainHandling: optional(retainHandling) as Parser<0 | 1 | 2>,
})

const subscribeProperties = object<NonNullable<SubscribeOptions['properties']>>({
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
  onDrop: optional(callable<NonNullable<SubscribeOptions['onDrop']>>),
  properties: optional(subscribeProperties),
  signal: optional(signal),
  until: optional(signal),
  buffer: optional(integer(1, 1_000_000_000)),
  bufferBytes: optional(integer(1, Number.MAX_SAFE_INTEGER)),
  overflow: optional(overflow),
}

const subscribeOptions = object<SubscribeOptions>({ ...common, ack: withDefault(oneOf('auto', 'manual', 'on-receive'), 'auto') })
const listenOptions = object<ListenOptions>({
  ...common,
  ack: withDefault(oneOf('auto', 'on-receive'), 'auto'),
  concurrency: withDefault(integer(1, 65_535), 1),
  onError: optional((value, path) => (typeof value === 'function' ? (value as () => 'retry') : oneOf('retry', 'reject', 'stop')(value, path))),
})

/** A subscription call, checked. */
export interface SubscriptionCall {
  readonly requests: readonly SubscriptionRequest[]
  readonly consumer: ConsumerConfig
  readonly call: SubscribeCall
  readonly until: AbortSignal | undefined
}

/** Checks the arguments of `subscribe` and `subscription`. */
export function subscriptionCall(filters: Filters, given: unknown, config: Config): SubscriptionCall {
  const options = subscribeOptions(given ?? {}, '')
  return joinCall(filters, options, options.ack ?? 'auto', config)
}

/** Checks the arguments of `listen`: its consumer settles by itself, so its turns are manual. */
export function listenCall(
  filters: Filters,
  handler: unknown,
  given: unknown,
  config: Config,
): { readonly subscription: SubscriptionCall; readonly options: ListenOptions } {
  if (typeof handler !== 'function') throw new MqttError('ERR_INVALID_HANDLER', 'the handler is not a function', { option: 'handler' })
  const options = listenOptions(given ?? {}, '')
  return { subscription: joinCall(filters, options, options.ack === 'on-receive' ? 'on-receive' : 'manual', config), options }
}

function joinCall(filters: Filters, options: Omit<SubscribeOptions, 'ack'>, ack: ConsumerConfig['ack'], config: Config): SubscriptionCall {
  const { subscriptions } = config
  const requests = filterRequests(filters, options)
  const detached = !config.cleanStart || requests.some((request) => isShared(request.filter))
  const policy = options.overflow ?? subscriptions.overflow ?? (ack === 'on-receive' ? 'drop-oldest' : 'backpressure')
  if (ack === 'on-receive' && policy === 'backpressure')
    invalid('overflow', "'drop-newest' or 'drop-oldest' when messages are acknowledged on receipt")
  return {
    requests,
    consumer: {
      ack,
      onExit: options.onExit ?? (detached ? 'detach' : 'unsubscribe'),
      buffer: options.buffer ?? subscriptions.buffer,
      bufferBytes: options.bufferBytes ?? subscriptions.bufferBytes,
      overflow: policy,
      borrowed: options.lifetime === 'borrowed',
      onDrop: options.onDrop,
    },
    call: {
      requireQos: options.requireQos ?? false,
      userProperties: options.properties?.userProperties,
      subscriptionIdentifier: options.properties?.subscriptionIdentifier,
      signal: options.signal,
    },
    until: options.until,
  }
}

function filterRequests(filters: unknown, defaults: Omit<SubscribeOptions, 'ack'>): readonly SubscriptionRequest[] {
  const list: readonly unknown[] = Array.isArray(filters) ? filters : [filters]
  if (list.length === 0) invalid('filters', 'at least one topic filter')
  return list.map((item, index) => {
    const path = Array.isArray(filters) ? `filters[${index}]` : 'filter'
    const given = filterRequest(typeof item === 'string' ? { filter: item } : item, path)
    checkFilterText(given.filter, path)
    const request: SubscriptionRequest = {
      filter: given.filter,
      qos: given.qos ?? defaults.qos ?? 0,
      noLocal: given.noLocal ?? defaults.noLocal ?? false,
      retainAsPublished: given.retainAsPublished ?? defaults.retainAsPublished ?? false,
      retainHandling: given.retainHandling ?? defaults.retainHandling ?? 0,
    }
    // [MQTT-3.8.3-4]
    if (request.noLocal && isShared(request.filter)) invalid(`${path}.noLocal`, 'false on a shared subscription')
    return request
  })
}

function checkFilterText(filter: string, path: string): void {
  const objection = validateTopicFilter(filter)
  if (objection !== undefined) throw new MqttError('ERR_INVALID_TOPIC', `${path}: ${objection}`, { option: path })
}

/** A checked `unsubscribe`. */
export interface UnsubscribeCall {
  readonly filters: readonly string[]
  readonly userProperties: UserProperties | undefined
  readonly signal: AbortSignal | undefined
}

const unsubscribeOptions = object<UnsubscribeOptions>({
  properties: optional(object<NonNullable<UnsubscribeOptions['properties']>>({ userProperties: optional(userProperties) })),
  signal: optional(signal),
})

/** Checks the arguments of `unsubscribe`. */
export function unsubscribeCall(filters: unknown, given: unknown): UnsubscribeCall {
  const options = unsubscribeOptions(given ?? {}, '')
  const list: readonly unknown[] = Array.isArray(filters) ? filters : [filters]
  if (list.length === 0) invalid('filters', 'at least one topic filter')
  const checked = list.map((filter, index) => {
    const path = `filters[${index}]`
    checkFilterText(string(filter, path), path)
    return filter as string
  })
  return { filters: [...new Set(checked)], userProperties: options.properties?.userProperties, signal: options.signal }
}

const disconnectOptions = object<DisconnectOptions>({
  reasonCode: withDefault(
    (value, path) =>
      typeof value === 'number' && isReasonCode(DISCONNECT, value, 'client')
        ? value
        : invalid(path, 'a reason code that a client may send in DISCONNECT'),
    0,
  ),
  reasonString: optional(text),
  sessionExpiryInterval: optional(integer(0, 4_294_967_295, 'seconds')),
  userProperties: optional(userProperties),
  timeout: withDefault(duration, 5000),
  signal: optional(signal),
})

/** Checks the arguments of `disconnect`. */
export function goodbye(given: unknown, config: Config): Goodbye {
  const options = disconnectOptions(given ?? {}, '')
  const expiry = options.sessionExpiryInterval
  // [MQTT-3.14.2-2] forbids raising it from 0.
  if (expiry !== undefined && expiry > 0 && config.sessionExpiryInterval === 0)
    invalid('sessionExpiryInterval', '0, because the session was opened with 0')
  const ends = config.cleanStart && config.sessionExpiryInterval > 0 ? 0 : undefined
  const properties: Properties = { sessionExpiryInterval: expiry ?? ends, reasonString: options.reasonString, userProperties: options.userProperties }
  return { reasonCode: options.reasonCode ?? 0, properties, timeout: options.timeout ?? 5000, signal: options.signal }
}

/** Checks the options of `next`. */
export const nextOptions: Parser<NextOptions> = object<NextOptions>({ signal: optional(signal), timeout: optional(duration) })
