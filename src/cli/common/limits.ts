/**
 * When a command that receives ends: after so many messages, so long, or such a silence.
 */
import type { Command } from 'commander'
import {
  type Client,
  type Message,
  MqttError,
  type QoS,
  type SubscribeOptions,
  type Subscription,
} from 'mqwire'
import type { RetainedOptions } from 'mqwire/typed'
import { option } from './connection.js'
import { answered, Ending } from './ending.js'
import { duration, whole } from './values.js'

/** What the options of this file become. */
export interface LimitValues {
  readonly count?: number
  readonly for?: number
  readonly quietFor?: number
}

/** Room for bursts: at QoS 0 the broker does not wait for what is written. */
export const roomy = {
  client: { memoryBudget: 128 * 1024 * 1024 },
  subscription: { buffer: 1_000_000, bufferBytes: 64 * 1024 * 1024 },
} as const

/** Adds the options; `silence`: also that of a silence. */
export function withLimits(command: Command, silence = true): Command {
  command
    .addOption(
      option(
        '-n, --count <number>',
        'end after so many messages',
        whole(1, Number.MAX_SAFE_INTEGER),
      ),
    )
    .addOption(
      option(
        '--for <time>',
        'end after this time; with --count, exit code 4 if fewer came',
        duration,
      ),
    )
  if (!silence) return command
  return command.addOption(
    option(
      '--quiet-for <time>',
      'end after such a time without a message; with --count, as --for',
      duration,
    ),
  )
}

/** The retained messages of filters. @throws Ending when the SUBSCRIBE is not answered */
export async function* retainedIn(
  client: Client,
  filters: readonly string[],
  options: RetainedOptions & { readonly quiet: number; readonly signal: AbortSignal },
): AsyncGenerator<Message> {
  const { retained } = await import('mqwire/typed')
  const messages = retained(client, filters, options)
  let next = await answered(messages.next(), options.signal, options.quiet)
  try {
    for (; !next.done; next = await messages.next()) yield next.value
  } finally {
    await messages.return()
  }
}

/** Most messages between two writes. */
const mostAtOnce = 256

/** Counts messages, and ends the reading of a subscription. */
export class Limits {
  readonly #values: LimitValues
  readonly #over = new AbortController()
  readonly #late = new AbortController()
  /** Aborts when the time is over. */
  readonly late = this.#late.signal
  /** Aborts when the time is over, enough has come, or the person interrupts. */
  readonly signal: AbortSignal
  readonly #interrupt: AbortSignal
  readonly #timer: NodeJS.Timeout | undefined
  #isQuiet = false
  /** Messages that have come. */
  received = 0

  constructor(values: LimitValues, interrupt: AbortSignal) {
    this.#values = values
    this.#interrupt = interrupt
    this.signal = AbortSignal.any([this.#over.signal, this.late, interrupt])
    if (values.for !== undefined) this.#timer = setTimeout(() => this.#late.abort(), values.for)
  }

  /** Messages that are still wanted. */
  get left(): number {
    return (this.#values.count ?? Number.POSITIVE_INFINITY) - this.received
  }

  /**
   * Subscribes; `more` holds on MQTT 5.0 only. Messages are acknowledged by `read`.
   * @throws Ending when the time is over before the grant
   */
  async subscribe(
    client: Client,
    filters: string | readonly string[],
    qos: QoS,
    more: Pick<SubscribeOptions, 'retainHandling' | 'noLocal'> = {},
  ): Promise<Subscription> {
    const options = client.negotiated?.protocolVersion === 5 && { retainAsPublished: true, ...more }
    try {
      return await client.subscribe(filters, {
        qos,
        ...roomy.subscription,
        ack: 'manual',
        signal: this.signal,
        ...options,
      })
    } catch (error) {
      if (!this.late.aborted) throw error
      throw new Ending('deadline', 'the broker did not answer the SUBSCRIBE in time')
    }
  }

  /**
   * Reads until a limit, many messages at a time; each is acknowledged when it is handled.
   * @throws Ending when messages were dropped, because the `sink` was too slow
   */
  async read(
    subscription: Subscription,
    handle: (batch: readonly Message[]) => Promise<void>,
    sink: string,
  ): Promise<void> {
    for (let next = await this.#next(subscription); next; next = await this.#next(subscription)) {
      const batch = [next]
      while (batch.length < Math.min(mostAtOnce, this.left)) {
        const another = subscription.read()
        if (another === undefined) break
        batch.push(another)
      }
      await handle(batch)
      for (const message of batch) message.ack()
    }
    const { dropped } = subscription
    if (dropped === 0) return
    const text = `${dropped} messages were dropped: ${sink} is slower than the broker`
    throw new Ending('lost', `${text}; with --qos 1 the broker waits`)
  }

  /** The next message; undefined at a limit, or at the end. What has come in time is still read. */
  async #next(subscription: Subscription): Promise<Message | undefined> {
    if (this.left <= 0 || this.#isQuiet || this.#interrupt.aborted) return undefined
    const waiting = subscription.read()
    if (waiting !== undefined || this.signal.aborted) return waiting
    try {
      return await subscription.next({ signal: this.signal, timeout: this.#values.quietFor })
    } catch (error) {
      if (!MqttError.is(error)) throw error
      if (error.code === 'ERR_ABORTED') return this.#next(subscription)
      if (error.code !== 'ERR_TIMEOUT') throw error
      this.#isQuiet = true
      return undefined
    }
  }

  /** Reads no more. */
  end(): void {
    this.#over.abort()
  }

  /** Stops the clock. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  /** @throws Ending when fewer messages came than were asked for */
  conclude(): void {
    const { count } = this.#values
    if (count !== undefined && this.left > 0 && !this.#interrupt.aborted)
      throw new Ending('deadline', `${this.received} of ${count} messages came in time`)
  }
}
