/**
 * A message as the application gets it: payload, properties and text taken out of its piece of memory when asked for, acknowledged at most once.
 *
 * `DeliveredMessage` is the implementation, `OwnedMessage` and `BorrowedMessage` its two kinds; what is not in the `Message` interface is for the delivery
 * code of this folder only. Own enumerable fields are what a person wants to see on a console; all else is private or on the prototype.
 */

import { MqttError, tidy } from '../../errors.js'
import { inspectSymbol, printedAs, shownBytes } from '../../printing.js'
import type { Bytes, QoS } from '../../wire/packets.js'
import { readProperties } from '../../wire/properties.js'
import { PublishView } from '../../wire/publish.js'
import { decodeText } from '../../wire/utf8.js'
import type { Message, MessageProperties } from '../api/index.js'
import { invalid } from '../common/schema.js'
import { Piece } from '../memory/message-memory.js'
import { noTicket } from '../session/numbers.js'
import { messageObjects, propertyObjects } from './bounds.js'

/** Takes the outcome of a message: the session, or what several consumers share. */
export interface Settler {
  settle(ticket: number, reasonCode: number): boolean
  /** A consumer is done with its share, though others are not. */
  handleTurnEnd?(): void
}

const noProperties: MessageProperties = Object.freeze({})

/** Reason codes that a client's PUBACK or PUBREC may carry (sections 3.4.2.1, 3.5.2.1); 0x10 is the server's. */
const ackReasons: readonly number[] = [0x00, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]

const emptyPiece = new Piece(new Uint8Array(0))
const noView = new PublishView()

/** Bytes that holding a message costs: topic (whether or not an alias stands for it), properties, payload, and the objects around them. */
export function costOf({ topicStart, topicEnd, propertiesStart, propertiesEnd, payloadStart, payloadEnd }: PublishView, topic: string): number {
  return cost(Math.max(topicEnd - topicStart, topic.length), propertiesEnd - propertiesStart, payloadEnd - payloadStart)
}

function cost(topic: number, properties: number, payload: number): number {
  return topic + properties + payload + (properties > 0 ? messageObjects + propertyObjects : messageObjects)
}

/** What the first bytes of a PUBLISH say. */
interface Head {
  readonly qos: QoS
  readonly retain: boolean
  readonly dup: boolean
}

/** The implementation of {@link Message}. */
export abstract class DeliveredMessage implements Message {
  abstract readonly topic: string
  abstract readonly qos: QoS
  abstract readonly retain: boolean
  abstract readonly dup: boolean
  /** The topic, for those who tell what became of the message, also after its release. */
  abstract readonly subject: string
  #settled: boolean
  #ticket: number
  #origin: object | undefined
  #size: number
  #piece: Piece
  // places in the piece; the properties end where the payload begins
  #propertiesStart: number
  #payloadStart: number
  #payloadEnd: number
  #settler: Settler | undefined
  #borrowed: boolean
  #payload: Bytes | undefined
  #properties: MessageProperties | undefined
  #released = false

  /** @param shift how far places in the piece lie before those in the view */
  constructor(view: PublishView, piece: Piece, shift: number, size: number, settler: Settler | undefined, ticket: number, borrowed: boolean) {
    this.#settled = ticket === noTicket
    this.#ticket = ticket
    this.#origin = undefined
    this.#size = size
    this.#piece = piece
    this.#propertiesStart = view.propertiesStart - shift
    this.#payloadStart = view.payloadStart - shift
    this.#payloadEnd = view.payloadEnd - shift
    this.#settler = settler
    this.#borrowed = borrowed
    if (borrowed) piece.lent += 1
    if (view.apart !== undefined) this.#takeApart(view)
  }

  // The piece holds the payload alone.
  #takeApart(view: PublishView): void {
    if (view.propertiesEnd > view.propertiesStart) this.#properties = decoded(view.bytes, view.propertiesStart, view.propertiesEnd)
    this.#propertiesStart = 0
    this.#payloadStart = 0
    this.#payloadEnd = view.payloadEnd - view.payloadStart
  }

  /** Takes the place of a message that was released. */
  protected replace(view: PublishView, piece: Piece, shift: number, ticket: number): void {
    this.#settled = ticket === noTicket
    this.#ticket = ticket
    this.#piece = piece
    this.#propertiesStart = view.propertiesStart - shift
    this.#payloadStart = view.payloadStart - shift
    this.#payloadEnd = view.payloadEnd - shift
    this.#properties = undefined
    this.#payload = undefined
    this.#released = false
    piece.lent += 1
    if (view.apart !== undefined) this.#takeApart(view)
  }

  /** True once its outcome is decided. */
  get settled(): boolean {
    return this.#settled
  }
  /** The session's number of this arrival, or `noTicket`. */
  get ticket(): number {
    return this.#ticket
  }
  /** What this message came in through, for those who route it. */
  get origin(): object | undefined {
    return this.#origin
  }
  set origin(origin: object | undefined) {
    this.#origin = origin
  }
  /** Bytes that holding this message costs; 0 of one that was never to be held. */
  get size(): number {
    return this.#size
  }

  get payload(): Bytes {
    this.assertValid()
    this.#payload ??= this.#take()
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
    this.#properties ??= this.#decodeProperties()
    return this.#properties
  }

  /** True when it cannot be read any more. */
  get released(): boolean {
    return this.#released
  }

  /** Leaves the outcome to the other consumers of this message; false when there are none that would decide it. */
  giveUp(): boolean {
    if (!(this.#settler instanceof SharedOutcome) || !this.#settler.giveUp()) return false
    this.#settled = true
    return true
  }

  text(): string {
    this.assertValid()
    const bytes = this.#payload ?? this.#piece.bytes.subarray(this.#payloadStart, this.#payloadEnd)
    if (bytes.length < this.payloadLength) throw new MqttError('ERR_MESSAGE_RELEASED', 'the buffer of the payload was transferred')
    return decodeText(bytes)
  }

  json<T = unknown>(): T {
    const text = this.text()
    try {
      return JSON.parse(text, text.includes('__proto__') || text.includes('\\u') ? withoutPrototype : undefined) as T
    } catch (error) {
      tidy(error)
      if (!(error instanceof RangeError)) throw error
      throw new SyntaxError('nested too deep')
    }
  }

  ack(reasonCode = 0): boolean {
    if (!ackReasons.includes(reasonCode)) invalid('reasonCode', 'one of PUBACK and PUBREC')
    const done = this.#ticket === noTicket || this.settle(reasonCode)
    this.release()
    return done
  }

  detach(): Message {
    this.assertValid()
    if (!this.#borrowed) return this
    // This object may show another message by then.
    const settle = (ticket: number, reasonCode: number): boolean => ticket === this.#ticket && this.settle(reasonCode)
    const kept: DeliveredMessage = new OwnedMessage(noView, this.topic, emptyPiece, 0, this.#size, { settle }, this.#ticket, this)
    kept.#copy(this)
    kept.#properties = this.#properties
    return kept
  }

  /** The turn is over: a borrowed message cannot be read any more. */
  release(): void {
    if (!this.#borrowed || this.#released) return
    this.#released = true
    this.#piece.lent -= 1
    // It may be kept for ever, its memory not.
    this.#piece = emptyPiece
    this.#payload = undefined
  }

  /** Moves out of a piece that it would keep alive by itself; out of a window only when it must. Not for a message that somebody has in hand. */
  moveOut(must: boolean): void {
    if (this.#piece.window ? must : this.#piece.wasteful) this.#copy(this)
  }

  /** Somebody else gets it: it is owned from now on. A view of it that was handed out stays what it is. */
  own(): void {
    if (this.#borrowed || this.#piece.bytes.length > this.#payloadEnd - this.#propertiesStart) this.#copy(this)
    this.#borrowed = false
    if (this.#size === 0) this.#size = cost(this.subject.length, this.#payloadStart - this.#propertiesStart, this.#payloadEnd - this.#payloadStart)
  }

  /** Decides the outcome; false when it was decided before or the session is gone. */
  settle(reasonCode: number): boolean {
    if (this.#settled) return false
    this.#settled = true
    return this.#settler?.settle(this.#ticket, reasonCode) ?? false
  }

  /** What a person wants to see, with the first bytes of the payload; of one that was released, its topic alone. */
  toJSON(): object {
    if (this.#released) return { topic: this.subject, released: true }
    const { topic, qos, retain, dup, payloadLength, properties } = this
    const bytes = this.#payload ?? this.#piece.bytes.subarray(this.#payloadStart, this.#payloadEnd)
    const rest = properties === noProperties ? undefined : { properties }
    return { topic, qos, retain, dup, payloadLength, payload: shownBytes(bytes), ...rest }
  }

  [inspectSymbol](): object {
    return printedAs('Message', this.toJSON())
  }

  /** @throws MqttError ERR_MESSAGE_RELEASED */
  protected assertValid(): void {
    if (this.#released) throw new MqttError('ERR_MESSAGE_RELEASED', 'the message was released; detach() keeps it')
  }

  // An array that holds nothing else can be handed out as it is.
  #take(): Bytes {
    const { bytes } = this.#piece
    // Half the price of a `subarray`.
    if (this.#borrowed) return new Uint8Array(this.#piece.buffer, this.#piece.offset + this.#payloadStart, this.#payloadEnd - this.#payloadStart)
    if (bytes.length === this.#payloadEnd - this.#payloadStart && !this.#piece.mixed) return bytes as Bytes
    const payload = bytes.slice(this.#payloadStart, this.#payloadEnd)
    if (this.#propertiesStart === this.#payloadStart) this.#piece = emptyPiece
    return payload
  }

  #decodeProperties(): MessageProperties {
    if (this.#propertiesStart === this.#payloadStart) return noProperties
    return decoded(this.#piece.bytes, this.#propertiesStart, this.#payloadStart)
  }

  #copy(from: DeliveredMessage): void {
    const start = from.#propertiesStart
    const piece = new Piece(from.#piece.bytes.slice(start, from.#payloadEnd))
    if (this.#borrowed) {
      // What somebody looks at is never read into again.
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
  declare readonly topic: string
  declare readonly qos: QoS
  declare readonly retain: boolean
  declare readonly dup: boolean

  /** @param shift how far places in the piece lie before those in the view */
  constructor(
    view: PublishView,
    topic: string,
    piece: Piece,
    shift: number,
    size: number,
    settler: Settler | undefined,
    ticket: number,
    { qos, retain, dup }: Head = view,
  ) {
    super(view, piece, shift, size, settler, ticket, false)
    this.topic = topic
    this.qos = qos
    this.retain = retain
    this.dup = dup
  }

  get subject(): string {
    return this.topic
  }
}

/** One that is valid until its turn is over. */
export class BorrowedMessage extends DeliveredMessage {
  static override readonly name = 'Message'
  #topic: string
  #qos: QoS
  #retain: boolean
  #dup: boolean

  /** @param shift how far places in the piece lie before those in the view */
  constructor(view: PublishView, topic: string, piece: Piece, shift: number, size: number, settler: Settler | undefined, ticket: number) {
    super(view, piece, shift, size, settler, ticket, true)
    this.#topic = topic
    this.#qos = view.qos
    this.#retain = view.retain
    this.#dup = view.dup
  }

  /** Shows another message, for handlers that are done with one before the next is read. Only for one that was released. */
  show(view: PublishView, topic: string, piece: Piece, shift: number, ticket: number): void {
    this.#topic = topic
    this.#qos = view.qos
    this.#retain = view.retain
    this.#dup = view.dup
    this.replace(view, piece, shift, ticket)
  }

  get subject(): string {
    return this.#topic
  }
  get topic(): string {
    this.assertValid()
    return this.#topic
  }
  get qos(): QoS {
    this.assertValid()
    return this.#qos
  }
  get retain(): boolean {
    this.assertValid()
    return this.#retain
  }
  get dup(): boolean {
    this.assertValid()
    return this.#dup
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

/** One message for several consumers: acknowledged when all have settled, as a success if any succeeded. */
export class SharedOutcome implements Settler {
  readonly #settler: Settler
  readonly #ticket: number
  #waiting: number
  #best = 0xff

  constructor(settler: Settler, ticket: number, consumers: number) {
    this.#settler = settler
    this.#ticket = ticket
    this.#waiting = consumers
  }

  /** One consumer leaves it to the others; false when it is the last, and nobody decided anything. */
  giveUp(): boolean {
    if (this.#waiting === 1 && this.#best === 0xff) return false
    this.settle(0, this.#best)
    return true
  }

  settle(_ticket: number, reasonCode: number): boolean {
    this.#waiting -= 1
    this.#best = Math.min(this.#best, reasonCode)
    if (this.#waiting === 0) return this.#settler.settle(this.#ticket, this.#best)
    this.#settler.handleTurnEnd?.()
    return true
  }
}
