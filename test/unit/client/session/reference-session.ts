/**
 * A second opinion on what a session does with its exchanges: lists, sets and searches, written from sections 2.2.1, 4.1, 4.3, 4.4, 4.6
 * and 4.9.
 *
 * Slow and plain on purpose. It shares nothing with `src/client/session`, and must never import from there.
 */
import type { Ack } from './drive.js'

/** What an input comes to: a ticket or an identifier, a yes or no, a word, or the reason code of a close. */
export type Verdict =
  | number
  | boolean
  | 'repeat'
  | 'done'
  | 'released'
  | 'ignored'
  | `close ${number}`

interface Message {
  readonly ticket: number
  readonly id: number
  readonly qos: number
  phase: 'held' | 'storing' | 'settled'
  code: number
}

type Exchange =
  /** `held`: an earlier connection carried it, and this one has not. */
  | { wants: 'puback' | 'pubrec' | 'storing' | 'pubcomp'; held: boolean }
  | { wants: 'suback' | 'unsuback'; filters: number; held: false }

export class ReferenceSession {
  acks: Ack[] = []
  /** All that was asked of the store; tokens are places in it. */
  readonly writes: [operation: string, id: number][] = []
  readonly exchanges = new Map<number, Exchange>()
  readonly tokens = new Map<number, () => void>()
  /** Messages of this connection without an acknowledgement, oldest first. */
  messages: Message[] = []
  /** Messages of earlier connections without an acknowledgement that this one has not repeated. */
  parked: Message[] = []
  /** Identifiers between PUBREC and PUBREL: of this connection, and of earlier ones. */
  readonly received = new Set<number>()
  readonly earlier = new Set<number>()
  /** Identifiers whose PUBREL came on this connection, while the store forgets them; each with the mark of its request. */
  readonly ending = new Map<number, object>()
  connected = true
  tickets = 0
  window = 0
  #lastId = 0
  #receiveMaximum: number
  /** Messages beyond Receive Maximum. */
  excess = 0
  /** 3.1.1: QoS 1 may be sent again on one connection. */
  #repeats = false
  readonly #durable: boolean

  /** What a server does that exceeds Receive Maximum. */
  readonly #tolerates: boolean

  constructor(receiveMaximum: number, durable: boolean, tolerates: boolean) {
    this.#tolerates = tolerates
    this.#receiveMaximum = receiveMaximum
    this.#durable = durable
  }

  get occupied(): number {
    return this.messages.length + this.received.size
  }

  get inFlight(): number {
    return [...this.exchanges.values()].filter(
      ({ wants, held }) => !held && wants !== 'suback' && wants !== 'unsuback',
    ).length
  }

  get mayPublish(): boolean {
    return this.inFlight < this.window && this.exchanges.size < 65_535
  }

  get mayReplay(): boolean {
    return this.inFlight < this.window
  }

  /** Exchanges that wait for their replay, oldest first. */
  get held(): number[] {
    return [...this.exchanges].filter(([, exchange]) => exchange.held).map(([id]) => id)
  }

  receive(id: number, qos: number, dup: boolean): Verdict {
    const same = this.messages.find((message) => message.id === id)
    if (same !== undefined && this.#repeats && dup && same.qos === 1 && qos === 1) return 'repeat'
    if (same !== undefined) return same.qos === 2 && qos === 2 ? 'repeat' : 'close 130'
    if (this.ending.has(id)) return qos === 1 ? 'close 130' : 'repeat'
    if (this.received.has(id)) {
      if (qos === 1) return 'close 130'
      this.acks.push(['pubrec', id, 0])
      return 'repeat'
    }
    if (this.occupied >= this.#receiveMaximum) {
      this.excess += 1
      if (!this.#tolerates) return 'close 147'
    }
    // A server that was set back may use it for something else: what the record says of it is over.
    if (qos === 1 && this.earlier.delete(id) && this.#durable)
      this.#write('delete-inbound', id, () => undefined)
    // Its PUBREC leaves in the order of arrival.
    if (this.earlier.delete(id)) {
      this.messages.push({ ticket: this.tickets++, id, qos, phase: 'settled', code: 0 })
      this.#acknowledge()
      return 'repeat'
    }
    const known = this.parked.find((message) => message.id === id)
    this.parked = this.parked.filter((message) => message !== known)
    if (known !== undefined && known.qos === qos && (qos === 2 || dup)) {
      this.messages.push(known)
      this.#acknowledge()
      return 'repeat'
    }
    this.messages.push({ ticket: this.tickets, id, qos, phase: 'held', code: 0 })
    return this.tickets++
  }

  settle(ticket: number, code: number): Verdict {
    const message = [...this.messages, ...this.parked].find(
      (one) => one.ticket === ticket && one.phase === 'held',
    )
    if (message === undefined) return false
    message.code = code
    message.phase = 'settled'
    if (this.#durable && message.qos === 2 && code < 0x80) {
      message.phase = 'storing'
      this.#write('put-inbound', message.id, () => {
        message.phase = 'settled'
        this.#acknowledge()
      })
    }
    this.#acknowledge()
    return true
  }

  pubrel(id: number): Verdict {
    if (this.messages.some((message) => message.id === id)) return 'close 130'
    if (this.ending.has(id)) return true
    const known = this.received.delete(id) || this.earlier.delete(id)
    if (known && this.#durable) {
      const mark = {}
      this.ending.set(id, mark)
      this.#write('delete-inbound', id, () => {
        if (this.ending.get(id) !== mark) return
        this.ending.delete(id)
        this.acks.push(['pubcomp', id, 0])
      })
      return true
    }
    this.acks.push(['pubcomp', id, known ? 0 : 0x92])
    return true
  }

  publish(qos: number): Verdict {
    return this.#take({ wants: qos === 1 ? 'puback' : 'pubrec', held: false })
  }

  request(wants: 'suback' | 'unsuback', filters: number): Verdict {
    return this.#take({ wants, filters, held: false })
  }

  withdraw(id: number): void {
    this.exchanges.delete(id)
  }

  puback(id: number): Verdict {
    return this.#final(id, 'puback')
  }

  pubcomp(id: number): Verdict {
    return this.#final(id, 'pubcomp')
  }

  pubrec(id: number, code: number): Verdict {
    const exchange = this.exchanges.get(id)
    if (exchange === undefined) {
      if (code < 0x80) this.acks.push(['pubrel', id, 0x92])
      return 'ignored'
    }
    if (exchange.held) return 'ignored'
    if (exchange.wants === 'pubrec' && code >= 0x80) return this.#final(id, 'pubrec')
    if (code >= 0x80)
      return exchange.wants === 'storing' || exchange.wants === 'pubcomp' ? 'ignored' : 'close 130'
    if (exchange.wants === 'storing') return 'released'
    if (exchange.wants === 'pubrec' && this.#durable) {
      exchange.wants = 'storing'
      this.#write('put-release', id, () => {
        if (this.exchanges.get(id) !== exchange) return
        exchange.wants = 'pubcomp'
        if (!exchange.held) this.acks.push(['pubrel', id, 0])
      })
      return 'released'
    }
    if (exchange.wants !== 'pubrec' && exchange.wants !== 'pubcomp') return 'close 130'
    exchange.wants = 'pubcomp'
    this.acks.push(['pubrel', id, 0])
    return 'released'
  }

  answer(kind: 'suback' | 'unsuback', id: number, codes: number): Verdict {
    const exchange = this.exchanges.get(id)
    if (exchange === undefined || exchange.held) return 'ignored'
    if (exchange.wants !== kind || exchange.filters !== codes) return 'close 130'
    this.exchanges.delete(id)
    return 'done'
  }

  persisted(token: number): void {
    const granted = this.tokens.get(token)
    this.tokens.delete(token)
    granted?.()
  }

  /** PUBLISH or PUBREL goes out again. */
  replay(id: number): void {
    const exchange = this.exchanges.get(id)
    if (exchange === undefined) return
    exchange.held = false
    if (exchange.wants === 'pubcomp') this.acks.push(['pubrel', id, 0])
  }

  /** It will not go out again; QoS 2 stays where it is. */
  abandon(id: number): void {
    if (this.exchanges.get(id)?.wants === 'puback') this.exchanges.delete(id)
  }

  suspend(): void {
    this.connected = false
    this.parked.push(...this.messages.splice(0))
    for (const id of this.received) this.earlier.add(id)
    this.received.clear()
    for (const id of this.ending.keys()) this.earlier.add(id)
    this.ending.clear()
    for (const [id, exchange] of this.exchanges) {
      if (exchange.wants === 'suback' || exchange.wants === 'unsuback') this.exchanges.delete(id)
      else exchange.held = true
    }
    this.acks = []
    this.window = 0
  }

  start(window: number, receiveMaximum: number, repeats: boolean): void {
    this.connected = true
    this.window = window
    this.#receiveMaximum = receiveMaximum
    this.#repeats = repeats
  }

  reset(): void {
    this.messages = []
    this.parked = []
    this.earlier.clear()
    this.received.clear()
    this.ending.clear()
    this.exchanges.clear()
    this.tokens.clear()
    this.acks = []
    this.window = 0
  }

  // Only the settled beginning of the queue may leave.
  #acknowledge(): void {
    for (;;) {
      const [first] = this.messages
      if (first?.phase !== 'settled') return
      this.messages.shift()
      if (first.qos === 2 && first.code < 0x80) this.received.add(first.id)
      this.acks.push([first.qos === 1 ? 'puback' : 'pubrec', first.id, first.code])
    }
  }

  #final(id: number, kind: string): Verdict {
    const exchange = this.exchanges.get(id)
    if (exchange === undefined || exchange.held) return 'ignored'
    if (exchange.wants !== kind) return 'close 130'
    this.exchanges.delete(id)
    return 'done'
  }

  #take(exchange: Exchange): number {
    do this.#lastId = (this.#lastId % 65_535) + 1
    while (this.exchanges.has(this.#lastId))
    this.exchanges.set(this.#lastId, exchange)
    return this.#lastId
  }

  #write(operation: string, id: number, granted: () => void): void {
    this.tokens.set(this.writes.length, granted)
    this.writes.push([operation, id])
  }
}
