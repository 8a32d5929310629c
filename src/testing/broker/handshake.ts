/**
 * From the first packet of a connection to its CONNACK, and authentication later on (sections 3.1.4, 3.2, 3.15 and 4.12).
 *
 * Hooks that answer at once are obeyed at once, so that a run under virtual time has no races; promises are waited for, with what the client sends
 * meanwhile kept for later.
 */
import { CONNACK } from '../../wire/constants.js'
import type { WireError } from '../../wire/error.js'
import type { AuthPacket, ClientPacket, ConnectPacket, Properties } from '../../wire/packets.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import type { Connection } from './connection.js'
import { type BrokerAuthContext, type BrokerAuthMethod, type BrokerAuthStep, type BrokerSettings, reasonOf, type Verdict } from './options.js'
import { returnCodeOf } from './output.js'
import { NEVER } from './session.js'

/** An enhanced authentication under way, or done. */
export interface Exchange {
  readonly methodName: string
  readonly method: BrokerAuthMethod
  context: BrokerAuthContext
  /** Whose turn it is: the hook's, the client's, nobody's. */
  turn: 'broker' | 'client' | 'none'
}

/** Handles a packet before CONNACK. */
export function handleEarly(connection: Connection, packet: ClientPacket): void {
  if (connection.state === 'new') {
    if (packet.type === 'connect') handleConnect(connection, packet)
    else connection.violate('the first packet is no CONNECT [MQTT-3.1.0-1]', packet.type, 0x82)
  } else if (packet.type === 'auth') handleAuth(connection, packet)
  else if (packet.type === 'disconnect') connection.leave(packet.reasonCode)
  else if (packet.type === 'connect') connection.violate('a second CONNECT [MQTT-3.1.0-2]', packet.type, 0x82)
  else if (connection.exchange !== undefined) {
    connection.violate('more than AUTH and DISCONNECT before CONNACK [MQTT-3.1.2-30]', packet.type, 0x82)
  } else if (!connection.keepEarly(packet)) refuseConnect(connection, 0x97)
}

/** Answers bytes that are no packet. */
export function handleWireError(connection: Connection, error: WireError): void {
  const code = error.reasonCode ?? 0x81
  const { state, head } = connection
  if (state === 'connected') {
    connection.violate(`${error.message} [MQTT-4.13.1-1]`, undefined, code)
    return
  }
  connection.violate(`${error.message} [MQTT-3.1.4-1]`, undefined)
  if (state === 'new') {
    // Nothing is said to what does not look like a client.
    if ((head[0] ?? 0) >> 4 !== 1) {
      connection.finish()
      return
    }
    const level = protocolLevel(head)
    connection.output.version = level <= 4 ? 4 : 5
    // 3.1.1 has return codes for these only; for anything else it closes without a word.
    if (level <= 4 && code !== 0x84 && code !== 0x85) connection.finish()
    else refuseConnect(connection, code)
  } else refuseConnect(connection, code)
}

/** The level in a CONNECT that could not be read: behind fixed header and protocol name. */
function protocolLevel(head: Uint8Array): number {
  let at = 1
  while (((head[at] ?? 0) & 0x80) !== 0) at++
  const length = ((head[at + 1] ?? 0) << 8) | (head[at + 2] ?? 0)
  return head[at + 3 + length] ?? 5
}

/** Says no and ends the connection [MQTT-3.2.2-7] [MQTT-3.1.4-2]. */
export function refuseConnect(connection: Connection, reasonCode: number, properties: Properties = {}): void {
  const { output } = connection
  const code = isReasonCode(CONNACK, reasonCode, 'server') ? reasonCode : 0x80
  if (output.version === 4) output.send({ type: 'connack', sessionPresent: false, reasonCode: returnCodeOf(code), properties: {} })
  else output.send({ type: 'connack', sessionPresent: false, reasonCode: code, properties })
  connection.finish()
}

function handleConnect(connection: Connection, packet: ConnectPacket): void {
  const { core, remote, output } = connection
  const { authenticate } = core.settings
  output.configure(packet)
  connection.state = 'authenticating'
  connection.connect = packet
  connection.clientId = packet.clientId
  const code = objectTo(connection, packet)
  if (code !== undefined) {
    refuseConnect(connection, code)
    return
  }
  if (connection.clientId === '') connection.clientId = core.assignClientId()
  settle<Verdict>(
    connection,
    () => authenticate?.(packet, { remote }) ?? true,
    (verdict) => {
      const reasonCode = reasonOf(verdict)
      if (reasonCode < 0x80) authenticateFurther(connection, packet)
      else refuseConnect(connection, reasonCode, typeof verdict === 'object' ? verdict.properties : undefined)
    },
    () => refuseConnect(connection, 0x80),
  )
}

/** Why the CONNECT is refused before anybody is asked. */
function objectTo({ core }: Connection, { protocolVersion, clientId, will }: ConnectPacket): number | undefined {
  const { settings, sessions } = core
  if (!settings.protocolVersions.includes(protocolVersion)) return 0x84
  if (protocolVersion === 5 && (will?.qos ?? 0) > settings.maximumQoS) return 0x9b // [MQTT-3.2.2-12]
  if (will?.retain && !settings.retainAvailable) return 0x9a // [MQTT-3.2.2-13]
  return sessions.size >= settings.maxSessions && !sessions.has(clientId) ? 0x97 : undefined
}

/** Runs a hook; its answer is used at once when it is no promise. */
function settle<T>(connection: Connection, run: () => T | Promise<T>, done: (value: T) => void, failed: (error: unknown) => void): void {
  let value: T | Promise<T>
  try {
    value = run()
  } catch (error) {
    failed(error)
    return
  }
  if (!isPromise(value)) {
    done(value)
    return
  }
  value.then(
    (result) => {
      if (!connection.over) done(result)
    },
    (error: unknown) => {
      if (!connection.over) failed(error)
    },
  )
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function authenticateFurther(connection: Connection, packet: ConnectPacket): void {
  const { authenticationMethod: methodName, authenticationData } = packet.properties
  if (methodName === undefined) {
    welcome(connection, packet, {})
    return
  }
  const method = Object.hasOwn(connection.core.settings.auth, methodName) ? connection.core.settings.auth[methodName] : undefined
  if (method === undefined) {
    refuseConnect(connection, 0x8c) // [MQTT-4.12.0-1]
    return
  }
  connection.exchange = { methodName, method, context: contextOf(connection, false), turn: 'none' }
  takeStep(connection, connection.exchange, (exchange) => exchange.method.start(authenticationData, exchange.context))
}

function contextOf({ clientId, connect, remote }: Connection, reauthentication: boolean): BrokerAuthContext {
  return { clientId, username: connect?.username, remote, reauthentication, state: {} }
}

/** AUTH from the client: the next step, or a new exchange after CONNACK (section 4.12.1). */
export function handleAuth(connection: Connection, packet: AuthPacket): void {
  const { exchange, state } = connection
  const { authenticationMethod, authenticationData } = packet.properties
  const begins = packet.reasonCode === 0x19
  if (exchange === undefined) connection.violate('AUTH without an authentication method in CONNECT [MQTT-4.12.0-7]', 'auth', 0x82)
  else if (authenticationMethod !== exchange.methodName) {
    connection.violate('AUTH with another authentication method [MQTT-4.12.0-5] [MQTT-4.12.1-1]', 'auth', 0x82)
  } else if (begins !== (exchange.turn === 'none') || exchange.turn === 'broker' || (begins && state !== 'connected')) {
    connection.violate('AUTH that nobody waits for [MQTT-4.12.0-3]', 'auth', 0x82)
  } else {
    if (begins) exchange.context = contextOf(connection, true)
    const { method, context } = exchange
    takeStep(connection, exchange, () => (begins ? method.start(authenticationData, context) : method.continue(authenticationData, context)))
  }
}

function takeStep(connection: Connection, exchange: Exchange, run: (exchange: Exchange) => BrokerAuthStep | Promise<BrokerAuthStep>): void {
  exchange.turn = 'broker'
  settle(
    connection,
    () => run(exchange),
    ({ reasonCode = 0, data }) => {
      if (reasonCode >= 0x80) refuseExchange(connection, reasonCode)
      else answerStep(connection, exchange, reasonCode === 0x18, data)
    },
    (error) => refuseExchange(connection, codeOf(error)),
  )
}

function codeOf(error: unknown): number {
  const code = typeof error === 'object' && error !== null && 'reasonCode' in error ? error.reasonCode : undefined
  return typeof code === 'number' && code >= 0x80 && code <= 0xff ? code : 0x87
}

function answerStep(connection: Connection, exchange: Exchange, continues: boolean, data: Uint8Array | undefined): void {
  const properties: Properties = { authenticationMethod: exchange.methodName, authenticationData: data && new Uint8Array(data) }
  exchange.turn = continues ? 'client' : 'none'
  if (continues || connection.state === 'connected') {
    connection.output.send({ type: 'auth', reasonCode: continues ? 0x18 : 0, properties })
  } else if (connection.connect !== undefined) welcome(connection, connection.connect, properties)
}

/** [MQTT-4.12.0-4] [MQTT-4.12.1-2] */
function refuseExchange(connection: Connection, reasonCode: number): void {
  if (connection.state === 'connected') connection.disconnect(reasonCode)
  else refuseConnect(connection, reasonCode)
}

/** The client is in: session, CONNACK, what waits for it. */
function welcome(connection: Connection, connect: ConnectPacket, properties: Properties): void {
  const { core, output } = connection
  const { settings } = core
  const entered = core.enter(connection, connect)
  if (entered === undefined) return
  const { session, present } = entered
  connection.session = session
  connection.will = connect.will
  session.protocolVersion = connect.protocolVersion
  session.expiryInterval = expiryOf(connect, settings)
  connection.keepAlive = connect.protocolVersion === 5 ? (settings.serverKeepAlive ?? connect.keepAlive) : connect.keepAlive
  connection.begin()
  const announced = connect.protocolVersion === 5 ? { ...announcements(connection, connect), ...properties } : {}
  output.send({ type: 'connack', sessionPresent: present, reasonCode: 0, properties: announced })
  if (!connection.over) core.events.emit('connect', { client: connection.client, sessionPresent: present })
  if (!connection.over) session.outbox.attach(output)
  connection.handleEarlier()
}

/** Seconds that the session is kept after its connection. 3.1.1 keeps it for ever, or not at all. */
export function expiryOf({ protocolVersion, cleanStart, properties }: ConnectPacket, settings: BrokerSettings): number {
  const wanted = protocolVersion === 5 ? (properties.sessionExpiryInterval ?? 0) : cleanStart ? 0 : NEVER
  return Math.min(wanted, settings.maximumSessionExpiry)
}

/** What CONNACK says: only what differs from the protocol's defaults (section 3.2.2.3). */
function announcements({ core, session, clientId }: Connection, connect: ConnectPacket): Properties {
  const { settings } = core
  const { sessionExpiryInterval = 0, requestResponseInformation } = connect.properties
  const properties: Properties = {}
  if (session?.expiryInterval !== sessionExpiryInterval) properties.sessionExpiryInterval = session?.expiryInterval
  if (settings.receiveMaximum < 65_535) properties.receiveMaximum = settings.receiveMaximum
  if (settings.maximumQoS < 2) properties.maximumQoS = settings.maximumQoS
  if (!settings.retainAvailable) properties.retainAvailable = 0
  properties.maximumPacketSize = settings.maximumPacketSize
  if (clientId !== connect.clientId) properties.assignedClientIdentifier = clientId
  if (settings.topicAliasMaximum > 0) properties.topicAliasMaximum = settings.topicAliasMaximum
  if (!settings.wildcardSubscriptionAvailable) properties.wildcardSubscriptionAvailable = 0
  if (!settings.subscriptionIdentifierAvailable) properties.subscriptionIdentifierAvailable = 0
  if (!settings.sharedSubscriptionAvailable) properties.sharedSubscriptionAvailable = 0
  if (settings.serverKeepAlive !== undefined) properties.serverKeepAlive = settings.serverKeepAlive
  if (requestResponseInformation === 1) properties.responseInformation = responseInformation(settings, connect)
  return properties
}

// [MQTT-3.1.2-28]
function responseInformation({ responseInformation: given }: BrokerSettings, connect: ConnectPacket): string | undefined {
  return typeof given === 'function' ? given(connect) : given
}
