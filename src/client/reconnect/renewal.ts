/**
 * Fresh credentials before the old ones run out: in place where the mechanism of authentication can, else on a new connection.
 *
 * They are asked for while the connection works. Where that fails it stays up: the broker decides when it ends.
 *
 * It must never ask more often than a server or a wrong clock makes sense of.
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

/** Credentials that live no longer than twice this are renewed in ever longer intervals, at most so long. Milliseconds. */
const leastLife = 5000
const longestHaste = 300_000

/** The credentials of one client. */
export class Renewal implements Extra {
  readonly #host: ReconnectHost
  readonly #authentication: Authentication | undefined
  #waiting: CancelTimer | undefined
  #asking: AbortController | undefined
  /** Renewals in a row of credentials that were about to run out when they came. */
  #hasty = 0
  // valid for the connection
  /** Renewals in a row that failed, and how the latest did. */
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
    // What has run out already, as it came, is not made better by asking again.
    if (left <= 0) return
    if (ahead > longestTimer) {
      this.#waiting = platform.setTimer(() => this.handleUp(endpoint, login), longestTimer)
      return
    }
    // What lives shorter than that is renewed half way; what hardly lives at all with more patience each time, so that a wrong clock makes no loop.
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
      // The connection may have ended meanwhile, and the next attempt asks for itself.
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
    // Clients that lost their token server together do not come back to it together.
    const delay =
      Math.min(longestHaste, wakeInterval * 2 ** this.#failures) * (1 - host.platform.random() / 2)
    host.log('warn', `renewal failed, next in ${Math.round(delay)} ms: `, error)
    this.#waiting = host.platform.setTimer(() => this.#renew(endpoint), delay)
  }
}
