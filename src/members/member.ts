/**
 * One of several clients that act as one: its name, whether it is up, and what it has in flight.
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

/** What a member has to do: clients and pools do it. */
export interface MemberClient {
  /** Where it stands. */
  readonly state: ClientState
  /** Fulfils when a publish would not have to wait. */
  readonly writable: Promise<void>
  /** Opens its connection. */
  connect(options?: ConnectOptions): Promise<unknown>
  /** Ends it in order. */
  disconnect(options?: DisconnectOptions): Promise<void>
  /** As `disconnect()`, and waits for what is queued or in flight. */
  drain(options?: DisconnectOptions): Promise<void>
  /** Publishes a message. */
  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt>
  /** Publishes at QoS 0, now or not at all. */
  post(topic: string, payload: Payload): boolean
  /** Adds a listener of events. */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /** Has hooks called around its publishes and messages; gives a function that ends it. */
  use(hooks: Hooks): Unlisten
}

/** A clock and its timers, in milliseconds: those of the runtime, or of a test. */
export type Time = NonNullable<ClientAccess['platform']>

/** What clients of this package have behind their public side, and pools. */
interface Behind {
  [access]?(): ClientAccess
  /** Of a pool. */
  members?(): readonly { readonly client: object }[]
}

/** Internals of a member's client; undefined for a client of another package. */
export function accessOf({ client }: { readonly client: object }): ClientAccess | undefined {
  return (client as Behind)[access]?.()
}

/** The time of a client, or of the first one of a pool; the runtime's where there is no client, or one that gives none. */
export function timeOf(client: object | undefined): Time {
  const { [access]: behind, members } = (client ?? {}) as Behind
  const first = members?.call(client)[0]
  return first === undefined ? (behind?.call(client).platform ?? runtime) : timeOf(first.client)
}

/** A member. */
export class Member<C extends MemberClient = MemberClient> {
  readonly name: string
  readonly client: C
  /** The time that its client has. */
  readonly time: Time
  /** Publishes that were handed to it and have not settled. */
  inFlight = 0
  /** It takes nothing new: it was removed. */
  leaving = false
  /** It has left a publish without an answer for long, and has answered none since. */
  stalled = false
  /** Why the latest attempt to connect failed, the connection was lost, or the client has ended; undefined while there is a connection. */
  error: MqttError | undefined
  /** Fulfils when its client has ended, and `error` says why. */
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
      // It may end without an attempt that failed, or a connection that was lost.
      this.error ??= error
    })
  }

  /** True while it is connected and takes publishes. */
  get up(): boolean {
    return this.client.state === 'connected' && !this.leaving
  }

  /** True while it is up and answers. */
  get healthy(): boolean {
    return this.up && !this.stalled
  }

  /** True when it takes nothing any more: it was removed, or its client is closing or closed. */
  get over(): boolean {
    const { state } = this.client
    return this.leaving || state === 'disconnecting' || state === 'closed'
  }

  /** Hands it a publish. @param queues its client keeps it where there is no connection, unless its options say otherwise */
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
   * Begins to connect, unless that was done. Fulfils when it is up; rejects when its first round over its endpoints has failed, though it goes on trying,
   * or with the abort of the signal, which ends only the wait.
   */
  connect(signal: AbortSignal | undefined): Promise<void> {
    if (this.up) return Promise.resolve()
    this.#first ??= this.#firstRound()
    return within(this.#first, signal)
  }

  /** It takes nothing new, and ends when what it has is done. @throws as `end` */
  leave(options: DisconnectOptions): Promise<void> {
    this.leaving = true
    return this.end('drain', options)
  }

  /** Ends it; a further call joins. What its connection does not take of the options is left out, and reported. @throws MqttError as the client */
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

  // Where nothing is asked of it any more, nothing says that it does not answer.
  #settled(): void {
    this.inFlight -= 1
    if (this.inFlight === 0) this.stalled = false
  }

  #firstRound(): Promise<void> {
    const { promise, resolve, reject } = deferred<void>()
    const { client } = this
    const failed = (): void => reject(this.error ?? new MqttError('ERR_NOT_CONNECTED'))
    // A pool rejects when all its connections have failed; the events are those of one.
    const stop = 'resize' in client ? undefined : client.on('reconnecting', failed)
    // A client that is there already may be behind its first round.
    if (client.state === 'reconnecting') failed()
    const up = client.state === 'connected' ? Promise.resolve() : client.connect()
    // One that has ended says only that.
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
