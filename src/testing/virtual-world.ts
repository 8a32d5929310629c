/**
 * A world for tests: clients and a broker on one virtual clock, with links between them that can be cut. An hour passes in milliseconds.
 *
 * What a program under test takes from outside (`connect`, `Client`, `sleep`, `now`) has the form of the real thing. No process is kept alive, and no
 * timer of the platform is used where there are channels. It must never be part of a bundle that does not import it.
 */

import { BaseClient, connectWith } from '../client/client.js'
import { socketSettings, tlsSettings } from '../client/options/check-endpoint.js'
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
  /** Options of the broker, but for its clock, which is that of the world. Default: none. */
  readonly broker?: Omit<MemoryBrokerOptions, 'clock'> | undefined
  /** Decides every random number of the clients, such as the jitter of reconnects: 0 to 4,294,967,295. Default 1: every run is the same. */
  readonly seed?: number | undefined
  /** The calendar's time at the start: a Date, or epoch milliseconds. Default 0: 1 January 1970, UTC. See {@link VirtualWorld.now}. */
  readonly date?: Date | number | undefined
}

/** How {@link VirtualWorld.cut} cuts. */
export interface CutOptions {
  /** True: neither end is notified, as where radio contact is lost; keep-alive has to find out. Default false: both ends notice at once. */
  readonly silently?: boolean | undefined
}

/** How {@link VirtualWorld.sleep} sleeps. */
export interface SleepOptions {
  /** Wakes the sleeper, with `ERR_ABORTED`. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Clients and a broker on one virtual clock. What takes no time happens by itself: await `connect`, `publish` and `subscribe` as ever. What takes
 * time (keep-alive, reconnect delays, message and session expiry, will delay, timeouts, `sleep`) happens in {@link pass} and {@link until}, each thing
 * at its own time, and promises settle in between. `await using` closes it at the end of the block.
 *
 * Timers of the platform (`setTimeout`, `AbortSignal.timeout`) know nothing of this clock: give the program under test `sleep` and `now` too, or move
 * fake timers along. What goes on outside of the world, such as reading a file, takes no time of it: let it end first.
 */
export class VirtualWorld {
  /** The clock of everything here. Further brokers take it as their `clock`; `setTimer` sets a timer; `pending` counts the timers that are set. */
  readonly clock: VirtualClock

  /** The broker that every URL leads to. An endpoint with a `transport` of its own goes there instead: `{ url, transport: another.dial }`. */
  readonly broker: MemoryBroker

  /** As `Client` of `mqwire`, in this world: what it makes may stand wherever a `Client` is wanted. Throws as that does. May be passed on alone. */
  readonly Client: new (
    endpoints: Endpoint | readonly Endpoint[],
    options?: ClientOptions,
  ) => BaseClient

  /**
   * As `connect` of `mqwire`, in this world: any URL of any scheme leads to the broker. Rejects as that does. May be passed on alone:
   * `startService({ connect: world.connect })`.
   */
  readonly connect: (
    endpoints: Endpoint | readonly Endpoint[],
    options?: ClientOptions & ConnectOptions,
  ) => Promise<BaseClient>

  /**
   * As `setTimeout` of `node:timers/promises`, in this world: fulfils with `value` after `delay` milliseconds (at least 0, below 2^53). Rejects with
   * `ERR_ABORTED`, an AbortError, when the signal aborts, and with `ERR_INVALID_OPTION`. May be passed on alone.
   */
  readonly sleep: <T = void>(delay: number, value?: T, options?: SleepOptions) => Promise<T>

  /** As `Date.now`, in this world: epoch milliseconds, beginning at the option `date`. May be passed on alone. */
  readonly now: () => number

  /** Those that have not ended. */
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
   * Lets time pass, in milliseconds of this world: everything that falls into it happens at its own time. Fulfils when it has passed. A call while
   * another one is under way follows it.
   *
   * Rejects with `ERR_INVALID_OPTION` unless the duration is at least 0 and below 2^53, and with what a timer has thrown.
   */
  async pass(duration: number): Promise<void> {
    await this.clock.advance(duration)
  }

  /**
   * Lets time pass until a promise has settled, or a function gives something true; gives what the promise or the function gave. Time goes from
   * timer to timer, and a function is asked behind each.
   *
   * Rejects as the promise does; with `ERR_TIMEOUT` when it takes more than `within` milliseconds of this world (default one hour), or when no timer
   * is left that anything could come from; with `ERR_INVALID_OPTION`.
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
   * Cuts the link of a client, or of all: connections break, and dialling fails (`silently: true`: it hangs) until the returned function is called,
   * which mends the link. Cuts add up: where there are two, both have to be mended. A connection that was cut stays lost. Endpoints with a `transport`
   * of their own are not affected.
   *
   * @param clientId the client identifier; undefined cuts all, future clients too
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
   * Destroys the clients, closes the broker, and runs what that makes due. Timers that are still set then (`clock.pending`) are the program's own.
   * Never rejects.
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
        // Where options are refused there is no client.
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
