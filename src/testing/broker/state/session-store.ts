/**
 * The sessions of all clients (sections 3.1.2.4, 3.1.2.11 and 4.1): begins, resumes, expires and
 * ends them.
 *
 * A session that ends takes its subscriptions with it. Nothing here throws.
 */
import type { Will } from '../../../wire/packets.js'
import { after } from '../common/clock.js'
import type { BrokerClient } from '../common/events.js'
import type { BrokerSettings } from '../common/options.js'
import type { Delivery } from './message-queue.js'
import type { DeliveryLink, SessionConnection } from './ports.js'
import { NEVER, SessionState } from './session-state.js'
import type { SubscriptionTree } from './subscription-tree.js'
import type { Wills } from './wills.js'

/** A client whose connection has ended. */
export interface LeavingClient {
  readonly session: SessionState | undefined
  readonly will: Will | undefined
  readonly view: BrokerClient
}

/** See the file's comment. */
export class SessionStore {
  /** All sessions, connected or not. */
  readonly byClientId = new Map<string, SessionState>()
  readonly #settings: BrokerSettings
  readonly #subscriptions: SubscriptionTree
  readonly #wills: Wills
  /** Number of client identifiers assigned so far. */
  #assigned = 0

  constructor(settings: BrokerSettings, subscriptions: SubscriptionTree, wills: Wills) {
    this.#settings = settings
    this.#subscriptions = subscriptions
    this.#wills = wills
  }

  /** An identifier that no session has [MQTT-3.1.3-6] [MQTT-3.2.2-16]. */
  assignClientId(): string {
    const { random } = this.#settings
    for (;;) {
      const clientId = `auto-${++this.#assigned}${random === undefined ? '' : `-${Math.floor(random() * 2 ** 32).toString(36)}`}`
      if (!this.byClientId.has(clientId)) return clientId
    }
  }

  /**
   * Ends another connection of the client, and returns its session, resumed or new [MQTT-3.1.4-3]
   * [MQTT-3.1.2-4] to [MQTT-3.1.2-6]; undefined when the new connection has ended meanwhile.
   */
  enter(
    clientId: string,
    cleanStart: boolean,
    connection: SessionConnection,
  ): { session: SessionState; present: boolean } | undefined {
    this.byClientId.get(clientId)?.connection?.disconnect(0x8e)
    // Ending the old connection may have ended its session.
    const known = this.byClientId.get(clientId)
    if (known !== undefined && cleanStart) this.end(known)
    // A listener or a hook may have ended it meanwhile.
    if (connection.over) return undefined
    const present = known !== undefined && !known.ended
    const session = present ? known : new SessionState(clientId, this.#settings)
    this.byClientId.set(clientId, session)
    session.connection = connection
    session.keep?.()
    session.keep = undefined
    // [MQTT-3.1.3-9]
    session.will?.cancel()
    session.will = undefined
    return { session, present }
  }

  /**
   * Handles the end of a connection: its session is kept or ends, its will is published or delayed.
   */
  leave(
    { session, will, view }: LeavingClient,
    connection: SessionConnection,
    link: DeliveryLink,
  ): void {
    if (session === undefined || session.ended || session.connection !== connection) return
    session.connection = undefined
    session.deliveries.detach(link)
    this.#wills.take(session, will, view)
    const { expiryInterval } = session
    if (expiryInterval === 0) this.end(session)
    else if (expiryInterval < NEVER)
      session.keep = after(this.#settings.clock, expiryInterval * 1000, () => this.end(session))
  }

  /** Ends a session and publishes its delayed will, if any [MQTT-3.1.2-8]. */
  end(session: SessionState): void {
    if (session.ended) return
    const { will } = session
    const orphans = this.#forget(session)
    if (will !== undefined) this.#wills.publish(will.message, will.from)
    for (const { group, message } of orphans) group?.deliver(message)
  }

  /** Discards all sessions and their delayed wills. */
  clear(): void {
    for (const session of [...this.byClientId.values()]) this.#forget(session)
  }

  #forget(session: SessionState): Delivery[] {
    session.ended = true
    session.keep?.()
    session.will?.cancel()
    session.will = undefined
    this.#subscriptions.removeAll(session)
    if (this.byClientId.get(session.clientId) === session) this.byClientId.delete(session.clientId)
    return session.deliveries.end()
  }
}
