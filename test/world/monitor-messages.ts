/** What the monitor knows of messages in each direction. */
import { property, type Seen } from './reader.js'

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
interface Acknowledged {
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

interface Exchange {
  readonly kind: 'qos1' | 'qos2'
  readonly payload: string
  readonly size: number
  /** What makes it the same message. */
  readonly key: string
  /** Rises with each first transmission in the session. */
  readonly order: number
  connection: number
  /** Rises with each PUBREC; 0 before it. */
  recorded: number
  released: boolean
}

/** Packet identifiers in use by the client, and what they are used for. */
export class OutboundRules {
  /** The client may clear identifiers of a session that it does not remember, by PUBREL. */
  mayClear = false
  readonly #report: Report
  readonly #gaveUp: (payload: string, size: number) => boolean
  readonly #exchanges = new Map<number, Exchange>()
  readonly #requests = new Map<number, string>()
  #order = 0
  #records = 0
  #connection = 0
  #window = 65_535
  #lastReplay = 0
  /** A session goes on, and nothing new was sent yet. */
  #replaying = false
  #resumed = false
  #lastRelease = 0
  /** PUBRECs of this connection that PUBREL has not answered. */
  readonly #unanswered = new Map<number, number>()
  readonly #aliases = new Map<number, string>()
  /** Identifiers that this process has used in the session. */
  readonly #used = new Set<number>()

  constructor(report: Report, gaveUp: (payload: string, size: number) => boolean = () => false) {
    this.#report = report
    this.#gaveUp = gaveUp
  }

  forget(): void {
    this.#used.clear()
    this.#resumed = false
    this.#exchanges.clear()
    this.#requests.clear()
    this.mayClear = false
  }

  /** A connection is up, with these limits: what the server takes no longer is not sent again, nor what was given up and is too large. */
  start(
    connection: number,
    window: number,
    packetSize = Number.POSITIVE_INFINITY,
    maximumQos = 2,
  ): void {
    for (const [id, { kind, payload, size, recorded }] of this.#exchanges)
      if (
        recorded === 0 &&
        (size > packetSize || (kind === 'qos2' ? 2 : 1) > maximumQos || this.#gaveUp(payload, size))
      )
        this.#exchanges.delete(id)
    this.#replaying = this.#resumed
    this.#resumed = true
    this.#connection = connection
    this.#window = window
    this.#lastReplay = 0
    this.#lastRelease = 0
    this.#requests.clear()
    this.#unanswered.clear()
    this.#aliases.clear()
  }

  handleSent(seen: Seen, connection: number): void {
    if (connection !== this.#connection) return
    if (seen.kind === 'publish' && seen.qos > 0) this.#handlePublish(seen)
    else if (seen.kind === 'pubrel') this.#handlePubrel(seen)
    else if (seen.kind === 'subscribe' || seen.kind === 'unsubscribe') this.#handleRequest(seen)
    if (seen.kind === 'publish' && seen.qos === 0 && seen.dup) this.#report('dup', 'DUP at QoS 0')
  }

  handleArriving(seen: Seen, connection: number): void {
    // No exchange has identifier 0.
    if (connection !== this.#connection || seen.id === 0) return
    if (seen.kind === 'suback' || seen.kind === 'unsuback') this.#requests.delete(seen.id)
    const exchange = this.#exchanges.get(seen.id)
    if (seen.kind === 'puback' && exchange?.kind === 'qos1' && exchange.connection === connection)
      this.#exchanges.delete(seen.id)
    else if (seen.kind === 'pubcomp' && exchange?.released === true) this.#exchanges.delete(seen.id)
    else if (seen.kind === 'pubrec') this.#handlePubrec(seen, exchange)
  }

  /** Aliases are for QoS 0, within what the server allows, and known on this connection before they stand alone. */
  checkAlias(seen: Seen, connection: number, maximum: number): void {
    const alias = seen.properties.get(property.topicAlias)
    if (typeof alias !== 'number' || connection !== this.#connection) return
    if (seen.qos > 0) this.#report('alias', 'a topic alias at QoS 1 or 2')
    if (alias === 0 || alias > maximum)
      this.#report('alias', `alias ${alias}, the server allows ${maximum}`)
    if (seen.topic !== '') this.#aliases.set(alias, seen.topic)
    else if (!this.#aliases.has(alias))
      this.#report('alias', `alias ${alias} is not known on this connection`)
  }

  /** The topic of a PUBLISH, with its alias resolved. */
  topicOf(seen: Seen): string {
    return seen.topic || (this.#aliases.get(Number(seen.properties.get(property.topicAlias))) ?? '')
  }

  #handlePublish(seen: Seen): void {
    const { id } = seen
    if (this.#requests.has(id))
      this.#report(
        'packet identifier',
        `PUBLISH uses ${id}, which a ${this.#requests.get(id)} uses`,
      )
    const known = this.#exchanges.get(id)
    if (known === undefined) this.#begin(seen)
    else this.#repeat(seen, known)
    const open = [...this.#exchanges.values()].filter(
      (exchange) => exchange.connection === this.#connection,
    ).length
    if (open > this.#window)
      this.#report('window', `${open} in flight, Receive Maximum is ${this.#window}`)
  }

  #begin(seen: Seen): void {
    // What broke off before a byte had left may be replayed like the rest: before anything new.
    if (seen.dup && !this.#replaying)
      this.#report('dup', `DUP on the first transmission of ${seen.payload}`)
    for (const waiting of this.#exchanges.values()) {
      if (waiting.connection !== this.#connection && waiting.recorded === 0)
        this.#report('replay', `${seen.payload} went before the replay of ${waiting.key}`)
    }
    if (!seen.dup) this.#replaying = false
    this.#used.add(seen.id)
    const { payload, size, qos } = seen
    const message = { kind: qos === 2 ? 'qos2' : 'qos1', payload, size, key: keyOf(seen) } as const
    const state = {
      order: ++this.#order,
      connection: this.#connection,
      recorded: 0,
      released: false,
    }
    this.#exchanges.set(seen.id, { ...message, ...state })
  }

  #repeat(seen: Seen, known: Exchange): void {
    const same = known.key === keyOf(seen)
    if (!same)
      return this.#report(
        'packet identifier',
        `${seen.id} is used by ${known.key} and now by ${keyOf(seen)}`,
      )
    if (known.connection === this.#connection)
      return this.#report('resend', `${seen.payload} was sent twice on one connection`)
    if (known.recorded > 0) this.#report('resend', `${seen.payload} was sent again after PUBREC`)
    if (!seen.dup) this.#report('dup', `no DUP on the replay of ${seen.payload}`)
    if (known.order < this.#lastReplay)
      this.#report('replay', `${seen.payload} was replayed out of order`)
    this.#lastReplay = known.order
    known.connection = this.#connection
  }

  #handlePubrec(seen: Seen, exchange: Exchange | undefined): void {
    if (exchange === undefined || exchange.kind !== 'qos2') {
      if (seen.reason < 0x80)
        this.#unanswered.set(seen.id, (this.#unanswered.get(seen.id) ?? 0) + 1)
      return
    }
    // Once released, only PUBCOMP ends it: some servers have second thoughts.
    if (seen.reason >= 0x80 && exchange.released) return
    if (seen.reason >= 0x80) this.#exchanges.delete(seen.id)
    else {
      if (exchange.recorded === 0) exchange.recorded = ++this.#records
      exchange.connection = this.#connection
      this.#unanswered.set(seen.id, (this.#unanswered.get(seen.id) ?? 0) + 1)
    }
  }

  #handlePubrel(seen: Seen): void {
    const { id } = seen
    const exchange = this.#exchanges.get(id)
    const asked = this.#unanswered.get(id) ?? 0
    if (asked > 0) this.#unanswered.set(id, asked - 1)
    if (exchange === undefined) {
      if (asked === 0 && !(this.mayClear && !this.#used.has(id)))
        this.#report('PUBREL', `PUBREL ${id} for no exchange`)
      return
    }
    if (exchange.kind !== 'qos2' || exchange.recorded === 0)
      return this.#report('PUBREL', `PUBREL ${id} before PUBREC`)
    const replay = exchange.released && asked === 0
    if (replay && exchange.connection === this.#connection)
      this.#report('PUBREL', `PUBREL ${id} was sent twice on one connection`)
    // Repeated PUBRECs are answered when they come; first answers and replays keep the order of the first PUBRECs [MQTT-4.6.0-4].
    if (exchange.recorded < this.#lastRelease && !(exchange.released && asked > 0))
      this.#report('PUBREL', `PUBREL ${id} is out of order`)
    this.#lastRelease = Math.max(this.#lastRelease, exchange.recorded)
    exchange.released = true
    exchange.connection = this.#connection
  }

  #handleRequest(seen: Seen): void {
    const { id } = seen
    if (this.#exchanges.has(id) || this.#requests.has(id))
      this.#report('packet identifier', `${seen.kind} uses ${id}, which is in use`)
    this.#requests.set(id, seen.kind)
  }
}

function keyOf(seen: Seen): string {
  return `${seen.topic} ${seen.payload} q${seen.qos}${seen.retain ? 'r' : ''} ${seen.size}`
}
