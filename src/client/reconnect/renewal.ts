/**
 * Renews credentials before they expire: by re-authentication if there is a mechanism, otherwise on
 * a new connection.
 *
 * They are requested while the connection is up. If that fails the connection stays, and the broker
 * decides when it ends. The intervals have a lower bound, so that a wrong clock does not cause a
 * flood of requests.
 */

import { longestTimer } from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import type { Extra } from '../context.js'
import type { Login, ParsedEndpoint } from '../options/check-endpoint.js'
import type { CancelTimer } from '../platform.js'
import { credentials } from './attempt.js'
import type { Authentication } from './authentication.js'
import type { ReconnectHost } from './ports.js'
import { wakeInterval } from './retry-policy.js'

/**
 * Milliseconds. Credentials that live for less than twice the first value are renewed at growing
 * intervals, up to the second.
 */
const leastLife = 5000
const longestHaste = 300_000

/** Renews the credentials of one client. */
export class Renewal implements Extra {
  readonly #host: ReconnectHost
  readonly #authentication: Authentication | undefined
  #waiting: CancelTimer | undefined
  #asking: AbortController | undefined
  /** Consecutive renewals that gave credentials about to expire. */
  #hasty = 0
  // valid for the connection
  /** Consecutive failed renewals, and the latest error. */
  #failures = 0
  #lastError: MqttError | undefined

  constructor(host: ReconnectHost, authentication: Authentication | undefined) {
    this.#host = host
    this.#authentication = authentication
  }

  handleUp(endpoint: ParsedEndpoint, login: Login | undefined): void {
    const expiresAt = login?.expiresAt
    const { platform, options, connections } = this.#host
    this.#failures = 0
    this.#lastError = undefined
    if (expiresAt === undefined || connections.connection === undefined) return
    this.#waiting?.()
    const left = expiresAt - platform.date()
    const ahead = left - options.refreshBefore
    // Credentials that were expired when they came are not requested again.
    if (left <= 0) return
    if (ahead > longestTimer) {
      this.#waiting = platform.setTimer(() => this.handleUp(endpoint, login), longestTimer)
      return
    }
    // Short-lived credentials are renewed at half their life; very short-lived ones at growing
    // intervals, so that a wrong clock causes no loop.
    const half = left / 2
    this.#hasty = ahead > 0 || half >= leastLife ? 0 : this.#hasty + 1
    const delay =
      ahead > 0
        ? ahead
        : this.#hasty === 0
          ? half
          : Math.min(longestHaste, wakeInterval * 2 ** this.#hasty)
    this.#waiting = platform.setTimer(() => this.#renew(endpoint), delay)
  }

  handleLost(reason: unknown): void {
    this.#waiting?.()
    this.#asking?.abort(reason)
    this.#asking = undefined
  }

  #renew(endpoint: ParsedEndpoint): void {
    const host = this.#host
    if (host.connections.connection === undefined) return
    const abort = new AbortController()
    this.#asking = abort
    const context = {
      attempt: this.#failures + 1,
      endpoint: endpoint.target.url.href,
      lastError: this.#lastError,
    }
    const renewed = credentials(host, context, abort).then(async (login) => {
      // The connection may have ended meanwhile; the next attempt requests its own credentials.
      if (this.#asking !== abort || host.connections.connection === undefined) return
      if (this.#authentication === undefined) {
        host.renewed = { endpoint, login }
        return host.connections.replace('credentials expire')
      }
      await this.#authentication.renew(endpoint.name)
      this.handleUp(endpoint, login)
    })
    renewed.catch((error: unknown) => {
      if (this.#asking === abort) this.#handleFailed(endpoint, error)
    })
  }

  #handleFailed(endpoint: ParsedEndpoint, error: unknown): void {
    const host = this.#host
    this.#failures += 1
    this.#lastError = MqttError.is(error) ? error : undefined
    // Random, so that clients that lost the same token server do not all return at once.
    const delay =
      Math.min(longestHaste, wakeInterval * 2 ** this.#failures) * (1 - host.platform.random() / 2)
    host.log('warn', `renewal failed, next in ${Math.round(delay)} ms: `, error)
    this.#waiting = host.platform.setTimer(() => this.#renew(endpoint), delay)
  }
}
