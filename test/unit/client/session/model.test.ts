/** Any inputs, drops and settles in any order: the session does what its reference does; and an audit that trusts neither holds. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { REPEAT } from '../../../../src/client/session/receive-window.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import { type Ack, connackPacket, connectPacket, Driven } from './drive.js'
import { ReferenceSession, type Verdict } from './reference-session.js'

/** How often each kind of step comes. */
const weights = {
  ...{
    receive: 8,
    settle: 14,
    'settle any': 1,
    pubrel: 4,
    publish: 6,
    request: 2,
    answer: 8,
    puback: 1,
    pubrec: 1,
    pubcomp: 1,
  },
  ...{
    suback: 1,
    withdraw: 1,
    persisted: 6,
    'persisted any': 1,
    'persisted late': 2,
    suspend: 2,
    resume: 30,
    replay: 8,
    abandon: 1,
  },
}
const types = Object.keys(weights) as (keyof typeof weights)[]

/** How a connection is negotiated. */
const link = {
  version: fc.constantFrom(4 as const, 5 as const),
  receiveMaximum: fc.integer({ min: 1, max: 6 }),
  window: fc.integer({ min: 1, max: 5 }),
}

/** A step uses the fields that it needs. Identifiers and tickets are picked by rank among what there is (`pick`), so that most meet an exchange. */
const step = fc.record({
  type: fc.constantFrom(...types.flatMap((type) => Array<typeof type>(weights[type]).fill(type))),
  ...link,
  id: fc.integer({ min: 1, max: 4 }),
  qos: fc.constantFrom(1, 2),
  dup: fc.boolean(),
  /** Whether the server does what ends the connection. */
  bold: fc.constantFrom(true, false, false, false, false, false),
  pick: fc.nat(7),
  /** A ticket or a token, of any time. */
  any: fc.integer({ min: -1, max: 60 }),
  code: fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x97),
  kind: fc.constantFrom('suback' as const, 'unsuback' as const),
  count: fc.integer({ min: 1, max: 3 }),
  present: fc.constantFrom(true, true, true, true, true, false),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const setting = fc.record({
  ...link,
  durable: fc.boolean(),
  receiveMaximumExceeded: fc.constantFrom('tolerate' as const, 'disconnect' as const),
  /** Identifiers used up before the test begins: near the wrap, or none. */
  used: fc.constantFrom(0, 0, 0, 65_531),
})
type Setting = typeof setting extends fc.Arbitrary<infer T> ? T : never
type Link = Pick<Setting, keyof typeof link>
type Arrival = { readonly id: number; readonly qos: number; readonly ticket: number }
/** The verdict of the session, and that of its reference. */
type Both = [mine: number | boolean | string, expected: Verdict]

/** Steps that need no connection. */
const offline = ['settle', 'settle any', 'persisted', 'persisted any', 'persisted late', 'abandon']

/** The session and its reference, given the same inputs. */
class Pair {
  readonly session: Driven
  readonly reference: ReferenceSession
  readonly #durable: boolean
  readonly #tolerates: boolean
  #link: Link
  /** Tickets of the session by those of the reference: both rise, each at its own pace. */
  readonly #tickets = new Map<number, number>()
  // The audit: what the outside saw.
  readonly #liveIds = new Set<number>()
  #unacked: Arrival[] = []
  #earlier: Arrival[] = []
  readonly #settled = new Set<number>()
  /** Identifiers that the store forgot for this connection, and its first request. */
  readonly #forgotten = new Set<number>()
  #firstToken = 0
  /** Requests of sessions that are lost, without an answer so far. */
  readonly #late: number[] = []
  /** Messages beyond Receive Maximum so far, and when the connection began. */
  #excess = 0
  #before = 0

  constructor(chosen: Setting) {
    const { durable, receiveMaximumExceeded, used } = chosen
    this.#durable = durable
    this.#tolerates = receiveMaximumExceeded === 'tolerate'
    this.#link = chosen
    this.session = new Driven({ receiveMaximumExceeded })
    if (durable) this.session.persistence = this.session.port
    this.reference = new ReferenceSession(chosen.receiveMaximum, durable, this.#tolerates)
    this.#resume(chosen, false)
    for (let count = 0; count < used; count++) {
      this.session.sendWindow.withdraw(this.session.sendWindow.request('subscribe', 1))
      this.reference.withdraw(this.reference.request('suback', 1) as number)
    }
  }

  run(one: Step): void {
    if (one.type === 'suspend') return this.#suspend()
    if (one.type === 'resume')
      return this.reference.connected ? undefined : this.#resume(one, one.present)
    // Without a connection nothing comes in, and nothing goes out.
    if (this.reference.connected || offline.includes(one.type))
      this.#compare(one.type, this.#apply(one))
  }

  /** Undefined where nothing could be done, or nothing is said of it. */
  #apply(one: Step): Both | undefined {
    const { session, reference } = this
    const { sendWindow } = session
    switch (one.type) {
      case 'receive':
        return !one.bold && this.#ends(one) ? undefined : this.#receive(one)
      case 'settle': {
        const ticket = [...reference.messages, ...reference.parked][one.pick]?.ticket
        return ticket === undefined ? undefined : this.#settle(ticket, one.code)
      }
      case 'settle any':
        return this.#settle(one.any, one.code)
      case 'pubrel':
        if (!one.bold && reference.messages.some(({ id }) => id === one.id)) return undefined
        session.receiveWindow.handlePubrel(one.id)
        return [session.state === 'connected' ? true : 'fault', reference.pubrel(one.id)]
      case 'publish':
        if (!sendWindow.mayPublish) return undefined
        expect(sendWindow.inFlight, 'quota').toBeLessThan(this.#link.window)
        return [this.#taken(session.publish(one.qos)), reference.publish(one.qos)]
      case 'request': {
        const kind = one.kind === 'suback' ? 'subscribe' : 'unsubscribe'
        return sendWindow.hasIdentifier
          ? [
              this.#taken(sendWindow.request(kind, one.count)),
              reference.request(one.kind, one.count),
            ]
          : undefined
      }
      case 'withdraw':
        return this.#withdraw(one.pick)
      case 'replay':
      case 'abandon': {
        const id = reference.held[one.pick]
        return id === undefined
          ? undefined
          : one.type === 'replay'
            ? this.#replay(id)
            : this.#abandon(id)
      }
      case 'persisted':
      case 'persisted any': {
        const token = one.type === 'persisted' ? [...reference.tokens.keys()][one.pick] : one.any
        if (token !== undefined) this.#grant(token)
        if (token !== undefined) reference.persisted(token)
        return undefined
      }
      case 'persisted late':
        for (const token of this.#late.splice(one.pick, 1)) this.#grant(token)
        return undefined
      default:
        return this.#acknowledge(one)
    }
  }

  #grant(token: number): void {
    const [operation, id] = this.session.port.requests[token] ?? []
    if (operation === 'delete-inbound' && id !== undefined && token >= this.#firstToken)
      this.#forgotten.add(id)
    this.session.port.grant(token)
  }

  // A correct server does not use an identifier of this connection for something else, nor more of them than we take.
  #ends({ id, qos }: Step): boolean {
    const { messages, received, ending, occupied } = this.reference
    const same = messages.find((message) => message.id === id)
    if (same !== undefined || received.has(id) || ending.has(id))
      return qos === 1 || same?.qos === 1
    return !this.#tolerates && occupied >= this.#link.receiveMaximum
  }

  #receive({ id, qos, dup }: Step): Both {
    const verdict = this.session.receive(id, qos, dup)
    const expected = this.reference.receive(id, qos, dup)
    const before = this.#earlier.find((arrival) => arrival.id === id)
    if (verdict >= 0) {
      expect(verdict, 'a ticket of its own').toBeGreaterThan(
        Math.max(-1, ...this.#tickets.values()),
      )
      this.#unacked.push({ id, qos, ticket: verdict })
    } else if (before !== undefined && verdict === REPEAT) this.#unacked.push(before)
    if (verdict !== FAULT) this.#earlier = this.#earlier.filter((arrival) => arrival !== before)
    const mine = verdict === REPEAT ? 'repeat' : verdict === FAULT ? 'fault' : verdict
    if (typeof expected !== 'number') return [mine, expected]
    this.#tickets.set(expected, verdict)
    return [mine, verdict < 0 ? expected : verdict]
  }

  #settle(ticket: number, code: number): Both {
    const mine = this.#tickets.get(ticket) ?? (ticket < 0 ? ticket : 1e9)
    const settled = this.session.settle(mine, code)
    if (settled) this.#settled.add(mine)
    return [settled, this.reference.settle(ticket, code)]
  }

  #taken(id: number): number {
    expect(id >= 1 && id <= 65_535 && !this.#liveIds.has(id), 'an identifier that is free').toBe(
      true,
    )
    this.#liveIds.add(id)
    return id
  }

  // Only a packet that never left may be withdrawn.
  #withdraw(pick: number): undefined {
    const id = this.#id(pick)
    const exchange = this.reference.exchanges.get(id)
    if (
      exchange === undefined ||
      exchange.held ||
      exchange.wants === 'storing' ||
      exchange.wants === 'pubcomp'
    )
      return
    this.session.sendWindow.withdraw(id)
    this.reference.withdraw(id)
    this.#liveIds.delete(id)
  }

  // PUBREL needs no quota, PUBLISH does.
  #replay(id: number): undefined {
    const { sendWindow } = this.session
    const wants = this.reference.exchanges.get(id)?.wants
    if (wants === 'pubcomp' || wants === 'storing') sendWindow.replayRelease(id)
    else if (sendWindow.mayReplay) sendWindow.replay(id)
    else return
    this.reference.replay(id)
  }

  #abandon(id: number): undefined {
    if (this.reference.exchanges.get(id)?.wants === 'puback') this.#liveIds.delete(id)
    this.session.sendWindow.abandon(id)
    this.reference.abandon(id)
  }

  #acknowledge({ type, pick, kind, code, count }: Step): Both {
    const { reference, session } = this
    const id = this.#id(pick)
    const exchange = reference.exchanges.get(id)
    // The answer that it waits for, or any.
    const wants = type === 'answer' ? (exchange?.wants ?? 'puback') : type
    let both: Both
    if (wants === 'puback' || wants === 'pubcomp')
      both = [session.got(wants, id), reference[wants](id)]
    else if (wants === 'suback' || wants === 'unsuback') {
      const answer = type === 'suback' ? kind : wants
      const codes =
        type === 'suback'
          ? count
          : exchange !== undefined && 'filters' in exchange
            ? exchange.filters
            : 1
      both = [session.got(answer, id, codes), reference.answer(answer, id, codes)]
    } else both = [session.got('pubrec', id, code), reference.pubrec(id, code)]
    if (both[0] === 'done') this.#liveIds.delete(id)
    return both
  }

  // An identifier in use, or one that is not.
  #id(pick: number): number {
    return [...this.reference.exchanges.keys()][pick] ?? 40_000 + pick
  }

  #compare(type: string, [mine, expected]: Both | [] = []): void {
    const { session, reference } = this
    const { receiveWindow, sendWindow } = session
    const actions = session.takeActions()
    const acks = session.takeAcks()
    expect(session.port.requests, type).toEqual(reference.writes)
    expect(acks, type).toEqual(reference.acks.splice(0))
    this.#audit(acks)
    if (typeof expected === 'string' && expected.startsWith('close')) {
      expect([mine, session.state]).toEqual(['fault', 'closed'])
      expect(actions).toMatchObject([
        { type: 'close', error: { reasonCode: Number(expected.slice(6)) } },
      ])
      return this.#suspend()
    }
    expect(mine, type).toBe(expected)
    const first =
      this.#tolerates && this.#excess === this.#before && reference.excess > this.#before
    this.#excess = reference.excess
    expect(actions, 'told once a connection').toEqual(first ? [{ type: 'exceeded' }] : [])
    expect([receiveWindow.excess, receiveWindow.open, receiveWindow.unsettled]).toEqual([
      reference.excess,
      reference.occupied,
      reference.messages.length,
    ])
    const [oldest] = reference.messages
    if (oldest !== undefined)
      expect(receiveWindow.oldestTicket).toBe(this.#tickets.get(oldest.ticket))
    const { inFlight, mayPublish, mayReplay, hasIdentifier } = sendWindow
    expect([inFlight, mayPublish, mayReplay, hasIdentifier]).toEqual([
      reference.inFlight,
      reference.mayPublish,
      reference.mayReplay,
      true,
    ])
  }

  // A first acknowledgement is for the oldest message of this connection without one, and only after it was settled.
  #audit(acks: Ack[]): void {
    for (const [type, id, code] of acks) {
      if (type === 'pubcomp' && code === 0 && this.#durable)
        expect(this.#forgotten.delete(id), 'forgotten before PUBCOMP').toBe(true)
      if (
        type !== 'puback' &&
        (type !== 'pubrec' || !this.#unacked.some((message) => message.id === id))
      )
        continue
      const oldest = this.#unacked.shift()
      expect([type, id]).toEqual([oldest?.qos === 1 ? 'puback' : 'pubrec', oldest?.id])
      expect(this.#settled.has(oldest?.ticket ?? -1), 'settled before it is acknowledged').toBe(
        true,
      )
    }
  }

  // The connection is lost: what was queued for it stays behind.
  #suspend(): void {
    if (!this.reference.connected) return
    const { session, reference } = this
    for (const [id, { wants }] of reference.exchanges)
      if (wants === 'suback' || wants === 'unsuback') this.#liveIds.delete(id)
    session.suspend()
    reference.suspend()
    this.#earlier.push(...this.#unacked.splice(0))
    expect([session.takeActions(), session.answers()]).toEqual([[], ''])
    expect([
      session.receiveWindow.parked,
      session.receiveWindow.open,
      session.sendWindow.inFlight,
    ]).toEqual([reference.parked.length, 0, 0])
  }

  // The next connection; with Session Present 0 all that was handed out is stale.
  #resume(given: Link, present: boolean): void {
    const { session, reference } = this
    const { version, receiveMaximum, window } = given
    this.#link = given
    const stale = [...this.#earlier]
    const tokens = [...reference.tokens.keys()]
    const properties = version === 5 ? { receiveMaximum } : {}
    session.connect(connectPacket({ protocolVersion: version, cleanStart: !present, properties }))
    session.handlePacket(connackPacket({ receiveMaximum: window }, { sessionPresent: present }), 0)
    expect(session.takeActions().map(({ type }) => type)).toEqual(['send', 'connected'])
    expect(session.answers(), 'nothing leaves by itself').toBe('')
    if (!present) {
      reference.reset()
      this.#liveIds.clear()
      this.#earlier = []
      for (const { ticket } of stale) expect(session.settle(ticket), 'a stale ticket').toBe(false)
      // The store answers all the same: half of it at once, the other half whenever it likes.
      session.port.grant(...tokens.filter((token) => token % 2 === 0))
      this.#late.push(...tokens.filter((token) => token % 2 !== 0))
      expect([session.takeActions(), session.answers()]).toEqual([[], ''])
    }
    this.#firstToken = reference.writes.length
    this.#forgotten.clear()
    reference.start(window, version === 5 ? receiveMaximum : 65_535, version === 4)
    this.#excess = reference.excess
    this.#before = reference.excess
  }
}

it('any inputs, drops and settles in any order: the session does what the reference does, and the audit holds', () => {
  fc.assert(
    fc.property(setting, fc.array(step, { maxLength: 150, size: 'max' }), (chosen, steps) => {
      const pair = new Pair(chosen)
      for (const one of steps) pair.run(one)
    }),
    { numRuns: 500 },
  )
})
