import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FAULT, REPEAT } from '../../../src/client/session/inbound.js'
import { BROKEN, DONE, RELEASED, UNKNOWN } from '../../../src/client/session/outbound.js'
import type { Session } from '../../../src/client/session/session.js'
import { type Ack, connackPacket, connected, connectPacket, takeAcks, takeActions } from './drive.js'
import { ReferenceSession, type Verdict } from './reference-session.js'

const code = fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x97)
const qos = fc.constantFrom(1, 2)
const few = fc.nat(7)
const kind = fc.constantFrom('suback' as const, 'unsuback' as const)

/** Identifiers and tickets are picked by rank among what there is (`pick`), so that most inputs meet an exchange. */
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('receive' as const), id: fc.integer({ min: 1, max: 6 }), qos }) },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('settle' as const), pick: few, code }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('settle any' as const), ticket: fc.integer({ min: -1, max: 60 }), code }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('pubrel' as const), id: fc.integer({ min: 1, max: 6 }) }) },
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
  { weight: 1, arbitrary: fc.record({ type: fc.constant('reset' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const setting = fc.record({
  receiveMaximum: fc.integer({ min: 1, max: 6 }),
  window: fc.integer({ min: 1, max: 5 }),
  durableStore: fc.boolean(),
  /** Identifiers used up before the test begins: near the wrap, or none. */
  used: fc.constantFrom(0, 0, 0, 65_531),
})
type Setting = typeof setting extends fc.Arbitrary<infer T> ? T : never

const inboundVerdict = (verdict: number): Verdict => (verdict === REPEAT ? 'repeat' : verdict)
const outboundVerdicts = new Map<number, Verdict>([
  [DONE, 'done'],
  [RELEASED, 'released'],
  [UNKNOWN, 'ignored'],
])
const outboundVerdict = (verdict: number): Verdict => outboundVerdicts.get(verdict) ?? verdict

/** The session and its reference, given the same inputs; and an audit that trusts neither. */
class Pair {
  readonly session: Session
  readonly reference: ReferenceSession
  readonly #setting: Setting
  // The audit: what the outside saw.
  readonly #liveIds = new Set<number>()
  #unacked: { id: number; qos: number; ticket: number }[] = []
  readonly #settled = new Set<number>()

  constructor(chosen: Setting) {
    const { receiveMaximum, window, durableStore, used } = chosen
    this.#setting = chosen
    this.session = connected({ receiveMaximum, durableStore }, { receiveMaximum: window })
    this.reference = new ReferenceSession(receiveMaximum, durableStore)
    this.reference.window = window
    for (let count = 0; count < used; count++) {
      this.session.outbound.withdraw(this.session.outbound.publish(1))
      this.reference.withdraw(this.reference.publish(1) as number)
    }
  }

  run(one: Step): void {
    if (one.type === 'reset') return this.#reset()
    const [mine, expected] = this.#apply(one)
    this.#compare(one, mine, expected)
  }

  // The verdicts of session and reference; undefined where nothing could be done.
  #apply(one: Exclude<Step, { type: 'reset' }>): [Verdict | undefined, Verdict | undefined] {
    const { session, reference } = this
    const { inbound, outbound } = session
    switch (one.type) {
      case 'receive': {
        const verdict = inbound.handlePublish(one.id, one.qos)
        if (verdict >= 0) this.#unacked.push({ id: one.id, qos: one.qos, ticket: verdict })
        return [inboundVerdict(verdict), reference.receive(one.id, one.qos)]
      }
      case 'settle':
        return this.#settle(reference.messages[one.pick]?.ticket, one.code)
      case 'settle any':
        return this.#settle(one.ticket, one.code)
      case 'pubrel':
        inbound.handlePubrel(one.id)
        return [session.state === 'connected' ? true : FAULT, reference.pubrel(one.id)]
      case 'publish':
        if (!outbound.mayPublish) return [undefined, undefined]
        expect(outbound.inFlight, 'quota').toBeLessThan(this.#setting.window)
        return [this.#taken(outbound.publish(one.qos)), reference.publish(one.qos)]
      case 'request':
        if (!outbound.hasIdentifier) return [undefined, undefined]
        return [this.#taken(outbound.request(one.kind === 'suback' ? 'subscribe' : 'unsubscribe', one.count)), reference.request(one.kind, one.count)]
      case 'withdraw':
        return this.#withdraw(one.pick)
      case 'persisted':
      case 'persisted any': {
        const token = one.type === 'persisted' ? [...reference.tokens.keys()][one.pick] : one.token
        if (token === undefined) return [undefined, undefined]
        session.handlePersisted(token)
        reference.persisted(token)
        return [undefined, undefined]
      }
      default:
        return this.#acknowledge(one)
    }
  }

  #settle(ticket: number | undefined, reasonCode: number): [Verdict | undefined, Verdict | undefined] {
    if (ticket === undefined) return [undefined, undefined]
    const settled = this.session.inbound.settle(ticket, reasonCode)
    if (settled) this.#settled.add(ticket)
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
    const wants = this.reference.exchanges.get(id)?.wants
    if (wants === undefined || wants === 'storing' || wants === 'pubcomp') return [undefined, undefined]
    this.session.outbound.withdraw(id)
    this.reference.withdraw(id)
    this.#liveIds.delete(id)
    return [undefined, undefined]
  }

  #acknowledge(one: Extract<Step, { type: 'answer' | 'puback' | 'pubrec' | 'pubcomp' | 'suback' }>): [Verdict | undefined, Verdict | undefined] {
    const { reference } = this
    const { outbound } = this.session
    const id = this.#id(one.pick)
    const exchange = reference.exchanges.get(id)
    const type = one.type === 'answer' ? (exchange?.wants ?? 'puback') : one.type
    let verdicts: [Verdict, Verdict]
    if (type === 'puback') verdicts = [outboundVerdict(outbound.handlePuback(id)), reference.puback(id)]
    else if (type === 'pubcomp') verdicts = [outboundVerdict(outbound.handlePubcomp(id)), reference.pubcomp(id)]
    else if (type === 'suback' || type === 'unsuback') {
      const wrong = one.type === 'suback'
      const answered = wrong ? one.kind : type
      const count = wrong ? one.count : exchange !== undefined && 'filters' in exchange ? exchange.filters : 1
      const verdict = outbound.handleAnswer(answered === 'suback' ? 'subscribe' : 'unsubscribe', id, count)
      verdicts = [outboundVerdict(verdict), reference.answer(answered, id, count)]
    } else {
      const reasonCode = 'code' in one ? one.code : 0
      verdicts = [outboundVerdict(outbound.handlePubrec(id, reasonCode)), reference.pubrec(id, reasonCode)]
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
    const { inbound, outbound } = session
    const actions = takeActions(session)
    const acks = takeAcks(session.acks)
    const writes = actions.flatMap((action) => (action.type === 'persist' ? [[action.operation, action.id, action.token]] : []))
    expect(writes, one.type).toEqual(reference.writes.splice(0))
    expect(acks, one.type).toEqual(reference.acks.splice(0))
    this.#audit(acks)
    if (typeof expected === 'string' && expected.startsWith('close')) {
      expect([FAULT, BROKEN]).toContain(mine)
      expect(actions.filter(({ type }) => type !== 'persist')).toMatchObject([{ type: 'close', reasonCode: Number(expected.slice(6)) }])
      expect(session.state).toBe('closed')
      return this.#reset()
    }
    expect(mine, one.type).toBe(expected)
    expect(actions).toHaveLength(writes.length)
    expect([inbound.open, inbound.unsettled, inbound.oldestTicket]).toEqual([
      reference.occupied,
      reference.messages.length,
      reference.messages[0]?.ticket ?? reference.tickets,
    ])
    expect(inbound.open, 'our Receive Maximum').toBeLessThanOrEqual(this.#setting.receiveMaximum)
    expect([outbound.inFlight, outbound.mayPublish, outbound.hasIdentifier]).toEqual([reference.inFlight, reference.mayPublish, true])
  }

  // A first acknowledgement is for the oldest message without one, and only after it was settled.
  #audit(acks: Ack[]): void {
    for (const [type, id] of acks) {
      if (type !== 'puback' && type !== 'pubrec') continue
      const [oldest] = this.#unacked
      if (type === 'pubrec' && !this.#unacked.some((message) => message.id === id)) continue
      expect([type, id]).toEqual([oldest?.qos === 1 ? 'puback' : 'pubrec', oldest?.id])
      expect(this.#settled.has(oldest?.ticket ?? -1), 'settled before it is acknowledged').toBe(true)
      this.#unacked.shift()
    }
  }

  // The session is lost and the next connection begins: all that was handed out is stale.
  #reset(): void {
    const { session, reference } = this
    const { window } = this.#setting
    const stale = [...this.#unacked]
    const tokens = [...reference.tokens.keys()]
    session.reset()
    reference.reset()
    session.connect(connectPacket())
    session.handlePacket(connackPacket({ receiveMaximum: window }), 0)
    expect(takeActions(session).map(({ type }) => type)).toEqual(['send', 'connected'])
    reference.window = window
    this.#liveIds.clear()
    this.#unacked = []
    for (const { ticket } of stale) expect(session.inbound.settle(ticket, 0), 'a stale ticket').toBe(false)
    for (const token of tokens) session.handlePersisted(token)
    expect([takeActions(session), takeAcks(session.acks)]).toEqual([[], []])
  }
}

it('any inputs and settles in any order: the session does what the reference does, and the audit holds (D29 E20 F01 F10 F13 L05 L09)', () => {
  fc.assert(
    fc.property(setting, fc.array(step, { maxLength: 150, size: 'max' }), (chosen, steps) => {
      const pair = new Pair(chosen)
      for (const one of steps) pair.run(one)
    }),
    { numRuns: 400 },
  )
})
