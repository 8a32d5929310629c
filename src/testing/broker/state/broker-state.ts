/**
 * The state shared by all connections of a broker: settings, sessions and messages, and the path of
 * a message.
 *
 * All methods are synchronous; time comes only from the clock of the settings. Connections are
 * accessed only through the interfaces in `ports.ts`.
 */
import type { BrokerClock } from '../common/clock.js'
import type { HookName } from '../common/events.js'
import { FaultTable } from '../common/fault-table.js'
import type { BrokerMessage } from '../common/message.js'
import type { BrokerSettings } from '../common/options.js'
import { PublishBytes } from '../common/publish-bytes.js'
import { WriteBatch } from '../common/write-batch.js'
import { BrokerLog, type MessageOrigin } from './broker-log.js'
import type { WillHost } from './ports.js'
import { RetainedStore } from './retained.js'
import { SessionStore } from './session-store.js'
import { SubscriptionTree } from './subscription-tree.js'
import { Wills } from './wills.js'

/** See the file's comment. */
export class BrokerState implements WillHost {
  readonly settings: BrokerSettings
  readonly log: BrokerLog
  readonly faults: FaultTable
  readonly retained: RetainedStore
  readonly subscriptions = new SubscriptionTree()
  readonly wills = new Wills(this)
  readonly sessions: SessionStore
  readonly writes = new WriteBatch()
  readonly publishBytes = new PublishBytes()

  constructor(settings: BrokerSettings) {
    this.settings = settings
    this.log = new BrokerLog(settings)
    this.faults = new FaultTable(settings.faults)
    this.retained = new RetainedStore(settings)
    this.sessions = new SessionStore(settings, this.subscriptions, this.wills)
  }

  get clock(): BrokerClock {
    return this.settings.clock
  }

  reportHookError(hook: HookName, clientId: string, error: unknown): void {
    this.log.addHookError(hook, clientId, error)
  }

  /** Publishes an accepted message; false when no subscription matches. */
  publish(message: BrokerMessage, origin: MessageOrigin): boolean {
    const { from } = message
    if (from !== undefined) this.log.addAccepted(message, from, origin)
    if (message.retain && this.settings.retainAvailable) this.retained.set(message)
    this.log.events.emit('publish', { message, ...origin })
    return this.subscriptions.route(message)
  }
}
