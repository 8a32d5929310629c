/**
 * A message as the application gets it: payload, properties and text are taken out of its piece of memory when asked for.
 *
 * `DeliveredMessage` is the implementation, `OwnedMessage` and `BorrowedMessage` its two kinds; what is not in the `Message` interface is for the delivery
 * code of this folder only. Its outcome is decided at most once. Own enumerable fields are what a person wants to see on a console; all else is private
 * or on the prototype.
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
import { decodeText } from '../../wire/utf8.js'
import type { Message, MessageProperties } from '../options/index.js'
import { noTicket } from '../session/receive-window.js'
import type { Settler } from './settler.js'

/** Bytes of memory for the objects of a message, and for its properties; measured. */
const messageObjects = 384
const propertyObjects = 256

const noProperties: MessageProperties = Object.freeze({})

/** Of a message that was released, and of one whose payload was taken out and has nothing else. */
const emptyPiece = new Piece(new Uint8Array(0))

/** Bytes that holding a message costs: topic (whether or not an alias stands for it), properties, payload, and the objects around them. */
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
  /** The topic, for reports of what became of the message, also after its release. */
  abstract readonly subject: string
  #settled = false
  #ticket = noTicket
  readonly #settler: Settler
  #origin: object | undefined
  #size: number
  #piece = emptyPiece
  // places in the piece; the properties end where the payload begins
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

  /** True once its outcome is decided. */
  get settled(): boolean {
    return this.#settled
  }
  /** The session's number of this message, or `noTicket`. */
  get ticket(): number {
    return this.#ticket
  }
  /** The filter that it came in for; undefined where no subscription is known. */
  get origin(): object | undefined {
    return this.#origin
  }
  set origin(origin: object | undefined) {
    this.#origin = origin
  }
  /** Bytes that holding it costs; 0 of one that was never to be held. */
  get size(): number {
    return this.#size
  }
  get id(): string | undefined {
    return this.#settler.id
  }

  /**
   * Shows what a view shows. Once; of a borrowed message, again when it was released.
   * @param shift how far places in the piece lie before those in the view
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
      // The piece holds the payload alone.
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

  /** True when it cannot be read any more. */
  get released(): boolean {
    return this.#released
  }

  text(): string {
    this.assertValid()
    const bytes = this.view
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
    // PUBREC of a client takes the same ones (sections 3.4.2.1, 3.5.2.1).
    if (!isReasonCode(PUBACK, reasonCode, 'client'))
      invalid('reasonCode', 'one of PUBACK and PUBREC')
    const done = this.ticket === noTicket || this.settle(reasonCode)
    this.release()
    return done
  }

  detach(): Message {
    this.assertValid()
    if (!this.#borrowed) return this
    // This object may show another message by then.
    const settle = (ticket: number, reasonCode: number): boolean =>
      ticket === this.ticket && this.settle(reasonCode)
    const kept: DeliveredMessage = new OwnedMessage(this.size, { settle, id: this.id }, false)
    kept.arrive(this, this.topic, this.ticket, undefined)
    kept.copy(this)
    kept.#properties = this.#properties
    return kept
  }

  /** Leaves the outcome to the other consumers of this message; false when no other consumer would decide it. */
  giveUp(): boolean {
    if (this.#settler.giveUp?.() !== true) return false
    this.#settled = true
    return true
  }

  /** Decides the outcome; false when it was decided before or the session is gone. */
  settle(reasonCode: number): boolean {
    if (this.#settled) return false
    this.#settled = true
    return this.#settler.settle(this.#ticket, reasonCode)
  }

  /** The turn is over: a borrowed message cannot be read any more. */
  release(): void {
    if (!this.#borrowed || this.#released) return
    this.#released = true
    this.#piece.lent -= 1
    // It may be kept for ever, its memory not.
    this.#piece = emptyPiece
    this.#payload = undefined
    this.#properties = undefined
  }

  /** Moves out of a piece that it would keep alive by itself; out of a window only when it must. Not for a message that the application holds. */
  moveOut(must: boolean): void {
    if (this.#piece.window ? must : this.#piece.wasteful) this.copy(this)
  }

  /** Another reader gets it: it is owned from now on. A view of it that was handed out stays as it is. */
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

  /** What a person wants to see, with the first bytes of the payload; of one that was released, its topic alone. */
  override toJSON(): object {
    if (this.#released) return { topic: this.subject, released: true }
    const { topic, qos, retain, dup, payloadLength, properties } = this
    const rest = properties === noProperties ? undefined : { properties }
    return { topic, qos, retain, dup, payloadLength, payload: shownBytes(this.view), ...rest }
  }

  /** @throws MqttError ERR_MESSAGE_RELEASED */
  protected assertValid(): void {
    if (this.#released)
      throw new MqttError('ERR_MESSAGE_RELEASED', 'the message was released; detach() keeps it')
  }

  // A method with a private name would cost each object a field more.

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

  /** The bytes of the payload, where they lie. */
  protected get view(): Uint8Array {
    return this.#payload ?? this.#piece.bytes.subarray(this.#payloadStart, this.#payloadEnd)
  }

  // An array that holds nothing else can be handed out as it is.
  protected takePayload(): Bytes {
    const { bytes } = this.#piece
    // Half the price of a `subarray`.
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
      // Memory that the application may look at is never read into again.
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

/** One that stays valid. */
export class OwnedMessage extends DeliveredMessage {
  static override readonly name = 'Message'
  // Declared only: what is defined first and set then costs twice.
  declare topic: string
  declare qos: QoS
  declare retain: boolean
  declare dup: boolean

  get subject(): string {
    return this.topic
  }
}

/** One that is valid until its turn is over. */
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

// The alias is a matter of the connection, not of the message.
function decoded(bytes: Uint8Array, start: number, end: number): MessageProperties {
  const properties = readProperties(bytes, start, end)
  delete properties.topicAlias
  return properties as MessageProperties
}

function withoutPrototype(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value
}
