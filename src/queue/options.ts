/**
 * Checks the arguments of queue methods. Callers' objects are not changed, and nothing is kept that
 * they may change.
 */

import { innermost } from '../client/access.js'
import { exponential } from '../client/options/backoff.js'
import type {
  Backoff,
  Bytes,
  Payload,
  Publisher,
  PublishProperties,
} from '../client/options/index.js'
import { plainName } from '../common/plain-name.js'
import {
  anyObject,
  boolean,
  bytes,
  callable,
  duration,
  integer,
  invalid,
  limit,
  longestTimer,
  object,
  oneOf,
  optional,
  type Parser,
  signal,
  text,
  userProperties,
  withDefault,
} from '../common/schema.js'
import { MqttError } from '../errors.js'
import type { Store } from '../store/base/store.js'
import { validateTopicName } from '../wire/topics.js'
import type { QueueEntry } from './entry.js'
import { shares } from './sharing.js'
import type { DeadLetter, QueueOptions } from './types.js'

const store: Parser<Store> = (value, path) => {
  const given = anyObject(value, path) as Partial<Store & PromiseLike<Store>>
  if (typeof given.then === 'function') invalid(path, 'a store: await the promise of levelStore()')
  const inner: Partial<Store> = innermost(given as Store)
  for (const name of ['get', 'batch', 'entries'] as const)
    if (typeof inner?.[name] !== 'function') invalid(path, `a store, with ${name}()`)
  return inner as Store
}

const queueSchema = {
  store,
  name: withDefault(plainName, 'default'),
  maxEntries: withDefault(limit, 100_000),
  maxBytes: withDefault(limit, 256 * 1024 * 1024),
  ttl: optional(duration),
  overflow: withDefault(oneOf('drop-newest', 'drop-oldest', 'reject', 'wait'), 'drop-newest'),
  qos: withDefault(oneOf(1, 2), 1),
  duplicates: optional(oneOf('allowed')),
  concurrency: withDefault(integer(1, 65_535), 64),
  batchSize: withDefault(integer(1, 1000), 16),
  publishTimeout: withDefault(integer(1, longestTimer, ' milliseconds'), 30_000),
  backoff: withDefault(callable as Parser<Backoff>, undefined as never),
  maxRefusals: withDefault(limit, Number.POSITIVE_INFINITY),
  onDeadLetter: optional(callable as Parser<(letter: DeadLetter) => void>),
  deadLetterStore: optional(store),
}

/** Checked options of a queue. */
export type QueueConfig = ReturnType<typeof queueConfig>

const queueOptions =
  object<{ -readonly [K in keyof typeof queueSchema]: ReturnType<(typeof queueSchema)[K]> }>(
    queueSchema,
  )

/**
 * Checks the options of `openQueue`.
 * @throws MqttError ERR_INVALID_OPTION, ERR_EVICTION_NOT_SUPPORTED
 */
export function queueConfig(given: QueueOptions, publisher: Publisher<unknown>) {
  const parsed = queueOptions(given ?? {})
  const shared = shares(publisher, parsed.store)
  const duplicates = shared ? 'allowed' : parsed.duplicates
  if (parsed.qos === 2) assertDuplicates(duplicates)
  if (parsed.overflow === 'drop-oldest' && parsed.store.evicts === false)
    throw new MqttError(
      'ERR_EVICTION_NOT_SUPPORTED',
      "this store cannot delete its oldest entries: overflow 'drop-oldest' needs that",
      {
        option: 'overflow',
      },
    )
  return { ...parsed, duplicates, shared, backoff: parsed.backoff ?? exponential() }
}

function assertDuplicates(duplicates: 'allowed' | undefined): void {
  if (duplicates !== 'allowed')
    invalid('qos', "1, or 2 where queue and client share one store, or with duplicates: 'allowed'")
}

const publishProperties = object<PublishProperties>({
  payloadFormatIndicator: optional(oneOf(0, 1)),
  messageExpiryInterval: optional(integer(0, 0xffff_ffff, ' seconds')),
  contentType: optional(text),
  responseTopic: optional((value, path) => topicName(value, path, 'ERR_INVALID_OPTION')),
  correlationData: optional((value, path) => {
    const given = bytes(value, path)
    return given.length > 65_535 ? invalid(path, 'at most 65,535 bytes') : given
  }),
  userProperties: optional(userProperties),
})

const publishSchema = {
  qos: optional(oneOf(0, 1, 2)),
  retain: withDefault(boolean, false),
  properties: optional<PublishProperties>(publishProperties),
  ttl: optional(duration),
  signal: optional(signal),
}
const publishOptions =
  object<{ -readonly [K in keyof typeof publishSchema]: ReturnType<(typeof publishSchema)[K]> }>(
    publishSchema,
  )

/** A checked publish: the entry to store, and the signal that ends its wait. */
export interface QueueCall {
  readonly entry: Omit<QueueEntry, 'id'>
  readonly signal: AbortSignal | undefined
}

/**
 * Checks and copies the arguments of `publish`.
 * @throws MqttError ERR_QOS0_NOT_QUEUEABLE, ERR_INVALID_TOPIC, ERR_INVALID_OPTION
 */
export function queueCall(
  config: QueueConfig,
  topic: unknown,
  payload: Payload,
  given: unknown,
  at: number,
): QueueCall {
  const name = topicName(topic, 'topic', 'ERR_INVALID_TOPIC')
  const { qos = config.qos, retain, properties, ttl = config.ttl, signal } = publishOptions(given)
  if (qos === 0)
    throw new MqttError(
      'ERR_QOS0_NOT_QUEUEABLE',
      'a queue publishes at QoS 1 or 2: nothing acknowledges QoS 0',
      { option: 'qos' },
    )
  if (qos === 2) assertDuplicates(config.duplicates)
  const seconds = properties?.messageExpiryInterval
  const expiries = [ttl, seconds && seconds * 1000].filter(
    (each): each is number => each !== undefined,
  )
  const expires = expiries.length === 0 ? undefined : at + Math.min(...expiries)
  return {
    entry: {
      topic: name,
      payload: bytes(payload, 'payload') as Bytes,
      qos,
      retain,
      properties,
      at,
      expires,
    },
    signal,
  }
}

function topicName(
  value: unknown,
  option: string,
  code: 'ERR_INVALID_TOPIC' | 'ERR_INVALID_OPTION',
): string {
  const fault = typeof value === 'string' ? validateTopicName(value) : 'must be a string'
  if (fault !== undefined) throw new MqttError(code, `${option} ${fault}`, { option })
  return value as string
}

const closeOptions = object<{ readonly timeout: number; readonly signal: AbortSignal | undefined }>(
  {
    timeout: withDefault(duration, 5000),
    signal: optional(signal),
  },
)

/** Checks the options of `close`. @throws MqttError ERR_INVALID_OPTION */
export function closeCall(given: unknown): {
  readonly timeout: number
  readonly signal: AbortSignal | undefined
} {
  return closeOptions(given)
}
