/**
 * Publishes on their way out: checked, queued within limits, sent as quota and transport allow, and settled by their acknowledgement.
 *
 * QoS 1 and 2 leave in the order of the calls; QoS 0 may overtake those that wait for quota. What was sent at QoS 1 and 2 is kept until its last
 * acknowledgement and sent again on the next connection, before anything new [MQTT-4.4.0-1]. Every promise settles, with what is known about the
 * message's fate. It must never keep more than its limits.
 */
import { MqttError } from '../errors.js'
import { DISCONNECT } from '../wire/constants.js'
import { writePublishHead } from '../wire/encode-client.js'
import type { Packet } from '../wire/packets.js'
import { Writer } from '../wire/writer.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, rejected } from './abort.js'
import { AckWatch } from './ack-watch.js'
import type { Receipt } from './api.js'
import { Backlog } from './backlog.js'
import { byReference, type Connection } from './connection.js'
import type { Encoded, FinalAck } from './control.js'
import { hasSettings } from './endpoint.js'
import type { Host } from './host.js'
import { asInvalidOption } from './options.js'
import { withOutcome } from './outcome.js'
import { aged, blamed, describe, type Item, isComplaint, itemOf, type Losses, type PublishCall, receipt, sessionLost } from './publish-item.js'
import { Ring } from './ring.js'
import { longestDelay } from './schema.js'
import { checkPublish } from './session/limits.js'
import { refusal } from './session/refusal.js'

/** Packet Identifier in use. */
const identifierInUse = 0x91
/** Times that a publish is tried under another identifier. */
const mostRetries = 16

/** Outgoing messages of one client. */
export class Outbox {
  /** Bytes of publishes that are sent and not settled. */
  #sentBytes = 0
  #sends = 0
  readonly #host: Host
  readonly #backlog = new Backlog()
  /** Sent, in that order; and of those the ones that have PUBREC, in the order of that. */
  readonly #inFlight = new Map<number, Item>()
  readonly #released = new Map<number, Item>()
  /** To be sent again on this connection. */
  readonly #replays = new Ring<Item>()
  readonly #trial = new Writer()
  readonly #qos0Receipt = receipt(0, undefined)
  readonly #qos0Done = Promise.resolve(this.#qos0Receipt)
  #room: Deferred<void> | undefined
  #idle: Deferred<void> | undefined
  #complaint: MqttError | undefined
  #ended: MqttError | undefined
  readonly #progress: AckWatch

  constructor(host: Host) {
    this.#host = host
    this.#progress = new AckWatch(host, () => this.inFlight)
  }

  /** Publishes that have not been sent. */
  get size(): number {
    return this.#backlog.size
  }

  /** Publishes that were sent and lack their last acknowledgement. */
  get inFlight(): number {
    return this.#inFlight.size + this.#released.size
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
    const connection = this.#backlog.immediate.length > 0 ? undefined : this.#open
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
    if (qos === 0 && connection !== undefined && this.#backlog.immediate.length === 0 && call.payload.length < byReference && flush !== true) {
      this.#encode(call, 0, connection)
      return this.#qos0Done
    }
    const item = itemOf(call, this.#host.platform.now())
    if (connection !== undefined && this.#backlog.queueOf(item).length === 0 && this.#maySend(item, connection)) this.#send(item, connection)
    else this.#enqueue(item)
    return item.done.promise
  }

  /** A publish that was refused before it began. */
  refuse(topic: string, error: unknown): Promise<never> {
    this.#report(topic, error)
    return rejected(error)
  }

  /** Sends what waits, as far as connection, quota and identifiers allow: first what goes on from an earlier connection. */
  flush(): void {
    const { session } = this.#host
    for (let connection = this.#open; connection !== undefined && this.#replays.length > 0 && session.outbound.mayReplay; connection = this.#open) {
      this.#resend(this.#replays.shift() as Item, connection)
    }
    for (const queue of [this.#backlog.immediate, this.#backlog.ordered]) {
      for (let connection = this.#open; connection !== undefined; connection = this.#open) {
        const item = queue.first
        if (item === undefined || !this.#maySend(item, connection)) break
        this.#backlog.remove(item)
        this.#send(item, connection)
      }
    }
    this.#tellRoom()
  }

  /** PUBREC came in: the message is the server's now. */
  handleReleased({ packetId, reasonCode }: FinalAck): void {
    const item = this.#inFlight.get(packetId)
    if (item === undefined) return
    this.#progress.handleProgress()
    this.#inFlight.delete(packetId)
    this.#released.set(packetId, item)
    item.received = reasonCode
    if (!this.#republishes(item)) item.encoded = undefined
  }

  /** The last acknowledgement of a publish came in. */
  handleAcknowledged(packet: FinalAck): void {
    const { packetId, reasonCode, properties } = packet
    const item = this.#inFlight.get(packetId) ?? this.#released.get(packetId)
    if (item === undefined) return
    this.#forget(item)
    this.#progress.handleProgress()
    const { counters, session } = this.#host
    const retries = reasonCode === identifierInUse && packet.type === 'puback' && !item.settled && item.retries++ < mostRetries
    if (retries && session.outbound.disown(packetId)) return this.#requeue(item)
    if (counters !== undefined) counters.publishesAcked += 1
    if (reasonCode < 0x80 || packet.type === 'pubcomp') return this.#succeed(item, receipt(reasonCode || item.received, packetId, properties))
    if (counters !== undefined) counters.refusals += 1
    this.#fail(item, refusal('ERR_PUBLISH_REFUSED', reasonCode, properties.reasonString))
  }

  /** The server says goodbye, and why: what it complains of is not sent for ever. */
  handleBlame(error: MqttError): void {
    if (isComplaint(error.reasonCode ?? 0)) this.#complaint = error
  }

  /** A connection is up: PUBREL goes on at once, messages follow with DUP as the quota allows. */
  handleConnected(): void {
    const { outbound } = this.#host.session
    for (const item of this.#released.values()) outbound.replayRelease(item.packetId)
    for (const item of this.#inFlight.values()) this.#replays.push(item)
    if (this.inFlight > 0) this.#progress.handleSent()
  }

  /** The connection is over: what the policy does not keep for the next one is given up. */
  handleLost(error: MqttError): void {
    this.#progress.stop()
    this.#replays.drain()
    const gone = this.#backlog.select((item) => this.#offlinePolicy(item) === 'reject')
    const blamed = this.#blame()
    for (const item of gone) this.#backlog.remove(item)
    for (const item of gone) this.#fail(item, new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline', cause: error }))
    if (blamed !== undefined) this.#fail(blamed.item, blamed.error)
    this.#tellIdle()
  }

  /** The session is gone: what was in flight is sent anew or rejected, as said; one by one. */
  handleSessionLost(): { readonly losses: Losses; readonly settle: () => void } {
    const items = [...this.#released.values(), ...this.#inFlight.values()].sort((first, second) => first.order - second.order)
    this.#replays.drain()
    this.#released.clear()
    this.#inFlight.clear()
    const again = items.filter((item) => !item.settled && this.#republishes(item))
    const lost = items.filter((item) => item.settled || !this.#republishes(item))
    const losses = {
      republished: Object.freeze(again.map(describe)),
      rejected: Object.freeze(lost.filter((item) => !item.settled).map((item) => ({ ...describe(item), error: sessionLost() }))),
    }
    for (const item of again.reverse()) this.#requeue(item)
    const settle = (): void => {
      for (const item of lost) this.#fail(item, sessionLost())
    }
    return { losses, settle }
  }

  /** Gives up everything that has not been sent. */
  clear(): void {
    this.#giveUp(new MqttError('ERR_DROPPED'), (item) => !item.again)
  }

  /** The client is over: everything ends, each with what is known about it. */
  end(error: MqttError): void {
    this.#progress.stop()
    this.#ended = withOutcome(error, 'not-sent')
    const unknown = withOutcome(error, 'unknown')
    for (const item of [...this.#inFlight.values(), ...this.#released.values()]) this.#fail(item, unknown)
    this.#giveUp(unknown, (item) => item.again)
    this.#giveUp(this.#ended)
    this.#inFlight.clear()
    this.#released.clear()
    this.#replays.drain()
    this.#room?.resolve()
    this.#idle?.resolve()
  }

  /** Fulfils when nothing is queued at QoS 0 and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#host
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    await this.#backlog.immediate.last?.done.promise.catch(() => undefined)
    const done = deferred<void>()
    connection.onWritten((error) => (error === undefined ? done.resolve() : done.reject(withOutcome(error, 'unknown'))))
    await done.promise
  }

  /** Fulfils when nothing is queued or in flight. */
  async drained(): Promise<void> {
    while (this.size + this.inFlight > 0 && this.#ended === undefined) {
      this.#idle ??= deferred()
      await this.#idle.promise
    }
    if (this.#host.connection !== undefined) await this.flushed().catch(() => undefined)
  }

  get #open(): Connection | undefined {
    return this.#host.connection?.writable === true ? this.#host.connection : undefined
  }

  get #hasRoom(): boolean {
    return !this.#full(1, 1, 0) && this.#host.connection?.writable !== false
  }

  // Quota and identifiers, and the share of the limit that sent messages take. One message may always go.
  #maySend({ size, call }: Item, connection: Connection): boolean {
    const { options, session } = this.#host
    const fits = this.#sentBytes === 0 || this.#sentBytes + size <= options.outbound.maxQueuedBytes
    const { qos } = call.options
    if (!fits || qos === 0) return fits
    if (this.#replays.length > 0 || !session.outbound.mayPublish) return false
    if (session.outbound.prepare(qos)) return true
    connection.queueFlush()
    return false
  }

  // What the server said it does not take is refused before a byte is sent.
  #check({ options }: PublishCall): void {
    const { connection, session } = this.#host
    const limits = connection && session.negotiated
    if (limits === undefined) return
    const objection = checkPublish(limits, options.qos, options.retain)
    if (objection !== undefined) throw new MqttError(objection, undefined, { option: objection === 'ERR_QOS_UNSUPPORTED' ? 'qos' : 'retain' })
    if (limits.protocolVersion === 5 || options.properties === undefined || !hasSettings(options.properties)) return
    throw new MqttError('ERR_UNSUPPORTED_OPTION', undefined, { option: 'properties' })
  }

  #offlinePolicy({ call, again }: Item): 'queue' | 'reject' {
    const { qos, offline } = call.options
    return again ? 'queue' : (offline ?? this.#host.options.outbound.offline[`qos${qos}`])
  }

  // A clean 3.1.1 session is lost with every connection: whoever wants that has no use for repeats, unless it is said.
  #republishes({ call }: Item): boolean {
    const { options, session } = this.#host
    const usual = call.options.qos === 1 && !(session.version === 4 && options.cleanStart)
    return (call.options.onSessionLost ?? options.outbound.onSessionLost ?? (usual ? 'republish' : 'reject')) === 'republish'
  }

  #enqueue(item: Item): void {
    const { qos, signal } = item.call.options
    try {
      // What has to wait is tried: a call that can never be sent fails now.
      this.#encode(item.call, qos)
      if (this.#host.connection === undefined && this.#offlinePolicy(item) === 'reject')
        throw new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline' })
      this.#makeRoom(item)
      // A listener of `drop` may have ended the client.
      if (this.#ended !== undefined) throw this.#ended
    } catch (error) {
      return this.#tell(item, error)
    }
    this.#backlog.push(item)
    item.stop = onAbort(signal, () => this.#abort(item))
    this.#age(item)
  }

  // It is dropped when its time to live, or its message expiry interval, is over before it was sent.
  #age(item: Item): void {
    const { ttl = this.#host.options.outbound.ttl, properties } = item.call.options
    const expiry = properties?.messageExpiryInterval
    const left = Math.min(ttl ?? Number.POSITIVE_INFINITY, expiry === undefined ? Number.POSITIVE_INFINITY : expiry * 1000)
    if (left > longestDelay) return
    const expire = (): void => {
      this.#backlog.remove(item)
      const option = left === ttl ? 'ttl' : 'properties.messageExpiryInterval'
      this.#fail(item, new MqttError('ERR_EXPIRED', undefined, { option }))
    }
    item.cancel = this.#host.platform.setTimer(expire, left)
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: Item): void {
    const { maxQueuedBytes, overflow: usual } = this.#host.options.outbound
    const overflow = item.call.options.overflow ?? usual
    const drops = overflow === 'drop-oldest' && this.#sentBytes + item.size <= maxQueuedBytes
    while (this.#full(overflow === 'wait' ? 2 : 1, 1, item.size)) {
      const oldest = drops ? this.#backlog.oldest : undefined
      const error = new MqttError(overflow.startsWith('drop') ? 'ERR_DROPPED' : 'ERR_QUEUE_FULL', undefined, { option: 'outbound' })
      if (oldest === undefined) throw error
      this.#backlog.remove(oldest)
      this.#fail(oldest, error)
    }
  }

  #full(share: number, extra: number, bytes: number): boolean {
    const { maxQueuedMessages, maxQueuedBytes } = this.#host.options.outbound
    return this.#backlog.size + extra > maxQueuedMessages * share || this.#backlog.bytes + this.#sentBytes + bytes > maxQueuedBytes * share
  }

  // All at once: a listener of `drop` may publish again meanwhile.
  #giveUp(error: MqttError, wanted: (item: Item) => boolean = () => true): void {
    const items = this.#backlog.select(wanted)
    for (const item of items) this.#backlog.remove(item)
    for (const item of items) this.#fail(item, error)
  }

  #send(item: Item, connection: Connection): void {
    const { session } = this.#host
    const { qos } = item.call.options
    try {
      this.#check(item.call)
      const call = aged(item, this.#host.platform.now())
      item.packetId = qos > 0 ? session.outbound.publish(qos) : 0
      // On file before it is written: a listener of `packet` may end the client.
      if (item.packetId > 0) this.#inFlight.set(item.packetId, item)
      item.sent = true
      item.carried = true
      item.order = ++this.#sends
      this.#sentBytes += item.size
      item.encoded = this.#encode(call, item.packetId, connection)
    } catch (error) {
      if (this.#inFlight.delete(item.packetId)) session.outbound.withdraw(item.packetId)
      return this.#fail(item, item.again && MqttError.is(error) ? withOutcome(error, 'unknown') : error)
    }
    if (!item.settled) this.#follow(item, connection)
  }

  // Exactly the packet that was sent, but for DUP; unless this server takes less than the one before.
  #resend(item: Item, connection: Connection): void {
    const { session, counters } = this.#host
    const { encoded, packetId, call } = item
    if (this.#inFlight.get(packetId) !== item || encoded === undefined) return
    try {
      this.#check(call)
      if (encoded.head.length + encoded.payload.length > connection.packetLimit) throw new MqttError('ERR_PACKET_TOO_LARGE')
      if (encoded.version !== session.version) throw sessionLost()
    } catch (error) {
      session.outbound.abandon(packetId)
      this.#forget(item)
      return this.#fail(item, withOutcome(error, 'unknown'))
    }
    session.outbound.replay(packetId)
    item.carried = true
    if (counters !== undefined) counters.publishesReplayed += 1
    const { qos, retain, properties = {} } = call.options
    const packet = (): Packet =>
      ({ type: 'publish', topic: call.topic, payload: call.payload, qos, retain, dup: true, packetId, properties }) as Packet
    connection.replay(encoded, packet)
  }

  // In front of what was never sent; to be called from the youngest to the oldest.
  #requeue(item: Item): void {
    this.#sentBytes -= item.size
    item.sent = false
    item.again = true
    item.carried = false
    item.encoded = undefined
    item.packetId = 0
    this.#backlog.unshift(item)
  }

  #blame(): { readonly item: Item; readonly error: MqttError } | undefined {
    const complaint = this.#complaint
    this.#complaint = undefined
    const item = blamed([...this.#released.values(), ...this.#inFlight.values()], complaint !== undefined)
    if (item === undefined || complaint === undefined) return undefined
    this.#host.session.outbound.abandon(item.packetId)
    this.#forget(item)
    return { item, error: refusal('ERR_PUBLISH_REFUSED', complaint.reasonCode ?? 0, complaint.reasonString, DISCONNECT, 'unknown') }
  }

  #forget({ packetId }: Item): void {
    this.#inFlight.delete(packetId)
    this.#released.delete(packetId)
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
    this.#progress.handleSent()
    const timeout = item.call.options.ackTimeout || options.outbound.ackTimeout
    if (timeout) item.late ??= platform.setTimer(() => this.#tell(item, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' })), timeout)
  }

  // Without a connection it is a trial, on a scratch buffer.
  #encode({ topic, payload, options }: PublishCall, packetId: number, connection?: Connection): Encoded | undefined {
    const { qos, retain, properties } = options
    const { counters } = this.#host
    const input = { topic, payload, qos, retain, dup: false, packetId: packetId || undefined, properties }
    try {
      if (connection !== undefined) {
        const encoded = qos > 0 ? connection.publish(input) : connection.post(input)
        if (counters !== undefined) counters.publishesSent += 1
        return encoded
      }
      this.#trial.reset()
      writePublishHead(this.#trial, input, payload.length, 5)
    } catch (error) {
      throw asInvalidOption(error)
    }
    const limit = this.#host.connection === undefined ? undefined : this.#host.session.negotiated?.maximumPacketSize
    if (this.#trial.length + payload.length > (limit ?? Number.POSITIVE_INFINITY)) throw new MqttError('ERR_PACKET_TOO_LARGE')
    return undefined
  }

  #abort(item: Item): void {
    const { signal } = item.call.options
    if (item.sent) return this.#tell(item, aborted(signal, 'unknown'))
    this.#backlog.remove(item)
    this.#fail(item, aborted(signal, item.again ? 'unknown' : 'not-sent'))
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
    // The exchange goes on without the caller, who has the bytes back now.
    if (item.sent && item.encoded !== undefined) item.encoded = { ...item.encoded, payload: item.encoded.payload.slice() }
    item.done.reject(error)
    this.#report(item.call.topic, error)
  }

  // A failure that nobody awaits shows as an event.
  #report(topic: string, error: unknown): void {
    const { counters, events } = this.#host
    if (!MqttError.is(error) || error.code === 'ERR_ABORTED') return
    if (counters !== undefined) counters.publishesDropped += 1
    events.emit('drop', { direction: 'out', topic, count: 1, error })
  }

  #release(item: Item): void {
    if (item.sent) this.#sentBytes -= item.size
    item.sent = false
    item.stop?.()
    item.cancel?.()
    item.late?.()
    this.#tellRoom()
    this.#tellIdle()
  }

  #tellRoom(): void {
    if (this.#room === undefined || !this.#hasRoom) return
    this.#room.resolve()
    this.#room = undefined
  }

  #tellIdle(): void {
    if (this.#idle === undefined || this.size + this.inFlight > 0) return
    this.#idle.resolve()
    this.#idle = undefined
  }
}
