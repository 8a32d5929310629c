/**
 * Enhanced authentication in the session: AUTH packets, whose turn it is, and the limit of rounds
 * in one exchange (section 4.12). The authentication data is opaque here. No server can keep an
 * exchange going for ever.
 */
import type { MqttErrorCode } from '../../errors.js'
import type { AuthPacket, Bytes, ClientPacket } from '../../wire/packets.js'
import type { Action } from './actions.js'
import { failUnexpected } from './refusal.js'

/** Most rounds of one authentication exchange. */
const mostAuthRounds = 16
/** Exchanges that the server begins within this many milliseconds share one count of rounds. */
const calm = 60_000

/** The session as its exchange sees it. */
export interface AuthSession {
  readonly state: string
  readonly actions: Action[]
  send(packet: ClientPacket): void
  fail(reasonCode: number, message?: string, code?: MqttErrorCode): void
}

/** The exchanges of one session, one at a time. */
export class AuthExchange {
  /** True while a re-authentication is unanswered. */
  running = false
  readonly #session: AuthSession
  // valid for the connection
  #method: string | undefined
  #rounds = 0
  /** Number of the server's AUTH packets that are still to be answered. */
  #owed = 0
  #countedSince = Number.NEGATIVE_INFINITY

  constructor(session: AuthSession) {
    this.#session = session
  }

  /** A connection begins, with this method or without authentication. */
  start(method: string | undefined): void {
    this.#method = method
    this.#rounds = 0
    this.#countedSince = Number.NEGATIVE_INFINITY
    this.accept()
  }

  /** CONNACK accepted the connection: its exchange is over. */
  accept(): void {
    this.running = false
    this.#owed = 0
  }

  /**
   * Sends AUTH: the next round of an exchange (0x18), or the first of a re-authentication (0x19).
   */
  authenticate(reasonCode: 0x18 | 0x19, authenticationData: Bytes | undefined): void {
    const session = this.#session
    const { state } = session
    if (state !== 'connecting' && state !== 'connected') return
    if (reasonCode === 0x19) this.#begin(true)
    else this.#owed -= 1
    const authenticationMethod = this.#method
    session.send({
      type: 'auth',
      reasonCode,
      properties: { authenticationMethod, authenticationData },
    })
  }

  /** AUTH came in [MQTT-4.12.0-5] [MQTT-4.12.0-6]. */
  handleAuth(packet: AuthPacket, now: number): void {
    const session = this.#session
    const method = this.#method
    const success = packet.reasonCode === 0
    if (method === undefined) return failUnexpected(session, packet)
    if (packet.properties.authenticationMethod !== method)
      return session.fail(0x82, 'other authentication method')
    if (success && !this.running) return failUnexpected(session, packet)
    if (session.state === 'connected' && !this.running) {
      // A server that does not wait for answers could start exchanges without limit: those count as
      // one.
      const isCalm = this.#owed === 0 && now - this.#countedSince >= calm
      this.#begin(isCalm)
      if (isCalm) this.#countedSince = now
    }
    if (!success) this.#owed += 1
    this.#rounds += 1
    if (this.#rounds > mostAuthRounds)
      return session.fail(0x82, 'too many rounds of authentication')
    this.running = session.state === 'connected' && !success
    session.actions.push({ type: 'auth', packet })
  }

  #begin(isFresh: boolean): void {
    if (isFresh) this.#rounds = 0
    this.running = true
  }
}
