/**
 * Creates the parts of one client and connects them; each part knows this class as its host.
 *
 * `connecting.ts` handles requests for a connection, `connection-holder.ts` the connection,
 * `connection-events.ts` what happens on it, `shutdown.ts` and `closing.ts` the end. Applications use
 * `client.ts`, which validates all arguments.
 */

import { Counters } from '../../common/counters.js'
import { Emitter } from '../../common/emitter.js'
import { MqttError, printable, textOf } from '../../errors.js'
import type { Properties } from '../../wire/packets.js'
import type { ClientAccess } from '../access.js'
import type { Extra } from '../context.js'
import { ReaderTurns } from '../deliver/buffer.js'
import { MessageRouter } from '../deliver/message-router.js'
import type { HookChain } from '../hooks.js'
import { type Goodbye, isVersion4 } from '../options/check-calls.js'
import type { Login, ParsedEndpoint } from '../options/check-endpoint.js'
import type { Config } from '../options/check-options.js'
import type { AuthContext, ClientEvents, Logger } from '../options/index.js'
import type { Platform, ReportCode } from '../platform.js'
import { Publishing } from '../publish/publishing.js'
import { Authentication } from '../reconnect/authentication.js'
import type { ReconnectHost } from '../reconnect/ports.js'
import { Reconnector } from '../reconnect/reconnector.js'
import { Renewal } from '../reconnect/renewal.js'
import type { Action } from '../session/actions.js'
import { Session } from '../session/session.js'
import { Subscriptions } from '../subscribe/subscriptions.js'
import { finish } from './closing.js'
import { flush, handleAction, handleLost } from './connection-events.js'
import { ConnectionHolder } from './connection-holder.js'
import type { ClientInternals } from './internals.js'
import { Shutdown } from './shutdown.js'
import { States } from './states.js'

// Shared, because most clients have no others.
const noExtras: readonly Extra[] = Object.freeze([])

/** Everything behind a client. */
export class Core implements ClientInternals, ClientAccess {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly events: Emitter<ClientEvents>
  readonly counters: Counters | undefined
  readonly states: States
  readonly connections: ConnectionHolder
  readonly subscriptions: Subscriptions
  readonly router: MessageRouter
  readonly authentication: Authentication | undefined
  extras: readonly Extra[]
  readonly reconnector: Reconnector
  readonly turns: ReaderTurns
  hooks: HookChain | undefined
  clientId: string
  renewed: ReconnectHost['renewed']
  publishingIfUsed: Publishing | undefined
  #ending: Shutdown | undefined

  constructor(platform: Platform, endpoints: readonly ParsedEndpoint[], options: Config) {
    this.platform = platform
    this.options = options
    this.clientId = options.clientId
    this.counters = options.stats ? new Counters() : undefined
    this.events = new Emitter(this)
    this.session = new Session({
      receiveMaximum: options.receiveMaximum,
      receiveMaximumExceeded: options.receiveMaximumExceeded,
      unaskedAliases: options.topicAliasMaximum === undefined ? 10 : 0,
      sessionExpiryInterval: options.sessionExpiryInterval,
      pingTimeout: options.pingTimeout,
      maximumInflight: options.outbound.maxInflight,
      ownsSession: !options.cleanStart,
      identifierBase: Math.floor(platform.random() * 65_535),
    })
    this.states = new States(this.events)
    this.connections = new ConnectionHolder(this)
    this.subscriptions = new Subscriptions(this)
    this.router = new MessageRouter(this, this.subscriptions.membership.trie)
    this.connections.inbox = this.router
    this.authentication = options.auth && new Authentication(this, options.auth)
    const renewal = options.credentials && new Renewal(this, this.authentication)
    const extras = [this.authentication ?? [], renewal ?? []].flat()
    this.extras = extras.length > 0 ? extras : noExtras
    this.reconnector = new Reconnector(this, endpoints)
    this.turns = new ReaderTurns(platform)
    this.states.dismiss = platform.attend?.(this)
  }

  get publishing(): Publishing {
    if (this.publishingIfUsed === undefined) {
      this.publishingIfUsed = new Publishing(this)
      if (this.connections.connection !== undefined) this.publishingIfUsed.sent.handleConnected()
    }
    return this.publishingIfUsed
  }

  handleListenerFailed(error: unknown, type: string): void {
    this.report('MQWIRE_HANDLER_FAILED', `a listener of '${type}' threw`, error)
  }

  handleListenerAdded(): void {
    this.connections.current?.writer.lookForWatchers()
  }

  trace(type: string, event: object): void {
    const { platform, clientId } = this
    if (platform.traced?.(type) !== false) platform.trace?.(type, { clientId, ...event })
  }

  log(level: keyof Logger, ...parts: readonly unknown[]): void {
    try {
      this.options.logger?.[level]?.(
        `mqwire ${printable(this.clientId)}: ${printable(parts.map(textOf).join(''))}`,
      )
    } catch {
      // A failing logger cannot be reported.
    }
  }

  report(
    code: ReportCode,
    text: string | (() => string),
    cause: unknown,
    heard?: keyof ClientEvents | true,
    count = 1,
  ): void {
    const { logger } = this.options
    const level = code === 'MQWIRE_HANDLER_FAILED' ? 'error' : 'warn'
    // `logger: null` silences reports. `MQWIRE_UNSENT` is printed even with a logger, because
    // messages are lost.
    const isHeard = heard === true || (heard !== undefined && this.events.has(heard))
    const isSilenced =
      logger === null || (logger !== undefined && code !== 'MQWIRE_UNSENT') || isHeard
    const print = isSilenced ? undefined : this.platform.report
    // Texts are built only if something will show them.
    if (print === undefined && logger?.[level] === undefined) return
    const whole = (): string => {
      const what = typeof text === 'string' ? text : text()
      return cause === undefined ? what : `${what}: ${reasonOf(cause)}`
    }
    if (logger?.[level] !== undefined)
      this.log(level, count > 1 ? `${whole()} (and ${count - 1} more)` : whole())
    print?.(
      code,
      () => ({
        text: `mqwire ${printable(this.clientId)}: ${printable(whole())}`,
        detail: stackOf(cause),
      }),
      count,
    )
  }

  /** Disconnects: see `shutdown.ts`. */
  async disconnect(goodbye: Goodbye, drain = false): Promise<void> {
    if (this.states.ended) return
    this.#ending ??= new Shutdown(this)
    await this.#ending.disconnect(goodbye, drain)
  }

  settle(ticket: number, reasonCode: number): boolean {
    // 3.1.1 has no negative acknowledgement.
    const settled = this.session.receiveWindow.settle(
      ticket,
      this.session.version === 5 ? reasonCode : 0,
    )
    this.connections.current?.writer.queueFlush(true)
    this.handleTurnEnd()
    return settled
  }

  handleTurnEnd(): void {
    this.#ending?.handleTurnEnd()
  }

  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void {
    handleAction(this, action)
  }

  async begin(context: () => AuthContext): Promise<Properties> {
    const properties: Properties = {}
    for (const extra of this.extras) Object.assign(properties, await extra.begin?.(context()))
    return properties
  }

  handleUp(endpoint: ParsedEndpoint, login: Login | undefined): void {
    for (const extra of this.extras) extra.handleUp?.(endpoint, login)
  }

  handleLost(error: MqttError | undefined): void {
    handleLost(this, error)
  }

  finish(error: MqttError | undefined): void {
    finish(this, error)
  }

  get waiting(): boolean {
    return this.subscriptions.senderIfUsed?.waiting || this.publishingIfUsed?.waiting === true
  }

  flush(): void {
    flush(this)
  }

  get modern(): boolean {
    return !isVersion4(this)
  }

  refuse(topic: string, error: unknown): Promise<never> {
    return this.publishing.refuse(topic, error)
  }

  reportInvalid(event: ClientEvents['invalid'], first: boolean): void {
    this.events.emit('invalid', event)
    if (first) this.log('warn', event.topic, ': ', event.error.message)
  }
}

function reasonOf(cause: unknown): string {
  return MqttError.is(cause) ? `${cause.code}: ${cause.message}` : textOf(cause)
}

// The stack, if it contains program lines; network errors have none.
function stackOf(cause: unknown): string | undefined {
  const { stack } = Object(cause) as { stack?: unknown }
  return typeof stack === 'string' && stack.includes('\n    at ') ? stack : undefined
}
