/** What the tests of the pure session share. Outputs are taken as the driver takes them; there is no clock: times are arguments. */
import { expect } from 'vitest'
import type {
  Action,
  PersistOperation,
  PersistPort,
} from '../../../../src/client/session/actions.js'
import { REPEAT } from '../../../../src/client/session/receive-window.js'
import { FAULT } from '../../../../src/client/session/refusal.js'
import { CLEARED, DONE, RELEASED, UNKNOWN } from '../../../../src/client/session/send-window.js'
import { Session, type SessionConfig } from '../../../../src/client/session/session.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import type { ConnackPacket, ConnectPacket, Properties } from '../../../../src/wire/packets.js'

/** One acknowledgement as `[type, id, reason code]`. */
export type Ack = readonly [
  type: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp',
  id: number,
  code: number,
]
const ackNames = ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const

const kinds = {
  puback: PUBACK,
  pubrec: PUBREC,
  pubcomp: PUBCOMP,
  suback: 'subscribe',
  unsuback: 'unsubscribe',
} as const
const verdicts = new Map<number, string>([
  [UNKNOWN, 'ignored'],
  [DONE, 'done'],
  [RELEASED, 'released'],
  [CLEARED, 'cleared'],
  [FAULT, 'fault'],
  [REPEAT, 'repeat'],
])

/** The calls of a script. */
const calls: Record<
  string,
  (session: Driven, first: number, second?: number, words?: string[]) => unknown
> = {
  in: (session, id, qos = 0, words = []) => {
    const verdict = session.receive(id, qos, words.includes('dup'))
    return verdicts.get(verdict >= 0 ? Number.NaN : verdict) ?? verdict
  },
  settle: (session, ticket, code) => session.settle(ticket, code),
  pubrel: (session, id) => session.receiveWindow.handlePubrel(id),
  out: (session, _first, _second, words = []) =>
    words.map((qos) => session.publish(Number(qos.slice(1)))).join(' '),
  subscribe: ({ sendWindow }, filters) => sendWindow.request('subscribe', filters),
  unsubscribe: ({ sendWindow }, filters) => sendWindow.request('unsubscribe', filters),
  withdraw: ({ sendWindow }, id) => sendWindow.withdraw(id),
  prepare: ({ sendWindow }, qos) => sendWindow.prepare(qos),
  replay: ({ sendWindow }, id) => sendWindow.replay(id),
  release: ({ sendWindow }, id) => sendWindow.replayRelease(id),
  abandon: ({ sendWindow }, id) => sendWindow.abandon(id),
  disown: ({ sendWindow }, id) => sendWindow.disown(id),
  suspend: (session) => session.suspend(),
  reset: (session) => session.reset(),
  /** Another connection, with this Receive Maximum of the server; `lost` has no session any more. */
  next: (session, window) =>
    void session.reconnect(true, window > 0 ? { receiveMaximum: window } : {}),
  lost: (session) => {
    const { lost, stale } = session.reconnect(false)
    return lost ? stale : 'not lost'
  },
  grant: (session, _first, _second, words = []) => session.port.grant(...words.map(Number)),
  /** Numbers and flags of the windows. */
  read: ({ receiveWindow, sendWindow }, _first, _second, words = []) =>
    words
      .map((name) => `${Reflect.get(name in receiveWindow ? receiveWindow : sendWindow, name)}`)
      .join(' '),
}
for (const type of ['puback', 'pubrec', 'pubcomp', 'suback', 'unsuback'] as const)
  calls[type] = (session, id, code) => session.got(type, id, code)

/** A store that confirms each request once when it is asked to, also what was requested before a reset: a session must bear that. */
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

  /** The requests at these places are safe. Nothing happens for a place without one, or the second time. */
  grant(...places: number[]): void {
    for (const place of places) {
      const granted = this.#open.get(place)
      this.#open.delete(place)
      granted?.()
    }
  }
}

export const configuration: SessionConfig = {
  receiveMaximum: 10,
  pingTimeout: 10_000,
  maximumInflight: 65_535,
  ownsSession: false,
}

/** A session with short calls for what comes in and leaves. */
export class Driven extends Session {
  /** What its store is asked for, where it has one. */
  readonly port = new RecordingPort()

  constructor(config: Partial<SessionConfig> = {}) {
    super({ ...configuration, ...config })
  }

  /**
   * Plays `call = what comes of it` for each line, or between semicolons. All of it is expected: the verdict, acknowledgements that leave, what the
   * store is asked for, and actions, a protocol error as `close` with its reason code.
   */
  play(script: string): this {
    for (const line of script.split(/[;\n]/)) {
      const [call = '', expected = ''] = line.split('=').map((part) => part.trim())
      if (call !== '') expect(`${call} = ${this.#outcome(call)}`).toBe(`${call} = ${expected}`)
    }
    return this
  }

  #outcome(call: string): string {
    const [name = '', ...words] = call.split(' ')
    const [first = 0, second] = words.map((word) => Number(word.replace('q', '')))
    const before = this.port.requests.length
    const verdict = (calls[name] as (typeof calls)[string])(this, first, second, words)
    const asked = this.port.requests.slice(before).map((request) => request.join(' '))
    const actions = this.takeActions().map((action) => {
      if (action.type !== 'close') return action.type
      const { code, fault, reasonCode } = action.error
      return code === 'ERR_PROTOCOL_ERROR' && fault === 'remote' ? `close ${reasonCode}` : code
    })
    return [`${verdict ?? ''}`, this.answers(), ...asked, ...actions]
      .filter((part) => part !== '')
      .join(', ')
  }

  /** PUBLISH comes in: its ticket, REPEAT or FAULT. */
  receive(id: number, qos: number, dup = false): number {
    return this.receiveWindow.handlePublish(id, qos, dup)
  }

  settle(ticket: number, code = 0): boolean {
    return this.receiveWindow.settle(ticket, code)
  }

  /** PUBLISH comes in and is settled: its ticket. */
  take(id: number, qos: number, code = 0): number {
    const ticket = this.receive(id, qos)
    this.settle(ticket, code)
    return ticket
  }

  /** The identifier of a PUBLISH that leaves. */
  publish(qos: number): number {
    return this.sendWindow.publish(qos)
  }

  /** An acknowledgement comes in, with a reason code or a count of them: what it means. */
  got(type: keyof typeof kinds, id: number, code = 0): string {
    const { sendWindow } = this
    const kind = kinds[type]
    const verdict =
      typeof kind === 'number'
        ? sendWindow.handleAck(kind, id, code)
        : sendWindow.handleAnswer(kind, id, code)
    return verdicts.get(verdict) ?? `${verdict}`
  }

  /** Takes every acknowledgement that is queued. */
  takeAcks(): Ack[] {
    const { acks } = this
    const taken = acks.entries.slice(acks.head, acks.tail).map((entry): Ack => {
      const type = ackNames[(entry >>> 24) - PUBACK]
      if (type === undefined) throw new Error(`no acknowledgement: ${entry}`)
      return [type, entry & 0xffff, (entry >>> 16) & 0xff]
    })
    acks.head = acks.tail
    return taken
  }

  /** Takes them as text: `puback 1, pubrec 2 0x80`. */
  answers(): string {
    const texts = this.takeAcks().map(
      ([type, id, code]) => `${type} ${id}${code === 0 ? '' : ` 0x${code.toString(16)}`}`,
    )
    return texts.join(', ')
  }

  /** Takes every action that is queued. */
  takeActions(): Action[] {
    return this.actions.splice(0)
  }

  /** Expects that the session ended the connection with this reason code, once, and did nothing else. */
  expectClose(reasonCode: number, code = 'ERR_PROTOCOL_ERROR'): void {
    expect([this.state, this.answers()]).toEqual(['closed', ''])
    expect(this.takeActions()).toMatchObject([
      { type: 'close', error: { code, reasonCode, fault: 'remote' } },
    ])
  }

  /** Expects that nothing was asked for and the session is still connected. */
  expectQuiet(): void {
    expect([this.state, this.takeActions(), this.answers()]).toEqual(['connected', [], ''])
  }

  /** The connection is lost, and another one goes on with the session (or without it: `present` false). Gives the `connected` action. */
  reconnect(
    present = true,
    properties: Properties = {},
    connect: Partial<ConnectPacket> = {},
    now = 0,
  ): Extract<Action, { type: 'connected' }> {
    this.suspend()
    this.connect(connectPacket({ cleanStart: false, ...connect }))
    this.handlePacket(connackPacket(properties, { sessionPresent: present }), now)
    const actions = this.takeActions()
    expect(actions.map((action) => action.type)).toEqual(['send', 'connected'])
    return actions[1] as Extract<Action, { type: 'connected' }>
  }
}

/** A CONNECT as the client would send it. */
export function connectPacket(fields: Partial<ConnectPacket> = {}): ConnectPacket {
  return {
    ...{ type: 'connect', protocolName: 'MQTT', protocolVersion: 5, cleanStart: true },
    ...{ keepAlive: 30, clientId: 'me', will: undefined, username: undefined, password: undefined },
    properties: { topicAliasMaximum: 10 },
    ...fields,
  }
}

/** A CONNACK with reason code 0, unless the fields say otherwise. */
export function connackPacket(
  properties: Properties = {},
  fields: Partial<ConnackPacket> = {},
): ConnackPacket {
  return { type: 'connack', sessionPresent: false, reasonCode: 0, properties, ...fields }
}

/** A session whose CONNECT was taken by the driver. */
export function connecting(
  config: Partial<SessionConfig> = {},
  connect: Partial<ConnectPacket> = {},
): Driven {
  const session = new Driven(config)
  session.connect(connectPacket(connect))
  session.takeActions()
  return session
}

/** A session after its handshake at time 0, with nothing left to poll. */
export function connected(
  config: Partial<SessionConfig> = {},
  properties: Properties = {},
  connect: Partial<ConnectPacket> = {},
): Driven {
  const session = connecting(config, connect)
  session.handlePacket(connackPacket(properties), 0)
  expect(session.takeActions().map((action) => action.type)).toEqual(['connected'])
  return session
}

/** A first connection to a session that an earlier process left behind (Session Present 1). */
export function inherited(receiveMaximum = 65_535, connect: Partial<ConnectPacket> = {}): Driven {
  const session = connecting({ ownsSession: true }, { cleanStart: false, ...connect })
  session.handlePacket(connackPacket({ receiveMaximum }, { sessionPresent: true }), 0)
  session.takeActions()
  return session
}

/** A session after its handshake whose state is kept in a store. */
export function durablyConnected(config: Partial<SessionConfig> = {}): Driven {
  const session = connected(config)
  session.persistence = session.port
  return session
}
