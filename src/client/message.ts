/**
 * A message as the application gets it: its own memory, properties and text decoded when asked for, acknowledged at most once.
 *
 * `DeliveredMessage` is the one implementation; what is not in the `Message` interface is for the delivery code of this folder only.
 */
import { MqttError } from '../errors.js'
import type { Bytes, Properties, QoS, UserProperties } from '../wire/packets.js'

/** The properties of an incoming PUBLISH (section 3.3.2.3); absent ones are undefined. */
export interface MessageProperties {
  readonly payloadFormatIndicator?: number | undefined
  /** Seconds that are left, as the server said when it sent the message. */
  readonly messageExpiryInterval?: number | undefined
  readonly contentType?: string | undefined
  readonly responseTopic?: string | undefined
  readonly correlationData?: Bytes | undefined
  readonly subscriptionIdentifiers?: readonly number[] | undefined
  readonly userProperties?: Readonly<UserProperties> | undefined
}

/** An application message (section 3.3). */
export interface Message {
  readonly topic: string
  /** The bytes, in an ArrayBuffer of exactly their size. */
  readonly payload: Bytes
  readonly qos: QoS
  /** Set on retained messages that answer a subscription, and as published under Retain As Published (section 3.3.1.3). */
  readonly retain: boolean
  readonly dup: boolean
  /** True when the server had tried to deliver this message before (QoS 1 and 2). */
  readonly redelivered: boolean
  readonly properties: MessageProperties
  /** The payload as UTF-8. */
  text(): string
  /** The payload parsed as JSON; keys named `__proto__` are left out. @throws SyntaxError when it is no JSON */
  json<T = unknown>(): T
  /**
   * Acknowledges the message, in any mode and any order; acknowledgements leave in the order of arrival [MQTT-4.6.0-2].
   * `reasonCode` of 0x80 or above refuses it (section 3.4.2.1). True at QoS 0.
   * False when the message is stale: acknowledged before, or its session is gone.
   */
  ack(reasonCode?: number): boolean
  /** A message that stays valid: this one when it is owned, a copy when it was borrowed. */
  detach(): Message
}

/** Takes the outcome of a message: the session, or what several consumers share. */
export interface Settler {
  settle(ticket: number, reasonCode: number): boolean
  /** A consumer is done with its share, though others are not. */
  handleTurnEnd?(): void
}

/** What a message is made of. */
export interface MessageParts {
  readonly topic: string
  readonly payload: Bytes
  readonly qos: QoS
  readonly retain: boolean
  readonly dup: boolean
  readonly properties: () => Properties
  /** Bytes that holding it costs. */
  readonly size: number
}

/** Ticket of a message that needs no acknowledgement. */
export const noTicket = -1

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const noProperties: MessageProperties = Object.freeze({})

/** Reason codes that a client's PUBACK or PUBREC may carry (sections 3.4.2.1, 3.5.2.1); 0x10 is the server's. */
const ackReasons: readonly number[] = [0x00, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]

/** The implementation of {@link Message}. */
export class DeliveredMessage implements Message {
  /** True once its outcome is decided. */
  settled: boolean
  readonly #parts: MessageParts
  readonly #settler: Settler | undefined
  /** The session's number of this arrival, or `noTicket`. */
  readonly ticket: number
  /** What this message came in through, for those who route it. */
  origin: object | undefined
  readonly #borrowed: boolean
  #properties: MessageProperties | undefined
  #released = false

  constructor(parts: MessageParts, settler: Settler | undefined, ticket: number, borrowed = false) {
    this.#parts = parts
    this.#settler = settler
    this.ticket = ticket
    this.#borrowed = borrowed
    this.settled = ticket === noTicket
  }

  get topic(): string {
    return this.#valid().topic
  }
  get payload(): Bytes {
    return this.#valid().payload
  }
  get qos(): QoS {
    return this.#valid().qos
  }
  get retain(): boolean {
    return this.#valid().retain
  }
  get dup(): boolean {
    return this.#valid().dup
  }
  get redelivered(): boolean {
    const { dup, qos } = this.#valid()
    return dup && qos > 0
  }
  get properties(): MessageProperties {
    const parts = this.#valid()
    this.#properties ??= parts.properties() as MessageProperties
    return this.#properties ?? noProperties
  }

  /** Leaves the outcome to the other consumers of this message; false when there are none that would decide it. */
  giveUp(): boolean {
    if (!(this.#settler instanceof SharedOutcome) || !this.#settler.giveUp()) return false
    this.settled = true
    return true
  }

  /** Bytes that holding this message costs. */
  get size(): number {
    return this.#parts.size
  }

  text(): string {
    return decoder.decode(this.payload)
  }

  json<T = unknown>(): T {
    const text = this.text()
    try {
      return JSON.parse(text, text.includes('__proto__') || text.includes('\\u') ? withoutPrototype : undefined) as T
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new SyntaxError('nested too deep')
    }
  }

  ack(reasonCode = 0): boolean {
    if (!ackReasons.includes(reasonCode)) {
      throw new MqttError('ERR_INVALID_OPTION', 'reasonCode must be one that a client may send in PUBACK and PUBREC', { option: 'reasonCode' })
    }
    const done = this.ticket === noTicket || this.settle(reasonCode)
    this.release()
    return done
  }

  detach(): Message {
    const parts = this.#valid()
    if (!this.#borrowed) return this
    return new DeliveredMessage(parts, { settle: (_ticket, reasonCode) => this.settle(reasonCode) }, this.ticket)
  }

  /** The turn is over: a borrowed message cannot be read any more. */
  release(): void {
    this.#released = this.#borrowed
  }

  /** Decides the outcome; false when it was decided before or the session is gone. */
  settle(reasonCode: number): boolean {
    if (this.settled) return false
    this.settled = true
    return this.#settler?.settle(this.ticket, reasonCode) ?? false
  }

  #valid(): MessageParts {
    if (this.#released) throw new MqttError('ERR_MESSAGE_RELEASED', 'the message was released; detach() keeps it')
    return this.#parts
  }
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
