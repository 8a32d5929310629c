/**
 * Enhanced authentication (section 4.12): passes data between the application's mechanism and the
 * CONNECT and AUTH packets of the session.
 *
 * One exchange at a time. If the mechanism throws or returns invalid data, the connection is closed
 * without sending anything more, and the error's cause is what it threw. Authentication data is
 * never kept.
 */

import { type Deferred, deferred, within } from '../../common/abort.js'
import { bytes, optional } from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import type { AuthPacket, Bytes, ConnackPacket, Properties } from '../../wire/packets.js'
import type { Extra } from '../context.js'
import type { AuthContext, AuthMechanism } from '../options/index.js'
import type { CancelTimer } from '../platform.js'
import { broken } from '../session/refusal.js'
import type { ReconnectHost } from './ports.js'

/** Most milliseconds for a re-authentication. */
const patience = 30_000

const data = optional(bytes)

/** A re-authentication. */
interface Renewal {
  readonly done: Deferred<void>
  readonly abort: AbortController
  readonly cancel: CancelTimer
  /** Its first AUTH was sent, or the server started it: AUTH packets that come in belong to it. */
  begun: boolean
}

/** The authentication exchanges of one client. */
export class Authentication implements Extra {
  readonly #host: ReconnectHost
  readonly #mechanism: AuthMechanism
  /** Context of the latest exchange; set before anything comes in. */
  #context!: AuthContext
  #renewal: Renewal | undefined
  #tail: Promise<void> = Promise.resolve()
  /** Number of the connection: results of an earlier one are ignored. */
  #round = 0

  constructor(host: ReconnectHost, mechanism: AuthMechanism) {
    this.#host = host
    this.#mechanism = mechanism
  }

  /** Authentication properties of CONNECT. @throws MqttError ERR_AUTH_FAILED */
  async begin(context: AuthContext): Promise<Properties> {
    this.#round += 1
    this.#tail = Promise.resolve()
    this.#context = context
    const { method } = this.#mechanism
    return { authenticationMethod: method, authenticationData: await this.#start(context) }
  }

  /** AUTH came in: the next round, or the end of a re-authentication. Handled one at a time. */
  handleAuth({ reasonCode, properties }: AuthPacket): void {
    const given = properties.authenticationData
    const round = this.#round
    // On an open connection the server may start an exchange, even while one of ours has not been
    // sent.
    const connected = this.#host.connections.connection !== undefined
    if (connected && this.#renewal === undefined) this.#open(this.#context).begun = true
    const context = this.#context
    const proceed = async (): Promise<void> => {
      if (round !== this.#round) return
      if (reasonCode === 0) return this.#renewed(given, context)
      const answer = data(await this.#mechanism.continue(given, context), 'auth.continue')
      // CONNACK may have ended the exchange meanwhile.
      if (round !== this.#round || connected !== (this.#host.connections.connection !== undefined))
        return
      this.#host.session.authExchange.authenticate(0x18, answer)
      this.#host.connections.pump()
    }
    this.#tail = this.#tail.then(proceed).catch((error: unknown) => {
      if (round === this.#round) this.#host.connections.cut(failed(error))
    })
  }

  // If the mechanism verifies the server, CONNACK is accepted only after it has.
  verify({ reasonCode, properties }: ConnackPacket): Promise<void> | undefined {
    const { success, method } = this.#mechanism
    const ours = properties.authenticationMethod === method
    if (
      success === undefined ||
      reasonCode !== 0 ||
      !ours ||
      this.#host.session.state !== 'connecting'
    )
      return undefined
    return this.#succeed(properties.authenticationData, this.#context)
  }

  /** Re-authenticates on the open connection; a call while that is in progress joins it. */
  renew(endpoint: string): Promise<void> {
    if (this.#renewal !== undefined) return this.#renewal.done.promise
    const { done } = this.#open({ attempt: 1, endpoint })
    const round = this.#round
    this.#start(this.#context).then(
      (first) => {
        if (round !== this.#round || this.#renewal === undefined) return
        this.#renewal.begun = true
        this.#host.session.authExchange.authenticate(0x19, first)
        this.#host.connections.pump()
      },
      (error: unknown) => {
        if (round === this.#round) this.#fail(failed(error))
      },
    )
    return done.promise
  }

  /** The connection is lost. */
  handleLost(error: MqttError): void {
    this.#round += 1
    this.#settle()?.reject(error)
  }

  #open({ attempt, endpoint }: Pick<AuthContext, 'attempt' | 'endpoint'>): Renewal {
    const abort = new AbortController()
    const late = (): void => this.#fail(broken('ERR_AUTH_FAILED', 'no answer to AUTH'))
    this.#renewal = {
      done: deferred(),
      abort,
      cancel: this.#host.platform.setTimer(late, patience),
      begun: false,
    }
    this.#context = { attempt, endpoint, signal: abort.signal, reauthentication: true }
    this.#host.session.sendWindow.asking += 1
    return this.#renewal
  }

  async #start(context: AuthContext): Promise<Bytes | undefined> {
    try {
      return data(
        await within(Promise.resolve(this.#mechanism.start(context)), context.signal),
        'auth.start',
      )
    } catch (error) {
      throw context.signal.aborted ? error : failed(error)
    }
  }

  async #succeed(given: Bytes | undefined, context: AuthContext): Promise<void> {
    try {
      await this.#mechanism.success?.(given, context)
    } catch (error) {
      throw failed(error)
    }
  }

  async #renewed(given: Bytes | undefined, context: AuthContext): Promise<void> {
    const round = this.#round
    await this.#succeed(given, context)
    // An exchange that the server started does not complete ours.
    if (round === this.#round && this.#renewal?.begun === true) this.#settle()?.resolve()
  }

  #fail(error: MqttError): void {
    this.#settle()?.reject(error)
    this.#host.connections.cut(error)
  }

  #settle(): Deferred<void> | undefined {
    const renewal = this.#renewal
    this.#renewal = undefined
    if (renewal !== undefined) this.#host.session.sendWindow.asking -= 1
    renewal?.cancel()
    renewal?.abort.abort()
    return renewal?.done
  }
}

function failed(cause: unknown): MqttError {
  if (MqttError.is(cause) && cause.code === 'ERR_AUTH_FAILED') return cause
  return new MqttError('ERR_AUTH_FAILED', undefined, { cause })
}
