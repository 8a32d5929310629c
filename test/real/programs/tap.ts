/**
 * Looks at what passes between clients and a broker, packet by packet, and counts what tells a fault of the one from a fault of the other.
 *
 * It reads the heads of packets only and has a reader of its own, so that no codec is its own witness. It may assume that both sides speak MQTT 3.1.1
 * or 5.0, plainly over TCP or in WebSocket frames; what it cannot read it leaves uncounted.
 */
import type { Direction, Observer } from '../link.js'

export interface Seen {
  connections: number
  /** PUBLISH with QoS 1 or 2 to the broker and from it; repeats with DUP beside them. */
  up: number
  upDup: number
  down: number
  downDup: number
  /** PUBLISH with QoS 0. */
  upZero: number
  downZero: number
  /** Acknowledgements of the broker's messages, and of the clients'. */
  downSettled: number
  upSettled: number
  /** Most messages open towards one client, where it announced how many it takes; and that number. */
  mostOpen: number
  announced: number
  /** Connections in which the broker had more open than announced. */
  exceeded: number
  /** DISCONNECT by reason code. */
  clientSaid: Record<string, number>
  brokerSaid: Record<string, number>
  /** Who ended the stream first. */
  endedByClient: number
  endedByBroker: number
  /** Messages that were open when their connection ended. */
  leftOpen: number
  /** Of those the ones that wait for the broker: for PUBREL, or for the rest of the message. */
  leftToBroker: number
  /** What a broker did against the letter, by kind. */
  odd: Record<string, number>
}

export function nothingSeen(): Seen {
  return {
    connections: 0,
    up: 0,
    upDup: 0,
    down: 0,
    downDup: 0,
    upZero: 0,
    downZero: 0,
    downSettled: 0,
    upSettled: 0,
    mostOpen: 0,
    announced: 0,
    exceeded: 0,
    clientSaid: {},
    brokerSaid: {},
    endedByClient: 0,
    endedByBroker: 0,
    leftOpen: 0,
    leftToBroker: 0,
    odd: {},
  }
}

const headSize = 4096

class Packets {
  #head: Buffer = Buffer.alloc(0)
  #skip = 0
  readonly #found: (first: number, head: Buffer) => void

  constructor(found: (first: number, head: Buffer) => void) {
    this.#found = found
  }

  /** True in the middle of a packet. */
  get partial(): boolean {
    return this.#skip > 0 || this.#head.length > 0
  }

  push(chunk: Buffer): void {
    let rest = chunk
    while (rest.length > 0) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, rest.length)
        this.#skip -= skipped
        rest = rest.subarray(skipped)
        continue
      }
      const joined = this.#head.length === 0 ? rest : Buffer.concat([this.#head, rest])
      const packet = readHead(joined)
      if (packet === undefined) {
        this.#head = Buffer.from(joined)
        return
      }
      const end = Math.min(packet.end, joined.length)
      if (
        packet.end > joined.length &&
        joined.length - packet.start < Math.min(packet.end - packet.start, headSize)
      ) {
        this.#head = Buffer.from(joined)
        return
      }
      this.#head = Buffer.alloc(0)
      this.#found(joined[0] ?? 0, joined.subarray(packet.start, end))
      this.#skip = packet.end - end
      rest = joined.subarray(end)
    }
  }
}

/** Where the variable header begins, and where the packet ends; undefined when that cannot be said yet. */
function readHead(bytes: Buffer): { start: number; end: number } | undefined {
  let length = 0
  for (let index = 1; index < 5; index += 1) {
    const byte = bytes[index]
    if (byte === undefined) return undefined
    length += (byte & 0x7f) * 128 ** (index - 1)
    if (byte < 0x80) return { start: index + 1, end: index + 1 + length }
  }
  return { start: 5, end: bytes.length }
}

/** Takes the HTTP handshake and the frames of WebSocket off a stream, where they are on it. */
class Unframed {
  #begun = false
  #web = false
  #rest: Buffer = Buffer.alloc(0)
  /** Of the frame that is coming in: bytes that have not come, how many have, its mask, and whether it belongs to the stream. */
  #left = 0
  #at = 0
  #key: Buffer = Buffer.alloc(0)
  #isData = false
  readonly #pass: (bytes: Buffer) => void

  constructor(pass: (bytes: Buffer) => void) {
    this.#pass = pass
  }

  push(chunk: Buffer): void {
    if (this.#begun && !this.#web) return this.#pass(chunk)
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (!this.#begun) {
      const first = this.#rest[0]
      this.#web = first === 0x47 || first === 0x48
      if (this.#web) {
        const end = this.#rest.indexOf('\r\n\r\n')
        if (end < 0) return
        this.#rest = this.#rest.subarray(end + 4)
      }
      this.#begun = true
    }
    if (!this.#web) {
      const bytes = this.#rest
      this.#rest = Buffer.alloc(0)
      return this.#pass(bytes)
    }
    this.#frames()
  }

  // What a frame holds is passed on as it comes: a large one must not be put together again with each of its pieces.
  #frames(): void {
    for (;;) {
      if (this.#left === 0 && !this.#head()) return
      const payload = Buffer.from(this.#rest.subarray(0, this.#left))
      this.#left -= payload.length
      this.#rest = this.#rest.subarray(payload.length)
      for (let index = 0; index < payload.length && this.#key.length > 0; index += 1) {
        payload[index] = (payload[index] ?? 0) ^ (this.#key[(this.#at + index) % 4] ?? 0)
      }
      this.#at += payload.length
      if (this.#isData && payload.length > 0) this.#pass(payload)
      if (this.#rest.length === 0) return
    }
  }

  /** Takes the head of a frame off; false when it is not all there. */
  #head(): boolean {
    const [first, second] = this.#rest
    if (first === undefined || second === undefined) return false
    const short = second & 0x7f
    const wide = short === 126 ? 2 : short === 127 ? 8 : 0
    const masked = second >= 0x80 ? 4 : 0
    const start = 2 + wide + masked
    if (this.#rest.length < start) return false
    this.#left =
      wide === 0
        ? short
        : wide === 2
          ? this.#rest.readUInt16BE(2)
          : Number(this.#rest.readBigUInt64BE(2))
    this.#key = Buffer.from(this.#rest.subarray(2 + wide, start))
    this.#at = 0
    this.#isData = (first & 0x0f) < 3
    this.#rest = this.#rest.subarray(start)
    return true
  }
}

/** Sizes of the properties of PUBLISH: a number of bytes, text or binary with its length before it, two of them, or a number of variable length. */
const publishProperties: Readonly<Record<number, number | 'text' | 'pair' | 'number'>> = {
  1: 1,
  2: 4,
  3: 'text',
  8: 'text',
  9: 'text',
  11: 'number',
  35: 2,
  38: 'pair',
}

/** The Topic Alias among the properties that begin here, undefined when there is none, and how many Subscription Identifiers there are. */
function propertiesIn(
  head: Buffer,
  from: number,
): { readonly alias: number | undefined; readonly subscriptions: number } {
  let [length, at] = variableNumber(head, from)
  const end = at + length
  let alias: number | undefined
  let subscriptions = 0
  while (at < Math.min(end, head.length)) {
    const id = head[at] ?? 0
    const size = publishProperties[id]
    at += 1
    if (id === 35) alias = head.readUInt16BE(at)
    if (id === 11) subscriptions += 1
    if (size === undefined) break
    if (typeof size === 'number') at += size
    else if (size === 'number') [length, at] = variableNumber(head, at)
    else
      for (let texts = size === 'pair' ? 2 : 1; texts > 0 && at + 2 <= head.length; texts -= 1)
        at += 2 + head.readUInt16BE(at)
  }
  return { alias, subscriptions }
}

const noProperties = { alias: undefined, subscriptions: 0 }

function variableNumber(bytes: Buffer, from: number): [value: number, next: number] {
  let value = 0
  for (let index = 0; index < 4; index += 1) {
    const byte = bytes[from + index] ?? 0
    value += (byte & 0x7f) * 128 ** index
    if (byte < 0x80) return [value, from + index + 1]
  }
  return [value, from + 4]
}

class Tap implements Observer {
  readonly #seen: Seen
  readonly #streams: Readonly<Record<Direction, Unframed>>
  /** Identifiers of the broker's messages that are open. */
  readonly #open = new Set<number>()
  /** Of those the ones that the client has answered with PUBREC. */
  readonly #received = new Set<number>()
  readonly #partial: () => boolean
  readonly #aliases = new Set<number>()
  /** Topics of which a live message went down. */
  readonly #live = new Set<string>()
  #announced = 65_535
  #version = 4
  #exceeded = false
  #over = false

  constructor(seen: Seen) {
    this.#seen = seen
    seen.connections += 1
    const packets = (direction: Direction): Packets =>
      new Packets((first, head) => this.#packet(direction, first, head))
    const [up, down] = [packets('up'), packets('down')]
    this.#streams = {
      up: new Unframed((bytes) => up.push(bytes)),
      down: new Unframed((bytes) => down.push(bytes)),
    }
    this.#partial = () => down.partial
  }

  bytes(direction: Direction, chunk: Buffer): void {
    this.#streams[direction].push(chunk)
  }

  end(direction: Direction): void {
    if (this.#over) return
    this.#over = true
    this.#seen.leftOpen += this.#open.size
    this.#seen.leftToBroker += this.#received.size + (this.#partial() ? 1 : 0)
    if (direction === 'up') this.#seen.endedByClient += 1
    else this.#seen.endedByBroker += 1
  }

  #packet(direction: Direction, first: number, head: Buffer): void {
    const type = first >> 4
    if (type === 1) this.#connect(head)
    else if (type === 3) this.#publish(direction, first, head)
    else if (type === 4 || type === 5 || type === 7) this.#settle(direction, type, head)
    else if (type === 6 && direction === 'down') this.#received.delete(head.readUInt16BE(0))
    else if (type === 14) this.#goodbye(direction, head)
  }

  #connect(head: Buffer): void {
    const name = head.readUInt16BE(0)
    this.#version = head[2 + name] ?? 4
    if (this.#version !== 5) return
    let at = 2 + name + 4
    const length = head[at] ?? 0
    const end = at + 1 + length
    for (at += 1; at < end; ) {
      const id = head[at] ?? 0
      if (id === 0x21) {
        this.#announced = head.readUInt16BE(at + 1)
        this.#seen.announced = Math.max(this.#seen.announced, this.#announced)
      }
      const size = { 33: 3, 34: 3, 17: 5, 39: 5, 23: 2, 25: 2 }[id]
      // What comes in no fixed size comes after what is looked for.
      if (size === undefined) return
      at += size
    }
  }

  #publish(direction: Direction, first: number, head: Buffer): void {
    const [qos, dup] = [(first >> 1) & 3, (first & 8) > 0]
    const seen = this.#seen
    if (direction === 'down') this.#inspect(qos, (first & 1) > 0, head)
    if (qos === 0) {
      if (direction === 'up') seen.upZero += 1
      else seen.downZero += 1
      return
    }
    if (direction === 'up') {
      if (dup) seen.upDup += 1
      else seen.up += 1
      return
    }
    if (dup) seen.downDup += 1
    else seen.down += 1
    const id = head.readUInt16BE(2 + head.readUInt16BE(0))
    if (id === 0) this.#odd('uses packet identifier 0')
    if (this.#open.has(id))
      this.#odd(
        dup
          ? 'repeats a message on the connection on which it was sent'
          : 'uses an identifier that is in use',
      )
    this.#open.add(id)
    if (this.#open.size > seen.mostOpen) seen.mostOpen = this.#open.size
    if (this.#open.size > this.#announced && !this.#exceeded) {
      this.#exceeded = true
      seen.exceeded += 1
    }
  }

  /** Looks for what a broker must not do, or may do and surprises with. */
  #inspect(qos: number, retain: boolean, head: Buffer): void {
    const length = head.readUInt16BE(0)
    const { alias, subscriptions } =
      this.#version === 5 ? propertiesIn(head, 2 + length + (qos > 0 ? 2 : 0)) : noProperties
    if (subscriptions > 1) this.#odd('names several subscriptions in a copy')
    if (alias !== undefined) {
      if (length === 0 && !this.#aliases.has(alias))
        this.#odd('uses an alias that it did not set on this connection')
      this.#aliases.add(alias)
    }
    if (length === 0 || this.#live.size > 10_000) return
    const topic = head.toString('latin1', 2, 2 + length)
    if (!retain) this.#live.add(topic)
    else if (this.#live.has(topic))
      this.#odd('sends a retained message behind a live one of its topic')
  }

  #settle(direction: Direction, type: number, head: Buffer): void {
    const [id, code] = [head.readUInt16BE(0), head[2] ?? 0]
    const failed = code >= 0x80
    if (type === 5 && !failed) {
      if (direction === 'up' && this.#open.has(id)) this.#received.add(id)
      return
    }
    if (direction === 'up') {
      if (!this.#open.delete(id)) return
      this.#received.delete(id)
      this.#seen.downSettled += 1
    } else {
      if (failed)
        this.#odd(
          `refuses with 0x${code.toString(16)} in ${{ 4: 'PUBACK', 5: 'PUBREC', 7: 'PUBCOMP' }[type]}`,
        )
      this.#seen.upSettled += 1
    }
  }

  #goodbye(direction: Direction, head: Buffer): void {
    const code = `0x${(head[0] ?? 0).toString(16).padStart(2, '0')}`
    const said = direction === 'up' ? this.#seen.clientSaid : this.#seen.brokerSaid
    said[code] = (said[code] ?? 0) + 1
  }

  #odd(what: string): void {
    this.#seen.odd[what] = (this.#seen.odd[what] ?? 0) + 1
  }
}

/** An observer for each connection, all of which count in the same books. */
export function tapping(seen: Seen): () => Observer {
  return () => new Tap(seen)
}
