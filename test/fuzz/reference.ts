/**
 * Second opinions on a session: on what it writes, and on the messages that it receives. They share nothing with `src`, and must never import from
 * there.
 */
import { Malformed, readPacket, type Seen, Splitter } from '../world/reader.js'
import { check, OracleError } from './oracle.js'

const fromClient = [
  'connect',
  'publish',
  'puback',
  'pubrec',
  'pubrel',
  'pubcomp',
  'subscribe',
  'unsubscribe',
  'pingreq',
  'disconnect',
  'auth',
]

/** One connection's outgoing bytes. */
export class Outlet {
  /** Packets so far. */
  readonly packets: Seen[] = []
  /** A CONNACK was sent to the client. */
  answered = false
  /** The version of its CONNECT. */
  version: 4 | 5
  readonly #splitter = new Splitter()
  #disconnected = false

  constructor(version: 4 | 5) {
    this.version = version
  }

  /** Bytes of a packet that is not complete. */
  get pending(): number {
    return this.#splitter.pending
  }

  /** The packets that these bytes complete. @throws OracleError */
  take(bytes: Uint8Array): Seen[] {
    check(bytes.length > 0, 'output', () => 'an empty write')
    try {
      const seen = this.#splitter.push(bytes.slice()).map((packet) => this.#read(packet))
      this.packets.push(...seen)
      return seen
    } catch (error) {
      if (error instanceof Malformed)
        throw new OracleError('output', `the client sent ${error.message}`, error)
      throw error
    }
  }

  #read(bytes: Uint8Array): Seen {
    const first = this.packets.length === 0 && this.#begun === 0
    this.#begun += 1
    // Byte 8 of a CONNECT is its version.
    if (first && (bytes[0] as number) >> 4 === 1)
      this.version = readPacket(bytes, 5).version as 4 | 5
    const seen = readPacket(bytes, this.version)
    check(fromClient.includes(seen.kind), 'output', () => `the client sent ${seen.kind}`)
    check(
      (seen.kind === 'connect') === first,
      'output',
      () => `${seen.kind} as packet ${this.#begun}`,
    )
    check(!this.#disconnected, 'output', () => `${seen.kind} after DISCONNECT`)
    const early = ['connect', 'auth', 'disconnect'].includes(seen.kind)
    check(early || this.answered, 'output', () => `${seen.kind} before CONNACK`)
    this.#disconnected = seen.kind === 'disconnect'
    return seen
  }

  #begun = 0
}

/** What an input comes to: a ticket, a word, or the reason code of a close. */
type Verdict = number | boolean | 'repeat' | `close ${number}`

interface Message {
  readonly ticket: number
  readonly id: number
  readonly qos: number
  settled: boolean
  code: number
}

/** Acknowledgements as `[type, identifier, reason code]`. */
type Ack = readonly [type: 'puback' | 'pubrec' | 'pubcomp', id: number, code: number]

export class ReferenceInbound {
  acks: Ack[] = []
  /** Messages of this connection without an acknowledgement, oldest first. */
  messages: Message[] = []
  /** Messages of earlier connections without an acknowledgement that this one has not repeated. */
  parked: Message[] = []
  /** Identifiers between PUBREC and PUBREL: of this connection, and of earlier ones. */
  readonly #received = new Set<number>()
  readonly #earlier = new Set<number>()
  #tickets = 0
  #receiveMaximum: number
  /** 3.1.1: QoS 1 may be sent again on one connection. */
  #repeats = false
  /** What a server does that exceeds Receive Maximum. */
  readonly #tolerates: boolean

  constructor(receiveMaximum: number, tolerates: boolean) {
    this.#tolerates = tolerates
    this.#receiveMaximum = receiveMaximum
  }

  get occupied(): number {
    return this.messages.length + this.#received.size
  }

  receive(id: number, qos: number, dup: boolean): Verdict {
    const same = this.messages.find((message) => message.id === id)
    if (same !== undefined && this.#repeats && dup && same.qos === 1 && qos === 1) return 'repeat'
    if (same !== undefined) return same.qos === 2 && qos === 2 ? 'repeat' : 'close 130'
    if (this.#received.has(id)) {
      if (qos === 1) return 'close 130'
      this.acks.push(['pubrec', id, 0])
      return 'repeat'
    }
    if (this.occupied >= this.#receiveMaximum && !this.#tolerates) return 'close 147'
    // PUBREC of what an earlier connection received leaves in the order of arrival. At QoS 1 the identifier is something new of a server that was set back.
    if (this.#earlier.delete(id) && qos === 2) {
      this.messages.push({ ticket: this.#tickets++, id, qos, settled: true, code: 0 })
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
    this.messages.push({ ticket: this.#tickets, id, qos, settled: false, code: 0 })
    return this.#tickets++
  }

  settle(ticket: number, code: number): boolean {
    const message = [...this.messages, ...this.parked].find(
      (one) => one.ticket === ticket && !one.settled,
    )
    if (message === undefined) return false
    Object.assign(message, { code, settled: true })
    this.#acknowledge()
    return true
  }

  /** Whether the identifier could be released. */
  pubrel(id: number): boolean {
    if (this.messages.some((message) => message.id === id)) return false
    const known = this.#received.delete(id) || this.#earlier.delete(id)
    this.acks.push(['pubcomp', id, known ? 0 : 0x92])
    return true
  }

  suspend(): void {
    this.parked.push(...this.messages.splice(0))
    for (const id of this.#received) this.#earlier.add(id)
    this.#received.clear()
    this.acks = []
  }

  start(receiveMaximum: number, repeats: boolean): void {
    this.#receiveMaximum = receiveMaximum
    this.#repeats = repeats
  }

  reset(): void {
    this.messages = []
    this.parked = []
    this.#earlier.clear()
    this.#received.clear()
    this.acks = []
  }

  // Only the settled beginning of the queue may leave.
  #acknowledge(): void {
    for (;;) {
      const [first] = this.messages
      if (first?.settled !== true) return
      this.messages.shift()
      if (first.qos === 2 && first.code < 0x80) this.#received.add(first.id)
      this.acks.push([first.qos === 1 ? 'puback' : 'pubrec', first.id, first.code])
    }
  }
}
