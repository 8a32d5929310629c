/**
 * Publishes on their way out: checked, queued within limits, sent as quota and transport allow, and settled by their acknowledgement.
 *
 * QoS 1 and 2 leave in the order of the calls; QoS 0 may overtake those that wait for quota. Every promise settles, with what is known about
 * the message's fate. It must never keep more than its limits.
 */
import { MqttError } from '../errors.js'
import { PUBACK } from '../wire/constants.js'
import { type PublishInput, writePublishHead } from '../wire/encode-client.js'
import type { Properties, QoS } from '../wire/packets.js'
import { reasonName } from '../wire/reason-codes.js'
import { Writer } from '../wire/writer.js'
import { aborted, type Deferred, deferred, onAbort } from './abort.js'
import type { PublishOptions, Receipt } from './api.js'
import type { Connection, FinalAck } from './connection.js'
import { asInvalidOption, type OutboundConfig } from './options.js'
import { withOutcome } from './outcome.js'
import type { CancelTimer, Platform } from './platform.js'
import { type Linked, Queue } from './queue.js'
import { checkPublish } from './session/limits.js'
import type { Session } from './session/session.js'

/** A publish that was checked. */
export interface PublishCall {
  readonly topic: string
  readonly payload: Uint8Array
  readonly qos: QoS
  readonly retain: boolean
  readonly properties: Properties | undefined
  readonly options: PublishOptions
}

interface Item extends Linked<Item> {
  readonly call: PublishCall
  readonly done: Deferred<Receipt>
  readonly size: number
  readonly since: number
  /** The caller was told already: what follows only frees what is held. */
  settled: boolean
  sent: boolean
  packetId: number
  cleanUp: (() => void) | undefined
  cancelTimeout: CancelTimer | undefined
}

/** What it needs of the client. */
export interface OutboundContext {
  readonly platform: Platform
  readonly session: Session
  readonly config: OutboundConfig
  /** Undefined while there is no connection that takes packets. */
  readonly connection: Connection | undefined
  handleDropped(topic: string, error: MqttError): void
}

/** Payloads from this size on are not copied: they belong to the transport until they are written. */
const byReference = 32 * 1024
/** Per message, on top of payload and topic. */
const overhead = 64

const qos0Receipt: Receipt = Object.freeze({
  reasonCode: 0,
  reasonName: 'Success',
  reasonString: undefined,
  userProperties: Object.freeze([]) as never,
  packetId: undefined,
})
const qos0Done = /* @__PURE__ */ Promise.resolve(qos0Receipt)

/** Outgoing messages of one client. */
export class Outbox {
  /** Bytes of publishes that are queued, and of those that are sent and not settled. */
  #queuedBytes = 0
  #sentBytes = 0
  readonly #context: OutboundContext
  readonly #immediate = new Queue<Item>()
  readonly #ordered = new Queue<Item>()
  readonly #inFlight = new Map<number, Item>()
  readonly #trial = new Writer()
  #room: Deferred<void> | undefined
  #ended: MqttError | undefined

  constructor(context: OutboundContext) {
    this.#context = context
  }

  /** Publishes that have not been sent. */
  get size(): number {
    return this.#immediate.length + this.#ordered.length
  }

  /** Fulfils when a publish would be sent or queued without waiting. */
  get writable(): Promise<void> {
    if (this.#hasRoom) return Promise.resolve()
    this.#room ??= deferred()
    return this.#room.promise
  }

  /** QoS 0 at once or not at all: true when the bytes were taken. @throws MqttError for what can never be sent */
  post(call: PublishCall): boolean {
    this.#check(call)
    const connection = this.#open
    if (connection === undefined || this.#immediate.length > 0) {
      this.#tryEncode(call)
      return false
    }
    // The caller may write into its bytes again as soon as this returns.
    this.#encode(connection, { ...call, payload: call.payload.length < byReference ? call.payload : call.payload.slice() }, 0)
    return true
  }

  /** @throws MqttError for what can never be sent */
  publish(call: PublishCall): Promise<Receipt> {
    const { signal, flush } = call.options
    if (signal?.aborted === true) throw aborted(signal)
    this.#check(call)
    const connection = this.#open
    const { qos, payload } = call
    if (qos === 0 && connection !== undefined && this.#immediate.length === 0 && payload.length < byReference && flush !== true) {
      this.#encode(connection, call, 0)
      return qos0Done
    }
    const item = this.#item(call)
    if (connection !== undefined && this.#queueOf(item).length === 0 && this.#maySend(item)) this.#send(item, connection)
    else this.#enqueue(item)
    return item.done.promise
  }

  /** A publish that was refused before it began: rejects, and shows as an event. */
  refuse(topic: string, error: unknown): Promise<never> {
    this.#report(topic, error)
    const { promise, reject } = deferred<never>()
    reject(error)
    return promise
  }

  /** Sends what waits, as far as connection, quota and identifiers allow. */
  flush(): void {
    for (const queue of [this.#immediate, this.#ordered]) {
      for (let item = queue.first; item !== undefined && this.#open !== undefined && this.#maySend(item); item = queue.first) {
        this.#dequeue(item)
        this.#send(item, this.#open)
      }
    }
    this.#tellRoom()
  }

  /** The last acknowledgement of a publish came in. */
  handleAcknowledged(packet: FinalAck): void {
    const item = this.#inFlight.get(packet.packetId)
    if (item === undefined) return
    this.#inFlight.delete(packet.packetId)
    const name = reasonName(packet.reasonCode, PUBACK) ?? reasonName(packet.reasonCode) ?? 'unknown'
    const { reasonCode, packetId, properties } = packet
    if (reasonCode >= 0x80 && packet.type !== 'pubcomp') {
      const details = { outcome: 'refused', fault: 'remote', reasonCode, reasonName: name, reasonString: properties.reasonString } as const
      this.#fail(item, new MqttError('ERR_PUBLISH_REFUSED', `the server refused the message: ${name}`, details))
    } else {
      const { reasonString, userProperties = [] } = properties
      this.#succeed(item, Object.freeze({ reasonCode, reasonName: name, reasonString, userProperties: Object.freeze(userProperties), packetId }))
    }
  }

  /** Gives up everything that has not been sent. */
  clear(): void {
    this.#giveUp(new MqttError('ERR_DROPPED', 'the queue of outgoing messages was cleared'))
  }

  /** The connection is over: everything ends, each with what is known about it. */
  end(error: MqttError): void {
    this.#ended = withOutcome(error, 'not-sent')
    this.#giveUp(withOutcome(error, 'not-sent'))
    for (const item of this.#inFlight.values()) this.#fail(item, withOutcome(error, 'unknown'))
    this.#inFlight.clear()
    this.#room?.resolve()
  }

  /** Fulfils when nothing is queued at QoS 0 and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#context
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED', 'there is no connection to flush to')
    await this.#immediate.last?.done.promise.catch(() => undefined)
    const done = deferred<void>()
    connection.onWritten((error) => (error === undefined ? done.resolve() : done.reject(withOutcome(error, 'unknown'))))
    await done.promise
  }

  get #open(): Connection | undefined {
    const { connection } = this.#context
    return connection?.writable === true ? connection : undefined
  }

  get #hasRoom(): boolean {
    return !this.#full(1, 1, 0) && this.#context.connection?.writable !== false
  }

  #queueOf(item: Item): Queue<Item> {
    return item.call.qos === 0 ? this.#immediate : this.#ordered
  }

  // Quota and identifiers, and the share of the limit that sent messages take. One message may always go.
  #maySend(item: Item): boolean {
    const fits = this.#sentBytes === 0 || this.#sentBytes + item.size <= this.#context.config.maxQueuedBytes
    return fits && (item.call.qos === 0 || this.#context.session.outbound.mayPublish)
  }

  // What the server said it does not take is refused before a byte is sent.
  #check(call: PublishCall): void {
    const limits = this.#context.session.negotiated
    const objection = limits === undefined ? undefined : checkPublish(limits, call.qos, call.retain)
    if (objection === undefined) return
    const option = objection === 'ERR_QOS_UNSUPPORTED' ? 'qos' : 'retain'
    throw new MqttError(objection, 'the server does not offer what this publish asks for', { option })
  }

  #item(call: PublishCall): Item {
    return {
      call,
      done: deferred(),
      size: call.payload.length + call.topic.length + overhead,
      since: this.#context.platform.now(),
      settled: false,
      sent: false,
      packetId: 0,
      cleanUp: undefined,
      cancelTimeout: undefined,
      previous: undefined,
      following: undefined,
    }
  }

  #enqueue(item: Item): void {
    const { qos, options } = item.call
    try {
      this.#tryEncode(item.call)
    } catch (error) {
      return this.#tell(item, error)
    }
    const { qos0, qos1, qos2 } = this.#context.config.offline
    if (this.#context.connection === undefined && [qos0, qos1, qos2][qos] === 'reject') {
      return this.#tell(
        item,
        new MqttError('ERR_NOT_CONNECTED', 'there is no connection, and this QoS is not queued without one', { option: 'outbound.offline' }),
      )
    }
    if (!this.#makeRoom(item)) return
    // A listener of `drop` may have ended the client.
    if (this.#ended !== undefined) return this.#tell(item, this.#ended)
    this.#queueOf(item).push(item)
    this.#queuedBytes += item.size
    item.cleanUp = onAbort(options.signal, () => this.#abort(item))
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: Item): boolean {
    const { overflow, maxQueuedBytes } = this.#context.config
    const share = overflow === 'wait' ? 2 : 1
    const drops = overflow === 'drop-oldest' && this.#sentBytes + item.size <= maxQueuedBytes
    while (this.#full(share, 1, item.size)) {
      const oldest = drops ? (this.#immediate.first ?? this.#ordered.first) : undefined
      if (oldest === undefined) {
        const code = overflow === 'drop-newest' || overflow === 'drop-oldest' ? 'ERR_DROPPED' : 'ERR_QUEUE_FULL'
        this.#tell(item, new MqttError(code, 'the queue of outgoing messages is full', { option: 'outbound' }))
        return false
      }
      this.#dequeue(oldest)
      this.#fail(oldest, new MqttError('ERR_DROPPED', 'a newer message took the place of this one in the full queue', { option: 'outbound' }))
    }
    return true
  }

  #full(share: number, extra: number, bytes: number): boolean {
    const { maxQueuedMessages, maxQueuedBytes } = this.#context.config
    return this.size + extra > maxQueuedMessages * share || this.#queuedBytes + this.#sentBytes + bytes > maxQueuedBytes * share
  }

  #dequeue(item: Item): void {
    this.#queueOf(item).remove(item)
    this.#queuedBytes -= item.size
  }

  // All at once: a listener of `drop` may publish again meanwhile.
  #giveUp(error: MqttError): void {
    const items: Item[] = []
    for (const queue of [this.#immediate, this.#ordered]) for (let item = queue.first; item !== undefined; item = item.following) items.push(item)
    for (const item of items) this.#dequeue(item)
    for (const item of items) this.#fail(item, error)
  }

  #send(item: Item, connection: Connection): void {
    const { outbound } = this.#context.session
    try {
      this.#check(item.call)
      const call = this.#aged(item)
      item.packetId = call.qos > 0 ? outbound.publish(call.qos) : 0
      // On file before it is written: a listener of `packet` may end the client.
      if (item.packetId > 0) this.#inFlight.set(item.packetId, item)
      item.sent = true
      this.#sentBytes += item.size
      this.#encode(connection, call, item.packetId)
    } catch (error) {
      if (this.#inFlight.delete(item.packetId)) outbound.withdraw(item.packetId)
      return this.#fail(item, error)
    }
    if (item.settled) return
    this.#follow(item, connection)
  }

  #follow(item: Item, connection: Connection): void {
    const { qos, payload, options } = item.call
    if (qos === 0 && payload.length < byReference && options.flush !== true) return this.#succeed(item, qos0Receipt)
    item.cleanUp ??= onAbort(options.signal, () => this.#abort(item))
    if (qos > 0) return this.#limit(item)
    // Large payloads are sent as they lie: the caller gets them back when they are written.
    connection.onWritten((error) => (error === undefined ? this.#succeed(item, qos0Receipt) : this.#fail(item, withOutcome(error, 'unknown'))))
  }

  #limit(item: Item): void {
    const timeout = item.call.options.ackTimeout || this.#context.config.ackTimeout
    if (!timeout) return
    const late = (): void =>
      this.#tell(item, new MqttError('ERR_TIMEOUT', 'the server did not acknowledge the message in time', { outcome: 'unknown' }))
    item.cancelTimeout = this.#context.platform.setTimer(late, timeout)
  }

  // The interval goes down by the whole seconds that the message waited here [MQTT-3.3.2-6].
  #aged({ call, since }: Item): PublishCall {
    const interval = call.properties?.messageExpiryInterval
    const waited = interval === undefined ? 0 : Math.floor((this.#context.platform.now() - since) / 1000)
    if (interval === undefined || waited === 0) return call
    if (waited >= interval)
      throw new MqttError('ERR_EXPIRED', 'the message expired while it waited to be sent', { option: 'properties.messageExpiryInterval' })
    return { ...call, properties: { ...call.properties, messageExpiryInterval: interval - waited } }
  }

  #encode(connection: Connection, call: PublishCall, packetId: number): void {
    const { topic, payload, qos, retain, properties } = call
    try {
      connection.publish({ topic, payload, qos, retain, dup: false, packetId: packetId === 0 ? undefined : packetId, properties })
    } catch (error) {
      throw asInvalidOption(error)
    }
  }

  // What has to wait is tried on a scratch buffer: a call that can never be sent fails now.
  #tryEncode({ topic, payload, qos, retain, properties }: PublishCall): void {
    const input: PublishInput = { topic, qos, retain, packetId: qos === 0 ? undefined : 1, properties }
    this.#trial.reset()
    try {
      writePublishHead(this.#trial, input, payload.length, 5)
    } catch (error) {
      throw asInvalidOption(error)
    }
    const limit = this.#context.session.negotiated?.maximumPacketSize ?? Number.POSITIVE_INFINITY
    if (this.#trial.length + payload.length > limit) throw new MqttError('ERR_PACKET_TOO_LARGE', 'the packet is larger than the server takes')
  }

  #abort(item: Item): void {
    const { signal } = item.call.options
    if (item.sent) return this.#tell(item, aborted(signal, 'unknown'))
    this.#dequeue(item)
    this.#fail(item, aborted(signal))
  }

  #succeed(item: Item, receipt: Receipt): void {
    this.#release(item)
    if (!item.settled) item.done.resolve(receipt)
    item.settled = true
  }

  #fail(item: Item, error: unknown): void {
    this.#release(item)
    this.#tell(item, error)
  }

  #tell(item: Item, error: unknown): void {
    if (item.settled) return
    item.settled = true
    item.done.reject(error)
    this.#report(item.call.topic, error)
  }

  // A failure that nobody awaits shows as an event.
  #report(topic: string, error: unknown): void {
    if (MqttError.is(error) && error.code !== 'ERR_ABORTED') this.#context.handleDropped(topic, error)
  }

  #release(item: Item): void {
    if (item.sent) this.#sentBytes -= item.size
    item.sent = false
    item.cleanUp?.()
    item.cancelTimeout?.()
    this.#tellRoom()
  }

  #tellRoom(): void {
    if (this.#room === undefined || !this.#hasRoom) return
    this.#room.resolve()
    this.#room = undefined
  }
}
