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
import { Printed, shownBytes } from '../../printing.js'
import { PUBACK } from '../../wire/constants.js'
import type { Bytes, QoS } from '../../wire/packets.js'
import { readProperties } from '../../wire/properties.js'
import type { PublishView } from '../../wire/publish.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import { decodeUtf8 } from '../../wire/utf8.js'
import type { Message, MessageProperties } from '../options/index.js'
import { noTicket } from '../session/receive-window.js'
import type { Settler } from './shared-outcome.js'

/** Measured memory cost in bytes: the objects of a message, and those of its properties. */
const messageObjects = 384
const propertyObjects = 256

const noProperties: MessageProperties = Object.freeze({})

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
export abstract class DeliveredMessage extends Printed implements Message {
  abstract topic: string
  abstract qos: QoS
  abstract retain: boolean
  abstract dup: boolean
  /** The topic, for reports; also valid after the release. */
  abstract readonly subject: string
  #settled = false
  #ticket = noTicket
  readonly #settler: Settler
  #origin: object | undefined
  #size: number
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
    super()
    this.#size = size
    this.#settler = settler
    this.#borrowed = borrowed
  }

  /** True once the outcome is decided. */
  get settled(): boolean {
    return this.#settled
  }
  /** The session's number of this arrival, or `noTicket`. */
  get ticket(): number {
    return this.#ticket
  }
  /** The filter that this message came in through; undefined if no subscription is known. */
  get origin(): object | undefined {
    return this.#origin
  }
  set origin(origin: object | undefined) {
    this.#origin = origin
  }
  /** Memory cost in bytes; 0 for a message that was only shown, never held. */
  get size(): number {
    return this.#size
  }
  get id(): string | undefined {
    return this.#settler.id
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
    const bytes = this.view
    if (bytes.length < this.payloadLength)
      throw new MqttError('ERR_MESSAGE_RELEASED', 'the buffer of the payload was transferred')
    return decodeUtf8(bytes)
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
    // The same codes are valid in a client's PUBREC (sections 3.4.2.1, 3.5.2.1).
    if (!isReasonCode(PUBACK, reasonCode, 'client'))
      invalid('reasonCode', 'one of PUBACK and PUBREC')
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

  /**
   * Leaves the outcome to other consumers of this message; false when no other consumer decides it.
   */
  giveUp(): boolean {
    if (this.#settler.giveUp?.() !== true) return false
    this.#settled = true
    return true
  }

  /** Decides the outcome; false when it was already decided or the session is gone. */
  settle(reasonCode: number): boolean {
    if (this.#settled) return false
    this.#settled = true
    return this.#settler.settle(this.#ticket, reasonCode)
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
    this.#size ||= cost(
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
    const { topic, qos, retain, dup, payloadLength, properties, view } = this
    const rest = properties === noProperties ? undefined : { properties }
    const payload = view.length < payloadLength ? '(transferred)' : shownBytes(view)
    return { topic, qos, retain, dup, payloadLength, payload, ...rest }
  }

  /** @throws MqttError ERR_MESSAGE_RELEASED */
  protected assertValid(): void {
    if (this.#released)
      throw new MqttError('ERR_MESSAGE_RELEASED', 'the message was released; detach() keeps it')
  }

  // Protected, because each private method costs every object a field.

  protected arrive(
    head: Pick<PublishView, 'qos' | 'retain' | 'dup'>,
    topic: string,
    ticket: number,
    origin: object | undefined,
  ): void {
    this.topic = topic
    this.qos = head.qos
    this.retain = head.retain
    this.dup = head.dup
    this.#settled = ticket === noTicket
    this.#ticket = ticket
    this.#origin = origin
  }

  /** The payload in place, not copied. */
  protected get view(): Uint8Array {
    return this.#payload ?? this.#piece.bytes.subarray(this.#payloadStart, this.#payloadEnd)
  }

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
