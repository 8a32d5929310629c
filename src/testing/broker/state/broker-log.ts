/**
 * Reports of a broker to its test: events, and lists of accepted messages, broken rules and failed
 * hooks.
 *
 * The lists are bounded. Nothing here changes what the broker does.
 */
import { BoundedLog } from '../common/bounded-log.js'
import type { BrokerClock } from '../common/clock.js'
import {
  type AcceptedMessage,
  BrokerEmitter,
  type HookError,
  type HookName,
  type Violation,
} from '../common/events.js'
import type { BrokerMessage } from '../common/message.js'
import type { BrokerSettings } from '../common/options.js'

/** How a message came. */
export interface MessageOrigin {
  readonly packetId: number | undefined
  readonly dup: boolean
  readonly will: boolean
}

/** See the file's comment. */
export class BrokerLog {
  readonly events = new BrokerEmitter()
  readonly accepted: BoundedLog<AcceptedMessage>
  readonly violations: BoundedLog<Violation>
  readonly hookErrors: BoundedLog<HookError>
  readonly #clock: BrokerClock
  /** Hooks whose failure is on the console. */
  readonly #printed = new Set<HookName>()

  constructor({ clock, maxLog, maxLogBytes }: BrokerSettings) {
    this.#clock = clock
    this.accepted = new BoundedLog<AcceptedMessage>(maxLog, maxLogBytes, ({ size }) => size)
    this.violations = new BoundedLog(maxLog)
    this.hookErrors = new BoundedLog(maxLog)
  }

  /** A client's message was taken over. */
  addAccepted(
    { topic, payload, qos, retain, properties, from, time, size }: BrokerMessage,
    clientId: string,
    origin: MessageOrigin,
  ): void {
    // Without spreading: this is the way of every message.
    const { packetId, dup, will } = origin
    this.accepted.add({
      topic,
      payload,
      qos,
      retain,
      properties,
      from,
      time,
      size,
      clientId,
      packetId,
      dup,
      will,
    })
  }

  /** A client broke a rule. */
  addViolation({ clientId, packet, reasonCode, text }: Omit<Violation, 'time'>): void {
    const violation: Violation = { clientId, time: this.#clock.now(), packet, reasonCode, text }
    this.violations.add(violation)
    this.events.emit('violation', violation)
  }

  /** A hook failed: the first failure of each is printed without a listener. */
  addHookError(hook: HookName, clientId: string, error: unknown): void {
    const event: HookError = { hook, clientId, time: this.#clock.now(), error }
    this.hookErrors.add(event)
    if (!this.events.has('hookerror') && !this.#printed.has(hook)) {
      this.#printed.add(hook)
      console.error(
        `MemoryBroker: the hook ${hook} failed (listen to 'hookerror' to hear of each failure):`,
        error,
      )
    }
    this.events.emit('hookerror', event)
  }
}
