/**
 * Enhanced authentication as the session sees it: AUTH packets, whose turn it is, and how many of them one exchange may have (section 4.12).
 *
 * What they carry is not looked into. It must never let a server ask for ever.
 */
import type { MqttErrorCode } from '../../errors.js'
import type { AuthPacket, Bytes, ClientPacket } from '../../wire/packets.js'
import type { Action } from './actions.js'
import { failUnexpected } from './refusal.js'

/** Rounds of one authentication exchange: a server that asks for more wants something else. */
const mostAuthRounds = 16
/** Milliseconds in which exchanges that the server begins share their rounds. */
const calm = 60_000

/** The session, as its exchange sees it. */
export interface AuthSession {
  readonly state: string
  readonly actions: Action[]
  send(packet: ClientPacket): void
  fail(reasonCode: number, message?: string, code?: MqttErrorCode): void
}

/** The exchanges of one session, one at a time. */
export class AuthExchange {
  /** True while a re-authentication has no answer. */
  running = false
  readonly #session: AuthSession
  // valid for the connection
  #method: string | undefined
  #rounds = 0
  /** AUTH of the server that wait for ours. */
  #owed = 0
  #countedSince = Number.NEGATIVE_INFINITY

  constructor(session: AuthSession) {
    this.#session = session
  }

  /** A connection begins: with this method, or without any. */
  start(method: string | undefined): void {
    this.#method = method
    this.#rounds = 0
    this.#countedSince = Number.NEGATIVE_INFINITY
    this.accept()
  }

  /** CONNACK said yes: the exchange that came before it is over. */
  accept(): void {
    this.running = false
    this.#owed = 0
  }

  /** Sends AUTH: the next round of an exchange (0x18), or the first of a re-authentication (0x19). */
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
      // What does not wait for our answers would pile up here: it is the same exchange.
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
