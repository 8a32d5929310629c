import fc from 'fast-check'
import { expect, it } from 'vitest'
import { REPEAT } from '../../../../src/client/session/receive-window.js'
import { DONE, RELEASED, UNKNOWN } from '../../../../src/client/session/send-window.js'
import { Session } from '../../../../src/client/session/session.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import { type Ack, configuration, connackPacket, connectPacket, RecordingPort, takeAcks, takeActions } from './drive.js'
import { ReferenceSession, type Verdict } from './reference-session.js'

const code = fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x97)
const qos = fc.constantFrom(1, 2)
const few = fc.nat(7)
const kind = fc.constantFrom('suback' as const, 'unsuback' as const)

/** Whether the server does what ends the connection. */
const bold = fc.constantFrom(true, false, false, false, false, false)

/** How a connection is negotiated. */
const link = {
  version: fc.constantFrom(4 as const, 5 as const),
  receiveMaximum: fc.integer({ min: 1, max: 6 }),
  window: fc.integer({ min: 1, max: 5 }),
}

/** Identifiers and tickets are picked by rank among what there is (`pick`), so that most inputs meet an exchange. */
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('receive' as const), id: fc.integer({ min: 1, max: 4 }), qos, dup: fc.boolean(), bold }) },
  { weight: 14, arbitrary: fc.record({ type: fc.constant('settle' as const), pick: few, code }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('settle any' as const), ticket: fc.integer({ min: -1, max: 60 }), code }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('pubrel' as const), id: fc.integer({ min: 1, max: 4 }), bold }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('publish' as const), qos }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('request' as const), kind, count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('answer' as const), pick: few, code }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('puback' as const), pick: few }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('pubrec' as const), pick: few, code }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('pubcomp' as const), pick: few }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('suback' as const), kind, pick: few, count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('withdraw' as const), pick: few }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('persisted' as const), pick: few }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('persisted any' as const), token: fc.integer({ min: -1, max: 40 }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('persisted late' as const), pick: few }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('suspend' as const) }) },
  {
    weight: 30,
    arbitrary: fc.record({ type: fc.constant('resume' as const), ...link, present: fc.constantFrom(true, true, true, true, true, false) }),
  },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('replay' as const), pick: few }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('abandon' as const), pick: few }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const setting = fc.record({
  ...link,
  durable: fc.boolean(),
  receiveMaximumExceeded: fc.constantFrom('tolerate' as const, 'disconnect' as const),
  /** Identifiers used up before the test begins: near the wrap, or none. */
  used: fc.constantFrom(0, 0, 0, 65_531),
})
type Setting = typeof setting extends fc.Arbitrary<infer T> ? T : never
type Link = Pick<Setting, 'version' | 'receiveMaximum' | 'window'>
type Arrival = { readonly id: number; readonly qos: number; readonly ticket: number }

const inboundVerdict = (verdict: number): Verdict => (verdict === REPEAT ? 'repeat' : verdict)
const outboundVerdicts = new Map<number, Verdict>([
  [DONE, 'done'],
  [RELEASED, 'released'],
  [UNKNOWN, 'ignored'],
])
const outboundVerdict = (verdict: number): Verdict => outboundVerdicts.get(verdict) ?? verdict
const never = 1e9

/** The session and its reference, given the same inputs; and an audit that trusts neither. */
class Pair {
  readonly session: Session
  readonly reference: ReferenceSession
  #link: Link
  /** Tickets of the session by those of the reference: both rise, each at its own pace. */
  readonly #tickets = new Map<number, number>()
  // The audit: what the outside saw.
  readonly #liveIds = new Set<number>()
  #unacked: Arrival[] = []
  #earlier: Arrival[] = []
  readonly #settled = new Set<number>()

  readonly #port = new RecordingPort()
  readonly #durable: boolean
  /** Identifiers that the store forgot for this connection, and its first request. */
  readonly #forgotten = new Set<number>()
  #firstToken = 0
  /** Requests of sessions that are lost, without an answer so far. */
  readonly #late: number[] = []
  readonly #tolerates: boolean
  /** Messages beyond Receive Maximum so far, and when the connection began. */
  #excess = 0
  #before = 0

  constructor(chosen: Setting) {
    const { durable, receiveMaximumExceeded, used } = chosen
    this.#durable = durable
    this.#tolerates = receiveMaximumExceeded === 'tolerate'
    this.#link = chosen
    this.session = new Session({ ...configuration, receiveMaximumExceeded })
    if (durable) this.session.persistence = this.#port
    this.reference = new ReferenceSession(chosen.receiveMaximum, durable, this.#tolerates)
    this.#resume(chosen, false)
    for (let count = 0; count < used; count++) {
      this.session.sendWindow.withdraw(this.session.sendWindow.request('subscribe', 1))
      this.reference.withdraw(this.reference.request('suback', 1) as number)
    }
  }

  run(one: Step): void {
    if (one.type === 'suspend') return this.#suspend()
    if (one.type === 'resume') return this.reference.connected ? undefined : this.#resume(one, one.present)
    // Without a connection nothing comes in, and nothing goes out.
    if (!this.reference.connected && !['settle', 'settle any', 'persisted', 'persisted any', 'persisted late', 'abandon'].includes(one.type)) return
    const [mine, expected] = this.#apply(one)
    this.#compare(one, mine, expected)
  }

  // The verdicts of session and reference; undefined where nothing could be done.
  #apply(one: Exclude<Step, { type: 'suspend' | 'resume' }>): [Verdict | undefined, Verdict | undefined] {
    const { session, reference } = this
    const { sendWindow } = session
    switch (one.type) {
      case 'receive':
        return !one.bold && this.#ends(one.id, one.qos) ? [undefined, undefined] : this.#receive(one.id, one.qos, one.dup)
      case 'settle': {
        const ticket = [...reference.messages, ...reference.parked][one.pick]?.ticket
        return ticket === undefined ? [undefined, undefined] : this.#settle(ticket, one.code)
      }
      case 'settle any':
        return this.#settle(one.ticket, one.code)
      case 'pubrel':
        if (!one.bold && reference.messages.some(({ id }) => id === one.id)) return [undefined, undefined]
        session.receiveWindow.handlePubrel(one.id)
        return [session.state === 'connected' ? true : FAULT, reference.pubrel(one.id)]
      case 'publish':
        if (!sendWindow.mayPublish) return [undefined, undefined]
        expect(sendWindow.inFlight, 'quota').toBeLessThan(this.#link.window)
        return [this.#taken(sendWindow.publish(one.qos)), reference.publish(one.qos)]
      case 'request':
        if (!sendWindow.hasIdentifier) return [undefined, undefined]
        return [
          this.#taken(sendWindow.request(one.kind === 'suback' ? 'subscribe' : 'unsubscribe', one.count)),
          reference.request(one.kind, one.count),
        ]
      case 'withdraw':
        return this.#withdraw(one.pick)
      case 'replay':
        return this.#replay(one.pick)
      case 'abandon':
        return this.#abandon(one.pick)
      case 'persisted':
      case 'persisted any': {
        const token = one.type === 'persisted' ? [...reference.tokens.keys()][one.pick] : one.token
        if (token === undefined) return [undefined, undefined]
        this.#grant(token)
        reference.persisted(token)
        return [undefined, undefined]
      }
      case 'persisted late': {
        const [token] = this.#late.splice(one.pick, 1)
        if (token !== undefined) this.#grant(token)
        return [undefined, undefined]
      }
      default:
        return this.#acknowledge(one)
    }
  }

  #grant(token: number): void {
    const [operation, id] = this.#port.requests[token] ?? []
    if (operation === 'delete-inbound' && id !== undefined && token >= this.#firstToken) this.#forgotten.add(id)
    this.#port.grant(token)
  }

  // A correct server does not use an identifier of this connection for something else, nor more of them than we take.
  #ends(id: number, qos: number): boolean {
    const { messages, received, ending, occupied } = this.reference
    const known = received.has(id) || ending.has(id) || messages.some((message) => message.id === id)
    return known
      ? qos === 1 || messages.some((message) => message.id === id && message.qos === 1)
      : !this.#tolerates && occupied >= this.#link.receiveMaximum
  }

  #receive(id: number, qos: number, dup: boolean): [Verdict, Verdict] {
    const verdict = this.session.receiveWindow.handlePublish(id, qos, dup)
    const expected = this.reference.receive(id, qos, dup)
    const before = this.#earlier.find((arrival) => arrival.id === id)
    if (verdict >= 0) {
      expect(verdict, 'a ticket of its own').toBeGreaterThan(Math.max(-1, ...this.#tickets.values()))
      this.#unacked.push({ id, qos, ticket: verdict })
    } else if (before !== undefined && verdict === REPEAT) this.#unacked.push(before)
    if (verdict !== FAULT) this.#earlier = this.#earlier.filter((arrival) => arrival !== before)
    if (typeof expected !== 'number') return [inboundVerdict(verdict), expected]
    this.#tickets.set(expected, verdict)
    return [inboundVerdict(verdict), verdict < 0 ? expected : verdict]
  }

  #settle(ticket: number, reasonCode: number): [Verdict, Verdict] {
    const mine = this.#tickets.get(ticket) ?? (ticket < 0 ? ticket : never)
    const settled = this.session.receiveWindow.settle(mine, reasonCode)
    if (settled) this.#settled.add(mine)
    return [settled, this.reference.settle(ticket, reasonCode)]
  }

  #taken(id: number): number {
    expect(id >= 1 && id <= 65_535 && !this.#liveIds.has(id), 'an identifier that is free').toBe(true)
    this.#liveIds.add(id)
    return id
  }

  // Only a packet that never left may be withdrawn.
  #withdraw(pick: number): [undefined, undefined] {
    const id = this.#id(pick)
    const exchange = this.reference.exchanges.get(id)
    if (exchange === undefined || exchange.held || exchange.wants === 'storing' || exchange.wants === 'pubcomp') return [undefined, undefined]
    this.session.sendWindow.withdraw(id)
    this.reference.withdraw(id)
    this.#liveIds.delete(id)
    return [undefined, undefined]
  }

  // PUBREL needs no quota, PUBLISH does.
  #replay(pick: number): [undefined, undefined] {
    const { sendWindow } = this.session
    const id = this.reference.held[pick]
    if (id === undefined) return [undefined, undefined]
    const wants = this.reference.exchanges.get(id)?.wants
    if (wants === 'pubcomp' || wants === 'storing') sendWindow.replayRelease(id)
    else if (sendWindow.mayReplay) sendWindow.replay(id)
    else return [undefined, undefined]
    this.reference.replay(id)
    return [undefined, undefined]
  }

  #abandon(pick: number): [undefined, undefined] {
    const id = this.reference.held[pick]
    if (id === undefined) return [undefined, undefined]
    if (this.reference.exchanges.get(id)?.wants === 'puback') this.#liveIds.delete(id)
    this.session.sendWindow.abandon(id)
    this.reference.abandon(id)
    return [undefined, undefined]
  }

  #acknowledge(one: Extract<Step, { type: 'answer' | 'puback' | 'pubrec' | 'pubcomp' | 'suback' }>): [Verdict | undefined, Verdict | undefined] {
    const { reference } = this
    const { sendWindow } = this.session
    const id = this.#id(one.pick)
    const exchange = reference.exchanges.get(id)
    const type = one.type === 'answer' ? (exchange?.wants ?? 'puback') : one.type
    let verdicts: [Verdict, Verdict]
    if (type === 'puback') verdicts = [outboundVerdict(sendWindow.handleAck(PUBACK, id, 0)), reference.puback(id)]
    else if (type === 'pubcomp') verdicts = [outboundVerdict(sendWindow.handleAck(PUBCOMP, id, 0)), reference.pubcomp(id)]
    else if (type === 'suback' || type === 'unsuback') {
      const wrong = one.type === 'suback'
      const answered = wrong ? one.kind : type
      const count = wrong ? one.count : exchange !== undefined && 'filters' in exchange ? exchange.filters : 1
      const verdict = sendWindow.handleAnswer(answered === 'suback' ? 'subscribe' : 'unsubscribe', id, count)
      verdicts = [outboundVerdict(verdict), reference.answer(answered, id, count)]
    } else {
      const reasonCode = 'code' in one ? one.code : 0
      verdicts = [outboundVerdict(sendWindow.handleAck(PUBREC, id, reasonCode)), reference.pubrec(id, reasonCode)]
    }
    if (verdicts[0] === 'done') this.#liveIds.delete(id)
    return verdicts
  }

  // An identifier in use, or one that is not.
  #id(pick: number): number {
    return [...this.reference.exchanges.keys()][pick] ?? 40_000 + pick
  }

  #compare(one: Step, mine: Verdict | undefined, expected: Verdict | undefined): void {
    const { session, reference } = this
    const { receiveWindow, sendWindow } = session
    const actions = takeActions(session)
    const acks = takeAcks(session.acks)
    expect(this.#port.requests, one.type).toEqual(reference.writes)
    expect(acks, one.type).toEqual(reference.acks.splice(0))
    this.#audit(acks)
    if (typeof expected === 'string' && expected.startsWith('close')) {
      expect([FAULT, FAULT]).toContain(mine)
      expect(actions).toMatchObject([{ type: 'close', error: { reasonCode: Number(expected.slice(6)) } }])
      expect(session.state).toBe('closed')
      return this.#suspend()
    }
    expect(mine, one.type).toBe(expected)
    const told = actions.filter(({ type }) => type === 'exceeded').length
    expect([told, receiveWindow.excess], 'told once a connection').toEqual([
      this.#tolerates && this.#excess === this.#before && reference.excess > this.#before ? 1 : 0,
      reference.excess,
    ])
    this.#excess = reference.excess
    expect(actions).toHaveLength(told)
    expect([receiveWindow.open, receiveWindow.unsettled]).toEqual([reference.occupied, reference.messages.length])
    const [oldest] = reference.messages
    if (oldest !== undefined) expect(receiveWindow.oldestTicket).toBe(this.#tickets.get(oldest.ticket))
    expect([sendWindow.inFlight, sendWindow.mayPublish, sendWindow.mayReplay, sendWindow.hasIdentifier]).toEqual([
      reference.inFlight,
      reference.mayPublish,
      reference.mayReplay,
      true,
    ])
  }

  // A first acknowledgement is for the oldest message of this connection without one, and only after it was settled.
  #audit(acks: Ack[]): void {
    for (const [type, id, reasonCode] of acks) {
      if (type === 'pubcomp' && reasonCode === 0 && this.#durable) expect(this.#forgotten.delete(id), 'forgotten before PUBCOMP').toBe(true)
      if (type !== 'puback' && type !== 'pubrec') continue
      const [oldest] = this.#unacked
      if (type === 'pubrec' && !this.#unacked.some((message) => message.id === id)) continue
      expect([type, id]).toEqual([oldest?.qos === 1 ? 'puback' : 'pubrec', oldest?.id])
      expect(this.#settled.has(oldest?.ticket ?? -1), 'settled before it is acknowledged').toBe(true)
      this.#unacked.shift()
    }
  }

  // The connection is lost: what was queued for it stays behind.
  #suspend(): void {
    if (!this.reference.connected) return
    const { session, reference } = this
    for (const [id, { wants }] of reference.exchanges) if (wants === 'suback' || wants === 'unsuback') this.#liveIds.delete(id)
    session.suspend()
    reference.suspend()
    this.#earlier.push(...this.#unacked.splice(0))
    expect([takeActions(session), takeAcks(session.acks)]).toEqual([[], []])
    expect([session.receiveWindow.parked, session.receiveWindow.open, session.sendWindow.inFlight]).toEqual([reference.parked.length, 0, 0])
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
    expect(takeActions(session).map(({ type }) => type)).toEqual(['send', 'connected'])
    expect(takeAcks(session.acks), 'nothing leaves by itself').toEqual([])
    if (!present) {
      reference.reset()
      this.#liveIds.clear()
      this.#earlier = []
      for (const { ticket } of stale) expect(session.receiveWindow.settle(ticket, 0), 'a stale ticket').toBe(false)
      // The store answers all the same: half of it at once, the other half whenever it likes.
      for (const token of tokens) {
        if (token % 2 === 0) this.#port.grant(token)
        else this.#late.push(token)
      }
      expect([takeActions(session), takeAcks(session.acks)]).toEqual([[], []])
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
