/**
 * A consumer as a member of a shared subscription, and how it leaves: UNSUBSCRIBE first, then
 * everything that it holds or the broker still sends is handled, then its subscription ends.
 *
 * Its readers must keep reading meanwhile. Unhandled messages are never acknowledged, and a filter
 * that another reader of this client uses is never unsubscribed.
 */
import { deferred, silent, within } from '../../common/abort.js'
import { closedError } from '../../common/outcome.js'
import { ownListener } from '../../common/own-listener.js'
import { MqttError } from '../../errors.js'
import type { ClientAccess, LeavingShare, ShareBook, ShareReader } from '../access.js'
import type {
  ClientEvents,
  Filters,
  Handler,
  Handling,
  Lag,
  LagSource,
  ListenerOptions,
  ListenOptions,
  Message,
  SubscribeOptions,
  Subscription,
  Unlisten,
} from '../options/index.js'

/** Milliseconds between two checks of a reader that is not done. */
const step = 20
/** The longest interval while disconnected. */
const longestStep = 1000

/** Where the broker publishes the group's backlog; checked. */
export interface LagCall {
  readonly topic: string
  readonly read: LagSource['read']
}

/** A shared subscription and one of its readers. */
export interface Joined {
  readonly client: SharingClient
  /** With `$share/`, as subscribed. */
  readonly filter: string
  readonly book: ShareBook
  readonly share: LeavingShare
  readonly reader: ShareReader
  /** Milliseconds without messages that count as the end. */
  readonly quiet: number
  readonly behind: Required<Pick<ClientAccess, 'platform' | 'session' | 'connections'>>
}

/** The progress of a member that leaves. */
interface Departure {
  /** Resolves at UNSUBACK. */
  readonly departed: Promise<void>
  readonly handled: Promise<void>
}

/** A member of a group. */
export class GroupMembership {
  /**
   * Increase whenever the reader asks for more: two checks that both find it idle may have missed a
   * message in between.
   */
  moves = 0
  /** Ends the subscription on this client; set once it is granted. */
  end: (() => Promise<void>) | undefined
  /** Resolves when the lag topic is subscribed. */
  readonly listening: Promise<Handling> | undefined
  readonly #of: Joined
  #brokerLag: number | undefined
  #leaving: Departure | undefined
  #unwatch: (() => void) | undefined
  #closed = false
  /** The server has lost the session, so it sends no more messages of the share. */
  #lost = false

  constructor(of: Joined, lag: LagCall | undefined) {
    this.#of = of
    const hear = (message: Message): void => {
      const text = message.text().trim()
      const value =
        lag?.read === undefined ? Number(text === '' ? Number.NaN : text) : lag.read(message)
      if (typeof value === 'number' && value >= 0) this.#brokerLag = value
    }
    this.listening = lag && silent(of.client.listen(lag.topic, hear))
  }

  /** True while connected. */
  get connected(): boolean {
    return this.#of.behind.session.state === 'connected'
  }

  /** The messages that wait, here and at the broker. */
  lag(): Lag {
    const { size, unacknowledged, config } = this.#of.reader
    // With manual acknowledgement, a message is done once it is settled.
    const inHand = unacknowledged.messages.filter(
      ({ settled }) => config.ack !== 'manual' || !settled,
    )
    return { buffered: size, inHand: inHand.length, broker: this.#brokerLag }
  }

  /** Unsubscribes the lag topic. */
  hush(): void {
    this.listening?.then((handling) => handling.unsubscribe()).catch(() => undefined)
  }

  /**
   * Starts to leave, or joins that; resolves at UNSUBACK. @throws MqttError
   * ERR_UNSUBSCRIBE_REFUSED, ERR_CLOSED
   */
  unsubscribe(): Promise<void> {
    return this.#leave().departed
  }

  /**
   * The same, then waits until everything is handled, for at most `timeout` milliseconds. @throws
   * MqttError ERR_TIMEOUT, ERR_ABORTED, and as `unsubscribe()`
   */
  async drain(timeout: number, signal: AbortSignal | undefined): Promise<void> {
    const { handled } = this.#leave()
    const late = deferred<never>()
    const giveUp = (): void => {
      const { buffered, inHand } = this.lag()
      const left = `${inHand} messages in hand and ${buffered} in the buffer`
      late.reject(
        new MqttError('ERR_TIMEOUT', `not drained in ${timeout} ms: ${left}`, {
          outcome: 'unknown',
        }),
      )
    }
    const cancel = this.#of.behind.platform.setTimer(giveUp, timeout)
    try {
      await within(Promise.race([handled, late.promise]), signal, 'unknown')
    } finally {
      cancel()
    }
  }

  #leave(): Departure {
    if (this.#leaving !== undefined) return this.#leaving
    const { reader, share } = this.#of
    const { takers } = share
    this.hush()
    // If others read this filter on this client, the messages are left to them.
    const alone = takers.size === Number(takers.has(reader))
    const departed = silent(alone ? this.#withdraw() : this.#end())
    const handled = silent(departed.then(() => (alone ? this.#finish() : undefined)))
    this.#leaving = { departed, handled }
    departed.catch(() => {
      // Leaving failed: it is still a member.
      this.#leaving = undefined
    })
    return this.#leaving
  }

  async #end(): Promise<void> {
    if (this.#of.share.takers.has(this.#of.reader)) await this.end?.()
  }

  async #withdraw(): Promise<void> {
    const { book, client, filter, share } = this.#of
    if (book.byFilter.get(filter) !== share || share.lingers) return
    // The client may already be unsubscribing it.
    const { state } = share
    share.lingers = true
    this.#unwatch = this.#watch()
    try {
      await client.unsubscribe(filter)
    } catch (error) {
      share.lingers = false
      if (book.byFilter.get(filter) === share) share.state = state
      this.#unwatch()
      throw error
    }
  }

  async #finish(): Promise<void> {
    const { reader, share } = this.#of
    if (!share.lingers) return
    if (share.takers.has(reader)) await this.#drained()
    if (share.takers.has(reader)) this.#forget()
    else void this.#abandon()
  }

  #forget(): void {
    this.#unwatch?.()
    this.#of.book.forget(this.#of.share)
  }

  // Without a reader, remaining messages stay unacknowledged until the session ends or is lost.
  async #abandon(): Promise<void> {
    for (let before = -1; before !== this.moves; ) {
      // Reconnecting may take long, so checks become less frequent.
      for (let delay = step; !this.connected; delay = Math.min(longestStep, delay * 2)) {
        if (this.#closed || this.#lost) return
        await this.#sleep(delay)
      }
      before = this.moves
      await this.#turnAround()
      await this.#sleep(this.#of.quiet)
    }
    if (this.#of.share.requeued.length === 0) this.#forget()
  }

  // Watches the connection; returns a function that stops that.
  #watch(): () => void {
    const { client, reader, share } = this.#of
    const unlisten = [
      client.on('sessionlost', () => {
        this.#lost = true
        if (!share.takers.has(reader)) this.#forget()
      }),
      // Idle time before a disconnect does not count.
      client.on(
        'disconnect',
        ownListener(() => {
          this.moves += 1
        }),
      ),
    ]
    client.closed.then(() => {
      this.#closed = true
    })
    return () => {
      for (const stop of unlisten) stop()
    }
  }

  // Resolves when everything is handled and nothing more comes, or when the reader is gone.
  async #drained(): Promise<void> {
    const { quiet, reader, share } = this.#of
    const idle = (): boolean => !reader.busy && reader.size === 0
    while (share.takers.has(reader)) {
      if (this.#closed && !idle()) throw closedError()
      if (idle() && (this.#lost || this.#closed)) return
      const { moves } = this
      // Without a connection, nothing arrives and the broker cannot be asked.
      if (idle() && this.connected) {
        await this.#turnAround()
        await this.#sleep(quiet)
        if (idle() && moves === this.moves) return
      } else await this.#sleep(step)
    }
  }

  // A round trip with PINGREQ: what the broker sent after the last acknowledgement has arrived by
  // its end.
  async #turnAround(): Promise<void> {
    const { platform, session, connections } = this.#of.behind
    if (!session.keepAlive.asked) session.ask(platform.now())
    connections.pump()
    while (session.keepAlive.asked && session.state === 'connected') await this.#sleep(step)
  }

  #sleep(delay: number): Promise<void> {
    return new Promise((resolve) => void this.#of.behind.platform.setTimer(resolve, delay))
  }
}

/** The part of a client that group members need; must come from this copy of the package. */
export interface SharingClient {
  /** Resolves once the client is closed. */
  readonly closed: Promise<unknown>
  /** Subscribes at once, in any state. */
  subscription(filters: Filters, options?: SubscribeOptions): Subscription
  /** Subscribes and calls a handler with each message. */
  listen(filters: Filters, handler: Handler, options?: ListenOptions): Promise<Handling>
  /** Ends subscriptions on the broker. */
  unsubscribe(filters: string): Promise<unknown>
  /** Adds a listener of events. */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
}
