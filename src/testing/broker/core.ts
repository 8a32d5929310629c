/**
 * The broker's state and what is decided over all its connections: sessions, wills, the way of a message.
 *
 * Everything here happens at once, in the order of calls; time comes from the clock of the settings only. Nothing here throws at its callers but
 * for wrong arguments of the test.
 */
import type { Transport } from '../../transport/transport.js'
import type { ConnectPacket, PublishPacket } from '../../wire/packets.js'
import { BoundedLog } from './bounded-log.js'
import { after, type BrokerClock } from './clock.js'
import { Connection } from './connection.js'
import { type AcceptedMessage, BrokerEmitter, type HookError, type HookName, type Violation } from './events.js'
import { FaultTable } from './fault-table.js'
import { type HookHost, isPromise } from './hooks.js'
import { type BrokerMessage, messageOf } from './message.js'
import type { BrokerSettings } from './options.js'
import { PublishBytes } from './publish-bytes.js'
import { RetainedStore } from './retained.js'
import { Router } from './router.js'
import { NEVER, Session } from './session.js'
import { publishVerdict } from './verdicts.js'
import { WriteBatch } from './write-batch.js'

/** How a message came. */
export interface Origin {
  readonly packetId: number | undefined
  readonly dup: boolean
  readonly will: boolean
}

const windowSize = 65_536

/** See the file's comment. */
export class Core implements HookHost {
  readonly settings: BrokerSettings
  readonly events = new BrokerEmitter()
  readonly faults: FaultTable
  readonly router = new Router()
  readonly writes = new WriteBatch()
  readonly publishBytes = new PublishBytes()
  readonly retained: RetainedStore
  readonly sessions = new Map<string, Session>()
  readonly connections = new Set<Connection>()
  readonly accepted: BoundedLog<AcceptedMessage>
  readonly violations: BoundedLog<Violation>
  readonly hookErrors: BoundedLog<HookError>
  closed = false
  /** Streams that are not over, also those of connections that are. */
  readonly #streams = new Set<Connection>()
  #idle: (() => void) | undefined
  #assigned = 0
  /** Rises whenever everything is forgotten: wills that wait for a hook belong to the time before. */
  #age = 0
  readonly #printed = new Set<HookName>()
  #window: Uint8Array | undefined

  constructor(settings: BrokerSettings) {
    this.settings = settings
    this.faults = new FaultTable(settings.faults)
    this.retained = new RetainedStore(settings)
    this.accepted = new BoundedLog<AcceptedMessage>(settings.maxLog, settings.maxLogBytes, ({ size }) => size)
    this.violations = new BoundedLog(settings.maxLog)
    this.hookErrors = new BoundedLog(settings.maxLog)
  }

  get clock(): BrokerClock {
    return this.settings.clock
  }

  /** Says that a hook failed; on the console, once for each hook, when nobody listens. */
  tell(hook: HookName, clientId: string, error: unknown): void {
    const event: HookError = { hook, clientId, time: this.clock.now(), error }
    this.hookErrors.add(event)
    if (!this.events.has('hookerror') && !this.#printed.has(hook)) {
      this.#printed.add(hook)
      console.error(`MemoryBroker: the hook ${hook} failed (listen to 'hookerror' to hear of each failure):`, error)
    }
    this.events.emit('hookerror', event)
  }

  /** Where transports read into; a read and its handling are one step, so that one array serves all. */
  get window(): Uint8Array {
    this.#window ??= new Uint8Array(windowSize)
    return this.#window
  }

  accept(transport: Transport, remote: string | undefined): void {
    if (this.closed || this.connections.size >= this.settings.maxConnections) {
      transport.destroy(new Error('the broker takes no connections'))
      return
    }
    const connection = new Connection(this, transport, remote)
    this.connections.add(connection)
    this.#streams.add(connection)
  }

  /** The stream of a connection is over. */
  forgetStream(connection: Connection): void {
    this.#streams.delete(connection)
    if (this.#streams.size === 0) this.#idle?.()
  }

  /** Fulfils when all streams are over. */
  idle(): Promise<void> {
    if (this.#streams.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#idle = resolve
    })
  }

  /** An identifier that no session has [MQTT-3.1.3-6] [MQTT-3.2.2-16]. */
  assignClientId(): string {
    const { random } = this.settings
    for (;;) {
      const clientId = `auto-${++this.#assigned}${random === undefined ? '' : `-${Math.floor(random() * 2 ** 32).toString(36)}`}`
      if (!this.sessions.has(clientId)) return clientId
    }
  }

  /** Takes a message over; false when nobody subscribed to it. */
  publish(message: BrokerMessage, origin: Origin): boolean {
    const { from } = message
    if (from !== undefined) this.#note(message, from, origin)
    if (message.retain && this.settings.retainAvailable) this.retained.set(message)
    this.events.emit('publish', { message, ...origin })
    return this.router.route(message)
  }

  /** Ends the connection that the client has elsewhere, and gives its session, old or new [MQTT-3.1.4-3] [MQTT-3.1.2-4] to [MQTT-3.1.2-6]. */
  enter(connection: Connection, { cleanStart }: ConnectPacket): { session: Session; present: boolean } | undefined {
    const { clientId } = connection
    this.sessions.get(clientId)?.connection?.disconnect(0x8e)
    // The old connection may have taken its session with it.
    const known = this.sessions.get(clientId)
    if (known !== undefined && cleanStart) this.endSession(known)
    // A listener or a hook may have ended it meanwhile.
    if (connection.over) return undefined
    const present = known !== undefined && !known.ended
    const session = present ? known : new Session(clientId, this.settings)
    this.sessions.set(clientId, session)
    session.connection = connection
    session.keep?.()
    session.keep = undefined
    // [MQTT-3.1.3-9]
    session.will?.cancel()
    session.will = undefined
    return { session, present }
  }

  /** A connection is over: its session waits or ends, its will too. */
  leave(connection: Connection): void {
    this.connections.delete(connection)
    const { session } = connection
    if (session === undefined || session.ended || session.connection !== connection) return
    session.connection = undefined
    session.outbox.detach(connection.output)
    this.#readWill(session, connection)
    const { expiryInterval } = session
    if (expiryInterval === 0) this.endSession(session)
    else if (expiryInterval < NEVER) session.keep = after(this.settings.clock, expiryInterval * 1000, () => this.endSession(session))
  }

  /** Forgets a session; its will, if it waits, is due [MQTT-3.1.2-8]. */
  endSession(session: Session): void {
    if (session.ended) return
    const { will } = session
    const orphans = this.#forget(session)
    if (will !== undefined) this.publishWill(will.message, will.from)
    for (const { group, message } of orphans) group?.deliver(message)
  }

  publishWill(message: BrokerMessage, from: Connection): void {
    const packet = (): PublishPacket => ({ ...message, type: 'publish', dup: false, packetId: undefined, properties: { ...message.properties } })
    const code = publishVerdict(this, from.client, packet)
    if (!isPromise(code)) {
      this.#publishAllowed(message, code)
      return
    }
    const age = this.#age
    void code.then((verdict) => {
      if (this.#age === age) this.#publishAllowed(message, verdict)
    })
  }

  /** Cuts all connections; without `keepSessions` everything is forgotten, wills included. */
  restart(keepSessions: boolean): void {
    if (!keepSessions) {
      for (const session of [...this.sessions.values()]) this.#forget(session)
      this.retained.clear()
      this.#age++
    }
    // Nobody hears of the wills that this causes before coming back.
    for (const { session, output } of this.connections) session?.outbox.detach(output)
    for (const connection of [...this.connections]) connection.cut()
  }

  close(): void {
    this.closed = true
    this.#age++
    for (const session of this.sessions.values()) session.will?.cancel()
    for (const connection of [...this.connections]) {
      connection.will = undefined
      connection.disconnect(0x8b)
    }
    for (const session of [...this.sessions.values()]) this.#forget(session)
  }

  #publishAllowed(message: BrokerMessage, code: number): void {
    if (code >= 0x80 || (message.retain && !this.retained.hasRoom(message))) return
    this.publish({ ...message, time: this.clock.now() }, { packetId: undefined, dup: false, will: true })
  }

  // Without spreading: this is the way of every message.
  #note({ topic, payload, qos, retain, properties, from, time, size }: BrokerMessage, clientId: string, { packetId, dup, will }: Origin): void {
    this.accepted.add({ topic, payload, qos, retain, properties, from, time, size, clientId, packetId, dup, will })
  }

  #forget(session: Session): ReturnType<Session['outbox']['end']> {
    session.ended = true
    session.keep?.()
    session.will?.cancel()
    session.will = undefined
    this.router.removeAll(session)
    if (this.sessions.get(session.clientId) === session) this.sessions.delete(session.clientId)
    return session.outbox.end()
  }

  #readWill(session: Session, connection: Connection): void {
    const { will } = connection
    if (will === undefined) return
    const message = messageOf({ ...will, type: 'publish', dup: false, packetId: undefined }, session.clientId, 0)
    // The end of the session, if that is earlier, makes it due as well.
    const delay = will.properties.willDelayInterval ?? 0
    if (delay === 0) {
      this.publishWill(message, connection)
      return
    }
    const cancel = after(this.settings.clock, delay * 1000, () => {
      session.will = undefined
      this.publishWill(message, connection)
    })
    session.will = { message, from: connection, cancel }
  }
}
