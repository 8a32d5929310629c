/**
 * A requested publish: has a copy of its options, and counts its time from the call, wherever it
 * waits before a client gets it.
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

/** The group or pool that was called. */
export interface AskedOf {
  readonly time: Time
  /** Reports a publish that no client got, and returns its rejection. */
  refuse(topic: string, error: unknown): Promise<never>
}

/** One publish. */
export class Asked implements Patience {
  readonly topic: string
  readonly payload: Payload
  readonly #options: PublishOptions | undefined
  /** Longest wait in milliseconds, by time to live and by Message Expiry Interval. */
  readonly #ttl: number
  readonly #expiry: number
  readonly #of: AskedOf
  readonly #since: number

  /** @param ttl default time to live @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION */
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

  /**
   * Size of the payload in bytes, read when it has to wait. Refuses topics and payloads that no
   * client could send.
   * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION
   */
  get size(): number {
    assertTopicName(this.topic)
    return payloadBytes(this.payload).length
  }

  /** The options `offline` and `overflow` of the publish; undefined if not given. */
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

  /**
   * The options for a client, with the time already waited subtracted.
   * @throws MqttError ERR_EXPIRED
   */
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

  /** Reports that no client gets it, as a client reports a refused publish. */
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

// Checked and copied without defaults, because the client that gets it has its own.
function own(given: PublishOptions): PublishOptions {
  const checked = checkedPublish(given) as Record<string, unknown>
  return Object.fromEntries(
    Object.keys(checked).flatMap((name) =>
      given[name as keyof PublishOptions] === undefined ? [] : [[name, checked[name]]],
    ),
  )
}
