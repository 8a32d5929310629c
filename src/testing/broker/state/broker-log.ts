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

/** The PUBLISH or will that a message came from. */
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
  /** Hooks whose first failure was printed on the console. */
  readonly #printed = new Set<HookName>()

  constructor({ clock, maxLog, maxLogBytes }: BrokerSettings) {
    this.#clock = clock
    this.accepted = new BoundedLog<AcceptedMessage>(maxLog, maxLogBytes, ({ size }) => size)
    this.violations = new BoundedLog(maxLog)
    this.hookErrors = new BoundedLog(maxLog)
  }

  /** Records a message accepted from a client. */
  addAccepted(
    { topic, payload, qos, retain, properties, from, time, size }: BrokerMessage,
    clientId: string,
    origin: MessageOrigin,
  ): void {
    // Not spread, because this runs for every message.
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

  /** Records a violation by a client. */
  addViolation({ clientId, packet, reasonCode, text }: Omit<Violation, 'time'>): void {
    const violation: Violation = { clientId, time: this.#clock.now(), packet, reasonCode, text }
    this.violations.add(violation)
    this.events.emit('violation', violation)
  }

  /** Records a hook failure. Without a listener, the first failure of each hook is printed. */
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
