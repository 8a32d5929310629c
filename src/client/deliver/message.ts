/**
 * A message as the application gets it. Payload, properties and text are decoded on access; it is
 * acknowledged at most once.
 *
 * `DeliveredMessage` is the implementation, `OwnedMessage` and `BorrowedMessage` its two kinds.
 * Members outside the `Message` interface are for this folder only. Own enumerable fields are those
 * that a console should print; all others are private or on the prototype.
 */

import { Piece } from '../../common/message-memory.js'
import { invalid } from '../../common/schema.js'
import { MqttError, tidy } from '../../errors.js'
import { shownBytes } from '../../printing.js'
import type { Bytes, QoS } from '../../wire/packets.js'
import { readProperties } from '../../wire/properties.js'
import type { PublishView } from '../../wire/publish.js'
import { decodeText } from '../../wire/utf8.js'
import type { Message, MessageProperties } from '../options/index.js'
import { noTicket } from '../session/receive-window.js'
import { Arrival, type Settler } from './arrival.js'

/** Measured memory cost in bytes: the objects of a message, and those of its properties. */
const messageObjects = 384
const propertyObjects = 256

const noProperties: MessageProperties = Object.freeze({})

/**
 * Reason codes that a client may send in PUBACK or PUBREC (sections 3.4.2.1, 3.5.2.1); only a
 * server sends 0x10.
 */
const ackReasons: readonly number[] = [0x00, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]

/** Stands in for the memory of a released message, and of one whose payload was taken. */
const emptyPiece = new Piece(new Uint8Array(0))

/**
 * Memory cost of holding a message, in bytes: topic (also when an alias was sent), properties,
 * payload, and the objects.
 */
export function costOf(view: PublishView, topic: string): number {
  return cost(
    Math.max(view.topicEnd - view.topicStart, topic.length),
    view.propertiesEnd - view.propertiesStart,
    view.payloadEnd - view.payloadStart,
  )
}

function cost(topic: number, properties: number, payload: number): number {
  return (
    topic +
    properties +
    payload +
    (properties > 0 ? messageObjects + propertyObjects : messageObjects)
  )
}

/** The implementation of {@link Message}. */
export abstract class DeliveredMessage extends Arrival implements Message {
  /** The topic, for reports; also valid after the release. */
  abstract readonly subject: string
  #piece = emptyPiece
  // positions in the piece; the properties end where the payload begins
  #propertiesStart = 0
  #payloadStart = 0
  #payloadEnd = 0
  #borrowed: boolean
  #payload: Bytes | undefined
  #properties: MessageProperties | undefined
  #released = false

  constructor(size: number, settler: Settler, borrowed: boolean) {
    super(size, settler)
    this.#borrowed = borrowed
  }

  /**
   * Makes this object show the message of a view. Called once; for a borrowed message, again after
   * each release.
   * @param shift subtracted from positions in the view to give positions in the piece
   */
  place(
    view: PublishView,
    topic: string,
    piece: Piece,
    shift: number,
    ticket: number,
    origin: object | undefined,
  ): this {
    this.arrive(view, topic, ticket, origin)
    this.#released = false
    this.#piece = piece
    this.#propertiesStart = view.propertiesStart - shift
    this.#payloadStart = view.payloadStart - shift
    this.#payloadEnd = view.payloadEnd - shift
    if (this.#borrowed) piece.lent += 1
    if (view.apart !== undefined) {
      // The piece contains only the payload.
      if (view.propertiesEnd > view.propertiesStart)
        this.#properties = decoded(view.bytes, view.propertiesStart, view.propertiesEnd)
      this.#propertiesStart = 0
      this.#payloadStart = 0
      this.#payloadEnd = view.payloadEnd - view.payloadStart
    }
    return this
  }

  get payload(): Bytes {
    this.assertValid()
    this.#payload ??= this.takePayload()
    return this.#payload
  }
  get payloadLength(): number {
    this.assertValid()
    return this.#payloadEnd - this.#payloadStart
  }
  get redelivered(): boolean {
    return this.dup && this.qos > 0
  }
  get properties(): MessageProperties {
    this.assertValid()
    this.#properties ??=
      this.#propertiesStart === this.#payloadStart
        ? noProperties
        : decoded(this.#piece.bytes, this.#propertiesStart, this.#payloadStart)
    return this.#properties
  }

  /** True when it can no longer be read. */
  get released(): boolean {
    return this.#released
  }

  text(): string {
    this.assertValid()
    const bytes = this.#payload ?? this.#piece.bytes.subarray(this.#payloadStart, this.#payloadEnd)
    if (bytes.length < this.payloadLength)
      throw new MqttError('ERR_MESSAGE_RELEASED', 'the buffer of the payload was transferred')
    return decodeText(bytes)
  }

  json<T = unknown>(): T {
    const text = this.text()
    try {
      return JSON.parse(
        text,
        text.includes('__proto__') || text.includes('\\u') ? withoutPrototype : undefined,
      ) as T
    } catch (error) {
      tidy(error)
      if (!(error instanceof RangeError)) throw error
      throw new SyntaxError('nested too deep')
    }
  }

  ack(reasonCode = 0): boolean {
    if (!ackReasons.includes(reasonCode)) invalid('reasonCode', 'one of PUBACK and PUBREC')
    const done = this.ticket === noTicket || this.settle(reasonCode)
    this.release()
    return done
  }

  detach(): Message {
    this.assertValid()
    if (!this.#borrowed) return this
    // By then, this object may show another message.
    const settle = (ticket: number, reasonCode: number): boolean =>
      ticket === this.ticket && this.settle(reasonCode)
    const kept: DeliveredMessage = new OwnedMessage(this.size, { settle, id: this.id }, false)
    kept.arrive(this, this.topic, this.ticket, undefined)
    kept.copy(this)
    kept.#properties = this.#properties
    return kept
  }

  /** The turn is over: a borrowed message becomes unreadable. */
  release(): void {
    if (!this.#borrowed || this.#released) return
    this.#released = true
    this.#piece.lent -= 1
    // The application may keep the object for ever, but not its memory.
    this.#piece = emptyPiece
    this.#payload = undefined
    this.#properties = undefined
  }

  /**
   * Copies the message out of a piece that it alone would keep alive; out of a window only with
   * `must`. Not for messages that the application holds.
   */
  moveOut(must: boolean): void {
    if (this.#piece.window ? must : this.#piece.wasteful) this.copy(this)
  }

  /**
   * Makes this an owned message, for another reader. A payload view that was handed out stays
   * valid.
   */
  own(): void {
    if (this.#borrowed || this.#piece.bytes.length > this.#payloadEnd - this.#propertiesStart)
      this.copy(this)
    this.#borrowed = false
    this.size ||= cost(
      this.subject.length,
      this.#payloadStart - this.#propertiesStart,
      this.#payloadEnd - this.#payloadStart,
    )
  }

  /**
   * What consoles print, with the first bytes of the payload; after the release, only the topic.
   */
  override toJSON(): object {
    if (this.#released) return { topic: this.subject, released: true }
    const { topic, qos, retain, dup, payloadLength, properties } = this
    const bytes = this.#payload ?? this.#piece.bytes.subarray(this.#payloadStart, this.#payloadEnd)
    const rest = properties === noProperties ? undefined : { properties }
    return { topic, qos, retain, dup, payloadLength, payload: shownBytes(bytes), ...rest }
  }

  /** @throws MqttError ERR_MESSAGE_RELEASED */
  protected assertValid(): void {
    if (this.#released)
      throw new MqttError('ERR_MESSAGE_RELEASED', 'the message was released; detach() keeps it')
  }

  // Protected, because each private method costs every object a field.

  // An array that contains only the payload is handed out without a copy.
  protected takePayload(): Bytes {
    const { bytes } = this.#piece
    // Twice as fast as `subarray`.
    if (this.#borrowed)
      return new Uint8Array(
        this.#piece.buffer,
        this.#piece.offset + this.#payloadStart,
        this.#payloadEnd - this.#payloadStart,
      )
    if (bytes.length === this.#payloadEnd - this.#payloadStart && !this.#piece.mixed)
      return bytes as Bytes
    const payload = bytes.slice(this.#payloadStart, this.#payloadEnd)
    if (this.#propertiesStart === this.#payloadStart) this.#piece = emptyPiece
    return payload
  }

  protected copy(from: DeliveredMessage): void {
    const start = from.#propertiesStart
    const piece = new Piece(from.#piece.bytes.slice(start, from.#payloadEnd))
    if (this.#borrowed) {
      // A payload that was handed out keeps its memory lent, so that no read overwrites it.
      if (this.#payload === undefined) this.#piece.lent -= 1
      this.#payload = undefined
      piece.lent += 1
    }
    this.#piece = piece
    this.#payloadStart = from.#payloadStart - start
    this.#payloadEnd = from.#payloadEnd - start
    this.#propertiesStart = 0
  }
}

/** A message that stays valid. */
export class OwnedMessage extends DeliveredMessage {
  static override readonly name = 'Message'
  // Only declared, because defining a field and then setting it costs twice.
  declare topic: string
  declare qos: QoS
  declare retain: boolean
  declare dup: boolean

  get subject(): string {
    return this.topic
  }
}

/** A message that is valid until its turn ends. */
export class BorrowedMessage extends DeliveredMessage {
  static override readonly name = 'Message'
  #topic = ''
  #qos: QoS = 0
  #retain = false
  #dup = false

  get subject(): string {
    return this.#topic
  }
  get topic(): string {
    this.assertValid()
    return this.#topic
  }
  set topic(topic: string) {
    this.#topic = topic
  }
  get qos(): QoS {
    this.assertValid()
    return this.#qos
  }
  set qos(qos: QoS) {
    this.#qos = qos
  }
  get retain(): boolean {
    this.assertValid()
    return this.#retain
  }
  set retain(retain: boolean) {
    this.#retain = retain
  }
  get dup(): boolean {
    this.assertValid()
    return this.#dup
  }
  set dup(dup: boolean) {
    this.#dup = dup
  }
}

// The topic alias belongs to the connection, not to the message.
function decoded(bytes: Uint8Array, start: number, end: number): MessageProperties {
  const properties = readProperties(bytes, start, end)
  delete properties.topicAlias
  return properties as MessageProperties
}

function withoutPrototype(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value
}
