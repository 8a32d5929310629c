/**
 * Runs the attempts to connect and the delays between them, as `retry-policy.ts` decides. At most
 * one attempt or delay at a time; nothing happens after `stop()`.
 */

import { Abort } from '../../common/abort.js'
import { tally } from '../../common/counters.js'
import { MqttError } from '../../errors.js'
import { type ParsedEndpoint, referred } from '../options/check-endpoint.js'
import type { Config } from '../options/check-options.js'
import type { CancelTimer } from '../platform.js'
import { type Blame, unknownAlias } from '../session/refusal.js'
import { attempt } from './attempt.js'
import { BrokerList } from './brokers.js'
import type { ReconnectHost } from './ports.js'
import { type Hint, RetryPolicy, type Step, wakeInterval } from './retry-policy.js'

/** Most Receive Maximum after messages have exceeded the memory budget. */
const narrow = 1024

interface Limits {
  receiveMaximum?: number
  topicAliasMaximum?: number
}

const nameOf = ({ name }: ParsedEndpoint): string => name

/** The attempts of one client. */
export class Reconnector {
  readonly #host: ReconnectHost
  readonly #brokers: BrokerList<ParsedEndpoint>
  readonly #policy: RetryPolicy<ParsedEndpoint>
  /**
   * Reduced limits announced instead of the options, after a connection has shown that they are
   * needed.
   */
  readonly #limits: Limits = {}
  /** Endpoints that refused 5.0, with `protocolVersion: 'auto'`. */
  #old: WeakSet<ParsedEndpoint> | undefined
  /** The current attempt is the fallback to the other version. */
  #other = false
  #attempt: Abort | undefined
  #waiting: CancelTimer | undefined
  #hurriedAt = Number.NEGATIVE_INFINITY
  #dueAt = 0
  /**
   * What the application or the server said about the next endpoint while a failure is being
   * decided; undefined at other times.
   */
  #hint: Hint | 'none'
  #hurried = false
  #stopWake: CancelTimer | undefined
  #stopped = false

  constructor(host: ReconnectHost, endpoints: readonly ParsedEndpoint[]) {
    const { options, platform } = host
    this.#host = host
    this.#brokers = new BrokerList(endpoints)
    this.#policy = new RetryPolicy({
      brokers: this.#brokers,
      policy: options.reconnect,
      rejectFirst: options.firstConnect === 'reject',
      refreshable: options.credentials !== undefined,
      platform,
      nameOf,
    })
  }

  /** True once a server has accepted a connection. */
  get connectedOnce(): boolean {
    return this.#policy.connectedOnce
  }

  begin(): void {
    const { platform } = this.#host
    this.#stopWake = platform.onWake?.(() => this.#handleWake())
    this.follow(this.#policy.begin())
  }

  /** Connects now instead of after the delay. */
  hurry(): void {
    if (this.#attempt !== undefined) return
    // The failure is still being announced; the decision follows.
    if (this.#waiting === undefined) {
      this.#hurried = true
      return
    }
    const left = this.#spaced(Math.max(0, this.#dueAt - this.#host.platform.now()))
    if (left > 0) this.#arm(left)
    else this.#dial()
  }

  /**
   * Replaces the list of endpoints. A failure being decided leads to the new list; an attempt at an
   * endpoint that is not in it is aborted.
   */
  setBrokers(endpoints: readonly ParsedEndpoint[]): void {
    const { href } = this.#brokers.asked.target.url
    const kept =
      this.#attempt === undefined
        ? -1
        : endpoints.findIndex(({ target }) => target.url.href === href)
    this.#brokers.replace(endpoints, kept)
    this.#policy.handleReplaced()
    if (this.#hint !== undefined) this.#hint = 'replaced'
    else if (kept < 0)
      this.#attempt?.abort(new MqttError('ERR_CONNECT_FAILED', 'left out by setBrokers()'))
  }

  /** A failure is about to be announced: endpoints set by listeners apply to the next attempt. */
  handleAsking(): void {
    this.#hint = 'none'
  }

  /**
   * CONNACK was accepted. Returns true when earlier attempts or connections failed, so that this
   * one should start carefully.
   */
  handleConnected(): boolean {
    this.#attempt = undefined
    this.#other = false
    this.#policy.handleConnected(this.#host.platform.now())
    return this.#policy.attempt > 1
  }

  /**
   * A connection ended: returns the next step. `urgent`: no need to wait; `blame`: a request may be
   * the cause; `largest`: bytes of the largest message so far.
   */
  handleLost(error: MqttError, urgent: boolean, blame: Blame, largest: number): Step {
    if (error.reasonCode === 0x97 && error.fault === 'local')
      announceLess(this.#limits, this.#host.options, largest)
    if (error.message === unknownAlias) this.#limits.topicAliasMaximum = 0
    return this.#policy.handleLost(
      error,
      this.#host.platform.now(),
      urgent,
      this.#takeHint(),
      blame,
    )
  }

  /** Follows a server reference, if `serverReferences` allows it. */
  handleReference(reference: string | undefined): void {
    const { serverReferences } = this.#host.options
    if (this.#hint !== 'none' || reference === undefined || serverReferences === undefined) return
    for (const endpoint of referred(this.#brokers.current, reference, serverReferences)) {
      if (!this.#brokers.follow(endpoint, endpoint.target.url.host)) continue
      this.#hint = 'followed'
      return
    }
  }

  /** Carries out a step. */
  follow(step: Step): void {
    const host = this.#host
    if (this.#stopped) return
    if (step.type === 'stop') return host.finish(step.error)
    if (step.delay === undefined) return this.#dial()
    const { attempt: number } = this.#policy
    const hurried = this.#hurried || step.urgent === true
    const delay = hurried ? this.#spaced(step.delay) : step.delay
    const now = hurried && delay === 0
    if (!now) this.#arm(delay)
    const { name: endpoint } = this.#brokers.current
    host.log('info', `attempt ${number} at ${endpoint} in ${Math.round(delay)} ms`)
    host.events.emit('reconnecting', { attempt: number, delay, endpoint })
    if (now) this.#dial()
  }

  // Limits attempts without backoff to one per `wakeInterval`.
  #spaced(delay: number): number {
    const now = this.#host.platform.now()
    const spacing = Math.max(0, this.#hurriedAt + wakeInterval - now)
    const left = Math.min(delay || spacing, spacing)
    this.#hurriedAt = now + left
    return left
  }

  #arm(delay: number): void {
    const { platform } = this.#host
    this.#waiting?.()
    this.#dueAt = platform.now() + delay
    this.#waiting = platform.setTimer(() => this.#dial(), delay)
  }

  /** Stops: no connection is wanted any more. */
  stop(reason: MqttError): void {
    this.#stopped = true
    this.#waiting?.()
    this.#stopWake?.()
    this.#attempt?.abort(reason)
  }

  #dial(): void {
    const host = this.#host
    this.#waiting?.()
    this.#waiting = undefined
    this.#hurried = false
    if (this.#stopped || this.#attempt !== undefined) return
    const abort = new Abort()
    this.#attempt = abort
    if (this.connectedOnce) tally(host, 'reconnectAttempts')
    const endpoint = this.#brokers.ask()
    const { attempt: number, lastError } = this.#policy
    const { options, session } = host
    const { protocolVersion, cleanStart } = options
    const version = protocolVersion !== 'auto' ? protocolVersion : this.#old?.has(endpoint) ? 4 : 5
    const plan = {
      endpoint,
      number,
      lastError,
      version,
      // As configured until the first CONNACK; afterwards only without a session to resume. A clean
      // session of 3.1.1 stays clean.
      cleanStart:
        this.connectedOnce && !(version === 4 && cleanStart) ? !session.known : cleanStart,
      limits: this.#limits,
    }
    attempt(host, plan, abort).then(
      (login) => host.handleUp(endpoint, login),
      (error: MqttError) => this.#handleFailed(error, endpoint, number),
    )
  }

  #handleFailed(error: MqttError, { name: endpoint }: ParsedEndpoint, number: number): void {
    const host = this.#host
    const givenUp = this.#attempt?.aborted === true && error.code !== 'ERR_CONNECT_TIMEOUT'
    this.#attempt = undefined
    if (this.#stopped) return
    if (!givenUp) {
      this.#hint ??= 'none'
      host.counters?.fail(error.code)
    }
    host.log('warn', `attempt ${number} at ${endpoint}: ${error.message}`)
    host.events.emit('connecterror', { error, endpoint, attempt: number })
    if (givenUp) return this.follow(this.#policy.handleVoid(true))
    const hint = this.#takeHint()
    const { current } = this.#brokers
    // A server that speaks only 5.0 may answer 3.1.1 in 5.0 format.
    const refused =
      error.reasonCode === 0x84 ||
      (error.code === 'ERR_MALFORMED_PACKET' && this.#old?.has(current) === true)
    this.#other = refused && !this.#other && hint === undefined && mayFallBack(host.options)
    if (this.#other) {
      this.#old ??= new WeakSet()
      if (!this.#old.delete(current)) this.#old.add(current)
      return this.follow(this.#policy.handleVoid(false))
    }
    this.follow(this.#policy.handleFailed(error, hint))
  }

  #takeHint(): Hint {
    const hint = this.#hint
    this.#hint = undefined
    return hint === 'none' ? undefined : hint
  }

  #handleWake(): void {
    const { connections, session, platform } = this.#host
    if (connections.connection !== undefined) {
      session.probe(platform.now())
      connections.pump()
    } else if (this.#waiting !== undefined) this.hurry()
  }
}

// Lowers Receive Maximum so that a backlog of messages fits the budget: by the largest message
// seen, and by the largest allowed.
function announceLess(limits: Limits, options: Config, largest: number): void {
  const { memoryBudget, maximumPacketSize } = options
  const { receiveMaximum = options.receiveMaximum } = limits
  const most = Math.max(1, Math.floor(memoryBudget / Math.max(1, largest)))
  const least = Math.max(1, Math.min(most, Math.floor(memoryBudget / maximumPacketSize)))
  if (least < receiveMaximum)
    limits.receiveMaximum = Math.max(least, Math.min(narrow, most, Math.floor(receiveMaximum / 2)))
}

// With options that 3.1.1 does not have, authentication in particular, a refusal never causes a
// fallback.
function mayFallBack({ protocolVersion, auth, userProperties }: Config): boolean {
  return protocolVersion === 'auto' && auth === undefined && userProperties === undefined
}
