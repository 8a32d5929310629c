/**
 * A publish as it was asked for: its options are its own, and its time runs from the call, wherever it waits before a client has it.
 */

import {
  assertTopicName,
  checkedPublish,
  checkedTopic,
  payloadBytes,
} from '../client/options/check-calls.js'
import type { Payload, PublishOptions } from '../client/options/index.js'
import { aborted, onAbort, silent } from '../common/abort.js'
import { longestTimer, optionError } from '../common/schema.js'
import type { MqttError } from '../errors.js'
import type { Time } from './member.js'
import type { Patience } from './waiting.js'

/** Who was asked. */
export interface AskedOf {
  readonly time: Time
  /** Reports a publish that was given to no client, and returns its rejection. */
  refuse(topic: string, error: unknown): Promise<never>
}

/** One publish. */
export class Asked implements Patience {
  readonly topic: string
  readonly payload: Payload
  readonly #options: PublishOptions | undefined
  /** Milliseconds that it may wait, by its time to live and by its message expiry interval. */
  readonly #ttl: number
  readonly #expiry: number
  readonly #of: AskedOf
  readonly #since: number

  /** @param ttl time to live of one that says none @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION */
  constructor(
    topic: string,
    payload: Payload,
    given: PublishOptions | undefined,
    of: AskedOf,
    ttl = Number.POSITIVE_INFINITY,
  ) {
    this.topic = checkedTopic(topic)
    this.payload = payload
    const options = given && own(given)
    this.#options = options
    this.#ttl = options?.ttl ?? ttl
    this.#expiry = (options?.properties?.messageExpiryInterval ?? Number.POSITIVE_INFINITY) * 1000
    this.#of = of
    this.#since = this.#patience > longestTimer ? 0 : of.time.now()
  }

  /** Bytes of its payload, once it has to wait: what no client could send is refused here. @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION */
  get size(): number {
    assertTopicName(this.topic)
    return payloadBytes(this.payload).length
  }

  /** What it says of a time without a connection, and of a queue that is full; undefined where that is left to others. */
  get offline(): PublishOptions['offline'] {
    return this.#options?.offline
  }

  get overflow(): PublishOptions['overflow'] {
    return this.#options?.overflow
  }

  get qos(): NonNullable<PublishOptions['qos']> {
    return this.#options?.qos ?? 0
  }

  get signal(): AbortSignal | undefined {
    return this.#options?.signal
  }

  /** What a client gets now: less the time that it has waited. @throws MqttError ERR_EXPIRED */
  get options(): PublishOptions | undefined {
    const waited = this.#patience > longestTimer ? 0 : Math.floor(this.#of.time.now() - this.#since)
    if (waited === 0) return this.#options
    if (waited >= this.#patience) throw this.#expired
    const ttl = Number.isFinite(this.#ttl) ? { ttl: this.#ttl - waited } : undefined
    const { properties } = this.#options ?? {}
    const seconds = Math.ceil((this.#expiry - waited) / 1000)
    const aged = Number.isFinite(seconds)
      ? { properties: { ...properties, messageExpiryInterval: seconds } }
      : undefined
    return { ...this.#options, ...ttl, ...aged }
  }

  watch(end: (error: MqttError) => void): () => void {
    const { signal } = this
    const late = (): void => {
      stop()
      this.refuse(this.#expired)
      end(this.#expired)
    }
    const left = this.#patience
    const { time } = this.#of
    const cancel =
      left > longestTimer
        ? undefined
        : time.setTimer(late, Math.max(0, left - (time.now() - this.#since)))
    const unwatch = onAbort(signal, () => {
      cancel?.()
      end(aborted(signal))
    })
    const stop = (): void => {
      cancel?.()
      unwatch()
    }
    return stop
  }

  /** It is given to no client: reported as a client reports what it refuses. */
  refuse(error: unknown): void {
    silent(this.#of.refuse(this.topic, error))
  }

  get #patience(): number {
    return Math.min(this.#ttl, this.#expiry)
  }

  get #expired(): MqttError {
    return optionError(
      'ERR_EXPIRED',
      this.#ttl <= this.#expiry ? 'ttl' : 'properties.messageExpiryInterval',
    )
  }
}

// Checked and copied, without the defaults: the client that takes it has its own.
function own(given: PublishOptions): PublishOptions {
  const checked = checkedPublish(given) as Record<string, unknown>
  return Object.fromEntries(
    Object.keys(checked).flatMap((name) =>
      given[name as keyof PublishOptions] === undefined ? [] : [[name, checked[name]]],
    ),
  )
}
