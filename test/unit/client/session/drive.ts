/**
 * What the tests of the pure session share: a session in a chosen state, and its outputs as plain values.
 *
 * Outputs are taken as the driver takes them: acknowledgements from `acks`, everything else from `actions`. No clock: times are arguments.
 */
import { expect } from 'vitest'
import type { AckQueue } from '../../../../src/client/session/ack-queue.js'
import type { Action } from '../../../../src/client/session/actions.js'
import type { PersistOperation, PersistPort } from '../../../../src/client/session/persistence.js'
import type { SessionConfig } from '../../../../src/client/session/session.js'
import { Session } from '../../../../src/client/session/session.js'
import type { ConnackPacket, ConnectPacket, Properties } from '../../../../src/wire/packets.js'

/** One acknowledgement as `[type, id, reason code]`. */
export type Ack = readonly [type: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp', id: number, reasonCode: number]

const ackNames = new Map<number, Ack[0]>([
  [4, 'puback'],
  [5, 'pubrec'],
  [6, 'pubrel'],
  [7, 'pubcomp'],
])

// Acknowledgements in their packed form.
export const ackType = (entry: number): number => entry >>> 24
export const ackReason = (entry: number): number => (entry >>> 16) & 0xff
export const ackId = (entry: number): number => entry & 0xffff

/** Takes the oldest entry, as the writer of a connection does. Only while there is one. */
export function takeAck(acks: AckQueue): number {
  return acks.entries[acks.head++] as number
}

/** Takes every acknowledgement that is queued. */
export function takeAcks(acks: AckQueue): Ack[] {
  const taken: Ack[] = []
  while (acks.length > 0) {
    const entry = takeAck(acks)
    const name = ackNames.get(ackType(entry))
    if (name === undefined) throw new Error(`no acknowledgement: ${ackType(entry)}`)
    taken.push([name, ackId(entry), ackReason(entry)])
  }
  return taken
}

/** Takes every action that is queued. */
export function takeActions(session: Session): Action[] {
  const taken: Action[] = []
  for (let action = session.actions.shift(); action !== undefined; action = session.actions.shift()) taken.push(action)
  return taken
}

export const configuration: SessionConfig = {
  receiveMaximum: 10,
  pingTimeout: 10_000,
  maximumInflight: 65_535,
  ownsSession: false,
}

/** A CONNECT as the client would send it. */
export function connectPacket(fields: Partial<ConnectPacket> = {}): ConnectPacket {
  return {
    type: 'connect',
    protocolName: 'MQTT',
    protocolVersion: 5,
    cleanStart: true,
    keepAlive: 30,
    clientId: 'me',
    will: undefined,
    username: undefined,
    password: undefined,
    properties: { topicAliasMaximum: 10 },
    ...fields,
  }
}

/** A CONNACK with reason code 0, unless the fields say otherwise. */
export function connackPacket(properties: Properties = {}, fields: Partial<ConnackPacket> = {}): ConnackPacket {
  return { type: 'connack', sessionPresent: false, reasonCode: 0, properties, ...fields }
}

/** A session whose CONNECT was taken by the driver. */
export function connecting(config: Partial<SessionConfig> = {}, connect: Partial<ConnectPacket> = {}): Session {
  const session = new Session({ ...configuration, ...config })
  session.connect(connectPacket(connect))
  takeActions(session)
  return session
}

/** A session after its handshake at time 0, with nothing left to poll. */
export function connected(config: Partial<SessionConfig> = {}, properties: Properties = {}, connect: Partial<ConnectPacket> = {}): Session {
  const session = connecting(config, connect)
  session.handlePacket(connackPacket(properties), 0)
  expect(takeActions(session).map((action) => action.type)).toEqual(['connected'])
  return session
}

/**
 * A store that confirms nothing before it is told to. It confirms each request once, also what was asked for before a reset: a session must bear that.
 */
export class RecordingPort implements PersistPort {
  readonly durable = true
  /** All that was asked for, in order. */
  readonly requests: (readonly [operation: PersistOperation, id: number])[] = []
  resets = 0
  confirmed = 0
  /** Those without an answer, by their place. */
  readonly #open = new Map<number, () => void>()

  request(operation: PersistOperation, id: number, granted: () => void): void {
    this.#open.set(this.requests.length, granted)
    this.requests.push([operation, id])
  }

  confirm(): void {
    this.confirmed += 1
  }

  reset(): void {
    this.resets += 1
  }

  /** The request at this place is safe. Nothing happens for a place without one, or the second time. */
  grant(index: number): void {
    const granted = this.#open.get(index)
    this.#open.delete(index)
    granted?.()
  }
}

/** A session after its handshake whose state is kept in a store, and that store. */
export function durablyConnected(config: Partial<SessionConfig> = {}): { readonly session: Session; readonly port: RecordingPort } {
  const session = connected(config)
  const port = new RecordingPort()
  session.persistence = port
  return { session, port }
}

/** Expects that the session ended the connection with this reason code, once, and did nothing else. */
export function expectClose(session: Session, reasonCode: number, code = 'ERR_PROTOCOL_ERROR'): void {
  expect(session.state).toBe('closed')
  expect(takeActions(session)).toMatchObject([{ type: 'close', error: { code, reasonCode, fault: 'remote' } }])
}

/** Expects that nothing was asked for and the session is still connected. */
export function expectQuiet(session: Session): void {
  expect(session.state).toBe('connected')
  expect(takeActions(session)).toEqual([])
  expect(takeAcks(session.acks)).toEqual([])
}

/** The connection is lost, and another one goes on with the session (or without it: `present` false). Gives the `connected` action. */
export function reconnect(
  session: Session,
  present = true,
  properties: Properties = {},
  connect: Partial<ConnectPacket> = {},
  now = 0,
): Extract<Action, { type: 'connected' }> {
  session.suspend()
  session.connect(connectPacket({ cleanStart: false, ...connect }))
  session.handlePacket(connackPacket(properties, { sessionPresent: present }), now)
  const actions = takeActions(session)
  expect(actions.map((action) => action.type)).toEqual(['send', 'connected'])
  return actions[1] as Extract<Action, { type: 'connected' }>
}
