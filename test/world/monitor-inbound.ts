/** The rules for what a client answers: only what came, of the right kind, on the connection on which it came, in the order of arrival. */
import type { Seen } from './reader.js'

type Report = (rule: string, detail: string) => void

interface Arrival {
  readonly id: number
  readonly qos: number
  readonly payload: string
  readonly topic: string
  /** It was PUBREC'd before this copy came: the repeat may be answered out of turn. */
  readonly repeat: boolean
}

/** An acknowledgement that the client gave for a message. */
export interface Acknowledged {
  readonly payload: string
  readonly topic: string
  readonly qos: number
  readonly reason: number
  /** Of a copy that was PUBREC'd before. */
  readonly repeat: boolean
}

/** What came in and waits for an answer. */
export class InboundRules {
  /** Told of each PUBACK and PUBREC of the client. */
  onAcknowledged: ((ack: Acknowledged) => void) | undefined
  readonly #report: Report
  /** Identifiers that the client has PUBREC'd, for the session. */
  readonly #received = new Set<number>()
  #arrivals: Arrival[] = []
  readonly #releases = new Map<number, number>()
  #connection = 0

  constructor(report: Report) {
    this.#report = report
  }

  forget(): void {
    this.#received.clear()
  }

  handleArriving(seen: Seen, connection: number): void {
    this.#enter(connection)
    if (connection !== this.#connection) return
    if (seen.kind === 'pubrel') this.#releases.set(seen.id, (this.#releases.get(seen.id) ?? 0) + 1)
    if (seen.kind !== 'publish' || seen.qos === 0) return
    const { id, qos, payload, topic } = seen
    this.#arrivals.push({ id, qos, payload, topic, repeat: qos === 2 && this.#received.has(id) })
  }

  handleSent(seen: Seen, connection: number): void {
    this.#enter(connection)
    if (connection !== this.#connection) return
    if (seen.kind === 'puback') this.#handleAck(seen, 1)
    else if (seen.kind === 'pubrec') this.#handleAck(seen, 2)
    else if (seen.kind === 'pubcomp') this.#handlePubcomp(seen)
  }

  #enter(connection: number): void {
    if (connection <= this.#connection) return
    this.#connection = connection
    this.#arrivals = []
    this.#releases.clear()
  }

  #handleAck(seen: Seen, qos: number): void {
    const index = this.#arrivals.findIndex(
      (arrival) => arrival.id === seen.id && arrival.qos === qos,
    )
    const arrival = this.#arrivals[index]
    if (arrival === undefined)
      return this.#report('ack', `${seen.kind} ${seen.id} for nothing that came on this connection`)
    const older = this.#arrivals.find(
      (other, at) => at < index && other.qos === qos && !other.repeat,
    )
    if (older !== undefined && !arrival.repeat)
      this.#report(
        'ack order',
        `${seen.kind} of ${arrival.payload} came before that of ${older.payload}`,
      )
    this.#arrivals.splice(index, 1)
    // On 3.1.1 copies of a message in hand have one answer.
    if (qos === 1)
      this.#arrivals = this.#arrivals.filter((other) => other.qos !== 1 || other.id !== seen.id)
    if (qos === 2 && seen.reason < 0x80) {
      this.#received.add(seen.id)
      // Further copies that came meanwhile are repeats now.
      this.#arrivals = this.#arrivals.map((other) =>
        other.qos === 2 && other.id === seen.id ? { ...other, repeat: true } : other,
      )
    }
    this.onAcknowledged?.({
      payload: arrival.payload,
      topic: arrival.topic,
      qos,
      reason: seen.reason,
      repeat: arrival.repeat,
    })
  }

  #handlePubcomp(seen: Seen): void {
    const asked = this.#releases.get(seen.id) ?? 0
    if (asked === 0)
      return this.#report('ack', `PUBCOMP ${seen.id} without PUBREL on this connection`)
    this.#releases.set(seen.id, asked - 1)
    this.#received.delete(seen.id)
  }
}
