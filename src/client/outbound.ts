/**
 * Publishes on their way out: checked, queued within limits, sent as quota and transport allow, and settled by their acknowledgement.
 *
 * QoS 1 and 2 leave in the order of the calls; QoS 0 may overtake those that wait for quota. Every promise settles, with what is known about
 * the message's fate. It must never keep more than its limits.
 */
import { MqttError } from '../errors.js'
import { writePublishHead } from '../wire/encode-client.js'
import type { Properties } from '../wire/packets.js'
import { Writer } from '../wire/writer.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, rejected } from './abort.js'
import type { Receipt } from './api.js'
import { byReference, type Connection, type FinalAck } from './connection.js'
import type { Host } from './host.js'
import { asInvalidOption } from './options.js'
import { withOutcome } from './outcome.js'
import { type Linked, Queue } from './queue.js'
import type { CheckedPublish } from './requests.js'
import { checkPublish } from './session/limits.js'
import { nameOf, refusal } from './session/refusal.js'

/** A publish that was checked. */
export interface PublishCall {
  readonly topic: string
  readonly payload: Uint8Array
  readonly options: CheckedPublish
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
  /** Let go of the signal and of the timer. */
  stop: (() => void) | undefined
  cancel: (() => void) | undefined
}

/** Per message, on top of payload and topic. */
const overhead = 64

/** Outgoing messages of one client. */
export class Outbox {
  /** Bytes of publishes that are queued, and of those that are sent and not settled. */
  #queuedBytes = 0
  #sentBytes = 0
  readonly #host: Host
  readonly #immediate = new Queue<Item>()
  readonly #ordered = new Queue<Item>()
  readonly #inFlight = new Map<number, Item>()
  readonly #trial = new Writer()
  readonly #qos0Receipt = receipt(0, undefined)
  readonly #qos0Done = Promise.resolve(this.#qos0Receipt)
  #room: Deferred<void> | undefined
  #ended: MqttError | undefined

  constructor(host: Host) {
    this.#host = host
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
    const connection = this.#immediate.length > 0 ? undefined : this.#open
    // The caller may write into its bytes again as soon as this returns.
    const { payload } = call
    this.#encode(connection !== undefined && payload.length >= byReference ? { ...call, payload: payload.slice() } : call, 0, connection)
    return connection !== undefined
  }

  /** @throws MqttError for what can never be sent */
  publish(call: PublishCall): Promise<Receipt> {
    const { signal, flush, qos } = call.options
    assertNotAborted(signal)
    this.#check(call)
    const connection = this.#open
    if (qos === 0 && connection !== undefined && this.#immediate.length === 0 && call.payload.length < byReference && flush !== true) {
      this.#encode(call, 0, connection)
      return this.#qos0Done
    }
    const item = this.#item(call)
    if (connection !== undefined && this.#queueOf(item).length === 0 && this.#maySend(item)) this.#send(item, connection)
    else this.#enqueue(item)
    return item.done.promise
  }

  /** A publish that was refused before it began: rejects, and shows as an event. */
  refuse(topic: string, error: unknown): Promise<never> {
    this.#report(topic, error)
    return rejected(error)
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
    const { packetId, reasonCode, properties } = packet
    const item = this.#inFlight.get(packetId)
    if (item === undefined) return
    this.#inFlight.delete(packetId)
    if (reasonCode < 0x80 || packet.type === 'pubcomp') this.#succeed(item, receipt(reasonCode, packetId, properties))
    else this.#fail(item, refusal('ERR_PUBLISH_REFUSED', reasonCode, properties.reasonString))
  }

  /** Gives up everything that has not been sent. */
  clear(): void {
    this.#giveUp(new MqttError('ERR_DROPPED'))
  }

  /** The connection is over: everything ends, each with what is known about it. */
  end(error: MqttError): void {
    this.#ended = withOutcome(error, 'not-sent')
    this.#giveUp(this.#ended)
    for (const item of this.#inFlight.values()) this.#fail(item, withOutcome(error, 'unknown'))
    this.#inFlight.clear()
    this.#room?.resolve()
  }

  /** Fulfils when nothing is queued at QoS 0 and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#host
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    await this.#immediate.last?.done.promise.catch(() => undefined)
    const done = deferred<void>()
    connection.onWritten((error) => (error === undefined ? done.resolve() : done.reject(withOutcome(error, 'unknown'))))
    await done.promise
  }

  get #open(): Connection | undefined {
    const { connection } = this.#host
    return connection?.writable === true ? connection : undefined
  }

  get #hasRoom(): boolean {
    return !this.#full(1, 1, 0) && this.#host.connection?.writable !== false
  }

  #queueOf(item: Item): Queue<Item> {
    return item.call.options.qos === 0 ? this.#immediate : this.#ordered
  }

  // Quota and identifiers, and the share of the limit that sent messages take. One message may always go.
  #maySend({ size, call }: Item): boolean {
    const { options, session } = this.#host
    const fits = this.#sentBytes === 0 || this.#sentBytes + size <= options.outbound.maxQueuedBytes
    return fits && (call.options.qos === 0 || session.outbound.mayPublish)
  }

  // What the server said it does not take is refused before a byte is sent.
  #check({ options }: PublishCall): void {
    const limits = this.#host.session.negotiated
    const objection = limits && checkPublish(limits, options.qos, options.retain)
    if (objection !== undefined) throw new MqttError(objection, undefined, { option: objection === 'ERR_QOS_UNSUPPORTED' ? 'qos' : 'retain' })
  }

  #item(call: PublishCall): Item {
    return {
      call,
      done: deferred(),
      size: call.payload.length + call.topic.length + overhead,
      since: this.#host.platform.now(),
      settled: false,
      sent: false,
      packetId: 0,
      stop: undefined,
      cancel: undefined,
      previous: undefined,
      following: undefined,
    }
  }

  #enqueue(item: Item): void {
    const { qos, signal } = item.call.options
    try {
      // What has to wait is tried: a call that can never be sent fails now.
      this.#encode(item.call, qos)
      if (this.#host.connection === undefined && this.#host.options.outbound.offline[`qos${qos}`] === 'reject')
        throw new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline' })
      this.#makeRoom(item)
      // A listener of `drop` may have ended the client.
      if (this.#ended !== undefined) throw this.#ended
    } catch (error) {
      return this.#tell(item, error)
    }
    this.#queueOf(item).push(item)
    this.#queuedBytes += item.size
    item.stop = onAbort(signal, () => this.#abort(item))
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: Item): void {
    const { overflow, maxQueuedBytes } = this.#host.options.outbound
    const drops = overflow === 'drop-oldest' && this.#sentBytes + item.size <= maxQueuedBytes
    while (this.#full(overflow === 'wait' ? 2 : 1, 1, item.size)) {
      const oldest = drops ? (this.#immediate.first ?? this.#ordered.first) : undefined
      const error = new MqttError(overflow.startsWith('drop') ? 'ERR_DROPPED' : 'ERR_QUEUE_FULL', undefined, { option: 'outbound' })
      if (oldest === undefined) throw error
      this.#dequeue(oldest)
      this.#fail(oldest, error)
    }
  }

  #full(share: number, extra: number, bytes: number): boolean {
    const { maxQueuedMessages, maxQueuedBytes } = this.#host.options.outbound
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
    const { outbound } = this.#host.session
    const { qos } = item.call.options
    try {
      this.#check(item.call)
      const call = this.#aged(item)
      item.packetId = qos > 0 ? outbound.publish(qos) : 0
      // On file before it is written: a listener of `packet` may end the client.
      if (item.packetId > 0) this.#inFlight.set(item.packetId, item)
      item.sent = true
      this.#sentBytes += item.size
      this.#encode(call, item.packetId, connection)
    } catch (error) {
      if (this.#inFlight.delete(item.packetId)) outbound.withdraw(item.packetId)
      return this.#fail(item, error)
    }
    if (!item.settled) this.#follow(item, connection)
  }

  #follow(item: Item, connection: Connection): void {
    const { payload, options } = item.call
    if (options.qos === 0 && payload.length < byReference && options.flush !== true) return this.#succeed(item, this.#qos0Receipt)
    item.stop ??= onAbort(options.signal, () => this.#abort(item))
    if (options.qos > 0) return this.#limit(item)
    // Large payloads are sent as they lie: the caller gets them back when they are written.
    connection.onWritten((error) => (error === undefined ? this.#succeed(item, this.#qos0Receipt) : this.#fail(item, withOutcome(error, 'unknown'))))
  }

  #limit(item: Item): void {
    const { options, platform } = this.#host
    const timeout = item.call.options.ackTimeout || options.outbound.ackTimeout
    if (timeout) item.cancel = platform.setTimer(() => this.#tell(item, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' })), timeout)
  }

  // The interval goes down by the whole seconds that the message waited here [MQTT-3.3.2-6].
  #aged({ call, since }: Item): PublishCall {
    const { properties } = call.options
    const interval = properties?.messageExpiryInterval
    const waited = interval === undefined ? 0 : Math.floor((this.#host.platform.now() - since) / 1000)
    if (interval === undefined || waited === 0) return call
    if (waited >= interval) throw new MqttError('ERR_EXPIRED', undefined, { option: 'properties.messageExpiryInterval' })
    return { ...call, options: { ...call.options, properties: { ...properties, messageExpiryInterval: interval - waited } } }
  }

  // Without a connection it is a trial, on a scratch buffer.
  #encode({ topic, payload, options }: PublishCall, packetId: number, connection?: Connection): void {
    const { qos, retain, properties } = options
    const input = { topic, payload, qos, retain, dup: false, packetId: packetId || undefined, properties }
    try {
      if (connection !== undefined) return connection.publish(input)
      this.#trial.reset()
      writePublishHead(this.#trial, input, payload.length, 5)
    } catch (error) {
      throw asInvalidOption(error)
    }
    const limit = this.#host.session.negotiated?.maximumPacketSize ?? Number.POSITIVE_INFINITY
    if (this.#trial.length + payload.length > limit) throw new MqttError('ERR_PACKET_TOO_LARGE')
  }

  #abort(item: Item): void {
    const { signal } = item.call.options
    if (item.sent) return this.#tell(item, aborted(signal, 'unknown'))
    this.#dequeue(item)
    this.#fail(item, aborted(signal))
  }

  #succeed(item: Item, done: Receipt): void {
    this.#release(item)
    item.settled = true
    item.done.resolve(done)
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
    if (MqttError.is(error) && error.code !== 'ERR_ABORTED') this.#host.events.emit('drop', { direction: 'out', topic, count: 1, error })
  }

  #release(item: Item): void {
    if (item.sent) this.#sentBytes -= item.size
    item.sent = false
    item.stop?.()
    item.cancel?.()
    this.#tellRoom()
  }

  #tellRoom(): void {
    if (this.#room === undefined || !this.#hasRoom) return
    this.#room.resolve()
    this.#room = undefined
  }
}

function receipt(reasonCode: number, packetId: number | undefined, { reasonString, userProperties = [] }: Properties = {}): Receipt {
  return Object.freeze({ reasonCode, reasonName: nameOf(reasonCode), reasonString, userProperties: Object.freeze(userProperties), packetId })
}
