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
import { Ring } from './ring.js'
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

interface Item extends PublishCall {
  readonly done: Deferred<Receipt>
  readonly size: number
  /** The caller was told already: what follows only frees what is held. */
  settled: boolean
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
const qos0Done = Promise.resolve(qos0Receipt)

/** Outgoing messages of one client. */
export class Outbox {
  /** Bytes of publishes that are queued, or sent and not acknowledged. */
  bytes = 0
  readonly #context: OutboundContext
  readonly #immediate = new Ring<Item>()
  readonly #ordered = new Ring<Item>()
  readonly #inFlight = new Map<number, Item>()
  readonly #trial = new Writer()
  #room: Deferred<void> | undefined

  constructor(context: OutboundContext) {
    this.#context = context
  }

  /** Publishes that have not been sent. */
  get size(): number {
    return this.#immediate.length + this.#ordered.length
  }

  /** Fulfils when a publish would be sent or queued without waiting. */
  get writable(): Promise<void> {
    if (!this.#full(1, 0) && this.#context.connection?.writable !== false) return Promise.resolve()
    this.#room ??= deferred()
    return this.#room.promise
  }

  /** QoS 0 at once or not at all: true when the bytes were taken. @throws MqttError for what can never be sent */
  post(call: PublishCall): boolean {
    this.#check(call)
    const { connection } = this.#context
    if (connection?.writable !== true || this.#immediate.length > 0) {
      this.#tryEncode(call)
      return false
    }
    // The caller may write into its bytes again as soon as this returns.
    this.#encode(connection, { ...call, payload: call.payload.length < byReference ? call.payload : call.payload.slice() }, 0)
    return true
  }

  publish(call: PublishCall): Promise<Receipt> {
    const { signal } = call.options
    if (signal?.aborted === true) return Promise.reject(aborted(signal))
    this.#check(call)
    const { connection, session } = this.#context
    const direct = connection?.writable === true
    if (call.qos === 0 && direct && this.#immediate.length === 0 && call.payload.length < byReference) {
      this.#encode(connection, call, 0)
      return call.options.flush === true ? written(connection) : qos0Done
    }
    const item = this.#item(call)
    if (call.qos > 0 && direct && this.#ordered.length === 0 && session.outbound.mayPublish) this.#send(item, connection)
    else this.#enqueue(item)
    return item.done.promise
  }

  /** Sends what waits, as far as connection, quota and identifiers allow. */
  flush(): void {
    const { session } = this.#context
    for (let item = this.#immediate.peek(); item !== undefined && this.#open !== undefined; item = this.#immediate.peek()) {
      this.#immediate.shift()
      this.#send(item, this.#open)
    }
    for (
      let item = this.#ordered.peek();
      item !== undefined && this.#open !== undefined && session.outbound.mayPublish;
      item = this.#ordered.peek()
    ) {
      this.#ordered.shift()
      this.#send(item, this.#open)
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

  /** The connection is over: everything ends, each with what is known about it. */
  end(error: MqttError): void {
    for (const item of [...this.#immediate.drain(), ...this.#ordered.drain()]) this.#fail(item, withOutcome(error, 'not-sent'))
    for (const item of this.#inFlight.values()) this.#fail(item, withOutcome(error, 'unknown'))
    this.#inFlight.clear()
    this.#room?.resolve()
  }

  /** Gives up everything that has not been sent. */
  clear(): void {
    const gone = new MqttError('ERR_DROPPED', 'the queue of outgoing messages was cleared')
    for (const item of [...this.#immediate.drain(), ...this.#ordered.drain()]) this.#fail(item, gone)
  }

  /** Fulfils when nothing is queued and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#context
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED', 'there is no connection to flush to')
    await this.#immediate.last?.done.promise.catch(() => undefined)
    await written(connection)
  }

  get #open(): Connection | undefined {
    const { connection } = this.#context
    return connection?.writable === true ? connection : undefined
  }

  // What the server said it does not take is refused before a byte is sent.
  #check(call: PublishCall): void {
    const limits = this.#context.session.negotiated
    const objection = limits === undefined ? undefined : checkPublish(limits, call.qos, call.retain)
    if (objection !== undefined)
      throw new MqttError(objection, 'the server does not offer what this publish asks for', {
        option: objection === 'ERR_QOS_UNSUPPORTED' ? 'qos' : 'retain',
      })
  }

  #item(call: PublishCall): Item {
    const size = call.payload.length + call.topic.length + overhead
    this.bytes += size
    return { ...call, done: deferred(), size, settled: false, packetId: 0, cleanUp: undefined, cancelTimeout: undefined }
  }

  #enqueue(item: Item): void {
    try {
      this.#tryEncode(item)
    } catch (error) {
      return this.#fail(item, error)
    }
    const policy = this.#context.config.offline
    const offline = item.qos === 0 ? policy.qos0 : item.qos === 1 ? policy.qos1 : policy.qos2
    if (this.#context.connection === undefined && offline === 'reject') {
      return this.#fail(
        item,
        new MqttError('ERR_NOT_CONNECTED', 'there is no connection, and this QoS is not queued without one', { option: 'outbound.offline' }),
      )
    }
    if (!this.#makeRoom(item)) return
    item.cleanUp = onAbort(item.options.signal, () => this.#abort(item))
    ;(item.qos === 0 ? this.#immediate : this.#ordered).push(item)
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: Item): boolean {
    const { overflow } = this.#context.config
    const share = overflow === 'wait' ? 2 : 1
    while (this.#full(share, 1)) {
      const oldest = overflow === 'drop-oldest' ? (this.#immediate.shift() ?? this.#ordered.shift()) : undefined
      if (oldest === undefined) {
        const code = overflow === 'drop-newest' || overflow === 'drop-oldest' ? 'ERR_DROPPED' : 'ERR_QUEUE_FULL'
        this.#fail(item, new MqttError(code, 'the queue of outgoing messages is full', { option: 'outbound' }))
        return false
      }
      this.#fail(oldest, new MqttError('ERR_DROPPED', 'a newer message took the place of this one in the full queue', { option: 'outbound' }))
    }
    return true
  }

  #full(share: number, extra: number): boolean {
    const { maxQueuedMessages, maxQueuedBytes } = this.#context.config
    return this.size + extra > maxQueuedMessages * share || this.bytes > maxQueuedBytes * share
  }

  #send(item: Item, connection: Connection): void {
    const { outbound } = this.#context.session
    try {
      this.#check(item)
      const packetId = item.qos > 0 ? outbound.publish(item.qos) : 0
      item.packetId = packetId
      this.#encode(connection, item, packetId)
    } catch (error) {
      if (item.packetId > 0) outbound.withdraw(item.packetId)
      return this.#fail(item, error)
    }
    if (item.qos > 0) return this.#follow(item)
    if (item.payload.length < byReference && item.options.flush !== true) return this.#succeed(item, qos0Receipt)
    // Large payloads are sent as they lie: the caller gets them back when they are written.
    connection.onWritten((error) => (error === undefined ? this.#succeed(item, qos0Receipt) : this.#fail(item, withOutcome(error, 'unknown'))))
  }

  #follow(item: Item): void {
    this.#inFlight.set(item.packetId, item)
    item.cleanUp ??= onAbort(item.options.signal, () => this.#abort(item))
    const timeout = item.options.ackTimeout ?? this.#context.config.ackTimeout
    if (timeout === undefined) return
    item.cancelTimeout = this.#context.platform.setTimer(() => {
      this.#tell(item, new MqttError('ERR_TIMEOUT', 'the server did not acknowledge the message in time', { outcome: 'unknown' }))
    }, timeout)
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
    const { signal } = item.options
    if (item.packetId > 0) return this.#tell(item, aborted(signal, 'unknown'))
    const queue = item.qos === 0 ? this.#immediate : this.#ordered
    if (queue.take((other) => other === item) !== undefined) this.#fail(item, aborted(signal))
  }

  #succeed(item: Item, receipt: Receipt): void {
    this.#release(item)
    if (!item.settled) item.done.resolve(receipt)
    item.settled = true
  }

  // A failure that nobody awaits shows as an event.
  #fail(item: Item, error: unknown): void {
    this.#release(item)
    this.#tell(item, error)
  }

  #tell(item: Item, error: unknown): void {
    if (item.settled) return
    item.settled = true
    item.done.reject(error)
    if (MqttError.is(error) && error.code !== 'ERR_ABORTED') this.#context.handleDropped(item.topic, error)
  }

  #release(item: Item): void {
    this.bytes -= item.size
    item.cleanUp?.()
    item.cancelTimeout?.()
    this.#tellRoom()
  }

  #tellRoom(): void {
    if (this.#room === undefined || this.#full(1, 0) || this.#context.connection?.writable === false) return
    this.#room.resolve()
    this.#room = undefined
  }
}

function written(connection: Connection): Promise<Receipt> {
  const done = deferred<Receipt>()
  connection.onWritten((error) => (error === undefined ? done.resolve(qos0Receipt) : done.reject(withOutcome(error, 'unknown'))))
  return done.promise
}
