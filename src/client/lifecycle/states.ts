/**
 * The states of a client, the table of allowed transitions, and the values that belong to a state.
 * A state is never left for one that the table does not allow. Each transition is announced once.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import type { Emitter } from '../../common/emitter.js'
import type { MqttError } from '../../errors.js'
import type { ClientEvents, ClientState } from '../options/index.js'

/** Allowed next states. */
const successors: Readonly<Record<ClientState, readonly ClientState[]>> = {
  idle: ['connecting', 'disconnecting', 'closed'],
  connecting: ['connected', 'reconnecting', 'disconnecting', 'closed'],
  connected: ['reconnecting', 'disconnecting', 'closed'],
  reconnecting: ['connected', 'reconnecting', 'disconnecting', 'closed'],
  // Reconnecting during the shutdown does not change the state.
  disconnecting: ['closed'],
  closed: [],
}

/** The state of one client. */
export class States {
  current: ClientState = 'idle'
  /** Called at the end. */
  dismiss: (() => void) | undefined
  /** The session ends together with the connection. */
  sessionEnds = false
  /** During the shutdown, a lost connection is re-established. */
  draining = false
  /** Nothing new is published: the last turn has ended. */
  sealed = false
  /** The error that ended the client, or that prevented a connection during the shutdown. */
  failure: MqttError | undefined
  /** The program has read `closed`. */
  watched = false
  /** The call that ended the client. */
  by = ''
  readonly #events: Emitter<ClientEvents>
  /** Resolves when a connection is up, rejects when the client is closed. */
  #arrival: Deferred<void> | undefined
  #closed: Deferred<MqttError | undefined> | undefined

  constructor(events: Emitter<ClientEvents>) {
    this.#events = events
  }

  /** Resolves when the client is closed, with the error that ended it. */
  get closed(): Promise<MqttError | undefined> {
    return this.#closing.promise
  }

  get #closing(): Deferred<MqttError | undefined> {
    this.#closed ??= deferred()
    return this.#closed
  }

  /** Resolves `closed`. */
  close(error: MqttError | undefined): void {
    this.#closing.resolve(error)
    this.dismiss?.()
  }

  /** True when the client is closed. */
  get ended(): boolean {
    return this.current === 'closed'
  }

  /** Why it is closed, as text. */
  get why(): string {
    return this.failure?.message ?? (this.by && `${this.by} was called`)
  }

  /** True once `disconnect()` began. */
  get stopping(): boolean {
    return this.ended || this.current === 'disconnecting'
  }

  /** Enters a state if the table allows it. */
  enter(state: ClientState): void {
    const previous = this.current
    if (!successors[previous].includes(state)) return
    this.current = state
    this.#events.emit('state', { state, previous })
  }

  /** Resolves when a connection is up. */
  awaited(): Promise<void> {
    this.#arrival ??= deferred()
    return this.#arrival.promise
  }

  /** True while a call waits for a connection. */
  get awaits(): boolean {
    return this.#arrival !== undefined
  }

  /** Returns and resets the pending wait for a connection; later calls wait for the next one. */
  arrive(): Deferred<void> | undefined {
    const arrival = this.#arrival
    this.#arrival = undefined
    return arrival
  }
}
