/** What a client has to do with a sequence in a state: a reference of the rules, small enough to be read, without bytes, timers or promises. */
import type { Meaning } from './case.js'
import { type RuleName, rules } from './rules.js'
import { type Awaiting, counts, limits, type State, type Taken } from './states.js'

export type End =
  /** The link is up. */
  | 'open'
  /** The handshake is not over, and nothing is wrong. */
  | 'waiting'
  | 'refused'
  | 'closed'
  /** The server's DISCONNECT ended it. */
  | 'disconnected'
  /** Nobody listens any more: nothing is answered. */
  | 'dropped'

export interface Expected {
  readonly end: End
  /** Acknowledgements in order, as `pubrel 2 00`: exactly these while the link is kept, at most these where it ends. */
  readonly acks: readonly string[]
  /** AUTH packets of ours, least and most. */
  readonly auths: readonly [least: number, most: number]
  /** Requests that may leave once more, under another identifier: `subscribe` or `unsubscribe` each. */
  readonly repeats: readonly string[]
  /** Reason code of our DISCONNECT, where one is sent. */
  readonly announced: number | undefined
  /** Reason code of the error that the application gets, where the connection ends. */
  readonly cause: number | undefined
  readonly rule: RuleName | undefined
  /** The last packet is incomplete, or the server's Maximum Packet Size leaves no room: it cannot be asked whether the link is up. */
  readonly mute: boolean
}

/** What 3.1.1 return codes are in terms of 5.0 (section 3.2.2.3 of 3.1.1). */
const oldReturnCodes = [0, 0x84, 0x85, 0x88, 0x86, 0x87]
/** No acknowledgement of a test is longer. */
const roomy = 16

class Model {
  readonly #version: 4 | 5
  readonly #state: State
  end: End | undefined
  rule: RuleName | undefined
  announced: number | undefined
  cause: number | undefined
  readonly acks: string[] = []
  readonly repeats: string[] = []
  leastAuths = 0
  mostAuths = 0
  partial = false
  limit = Number.POSITIVE_INFINITY
  #open: boolean
  #settles: boolean
  #rounds: number | undefined
  readonly #ours: Map<number, Awaiting>
  readonly #theirs: Map<number, Taken>
  readonly #aliases: Set<number>

  constructor(version: 4 | 5, state: State) {
    this.#version = version
    this.#state = state
    this.#open = !state.handshake
    this.#settles = state.settles
    this.#rounds = state.rounds
    this.#ours = new Map(Object.entries(state.ours).map(([id, awaiting]) => [Number(id), awaiting]))
    this.#theirs = new Map(Object.entries(state.theirs).map(([id, taken]) => [Number(id), taken]))
    this.#aliases = new Set(state.aliases)
  }

  get open(): boolean {
    return this.#open
  }

  handle(meaning: Meaning): void {
    if (meaning.kind === 'partial') this.partial = true
    else if (meaning.kind === 'broken') this.#break(meaning.rule)
    else if (!this.#open && meaning.kind !== 'connack' && meaning.kind !== 'auth')
      this.#break('packet before CONNACK')
    else if ('pairs' in meaning && (meaning.pairs ?? 0) > counts.pairs)
      this.#break('more user properties than we take')
    else this.#handle(meaning)
  }

  #handle(meaning: Exclude<Meaning, { kind: 'partial' | 'broken' }>): void {
    switch (meaning.kind) {
      case 'connack':
        return this.#handleConnack(meaning)
      case 'auth':
        return this.#handleAuth(meaning)
      case 'publish':
        return this.#handlePublish(meaning)
      case 'pubrel':
        return this.#handlePubrel(meaning.id)
      case 'puback':
      case 'pubrec':
      case 'pubcomp':
        return this.#handleAck(meaning.kind, meaning.id, meaning.code)
      case 'suback':
      case 'unsuback':
        return this.#handleAnswer(meaning)
      case 'disconnect':
        this.end = 'disconnected'
        this.cause = meaning.code
        return
      case 'pingresp':
        // Also unasked.
        return
    }
  }

  // Nothing is said before CONNACK, nor on 3.1.1, where any DISCONNECT is a clean end.
  #break(rule: RuleName): void {
    this.end = 'closed'
    this.rule = rule
    this.cause = rules[rule].code
    this.announced = this.#open && this.#version === 5 ? this.cause : undefined
  }

  #handleConnack({
    code,
    present = false,
    method,
    assigned = false,
    limit,
  }: Extract<Meaning, { kind: 'connack' }>): void {
    if (this.#open) return this.#break('second CONNACK')
    if (code !== 0) {
      this.end = 'refused'
      this.cause = this.#version === 4 ? oldReturnCodes[code] : code
      return
    }
    // The server took us in: from here on it is told what is wrong.
    this.#open = true
    this.#rounds = undefined
    // It did not wait for our AUTH, which may then stay away.
    this.leastAuths = 0
    this.limit = limit ?? this.limit
    const { clientId, cleanStart } = this.#state
    if (present && cleanStart) return this.#break('Session Present without a session')
    if (assigned && clientId !== '') return this.#break('client identifier assigned unasked')
    if (method !== this.#state.method) return this.#break('another authentication method')
    // Messages of a session that nobody reads yet are kept for a while.
    if (present) this.#settles = false
  }

  #handleAuth({ code, method }: Extract<Meaning, { kind: 'auth' }>): void {
    if (this.#state.method === undefined) return this.#break('AUTH where none is expected')
    if (method !== this.#state.method) return this.#break('another authentication method')
    if (code === 0 && (!this.#open || this.#rounds === undefined))
      return this.#break('AUTH where none is expected')
    // A server that begins an exchange by itself is borne with.
    const rounds = (this.#rounds ?? 0) + 1
    if (rounds > counts.rounds) return this.#break('too many rounds of authentication')
    this.#rounds = code === 0 ? undefined : rounds
    if (code === 0) return
    this.leastAuths += 1
    this.mostAuths += 1
  }

  #handlePublish({
    qos,
    id,
    dup = false,
    alias,
    nameless = false,
    identifiers = 0,
  }: Extract<Meaning, { kind: 'publish' }>): void {
    if (identifiers > counts.identifiers)
      return this.#break('more subscription identifiers than we take')
    if (alias !== undefined) {
      if (alias === 0 || alias > limits.topicAliasMaximum)
        return this.#break('topic alias outside our range')
      if (nameless && !this.#aliases.has(alias)) return this.#break('topic alias never set')
      this.#aliases.add(alias)
    }
    if (qos === 0) return
    const taken = this.#theirs.get(id)
    if (taken !== undefined) return this.#handleAgain(taken, qos, id, dup)
    // 3.1.1 knows no Receive Maximum.
    if (this.#version === 5 && this.#theirs.size >= limits.receiveMaximum)
      return this.#break('above our Receive Maximum')
    if (!this.#settles) this.#theirs.set(id, qos === 1 ? 'in hand at QoS 1' : 'in hand at QoS 2')
    else if (qos === 2) this.#theirs.set(id, 'awaiting PUBREL')
    if (this.#settles) this.#say(qos === 1 ? 'puback' : 'pubrec', id)
  }

  #handleAgain(taken: Taken, qos: 1 | 2, id: number, dup: boolean): void {
    // 3.1.1 lets a server send a message again on the same connection.
    if (this.#version === 4 && dup && qos === 1 && taken === 'in hand at QoS 1') return
    if (qos === 1 || taken === 'in hand at QoS 1') return this.#break('packet identifier in use')
    if (taken === 'awaiting PUBREL') this.#say('pubrec', id)
  }

  #handlePubrel(id: number): void {
    const taken = this.#theirs.get(id)
    if (taken !== undefined && taken !== 'awaiting PUBREL')
      return this.#break('PUBREL before our PUBREC')
    this.#theirs.delete(id)
    this.#say('pubcomp', id, taken === undefined ? 0x92 : 0)
  }

  #handleAck(kind: 'puback' | 'pubrec' | 'pubcomp', id: number, code: number): void {
    const awaiting = this.#ours.get(id)
    if (awaiting === undefined) {
      if (kind === 'pubrec' && code < 0x80) this.#say('pubrel', id, 0x92)
    } else if (kind === 'pubrec' && awaiting === 'pubcomp') {
      // An error answers a copy that was sent again: the message is the server's already.
      if (code < 0x80) this.#say('pubrel', id)
    } else if (awaiting !== kind) this.#break('acknowledgement of the wrong kind')
    else if (kind === 'pubrec' && code < 0x80) {
      this.#ours.set(id, 'pubcomp')
      this.#say('pubrel', id)
    } else this.#ours.delete(id)
  }

  #handleAnswer({
    kind,
    id,
    count,
    inUse = false,
  }: Extract<Meaning, { kind: 'suback' | 'unsuback' }>): void {
    const awaiting = this.#ours.get(id)
    if (awaiting === undefined) return
    if (typeof awaiting === 'string' || awaiting.answer !== kind)
      return this.#break('acknowledgement of the wrong kind')
    // UNSUBACK of 3.1.1 has no codes.
    const counted = kind === 'suback' || this.#version === 5
    if (counted && count !== awaiting.filters)
      return this.#break('another number of reason codes than filters')
    this.#ours.delete(id)
    // Some servers have one set of identifiers for both directions.
    if (inUse) this.repeats.push(kind === 'suback' ? 'subscribe' : 'unsubscribe')
  }

  #say(kind: string, id: number, code = 0): void {
    this.acks.push(
      `${kind} ${id} ${(this.#version === 4 ? 0 : code).toString(16).padStart(2, '0')}`,
    )
  }
}

/** What is to come of a sequence in a state. */
export function judge(version: 4 | 5, meanings: readonly Meaning[], state: State): Expected {
  if (state.leaving)
    return {
      end: 'dropped',
      acks: [],
      auths: [0, 0],
      repeats: [],
      announced: undefined,
      cause: undefined,
      rule: undefined,
      mute: true,
    }
  const model = new Model(version, state)
  for (const meaning of meanings)
    if (model.end === undefined && !model.partial) model.handle(meaning)
  const { end = model.open ? 'open' : 'waiting', acks, repeats, announced, cause, rule } = model
  const ended = model.end !== undefined
  const auths = [ended ? 0 : model.leastAuths, model.mostAuths] as const
  return {
    end,
    acks,
    auths,
    repeats,
    announced,
    cause,
    rule,
    mute: model.partial || model.limit < roomy,
  }
}

/** An end in a word, for tables: which code was announced, or is the cause where nothing was. */
export function endName({ end, announced, cause }: Expected): string {
  if (end !== 'closed') return end
  return announced === undefined ? `silent ${cause?.toString(16)}` : announced.toString(16)
}
