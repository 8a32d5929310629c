/**
 * Fresh credentials before the old ones run out: in place where the mechanism of authentication can, else on a new connection.
 *
 * It must never ask more often than a server or a wrong clock makes sense of.
 */
import { longestTimer } from '../common/schema.js'
import type { Extra } from '../context/extra.js'
import { type Login, type ParsedEndpoint, shown } from '../parsing/endpoint.js'
import type { CancelTimer } from '../platform/platform.js'
import { broken } from '../session/refusal.js'
import { credentials } from './attempt.js'
import type { Authenticator, DiallingHost } from './ports.js'
import { wakeInterval } from './supervisor.js'

/** Credentials that live no longer than twice this are renewed in ever longer intervals, at most so long. Milliseconds. */
const leastLife = 5000
const longestHaste = 300_000

/** The credentials of one client. */
export class Renewal implements Extra {
  readonly #host: DiallingHost
  readonly #authentication: Authenticator | undefined
  #waiting: CancelTimer | undefined
  #asking: AbortController | undefined
  /** Renewals in a row of credentials that were about to run out when they came. */
  #hasty = 0

  constructor(host: DiallingHost, authentication: Authenticator | undefined) {
    this.#host = host
    this.#authentication = authentication
  }

  handleUp(endpoint: ParsedEndpoint, login: Login | undefined): void {
    const expiresAt = login?.expiresAt
    const { platform, options, links } = this.#host
    if (expiresAt === undefined || links.connection === undefined) return
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
    const delay = ahead > 0 ? ahead : this.#hasty === 0 ? half : Math.min(longestHaste, wakeInterval * 2 ** this.#hasty)
    this.#waiting = platform.setTimer(() => this.#renew(endpoint, login), delay)
  }

  handleLost(reason: unknown): void {
    this.#waiting?.()
    this.#asking?.abort(reason)
  }

  #renew(endpoint: ParsedEndpoint, old: Login | undefined): void {
    const host = this.#host
    if (host.links.connection === undefined) return
    const authentication = this.#authentication
    if (authentication === undefined) return host.links.replace('credentials expire')
    const { url } = endpoint.target
    const abort = new AbortController()
    const { signal } = abort
    this.#asking = abort
    const late = host.platform.setTimer(() => abort.abort(broken('ERR_CONNECT_TIMEOUT')), host.options.connectTimeout)
    const renewed = credentials(host, { attempt: 1, endpoint: url.href, lastError: undefined, signal }).then(async (login) => {
      late()
      await authentication.renew(shown(url))
      this.handleUp(endpoint, login)
    })
    renewed.catch((error: unknown) => {
      late()
      host.log('warn', 'renewal failed: ', error)
      this.handleUp(endpoint, old)
    })
  }
}
