/**
 * One of several clients that act as one: its name, state and publishes in flight.
 */
import { access, type ClientAccess } from '../client/access.js'
import type {
  ClientEvents,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Hooks,
  ListenerOptions,
  Payload,
  PublishOptions,
  Receipt,
  Unlisten,
} from '../client/options/index.js'
import { runtime } from '../client/platform.js'
import { deferred, tolerant, within } from '../common/abort.js'
import { MqttError } from '../errors.js'

/** The interface of a member, which clients and pools implement. */
export interface MemberClient {
  /** The state of the connection. */
  readonly state: ClientState
  /** Fulfils when a publish would not wait. */
  readonly writable: Promise<void>
  /** Opens its connection. */
  connect(options?: ConnectOptions): Promise<unknown>
  /** Ends the connection in an orderly way. */
  disconnect(options?: DisconnectOptions): Promise<void>
  /** As `disconnect()`, and waits for queued publishes and publishes in flight. */
  drain(options?: DisconnectOptions): Promise<void>
  /** Publishes a message. */
  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt>
  /** Publishes at QoS 0 immediately, or discards the message. */
  post(topic: string, payload: Payload): boolean
  /** Adds a listener of events. */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /** Adds hooks around publishes and messages; returns a function that removes them. */
  use(hooks: Hooks): Unlisten
}

/** A clock and its timers, in milliseconds: those of the runtime, or of a test. */
export type Time = NonNullable<ClientAccess['platform']>

/** Internals of clients and pools of this package. */
interface Behind {
  [access]?(): ClientAccess
  /** Pools only. */
  members?(): readonly { readonly client: object }[]
}

/** Internals of a member's client; undefined for a client of another package. */
export function accessOf({ client }: { readonly client: object }): ClientAccess | undefined {
  return (client as Behind)[access]?.()
}

/**
 * The clock of a client, or of the first client of a pool; the runtime's clock for an empty pool.
 */
export function timeOf(client: object | undefined): Time {
  const { [access]: behind, members } = (client ?? {}) as Behind
  const first = members?.call(client)[0]
  return first === undefined ? (behind?.call(client).platform ?? runtime) : timeOf(first.client)
}

export class Member<C extends MemberClient = MemberClient> {
  readonly name: string
  readonly client: C
  /** The clock of its client. */
  readonly time: Time
  /** Publishes passed to it that have not settled. */
  inFlight = 0
  /** True once it was removed: it accepts nothing more. */
  leaving = false
  /** True after a publish was unanswered for too long, until the member answers again. */
  stalled = false
  /**
   * Why the latest attempt to connect failed, the connection was lost, or the client has ended;
   * undefined while there is a connection.
   */
  error: MqttError | undefined
  /** Fulfils when its client has ended; `error` is set to the reason. */
  readonly ended: Promise<void>
  #first: Promise<void> | undefined

  constructor(name: string, client: C) {
    this.name = name
    this.client = client
    this.time = timeOf(client)
    client.on('connect', () => {
      this.error = undefined
      this.stalled = false
    })
    client.on('connecterror', ({ error }) => {
      this.error = error
    })
    client.on('disconnect', ({ cause }) => {
      this.error = cause
    })
    const { closed } = client as { readonly closed?: Promise<MqttError | undefined> }
    const state = deferred<undefined>()
    if (closed === undefined)
      client.on('state', () => client.state === 'closed' && state.resolve(undefined))
    this.ended = (closed ?? state.promise).then((error) => {
      // A client may end without a failed attempt or a lost connection before.
      this.error ??= error
    })
  }

  /** True while it is connected and takes publishes. */
  get up(): boolean {
    return this.client.state === 'connected' && !this.leaving
  }

  /** True while it is up and not stalled. */
  get healthy(): boolean {
    return this.up && !this.stalled
  }

  /** True when it accepts nothing more: it was removed, or its client is closing or closed. */
  get over(): boolean {
    const { state } = this.client
    return this.leaving || state === 'disconnecting' || state === 'closed'
  }

  /**
   * Passes a publish to its client.
   * @param queues queue it without a connection, unless its options say otherwise
   */
  publish(
    topic: string,
    payload: Payload,
    options: PublishOptions | undefined,
    queues = false,
  ): Promise<Receipt> {
    this.inFlight += 1
    return tolerant(
      this.client
        .publish(topic, payload, queues && !this.up ? { offline: 'queue', ...options } : options)
        .then(
          (receipt) => {
            // At QoS 0 there is no answer: it was only written.
            if (receipt?.packetId === undefined) this.#settled()
            else this.#answered()
            return receipt
          },
          (error) => {
            if (MqttError.is(error) && error.outcome === 'refused') this.#answered()
            else this.#settled()
            throw error
          },
        ),
    )
  }

  /**
   * Connects, or joins a connect in progress. Fulfils when it is up. Rejects when the first round
   * over its endpoints has failed, though the client keeps trying. Aborting the signal also
   * rejects, and ends only the wait.
   */
  connect(signal: AbortSignal | undefined): Promise<void> {
    if (this.up) return Promise.resolve()
    this.#first ??= this.#firstRound()
    return within(this.#first, signal)
  }

  /** Accepts nothing more, and ends when its work is done. @throws as `end` */
  leave(options: DisconnectOptions): Promise<void> {
    this.leaving = true
    return this.end('drain', options)
  }

  /**
   * Ends it; a further call joins. If its client refuses the options, it ends with `timeout` and
   * `signal` only, and the error is thrown.
   * @throws MqttError as the client
   */
  async end(how: 'disconnect' | 'drain', options: DisconnectOptions): Promise<void> {
    const { timeout, signal } = options
    try {
      await this.client[how](options)
    } catch (error) {
      await this.client[how]({ timeout, signal })
      throw error
    }
  }

  #answered(): void {
    this.#settled()
    this.stalled = false
  }

  // With no publish pending, nothing shows that it does not answer.
  #settled(): void {
    this.inFlight -= 1
    if (this.inFlight === 0) this.stalled = false
  }

  #firstRound(): Promise<void> {
    const { promise, resolve, reject } = deferred<void>()
    const { client } = this
    const failed = (): void => reject(this.error ?? new MqttError('ERR_NOT_CONNECTED'))
    // The events of a pool are those of single connections, but its `connect()` rejects when all
    // have failed.
    const stop = 'resize' in client ? undefined : client.on('reconnecting', failed)
    // An existing client may have failed its first round before.
    if (client.state === 'reconnecting') failed()
    const up = client.state === 'connected' ? Promise.resolve() : client.connect()
    // The error of a closed client is less precise than `this.error`.
    void up.then(
      () => resolve(),
      (error) => reject(client.state === 'closed' ? (this.error ?? error) : error),
    )
    const over = (): void => {
      stop?.()
      this.#first = undefined
    }
    promise.then(over, over)
    return promise
  }
}
