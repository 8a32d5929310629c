/**
 * Clients and a broker on one virtual clock, connected by links that tests can cut. A virtual hour
 * takes milliseconds.
 *
 * The replacements for a program under test (`connect`, `Client`, `sleep`, `now`) have the
 * signatures of the originals. It does not keep the process alive, and uses no timer of the
 * platform where `MessageChannel` exists. It must never be part of a bundle that does not import
 * it.
 */

import { BaseClient, connectWith } from '../client/client.js'
import { socketSettings, tlsSettings } from '../client/options/check-sockets.js'
import type { ClientOptions, ConnectOptions, Endpoint } from '../client/options/index.js'
import type { Platform } from '../client/platform.js'
import { aborted, onAbort } from '../common/abort.js'
import { MqttError } from '../errors.js'
import { checkNames } from '../transport/names.js'
import { MemoryBroker } from './broker/broker.js'
import { checkDuration, checkInteger, checkType, invalid, kindOf } from './broker/common/check.js'
import type { MemoryBrokerOptions } from './broker/common/options.js'
import { LiveClock } from './live-clock.js'
import { Network } from './network.js'
import type { VirtualClock } from './virtual-clock.js'
import { virtualPlatform } from './virtual-platform.js'

/** Options of `new VirtualWorld()`. Everything has a default. */
export interface VirtualWorldOptions {
  /** Options of the broker, except its clock, which is that of the world. Default: none. */
  readonly broker?: Omit<MemoryBrokerOptions, 'clock'> | undefined
  /**
   * Seed of all random numbers of the clients, such as the jitter of reconnects: 0 to
   * 4,294,967,295. Default 1: every run is the same.
   */
  readonly seed?: number | undefined
  /**
   * Date and time at the start: a Date, or epoch milliseconds. Default 0: 1 January 1970, UTC. See
   * {@link VirtualWorld.now}.
   */
  readonly date?: Date | number | undefined
}

/** How {@link VirtualWorld.cut} cuts. */
export interface CutOptions {
  /**
   * True: neither end is notified, as when radio contact is lost; only keep-alive detects the cut.
   * Default false: both ends are notified immediately.
   */
  readonly silently?: boolean | undefined
}

/** How {@link VirtualWorld.sleep} sleeps. */
export interface SleepOptions {
  /** Ends the sleep: it rejects with `ERR_ABORTED`. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Clients and a broker on one virtual clock. Operations that take no time complete by themselves:
 * await `connect`, `publish` and `subscribe` as usual. Everything that takes time (keep-alive,
 * reconnect delays, message and session expiry, will delay, timeouts, `sleep`) happens during
 * {@link pass} and {@link until}, each timer at its own time, and promises settle in between.
 * `await using` closes it at the end of the block.
 *
 * Timers of the platform (`setTimeout`, `AbortSignal.timeout`) do not use this clock: pass `sleep`
 * and `now` to the program under test too, or advance fake timers in step. Work outside of the
 * world, such as reading a file, takes no virtual time: await it before advancing the clock.
 */
export class VirtualWorld {
  /**
   * The clock of clients and broker. Use it as `clock` of further brokers; `setTimer` sets a timer;
   * `pending` is the number of timers that are set.
   */
  readonly clock: VirtualClock

  /**
   * The broker for every URL. An endpoint with its own `transport` uses that instead: `{ url,
   * transport: another.dial }`.
   */
  readonly broker: MemoryBroker

  /**
   * As `Client` of `mqwire`, in this world. Instances can be used wherever a `Client` is expected.
   * Throws as `Client` does. Works when passed on alone.
   */
  readonly Client: new (
    endpoints: Endpoint | readonly Endpoint[],
    options?: ClientOptions,
  ) => BaseClient

  /**
   * As `connect` of `mqwire`, in this world: any URL of any scheme reaches the broker. Rejects as
   * `connect` does. Works when passed on alone: `startService({ connect: world.connect })`.
   */
  readonly connect: (
    endpoints: Endpoint | readonly Endpoint[],
    options?: ClientOptions & ConnectOptions,
  ) => Promise<BaseClient>

  /**
   * As `setTimeout` of `node:timers/promises`, in this world: fulfils with `value` after `delay`
   * milliseconds (at least 0, below 2^53). Rejects with `ERR_ABORTED`, an AbortError, when the
   * signal aborts, and with `ERR_INVALID_OPTION`. Works when passed on alone.
   */
  readonly sleep: <T = void>(delay: number, value?: T, options?: SleepOptions) => Promise<T>

  /**
   * As `Date.now`, in this world: epoch milliseconds, starting at the option `date`. Works when
   * passed on alone.
   */
  readonly now: () => number

  /** Clients that have not ended. */
  readonly #clients = new Set<BaseClient>()
  #made = 0
  readonly #network: Network

  /** @throws MqttError ERR_INVALID_OPTION */
  constructor(options: VirtualWorldOptions = {}) {
    const { broker, seed, start } = parse(options)
    const clock = new LiveClock()
    this.clock = clock
    this.broker = new MemoryBroker({ ...broker, clock })
    this.#network = new Network(this.broker.dial)
    this.now = () => start + clock.now()
    this.Client = this.#clientClass(seed)
    this.connect = connectWith(this.Client)
    this.sleep = async (delay, value, more) => {
      await sleeping(clock, delay, more)
      return value as never
    }
  }

  /**
   * Advances the time by `duration` virtual milliseconds and runs each timer at its own time.
   * Fulfils when the time has passed. Concurrent calls run one after the other.
   *
   * Rejects with `ERR_INVALID_OPTION` unless the duration is at least 0 and below 2^53, and with
   * the error that a timer throws.
   */
  async pass(duration: number): Promise<void> {
    await this.clock.advance(duration)
  }

  /**
   * Advances the time until a promise has settled or a function returns a truthy value, and returns
   * that value. Time advances from timer to timer; a function is called after each.
   *
   * Rejects as the promise does; with `ERR_TIMEOUT` when it takes more than `within` virtual
   * milliseconds (default one hour), or when no timer is left; with `ERR_INVALID_OPTION`.
   */
  async until<T>(what: PromiseLike<T> | (() => T), within = 3_600_000): Promise<T> {
    checkDuration('within', within)
    const { clock } = this
    const goal = goalOf(what)
    const end = clock.now() + within
    await clock.settle()
    while (!goal.isReached()) {
      const { next } = clock
      if (next === undefined)
        throw new MqttError('ERR_TIMEOUT', 'nothing is left to wait for: no timer is set')
      if (next > end)
        throw new MqttError('ERR_TIMEOUT', `it takes more than ${within} ms of the virtual clock`)
      await clock.advance(Math.max(0, next - clock.now()))
    }
    return goal.value()
  }

  /**
   * Cuts the link of a client, or of all clients: connections break, and dialling fails (with
   * `silently: true` it hangs) until the returned function is called, which restores the link. Cuts
   * accumulate: after two, both must be undone. A connection that was cut stays lost. Endpoints
   * with their own `transport` are not affected.
   *
   * @param clientId the client identifier; undefined cuts all clients, including future ones
   * @throws MqttError ERR_INVALID_OPTION, also when no client of this world had that identifier
   */
  cut(clientId?: string, options: CutOptions = {}): () => void {
    checkNames('cut', options, ['silently'])
    const { silently = false } = options
    checkType('silently', silently, 'boolean')
    if (clientId !== undefined) this.#checkClient(clientId)
    return this.#network.cut(clientId, silently)
  }

  /**
   * Destroys the clients, closes the broker, and runs all due timers. Timers that are still set
   * afterwards (`clock.pending`) belong to the program. Never rejects.
   */
  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy()
    await this.broker.close()
    await this.clock.settle()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #checkClient(clientId: string): void {
    checkType('clientId', clientId, 'string')
    const { clientIds } = this.#network
    if (!clientIds.includes(clientId))
      throw invalid(
        'clientId',
        `must be that of a client of this world: ${clientIds.join(', ') || 'there is none'}`,
      )
  }

  #clientClass(seed: number): VirtualWorld['Client'] {
    const world = this
    const platformOf = (clientId: () => string | undefined): Platform => {
      const dial = world.#network.add(clientId)
      return {
        ...virtualPlatform(world.clock, Math.imul(seed + world.#made++, 2_654_435_761)),
        date: world.now,
        dialler: () => dial,
        tls: tlsSettings,
        socket: socketSettings,
      }
    }
    return class extends BaseClient {
      static override readonly name = 'Client'

      constructor(endpoints: Endpoint | readonly Endpoint[], options: ClientOptions = {}) {
        // If the options are refused, there is no client.
        const made: { client?: BaseClient } = {}
        super(
          platformOf(() => made.client?.clientId),
          endpoints,
          options,
        )
        made.client = this
        world.#clients.add(this)
        this.closed.then(() => world.#clients.delete(this))
      }
    }
  }
}

interface Settings {
  readonly broker: MemoryBrokerOptions
  readonly seed: number
  /** Epoch milliseconds. */
  readonly start: number
}

function parse(options: VirtualWorldOptions): Settings {
  checkNames('options', options, ['broker', 'seed', 'date'])
  const { broker = {}, seed = 1, date = 0 } = options
  checkInteger('seed', seed, 0, 0xffff_ffff)
  if ('clock' in broker)
    throw invalid('broker.clock', 'must be left out: the broker has the clock of the world')
  const start = date instanceof Date ? date.getTime() : date
  if (!Number.isFinite(start))
    throw invalid('date', `must be a Date or epoch milliseconds, not ${kindOf(start)}`)
  return { broker, seed, start }
}

function sleeping(clock: VirtualClock, delay: number, options: SleepOptions = {}): Promise<void> {
  checkNames('sleep', options, ['signal', 'ref'])
  checkDuration('delay', delay)
  const { signal } = options
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(() => {
      stop()
      resolve()
    }, delay)
    const stop = onAbort(signal, () => {
      cancel()
      reject(aborted(signal))
    })
  })
}

interface Goal<T> {
  isReached(): boolean
  /** Once it is reached: gives or throws what it came to. */
  value(): T
}

function goalOf<T>(what: PromiseLike<T> | (() => T)): Goal<T> {
  if (typeof what === 'function') {
    let last: T
    return {
      isReached() {
        last = what()
        return Boolean(last)
      },
      value: () => last,
    }
  }
  if (typeof what?.then !== 'function')
    throw invalid('until', `takes a promise or a function, not ${kindOf(what)}`)
  let settled: (() => T) | undefined
  what.then(
    (value) => {
      settled = () => value
    },
    (error: unknown) => {
      settled = () => {
        throw error
      }
    },
  )
  return { isReached: () => settled !== undefined, value: () => (settled as () => T)() }
}
