/**
 * Publishes on their way out: checked, queued within limits, sent as quota and transport allow, and settled by their acknowledgement.
 *
 * QoS 1 and 2 leave in the order of the calls; QoS 0 may overtake those that wait for quota. What was sent at QoS 1 and 2 is kept until its last
 * acknowledgement and sent again on the next connection, before anything new [MQTT-4.4.0-1]. Every promise settles, with what is known about the
 * message's fate. It must never keep more than its limits.
 */
import { MqttError } from '../../errors.js'
import { DISCONNECT, PUBACK, PUBCOMP } from '../../wire/constants.js'
import { writePublishHead } from '../../wire/encode-client.js'
import type { Properties } from '../../wire/packets.js'
import { Writer } from '../../wire/writer.js'
import type { Receipt } from '../api.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, rejected } from '../common/abort.js'
import { withOutcome } from '../common/outcome.js'
import { Ring } from '../common/ring.js'
import { longestDelay } from '../common/schema.js'
import { byReference, type Output, type Sending } from '../connection/output.js'
import type { Host } from '../host.js'
import { asInvalidOption } from '../parsing/options.js'
import { type CheckedPublish, payloadBytes } from '../parsing/requests.js'
import { refusal } from '../session/refusal.js'
import { AckWatch } from './ack-watch.js'
import { Backlog } from './backlog.js'
import { ItemTable } from './item-table.js'
import {
  aged,
  assertTaken,
  blamed,
  describe,
  Item,
  isComplaint,
  type Losses,
  lifetime,
  offlinePolicy,
  type PublishCall,
  receipt,
  republishes,
  sessionLost,
} from './publish-item.js'

/** Packet Identifier in use. */
const identifierInUse = 0x91
/** Times that a publish is tried under another identifier. */
const mostRetries = 16
/** What `post` sends with. */
const noSettings: Sending = { qos: 0, retain: false, properties: undefined }
const trial = /* @__PURE__ */ new Writer()
const qos0Receipt = /* @__PURE__ */ receipt(0, undefined)
const qos0Done = /* @__PURE__ */ Promise.resolve(qos0Receipt)

/** Outgoing messages of one client. */
export class Outbox {
  /** Bytes of publishes that are sent and not settled. */
  #sentBytes = 0
  #sends = 0
  readonly #host: Host
  readonly #backlog = new Backlog()
  #releases = 0
  /** What was sent and lacks its last acknowledgement. */
  readonly #inFlight = new ItemTable()
  /** To be sent again on this connection. */
  readonly #replays = new Ring<Item>()
  #room: Deferred<void> | undefined
  #idle: Deferred<void> | undefined
  #complaint: MqttError | undefined
  #ended: MqttError | undefined
  readonly #progress: AckWatch

  constructor(host: Host) {
    this.#host = host
    this.#progress = new AckWatch(host)
  }

  /** Publishes that have not been sent. */
  get size(): number {
    return this.#backlog.size
  }

  /** Publishes that were sent and lack their last acknowledgement. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /** Fulfils when a publish would be sent or queued without waiting. */
  get writable(): Promise<void> {
    if (this.#hasRoom) return Promise.resolve()
    this.#room ??= deferred()
    return this.#room.promise
  }

  /** QoS 0 at once or not at all: true when it was taken. Of bytes nothing is kept. @throws MqttError for what can never be sent */
  post(topic: string, payload: Uint8Array | string): boolean {
    const output = this.#immediate
    if (output === undefined) this.#try(topic, payloadBytes(payload).length, noSettings)
    // The caller may write into its bytes again as soon as this returns.
    else this.#post(output, topic, payload.length < byReference || typeof payload === 'string' ? payload : new Uint8Array(payload), noSettings)
    return output !== undefined
  }

  /** @throws MqttError for what can never be sent */
  publish(call: PublishCall): Promise<Receipt> {
    const { topic, payload, options } = call
    const { signal, flush, qos, properties } = options
    if (signal !== undefined) assertNotAborted(signal)
    this.#check(options)
    if (qos === 0 && payload.length < byReference && flush !== true) {
      const output = this.#immediate
      if (output !== undefined) {
        this.#post(output, topic, payload, options)
        return qos0Done
      }
    }
    const output = this.#open
    const item = new Item(call, properties?.messageExpiryInterval === undefined ? 0 : this.#host.platform.now())
    if (output !== undefined && this.#backlog.queueOf(item).length === 0 && this.#maySend(item, output)) this.#send(item, output)
    else this.#enqueue(item)
    return item.promise
  }

  /** A publish that was refused before it began. */
  refuse(topic: string, error: unknown): Promise<never> {
    this.#report(topic, error)
    return rejected(error)
  }

  /** Sends what waits, as far as connection, quota and identifiers allow: first what goes on from an earlier connection. */
  flush(): void {
    const { session } = this.#host
    for (let output = this.#open; output !== undefined && this.#replays.length > 0 && session.outbound.mayReplay; output = this.#open) {
      this.#resend(this.#replays.shift() as Item, output)
    }
    for (const queue of [this.#backlog.immediate, this.#backlog.ordered]) {
      for (let output = this.#open; output !== undefined; output = this.#open) {
        const item = queue.first
        if (item === undefined || !this.#maySend(item, output)) break
        this.#backlog.remove(item)
        this.#send(item, output)
      }
    }
    this.#tellRoom()
  }

  /** PUBREC came in: the message is the server's now. */
  handleReleased(packetId: number, reasonCode: number): void {
    const item = this.#inFlight.get(packetId)
    if (item === undefined || item.released > 0) return
    this.#progress.handleProgress()
    item.released = ++this.#releases
    item.received = reasonCode
    if (!republishes(item, this.#host.options, this.#host.session.version)) item.wire = undefined
  }

  /** The last acknowledgement of a publish came in: a packet of this type. */
  handleAcknowledged(packetType: number, packetId: number, reasonCode: number, properties: Properties | undefined): void {
    const item = this.#inFlight.get(packetId)
    if (item === undefined) return
    this.#inFlight.delete(packetId)
    this.#progress.handleProgress()
    const { counters, session } = this.#host
    const retries = reasonCode === identifierInUse && packetType === PUBACK && !item.settled && item.retries++ < mostRetries
    if (retries && session.outbound.disown(packetId)) return this.#requeue(item)
    if (counters !== undefined) counters.publishesAcked += 1
    if (reasonCode < 0x80 || packetType === PUBCOMP) return this.#succeed(item, receipt(reasonCode || item.received, packetId, properties))
    if (counters !== undefined) counters.refusals += 1
    this.#fail(item, refusal('ERR_PUBLISH_REFUSED', reasonCode, properties?.reasonString))
  }

  /** The server says goodbye, and why: what it complains of is not sent for ever. */
  handleBlame(error: MqttError): void {
    if (isComplaint(error.reasonCode ?? 0)) this.#complaint = error
  }

  /** A connection is up: PUBREL goes on at once, messages follow with DUP as the quota allows. */
  handleConnected(): void {
    const { outbound } = this.#host.session
    for (const item of this.#inFlight.released()) outbound.replayRelease(item.packetId)
    for (const item of this.#inFlight.unreleased()) this.#replays.push(item)
    if (this.inFlight > 0) this.#progress.handleSent()
  }

  /** The connection is over: what the policy does not keep for the next one is given up. */
  handleLost(error: MqttError): void {
    this.#progress.stop()
    this.#replays.drain()
    const gone = this.#backlog.select((item) => offlinePolicy(item, this.#host.options.outbound) === 'reject')
    const blamed = this.#blame()
    for (const item of gone) this.#backlog.remove(item)
    for (const item of gone) this.#fail(item, new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline', cause: error }))
    if (blamed !== undefined) this.#fail(blamed.item, blamed.error)
    this.#tellIdle()
  }

  /** The session is gone: what was in flight is sent anew or rejected, as said; one by one. */
  handleSessionLost(): { readonly losses: Losses; readonly settle: () => void } {
    const items = this.#inFlight.all()
    this.#replays.drain()
    this.#inFlight.clear()
    const again = items.filter((item) => !item.settled && republishes(item, this.#host.options, this.#host.session.version))
    const lost = items.filter((item) => item.settled || !republishes(item, this.#host.options, this.#host.session.version))
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
    for (const item of [...this.#inFlight.unreleased(), ...this.#inFlight.released()]) this.#fail(item, unknown)
    this.#giveUp(unknown, (item) => item.again)
    this.#giveUp(this.#ended)
    this.#inFlight.clear()
    this.#replays.drain()
    this.#room?.resolve()
    this.#idle?.resolve()
  }

  /** Fulfils when nothing is queued at QoS 0 and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#host
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    await this.#backlog.immediate.last?.promise.catch(() => undefined)
    const { promise, resolve, reject } = deferred<void>()
    connection.output.onWritten((error) => (error === undefined ? resolve() : reject(withOutcome(error, 'unknown'))))
    await promise
  }

  /** Fulfils when nothing is queued or in flight. */
  async drained(): Promise<void> {
    while (this.size + this.inFlight > 0 && this.#ended === undefined) {
      this.#idle ??= deferred()
      await this.#idle.promise
    }
    if (this.#host.connection !== undefined) await this.flushed().catch(() => undefined)
  }

  get #open(): Output | undefined {
    const output = this.#host.connection?.output
    return output?.writable === true ? output : undefined
  }

  // For QoS 0 that overtakes nothing.
  get #immediate(): Output | undefined {
    return this.#backlog.immediate.length > 0 ? undefined : this.#open
  }

  get #hasRoom(): boolean {
    return !this.#backlog.exceeds(this.#host.options.outbound, this.#sentBytes) && this.#host.connection?.output.writable !== false
  }

  // Quota and identifiers, and the share of the limit that sent messages take. One message may always go.
  #maySend({ size, call }: Item, output: Output): boolean {
    const { options, session } = this.#host
    const fits = this.#sentBytes === 0 || this.#sentBytes + size <= options.outbound.maxQueuedBytes
    const { qos } = call.options
    if (!fits || qos === 0) return fits
    if (this.#replays.length > 0 || !session.outbound.mayPublish) return false
    if (session.outbound.prepare(qos)) return true
    output.queueFlush()
    return false
  }

  // What the server said it does not take is refused before a byte is sent.
  #check(options: CheckedPublish): void {
    const { connection, session } = this.#host
    if (connection !== undefined && session.negotiated !== undefined) assertTaken(options, session.negotiated)
  }

  #enqueue(item: Item): void {
    const { signal } = item.call.options
    try {
      // What has to wait is tried: a call that can never be sent fails now.
      this.#try(item.call.topic, item.payload.length, item.call.options)
      if (this.#host.connection === undefined && offlinePolicy(item, this.#host.options.outbound) === 'reject')
        throw new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline' })
      this.#makeRoom(item)
      // A listener of `drop` may have ended the client.
      if (this.#ended !== undefined) throw this.#ended
    } catch (error) {
      return this.#tell(item, error)
    }
    this.#backlog.push(item)
    if (signal !== undefined) item.stop = onAbort(signal, () => this.#abort(item))
    this.#age(item)
  }

  // It is dropped when its time to live, or its message expiry interval, is over before it was sent.
  #age(item: Item): void {
    const { left, option } = lifetime(item, this.#host.options.outbound)
    if (left > longestDelay) return
    const expire = (): void => {
      this.#backlog.remove(item)
      this.#fail(item, new MqttError('ERR_EXPIRED', undefined, { option }))
    }
    item.cancel = this.#host.platform.setTimer(expire, left)
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: Item): void {
    const { maxQueuedBytes, overflow: usual } = this.#host.options.outbound
    const overflow = item.call.options.overflow ?? usual
    const drops = overflow === 'drop-oldest' && this.#sentBytes + item.size <= maxQueuedBytes
    while (this.#backlog.exceeds(this.#host.options.outbound, this.#sentBytes + item.size, overflow === 'wait' ? 2 : 1)) {
      const oldest = drops ? this.#backlog.oldest : undefined
      const error = new MqttError(overflow.startsWith('drop') ? 'ERR_DROPPED' : 'ERR_QUEUE_FULL', undefined, { option: 'outbound' })
      if (oldest === undefined) throw error
      this.#backlog.remove(oldest)
      this.#fail(oldest, error)
    }
  }

  // All at once: a listener of `drop` may publish again meanwhile.
  #giveUp(error: MqttError, wanted: (item: Item) => boolean = () => true): void {
    const items = this.#backlog.select(wanted)
    for (const item of items) this.#backlog.remove(item)
    for (const item of items) this.#fail(item, error)
  }

  #send(item: Item, output: Output): void {
    const { session, counters, platform } = this.#host
    const { topic, options } = item.call
    const { qos } = options
    try {
      this.#check(options)
      const wire = aged(item, platform.now)
      item.packetId = qos > 0 ? session.outbound.publish(qos) : 0
      // On file before it is written: a listener of `packet` may end the client.
      if (item.packetId > 0) this.#inFlight.add(item)
      item.sent = true
      item.carried = true
      item.order = ++this.#sends
      item.version = session.version
      this.#sentBytes += item.size
      if (qos === 0) this.#post(output, topic, item.payload, wire)
      else {
        item.wire = wire
        item.length = output.publish(topic, item.payload, wire, item.packetId)
        if (counters !== undefined) counters.publishesSent += 1
      }
    } catch (error) {
      item.wire = undefined
      if (item.packetId > 0 && this.#inFlight.get(item.packetId) === item) {
        this.#inFlight.delete(item.packetId)
        session.outbound.withdraw(item.packetId)
      }
      const told = asInvalidOption(error)
      return this.#fail(item, item.again && MqttError.is(told) ? withOutcome(told, 'unknown') : told)
    }
    if (!item.settled) this.#follow(item, output)
  }

  // Exactly the packet that was sent, but for DUP; unless this server takes less than the one before.
  #resend(item: Item, output: Output): void {
    const { session, counters } = this.#host
    const { wire, packetId, call } = item
    if (this.#inFlight.get(packetId) !== item || wire === undefined || item.released > 0) return
    try {
      this.#check(call.options)
      if (item.length > output.packetLimit) throw new MqttError('ERR_PACKET_TOO_LARGE')
      if (item.version !== session.version) throw sessionLost()
    } catch (error) {
      session.outbound.abandon(packetId)
      this.#inFlight.delete(packetId)
      return this.#fail(item, withOutcome(error, 'unknown'))
    }
    session.outbound.replay(packetId)
    item.carried = true
    if (counters !== undefined) counters.publishesReplayed += 1
    output.publish(call.topic, item.payload, wire, packetId, true)
  }

  // In front of what was never sent; to be called from the youngest to the oldest.
  #requeue(item: Item): void {
    this.#sentBytes -= item.size
    item.sent = false
    item.again = true
    item.carried = false
    item.released = 0
    item.wire = undefined
    item.packetId = 0
    this.#backlog.unshift(item)
  }

  #blame(): { readonly item: Item; readonly error: MqttError } | undefined {
    const complaint = this.#complaint
    this.#complaint = undefined
    const item = blamed([...this.#inFlight.released(), ...this.#inFlight.unreleased()], complaint !== undefined)
    if (item === undefined || complaint === undefined) return undefined
    this.#host.session.outbound.abandon(item.packetId)
    this.#inFlight.delete(item.packetId)
    return { item, error: refusal('ERR_PUBLISH_REFUSED', complaint.reasonCode ?? 0, complaint.reasonString, DISCONNECT, 'unknown') }
  }

  #follow(item: Item, output: Output): void {
    const { payload, options } = item.call
    if (options.qos === 0 && payload.length < byReference && options.flush !== true) return this.#succeed(item, qos0Receipt)
    if (options.signal !== undefined) item.stop ??= onAbort(options.signal, () => this.#abort(item))
    if (options.qos > 0) return this.#limit(item)
    // Large payloads are sent as they lie: the caller gets them back when they are written.
    output.onWritten((error) => (error === undefined ? this.#succeed(item, qos0Receipt) : this.#fail(item, withOutcome(error, 'unknown'))))
  }

  #limit(item: Item): void {
    const { options, platform } = this.#host
    this.#progress.handleSent()
    const timeout = item.call.options.ackTimeout || options.outbound.ackTimeout
    if (timeout) item.late ??= platform.setTimer(() => this.#tell(item, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' })), timeout)
  }

  #post(output: Output, topic: string, payload: Uint8Array | string, how: Sending): void {
    const { counters } = this.#host
    try {
      output.post(topic, payload, how)
    } catch (error) {
      throw asInvalidOption(error)
    }
    if (counters !== undefined) counters.publishesSent += 1
  }

  // What cannot leave now is written to a scratch buffer, but for the payload.
  #try(topic: string, payloadLength: number, { qos, retain, properties }: Sending): void {
    trial.reset()
    try {
      writePublishHead(trial, { topic, qos, retain, packetId: qos, properties }, payloadLength, 5)
    } catch (error) {
      throw asInvalidOption(error)
    }
    const limit = this.#host.connection === undefined ? undefined : this.#host.session.negotiated?.maximumPacketSize
    if (trial.length + payloadLength > (limit ?? Number.POSITIVE_INFINITY)) throw new MqttError('ERR_PACKET_TOO_LARGE')
  }

  #abort(item: Item): void {
    const { signal } = item.call.options
    if (item.sent) return this.#tell(item, aborted(signal, 'unknown'))
    this.#backlog.remove(item)
    this.#fail(item, aborted(signal, item.again ? 'unknown' : 'not-sent'))
  }

  #succeed(item: Item, done: Receipt): void {
    this.#release(item)
    item.resolve(done)
  }

  #fail(item: Item, error: unknown): void {
    this.#release(item)
    this.#tell(item, error)
  }

  #tell(item: Item, error: unknown): void {
    if (item.settled) return
    // The exchange goes on without the caller, who has the bytes back now.
    if (item.sent && item.wire !== undefined) item.payload = new Uint8Array(item.payload)
    item.reject(error)
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
