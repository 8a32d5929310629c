/**
 * What a client wrote, read by a reader that shares nothing with `src`: is it an MQTT stream, and one that a client may send?
 *
 * Checks the form of each packet and the order on one connection: CONNECT first and once, nothing but AUTH and DISCONNECT before CONNACK, nothing
 * after DISCONNECT. It must never trust what the client says about itself.
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
