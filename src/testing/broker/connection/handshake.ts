/**
 * From the first packet of a connection to its CONNACK, and authentication later on (sections
 * 3.1.4, 3.2, 3.15 and 4.12).
 *
 * Synchronous hook results apply synchronously, so that a run under virtual time has no races.
 * While a promise is pending, further packets of the client are queued. Every refusing CONNACK gets
 * a Reason String, except on 3.1.1.
 */
import { CONNACK } from '../../../wire/constants.js'
import type { WireError } from '../../../wire/error.js'
import { isBytes } from '../../../wire/fields.js'
import type { AuthPacket, ClientPacket, ConnectPacket, Properties } from '../../../wire/packets.js'
import { isReasonCode, reasonName } from '../../../wire/reason-codes.js'
import { isObject } from '../../../wire/writer.js'
import { ask, type Eventually, isPromise } from '../common/hooks.js'
import type { BrokerAuthContext, BrokerSettings } from '../common/options.js'
import { connectVerdict } from '../common/verdicts.js'
import { NEVER } from '../state/session-state.js'
import type { AuthExchange, Peer } from './peer.js'
import type { HandledConnection } from './ports.js'
import { returnCodeOf } from './restated.js'

/** Handles a packet before CONNACK. */
export function handleEarly(connection: HandledConnection, packet: ClientPacket): void {
  if (connection.peer.state === 'new') {
    if (packet.type === 'connect') handleConnect(connection, packet)
    else connection.violate('the first packet is no CONNECT [MQTT-3.1.0-1]', packet.type, 0x82)
  } else if (packet.type === 'auth') handleAuth(connection, packet)
  else if (packet.type === 'disconnect') connection.end.leave(packet.reasonCode)
  else if (packet.type === 'connect')
    connection.violate('a second CONNECT [MQTT-3.1.0-2]', packet.type, 0x82)
  else
    connection.violate(
      'more than AUTH and DISCONNECT before CONNACK [MQTT-3.1.2-30]',
      packet.type,
      0x82,
    )
}

/** Ends a connection whose `connectTimeout` passed between CONNECT and CONNACK. */
export function endHandshake(connection: HandledConnection, thinking: boolean): void {
  const { broker, peer } = connection
  const { clientId, exchange } = peer
  const error = new Error(
    `it did not settle within ${broker.settings.connectTimeout} ms (connectTimeout)`,
  )
  if (exchange?.turn === 'broker') broker.reportHookError('auth', clientId, error)
  else if (thinking)
    broker.reportHookError(
      broker.settings.authenticate === undefined ? 'responseInformation' : 'authenticate',
      clientId,
      error,
    )
  refuseConnect(connection, 0x80, 'the time for authentication is over')
}

/** Handles bytes that are not a packet. */
export function handleWireError(connection: HandledConnection, error: WireError): void {
  const code = error.reasonCode ?? 0x81
  const { state, head } = connection.peer
  if (state === 'connected') {
    connection.violate(`${error.message} [MQTT-4.13.1-1]`, undefined, code)
    return
  }
  connection.violate(`${error.message} [MQTT-3.1.4-1]`, undefined)
  if (state === 'new') {
    // If the first bytes are not from an MQTT client, nothing is answered.
    if ((head[0] ?? 0) >> 4 !== 1) {
      connection.end.finish()
      return
    }
    const level = protocolLevel(head)
    connection.peer.protocolVersion = level <= 4 ? 4 : 5
    // 3.1.1 has return codes for these only; anything else closes the connection without an answer.
    if (level <= 4 && code !== 0x84 && code !== 0x85) connection.end.finish()
    else refuseConnect(connection, code, error.message)
  } else refuseConnect(connection, code, error.message)
}

/**
 * The protocol level of a CONNECT that could not be decoded: it follows fixed header and protocol
 * name.
 */
function protocolLevel(head: Uint8Array): number {
  let at = 1
  while (((head[at] ?? 0) & 0x80) !== 0) at++
  const length = ((head[at + 1] ?? 0) << 8) | (head[at + 2] ?? 0)
  return head[at + 3 + length] ?? 5
}

/**
 * Sends a CONNACK that refuses and ends the connection [MQTT-3.2.2-7] [MQTT-3.1.4-2]. The Reason
 * String is `text`, by default the name of the code.
 */
export function refuseConnect(
  connection: HandledConnection,
  reasonCode: number,
  text?: string,
  properties: Properties = {},
): void {
  const { peer, sender } = connection
  const code = isReasonCode(CONNACK, reasonCode, 'server') ? reasonCode : 0x80
  const reasonString = text ?? reasonName(code, CONNACK)
  if (peer.protocolVersion === 4)
    sender.send({
      type: 'connack',
      sessionPresent: false,
      reasonCode: returnCodeOf(code),
      properties: {},
    })
  else
    sender.send({
      type: 'connack',
      sessionPresent: false,
      reasonCode: code,
      properties: { reasonString, ...properties },
    })
  connection.end.finish()
}

function handleConnect(connection: HandledConnection, packet: ConnectPacket): void {
  const { broker, peer, sender } = connection
  sender.configure(packet)
  peer.state = 'authenticating'
  peer.connect = packet
  peer.clientId = packet.clientId
  const objection = objectTo(connection, packet)
  if (objection !== undefined) {
    refuseConnect(connection, ...objection)
    return
  }
  if (peer.clientId === '') peer.clientId = broker.sessions.assignClientId()
  connection.decide(connectVerdict(broker, packet, peer.remote), ({ code, properties }) => {
    if (connection.end.over) return
    if (code < 0x80) authenticateFurther(connection, packet)
    else refuseConnect(connection, code, undefined, properties)
  })
}

/** The reason to refuse a CONNECT without calling a hook; undefined to let it through. */
function objectTo(
  { broker }: HandledConnection,
  { protocolVersion, clientId, will }: ConnectPacket,
): [code: number, text: string] | undefined {
  const { settings, sessions } = broker
  if (!settings.protocolVersions.includes(protocolVersion))
    return [0x84, 'this broker does not speak that version']
  if (protocolVersion === 5 && (will?.qos ?? 0) > settings.maximumQoS)
    return [0x9b, 'the QoS of the will is not supported [MQTT-3.2.2-12]']
  if (will?.retain && !settings.retainAvailable)
    return [0x9a, 'the will cannot be retained [MQTT-3.2.2-13]']
  const { byClientId } = sessions
  return byClientId.size >= settings.maxSessions && !byClientId.has(clientId)
    ? [0x97, 'there are as many sessions as are kept']
    : undefined
}

function authenticateFurther(connection: HandledConnection, packet: ConnectPacket): void {
  const { authenticationMethod: methodName, authenticationData } = packet.properties
  if (methodName === undefined) {
    announce(connection, packet, {})
    return
  }
  const method = Object.hasOwn(connection.broker.settings.auth, methodName)
    ? connection.broker.settings.auth[methodName]
    : undefined
  if (method === undefined) {
    refuseConnect(
      connection,
      0x8c,
      'this broker does not know the authentication method [MQTT-4.12.0-1]',
    )
    return
  }
  const exchange: AuthExchange = {
    methodName,
    method,
    context: contextOf(connection.peer, false),
    turn: 'none',
  }
  connection.peer.exchange = exchange
  takeStep(connection, exchange, () => method.start(authenticationData, exchange.context))
}

function contextOf(
  { clientId, connect, remote }: Peer,
  reauthentication: boolean,
): BrokerAuthContext {
  return { clientId, username: connect?.username, remote, reauthentication, state: {} }
}

/** AUTH from the client: the next step, or a new exchange after CONNACK (section 4.12.1). */
export function handleAuth(connection: HandledConnection, packet: AuthPacket): void {
  const { exchange, state } = connection.peer
  const { authenticationMethod, authenticationData } = packet.properties
  const begins = packet.reasonCode === 0x19
  if (exchange === undefined)
    connection.violate(
      'AUTH without an authentication method in CONNECT [MQTT-4.12.0-7]',
      'auth',
      0x82,
    )
  else if (authenticationMethod !== exchange.methodName) {
    connection.violate(
      'AUTH with another authentication method [MQTT-4.12.0-5] [MQTT-4.12.1-1]',
      'auth',
      0x82,
    )
  } else if (
    begins !== (exchange.turn === 'none') ||
    exchange.turn === 'broker' ||
    (begins && state !== 'connected')
  ) {
    connection.violate('AUTH that nobody waits for [MQTT-4.12.0-3]', 'auth', 0x82)
  } else {
    if (begins) exchange.context = contextOf(connection.peer, true)
    const { method, context } = exchange
    takeStep(connection, exchange, () =>
      begins
        ? method.start(authenticationData, context)
        : method.continue(authenticationData, context),
    )
  }
}

/** A valid step, or the code of a refusal. */
type Step = { readonly continues: boolean; readonly data: Uint8Array | undefined } | number

// Other packets do not wait for a pending step: before CONNACK none is allowed, and afterwards they
// are handled as usual.
function takeStep(connection: HandledConnection, exchange: AuthExchange, run: () => unknown): void {
  exchange.turn = 'broker'
  const { broker, peer } = connection
  const step = ask<Step>(broker, {
    hook: 'auth',
    clientId: peer.clientId,
    timeout: peer.state === 'connected' ? broker.settings.hookTimeout : Infinity,
    run,
    read: stepOf,
    failed: (error) => (isRefusal(error) ? error.reasonCode : 0x87),
    meant: isRefusal,
  })
  const done = (taken: Step): void => {
    if (connection.end.over) return
    if (typeof taken === 'number') refuseExchange(connection, taken)
    else answerStep(connection, exchange, taken.continues, taken.data)
  }
  if (isPromise(step)) void step.then(done)
  else done(step)
}

/** @throws TypeError for an invalid step */
function stepOf(given: unknown): Step {
  if (!isObject(given)) throw new TypeError('an authentication method gave what is no step')
  const { reasonCode = 0, data } = given as {
    readonly reasonCode?: unknown
    readonly data?: unknown
  }
  if (!isCode(reasonCode))
    throw new TypeError('an authentication method gave what is no reason code')
  if (reasonCode >= 0x80) return reasonCode
  if (data !== undefined && !isBytes(data))
    throw new TypeError('an authentication method gave data that is no Uint8Array')
  return { continues: reasonCode === 0x18, data }
}

function isCode(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xff
}

function isRefusal(error: unknown): error is { readonly reasonCode: number } {
  return (
    isObject(error) && 'reasonCode' in error && isCode(error.reasonCode) && error.reasonCode >= 0x80
  )
}

function answerStep(
  connection: HandledConnection,
  exchange: AuthExchange,
  continues: boolean,
  data: Uint8Array | undefined,
): void {
  const properties: Properties = {
    authenticationMethod: exchange.methodName,
    authenticationData: data && new Uint8Array(data),
  }
  exchange.turn = continues ? 'client' : 'none'
  if (continues || connection.peer.state === 'connected') {
    connection.sender.send({ type: 'auth', reasonCode: continues ? 0x18 : 0, properties })
  } else if (connection.peer.connect !== undefined)
    announce(connection, connection.peer.connect, properties)
}

/** [MQTT-4.12.0-4] [MQTT-4.12.1-2] */
function refuseExchange(connection: HandledConnection, reasonCode: number): void {
  if (connection.peer.state === 'connected') connection.end.disconnect(reasonCode)
  else refuseConnect(connection, reasonCode)
}

/** Builds the properties of CONNACK, then accepts the client. */
function announce(
  connection: HandledConnection,
  connect: ConnectPacket,
  properties: Properties,
): void {
  connection.decide(responseInformation(connection, connect), (information) => {
    if (!connection.end.over)
      welcome(
        connection,
        connect,
        information === undefined
          ? properties
          : { responseInformation: information, ...properties },
      )
  })
}

/** Accepts the client: session, CONNACK, queued messages. */
function welcome(
  connection: HandledConnection,
  connect: ConnectPacket,
  properties: Properties,
): void {
  const { broker, peer, sender, end } = connection
  const { settings } = broker
  // Other clients may have connected while hooks were pending.
  const objection = objectTo(connection, connect)
  if (objection !== undefined) {
    refuseConnect(connection, ...objection)
    return
  }
  const entered = broker.sessions.enter(peer.clientId, connect.cleanStart, end)
  if (entered === undefined) return
  const { session, present } = entered
  peer.session = session
  peer.will = connect.will
  session.protocolVersion = connect.protocolVersion
  session.expiryInterval = expiryOf(connect, settings)
  peer.keepAlive =
    connect.protocolVersion === 5
      ? (settings.serverKeepAlive ?? connect.keepAlive)
      : connect.keepAlive
  connection.begin()
  const announced =
    connect.protocolVersion === 5
      ? { ...announcements(settings, peer, connect), ...properties }
      : {}
  sender.send({ type: 'connack', sessionPresent: present, reasonCode: 0, properties: announced })
  if (!end.over) broker.log.events.emit('connect', { client: peer.view, sessionPresent: present })
  if (!end.over && !end.gone) session.deliveries.attach(sender)
}

/**
 * Seconds that the session outlives its connection. On 3.1.1 it never expires, or ends with the
 * connection.
 */
export function expiryOf(
  { protocolVersion, cleanStart, properties }: ConnectPacket,
  settings: BrokerSettings,
): number {
  const wanted =
    protocolVersion === 5 ? (properties.sessionExpiryInterval ?? 0) : cleanStart ? 0 : NEVER
  return Math.min(wanted, settings.maximumSessionExpiry)
}

/** Properties of CONNACK that differ from the protocol's defaults (section 3.2.2.3). */
function announcements(
  settings: BrokerSettings,
  { session, clientId }: Peer,
  connect: ConnectPacket,
): Properties {
  const { sessionExpiryInterval = 0 } = connect.properties
  const properties: Properties = {}
  if (session?.expiryInterval !== sessionExpiryInterval)
    properties.sessionExpiryInterval = session?.expiryInterval
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
  return properties
}

// [MQTT-3.1.2-28]
function responseInformation(
  { broker, peer }: HandledConnection,
  connect: ConnectPacket,
): Eventually<string | undefined> {
  const { responseInformation: given } = broker.settings
  if (connect.properties.requestResponseInformation !== 1 || typeof given !== 'function') {
    return connect.properties.requestResponseInformation === 1
      ? (given as string | undefined)
      : undefined
  }
  return ask(broker, {
    hook: 'responseInformation',
    clientId: peer.clientId,
    timeout: Infinity,
    run: () => given(connect),
    read(text) {
      if (text !== undefined && typeof text !== 'string')
        throw new TypeError('responseInformation gave what is no text')
      return text
    },
    failed: () => undefined,
  })
}
