/**
 * Converts messages of a channel to parameters and value, and applies the policy for invalid
 * payloads.
 *
 * Messages that are not delivered to the program are acknowledged here, once.
 */

import type { ClientAccess } from '../client/access.js'
import type { Message } from '../client/options/index.js'
import type { MqttError } from '../errors.js'
import { type Codec, invalid, isPromise } from './codec.js'
import { decoded } from './payload.js'
import { refuse } from './refuse.js'
import type { Params, TopicTemplate } from './template.js'

/** A message with its value. */
export interface Received<Parameters, Value> {
  /** The parameters of the topic. */
  readonly params: Parameters
  /** The value of the payload. */
  readonly value: Value
  /** The message itself. */
  readonly message: Message
  /** Always undefined: see {@link Invalid}. */
  readonly error?: undefined
}

/** A message whose payload, or topic, does not fit its channel. */
export interface Invalid<Parameters> {
  /** The parameters of the topic; undefined if it does not match. */
  readonly params: Parameters | undefined
  /** `ERR_INVALID_PAYLOAD`, with `issues`. */
  readonly error: MqttError
  /** The message itself. */
  readonly message: Message
  /** Always undefined: see {@link Received}. */
  readonly value?: undefined
}

/**
 * What to do with an invalid payload. `'skip'`: acknowledge and skip it. `'reject'`: refuse it with
 * 0x99 (Payload format invalid) and skip it. `'throw'`: refuse it and throw the error. `'deliver'`:
 * deliver it with its error.
 */
export type InvalidVerdict = 'skip' | 'reject' | 'throw' | 'deliver'

/**
 * A verdict for all messages, or a function that returns one for each. A function that throws or
 * returns no verdict counts as `'skip'`.
 */
export type OnInvalid<Parameters, Verdict extends InvalidVerdict = InvalidVerdict> =
  | Verdict
  | ((invalid: Invalid<Parameters>) => Verdict)

/** The type that is delivered with these verdicts. */
export type Delivered<Parameters, Value, Verdict extends InvalidVerdict> = 'deliver' extends Verdict
  ? Received<Parameters, Value> | Invalid<Parameters>
  : Received<Parameters, Value>

const verdicts: readonly unknown[] = ['skip', 'reject', 'throw', 'deliver']
/** Payload format invalid (section 3.4.2.1). */
const formatInvalid = 0x99
/** Topics whose parameters are cached. */
const mostKnown = 1000
/** Bytes of a payload that the event for an invalid one contains. */
const startLength = 256

/** Checks the option. @throws MqttError ERR_INVALID_OPTION */
export function policyOf<Parameters>(
  given: OnInvalid<Parameters> | undefined,
): OnInvalid<Parameters> {
  if (given === undefined) return 'skip'
  if (typeof given === 'function' || verdicts.includes(given)) return given
  return refuse('onInvalid', "must be 'skip', 'reject', 'throw', 'deliver' or a function")
}

/** The result for a message; undefined when it is skipped. */
export type Taken<Parameters, Value> = Received<Parameters, Value> | Invalid<Parameters> | undefined

/** Counters shared by all subscriptions of a channel: only the first invalid payload is logged. */
export interface Tally {
  invalid: number
}

/** The messages of one subscription. */
export class Incoming<Template extends string, Value> {
  /** Messages whose payload or topic did not fit. */
  invalid = 0
  /** What to do with invalid payloads. */
  readonly policy: OnInvalid<Params<Template>>
  readonly #template: TopicTemplate<Template>
  readonly #codec: Codec<never, Value>
  readonly #access: ClientAccess
  readonly #tally: Tally
  readonly #known = new Map<string, Params<Template>>()

  constructor(
    template: TopicTemplate<Template>,
    codec: Codec<never, Value>,
    policy: OnInvalid<Params<Template>>,
    client: ClientAccess,
    tally: Tally,
  ) {
    this.#template = template
    this.#codec = codec
    this.policy = policy
    this.#access = client
    this.#tally = tally
  }

  /**
   * The value to deliver for a message, or a promise of it; undefined when it is skipped. `again`:
   * the message is retried after its handler failed, so an invalid one is not counted and reported
   * again.
   * @throws MqttError ERR_INVALID_PAYLOAD under `'throw'`
   */
  take(
    message: Message,
    again = false,
  ): Taken<Params<Template>, Value> | Promise<Taken<Params<Template>, Value>> {
    const params = this.#paramsOf(message.topic)
    if (params === undefined)
      return this.#refuse(
        params,
        message,
        invalid(
          [{ message: `topic does not match '${this.#template.template}'` }],
          undefined,
          true,
        ),
        again,
      )
    try {
      const value = decoded(this.#codec, message)
      return value instanceof Promise
        ? this.#late(params, message.detach(), value, again)
        : { params, value, message }
    } catch (error) {
      return this.#refuse(params, message, error as MqttError, again)
    }
  }

  // Called with a detached message, because a borrowed one may change before the value is there.
  async #late(
    params: Params<Template>,
    message: Message,
    value: Promise<Value>,
    again: boolean,
  ): Promise<Taken<Params<Template>, Value>> {
    try {
      return { params, value: await value, message }
    } catch (error) {
      return this.#refuse(params, message, error as MqttError, again)
    }
  }

  /** Logs a mistake of the program. */
  report(what: string, error: unknown): void {
    this.#access.log?.('error', what, error)
  }

  // Parameters are cached by topic, and frozen because messages share them.
  #paramsOf(topic: string): Params<Template> | undefined {
    const known = this.#known.get(topic)
    if (known !== undefined) return known
    const params = this.#template.match(topic)
    if (params === undefined) return undefined
    if (this.#known.size >= mostKnown) this.#known.clear()
    Object.freeze(params)
    this.#known.set(topic, params)
    return params
  }

  #refuse(
    params: Params<Template> | undefined,
    message: Message,
    error: MqttError,
    again: boolean,
  ): Invalid<Params<Template>> | undefined {
    // An empty payload removes a retained message.
    if (message.payloadLength === 0 && params !== undefined) return void message.ack()
    if (!again) this.#count(message, error)
    const found = { params, error, message }
    const verdict = this.#verdict(found)
    if (verdict === 'deliver') return found
    message.ack(verdict === 'skip' ? 0 : formatInvalid)
    if (verdict === 'throw') throw error
    return undefined
  }

  #count(message: Message, error: MqttError): void {
    const { topic, payload } = message
    this.invalid += 1
    this.#tally.invalid += 1
    this.#access.reportInvalid(
      { topic, error, start: new Uint8Array(payload.subarray(0, startLength)) },
      this.#tally.invalid === 1,
      message,
    )
  }

  // A function that throws, or returns no verdict, counts as `'skip'`.
  #verdict(found: Invalid<Params<Template>>): InvalidVerdict {
    if (typeof this.policy !== 'function') return this.policy
    try {
      const verdict: unknown = this.policy(found)
      if (isPromise(verdict)) verdict.then(undefined, () => undefined)
      return verdicts.includes(verdict) ? (verdict as InvalidVerdict) : 'skip'
    } catch {
      return 'skip'
    }
  }
}
