/**
 * Where a client stands: the table of its states, and what goes with each.
 *
 * It must never leave a state for one that the table does not name, and announces each transition once.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import type { Emitter } from '../../common/emitter.js'
import type { MqttError } from '../../errors.js'
import type { ClientEvents, ClientState } from '../options/index.js'

/** From each state to where it may lead. */
const successors: Readonly<Record<ClientState, readonly ClientState[]>> = {
  idle: ['connecting', 'disconnecting', 'closed'],
  connecting: ['connected', 'reconnecting', 'disconnecting', 'closed'],
  connected: ['reconnecting', 'disconnecting', 'closed'],
  reconnecting: ['connected', 'reconnecting', 'disconnecting', 'closed'],
  // A connection that is made again while the client ends does not change that state.
  disconnecting: ['closed'],
  closed: [],
}

/** The state of one client. */
export class States {
  current: ClientState = 'idle'
  /** Called at the end. */
  dismiss: (() => void) | undefined
  /** The session ends with the connection that is being ended. */
  sessionEnds = false
  /** A lost connection is made again also while the client ends. */
  draining = false
  /** Nothing new is published any more: the last turn has ended. */
  sealed = false
  /** What ended the client, or why no connection came any more while it ended. */
  failure: MqttError | undefined
  /** The program asked for `closed`. */
  watched = false
  /** What the program did to end it. */
  by = ''
  readonly #events: Emitter<ClientEvents>
  /** Fulfils when a connection is up, rejects when the client is closed. */
  #arrival: Deferred<void> | undefined
  #closed: Deferred<MqttError | undefined> | undefined
  #end: { readonly error: MqttError | undefined } | undefined

  constructor(events: Emitter<ClientEvents>) {
    this.#events = events
  }

  /** Settles at the end, with what ended the client. */
  get closed(): Promise<MqttError | undefined> {
    if (this.#closed === undefined) {
      this.#closed = deferred()
      if (this.#end !== undefined) this.#closed.resolve(this.#end.error)
    }
    return this.#closed.promise
  }

  /** Settles `closed`. */
  close(error: MqttError | undefined): void {
    this.#end = { error }
    this.#closed?.resolve(error)
    this.dismiss?.()
  }

  /** True when the client is closed. */
  get ended(): boolean {
    return this.current === 'closed'
  }

  /** Why it is closed, in words. */
  get why(): string {
    return this.failure?.message ?? (this.by && `${this.by} was called`)
  }

  /** True once `disconnect()` began. */
  get stopping(): boolean {
    return this.ended || this.current === 'disconnecting'
  }

  /** Goes there, if the table allows it. */
  enter(state: ClientState): void {
    const previous = this.current
    if (!successors[previous].includes(state)) return
    this.current = state
    this.#events.emit('state', { state, previous })
  }

  /** Fulfils when a connection is up. */
  awaited(): Promise<void> {
    this.#arrival ??= deferred()
    return this.#arrival.promise
  }

  /** True while a call waits for a connection. */
  get awaits(): boolean {
    return this.#arrival !== undefined
  }

  /** Gives those who wait for a connection; who comes now waits for the next one. */
  arrive(): Deferred<void> | undefined {
    const arrival = this.#arrival
    this.#arrival = undefined
    return arrival
  }
}
