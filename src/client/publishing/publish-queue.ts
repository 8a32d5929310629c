/**
 * Publishes on their way out: checked, queued within limits, sent as quota and transport allow, and settled by their acknowledgement.
 *
 * QoS 1 and 2 leave in the order of the calls; QoS 0 may overtake those that wait for quota. What was sent at QoS 1 and 2 is kept until its last
 * acknowledgement and sent again on the next connection, before anything new [MQTT-4.4.0-1]. Every promise settles, with what is known about the
 * message's fate. It must never keep more than its limits.
 */

import { MqttError } from '../../errors.js'
import { PUBACK, PUBCOMP } from '../../wire/constants.js'
import type { Properties } from '../../wire/packets.js'
import type { Receipt } from '../api/index.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, rejected } from '../common/abort.js'
import { largePayload, longestDelay } from '../common/bounds.js'
import { tally } from '../common/counters.js'
import { withOutcome } from '../common/outcome.js'
import { Ring } from '../common/ring.js'
import { asInvalidOption } from '../parsing/options.js'
import { type CheckedPublish, type PublishCall, payloadBytes, type Sending } from '../parsing/requests.js'
import { AckWatch } from './ack-watch.js'
import { Backlog } from './backlog.js'
import { identifierInUse, mostRetries } from './bounds.js'
import { Failures } from './failures.js'
import { Isolation } from './isolation.js'
import { LentBytes } from './lent-bytes.js'
import type { PublishingHost, PublishWriter } from './ports.js'
import { PublishTable } from './publish-table.js'
import {
  aged,
  assertSendable,
  assertTaken,
  type Losses,
  lifetime,
  lossesOf,
  offlinePolicy,
  QueuedPublish,
  receipt,
  refused,
  republishes,
  sessionLost,
} from './queued-publish.js'
import { Room } from './room.js'

/** What `post` sends with. */
const noSettings: Sending = { qos: 0, retain: false, properties: undefined }
const qos0Receipt = /* @__PURE__ */ receipt(0, undefined)
const qos0Done = /* @__PURE__ */ Promise.resolve(qos0Receipt)

/** Outgoing messages of one client. */
export class PublishQueue {
  readonly #host: PublishingHost
  /** Bytes of publishes that are sent and not settled. */
  #sentBytes = 0
  #sends = 0
  readonly #backlog = new Backlog()
  #releases = 0
  /** What was sent and lacks its last acknowledgement. */
  readonly #inFlight = new PublishTable()
  /** To be sent again on this connection. */
  readonly #replays = new Ring<QueuedPublish>()
  readonly #room: Room
  #idle: Deferred<void> | undefined
  #ended: MqttError | undefined
  readonly #progress: AckWatch
  readonly #isolation: Isolation
  readonly #failures: Failures
  readonly #lent: LentBytes

  constructor(host: PublishingHost) {
    this.#host = host
    this.#progress = new AckWatch(host)
    this.#isolation = new Isolation(host)
    this.#failures = new Failures(host)
    this.#room = new Room(host, (post) => this.#hasRoom(post))
    this.#lent = new LentBytes(host)
  }

  /** Publishes that have not been sent. */
  get size(): number {
    return this.#backlog.size
  }

  /** Publishes that were sent and lack their last acknowledgement. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /** Fulfils when a publish at QoS 0 would be sent or queued without waiting; again and again only with a turn of the event loop between. */
  get writable(): Promise<void> {
    return this.#room.promise
  }

  /** QoS 0 at once or not at all: true when it was taken. Of bytes nothing is kept. @throws MqttError for what can never be sent */
  post(topic: string, payload: Uint8Array | string): boolean {
    const output = this.#host.states.stopping ? undefined : this.#immediate
    if (output === undefined) {
      this.#try(topic, payloadBytes(payload).length, noSettings)
      this.#room.handleRefusal()
      return false
    }
    this.#post(output, topic, payload, noSettings)
    // The caller may write into its bytes again as soon as this returns.
    if (output.isSending(payload)) output.goOnWith(new Uint8Array(payload))
    return true
  }

  /** @throws MqttError for what can never be sent */
  publish(call: PublishCall): Promise<Receipt> {
    const { topic, payload, options } = call
    const { signal, flush, qos, properties } = options
    if (signal !== undefined) assertNotAborted(signal)
    this.#check(options)
    if (qos === 0 && payload.length < largePayload && flush !== true) {
      const output = this.#immediate
      if (output !== undefined) {
        this.#post(output, topic, payload, options)
        return qos0Done
      }
    }
    const output = this.#open
    const item = new QueuedPublish(call, properties?.messageExpiryInterval === undefined ? 0 : this.#host.platform.now())
    if (output !== undefined && this.#backlog.queueOf(item).length === 0 && this.#maySend(item, output)) this.#send(item, output)
    else this.#enqueue(item)
    return item.promise
  }

  /** A publish that was refused before it began. */
  refuse(topic: string, error: unknown): Promise<never> {
    this.#failures.add(topic, error)
    return rejected(error)
  }

  /** Sends what waits, as far as connection, quota and identifiers allow: first what goes on from an earlier connection. */
  flush(): void {
    const { session } = this.#host
    for (let output = this.#open; output !== undefined && session.sendWindow.mayReplay; output = this.#open) {
      const item = this.#replays.peek()
      if (item === undefined || (this.#isCarried(item) && !this.#isolation.admits(item))) break
      this.#replays.shift()
      this.#resend(item, output)
    }
    for (const queue of [this.#backlog.immediate, this.#backlog.ordered]) {
      for (let output = this.#open; output !== undefined; output = this.#open) {
        const item = queue.first
        if (item === undefined || !this.#maySend(item, output)) break
        this.#backlog.remove(item)
        this.#send(item, output)
      }
    }
    this.#room.tell()
  }

  /** PUBREC came in: the message is the server's now. */
  handleReleased(packetId: number, reasonCode: number): void {
    const item = this.#inFlight.get(packetId)
    if (item === undefined || item.released > 0) return
    this.#progress.handleProgress()
    this.#isolation.handleAnswer(item, false)
    item.released = ++this.#releases
    item.received = reasonCode
    if (!republishes(item, this.#host)) item.wire = undefined
  }

  /** The last acknowledgement of a publish came in: a packet of this type. */
  handleAcknowledged(packetType: number, packetId: number, reasonCode: number, properties: Properties | undefined): void {
    const item = this.#inFlight.get(packetId)
    if (item === undefined) return
    this.#inFlight.delete(packetId)
    this.#progress.handleProgress()
    this.#isolation.handleAnswer(item, true)
    const { session } = this.#host
    const retries = reasonCode === identifierInUse && packetType === PUBACK && !item.settled && item.retries++ < mostRetries
    if (retries && session.sendWindow.disown(packetId)) return this.#requeue(item)
    tally(this.#host, 'publishesAcked')
    if (reasonCode < 0x80 || packetType === PUBCOMP) return this.#succeed(item, receipt(reasonCode || item.received, packetId, properties))
    tally(this.#host, 'refusals')
    this.#fail(item, refused(item, packetType, reasonCode, properties))
  }

  /** A connection is up: PUBREL goes on at once, messages follow with DUP as the quota allows. */
  handleConnected(): void {
    const { sendWindow } = this.#host.session
    this.#isolation.handleConnected()
    for (const item of this.#inFlight.released()) sendWindow.replayRelease(item.packetId)
    for (const item of this.#inFlight.unreleased()) this.#replays.push(item)
    if (this.inFlight > 0) this.#progress.handleSent()
  }

  /** The connection is over: what the policy does not keep for the next one is given up. */
  handleLost(error: MqttError): void {
    this.#progress.stop()
    this.#replays.drain()
    const [oldest] = this.#inFlight.unreleased()
    const poisoned = this.#isolation.handleLost(oldest, error)
    for (const item of this.#inFlight.all()) item.end = 0
    const offline = new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline', cause: error })
    this.#giveUp(offline, (item) => offlinePolicy(item, this.#host.options.outbound) === 'reject')
    if (oldest !== undefined && poisoned !== undefined) {
      this.#forget(oldest)
      this.#fail(oldest, poisoned)
    }
    this.#tellIdle()
  }

  /** The session is gone: what was in flight is sent anew or rejected, as said; one by one. */
  handleSessionLost(): { readonly losses: Losses; readonly settle: () => void } {
    const again: QueuedPublish[] = []
    const lost: QueuedPublish[] = []
    for (const item of this.#inFlight.all()) (!item.settled && republishes(item, this.#host) ? again : lost).push(item)
    this.#replays.drain()
    this.#inFlight.clear()
    const losses = lossesOf(again, lost)
    for (const item of again.reverse()) this.#requeue(item)
    const settle = (): void => void lost.map((item) => this.#fail(item, sessionLost()))
    return { losses, settle }
  }

  /** Gives up what was not sent. */
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
    this.handleStopping()
    this.#idle?.resolve()
    this.#failures.end()
  }

  /** The client takes nothing more from whoever waits to write. */
  handleStopping(): void {
    this.#room.close()
  }

  /** Fulfils when nothing is queued at QoS 0 and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#host.links
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    await this.#backlog.immediate.last?.promise.catch(() => undefined)
    const { promise, resolve, reject } = deferred<void>()
    connection.writer.onWritten((error) => (error === undefined ? resolve() : reject(withOutcome(error, 'unknown'))))
    await promise
  }

  /** Fulfils when nothing is queued or in flight. */
  async drained(): Promise<void> {
    while (this.size + this.inFlight > 0 && this.#ended === undefined) {
      this.#idle ??= deferred()
      await this.#idle.promise
    }
    if (this.#host.links.connection !== undefined) await this.flushed().catch(() => undefined)
  }

  get #open(): PublishWriter | undefined {
    const output = this.#host.links.connection?.writer
    return output?.writable === true && !this.#isolation.silent ? output : undefined
  }

  get #immediate(): PublishWriter | undefined {
    return this.#backlog.immediate.length > 0 ? undefined : this.#open
  }

  #hasRoom(post: boolean): boolean {
    const { connection } = this.#host.links
    const { options } = this.#host
    const open = post ? this.#immediate !== undefined : (connection?.writer.writable ?? options.outbound.offline.qos0 === 'queue')
    return open && !this.#backlog.exceeds(options.outbound, this.#sentBytes)
  }

  // Quota and identifiers, and the share of the limit that sent messages take. One message may always go.
  #maySend(item: QueuedPublish, output: PublishWriter): boolean {
    const { size, call } = item
    const { options, session } = this.#host
    const fits = this.#sentBytes === 0 || this.#sentBytes + size <= options.outbound.maxQueuedBytes
    const { qos } = call.options
    if (!fits || qos === 0) return fits
    if (this.#replays.length > 0 || !session.sendWindow.mayPublish || !this.#isolation.admits(item)) return false
    if (session.sendWindow.prepare(qos)) return true
    output.queueFlush()
    return false
  }

  // What the server said it does not take is refused before a byte is sent.
  #check(options: CheckedPublish): void {
    const { links, session } = this.#host
    if (links.connection !== undefined && session.negotiated !== undefined) assertTaken(options, session.negotiated)
  }

  #enqueue(item: QueuedPublish): void {
    const { signal } = item.call.options
    try {
      this.#try(item.call.topic, item.payload.length, item.call.options)
      if (this.#host.links.connection === undefined && offlinePolicy(item, this.#host.options.outbound) === 'reject')
        throw new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline' })
      if (this.#ended !== undefined) throw this.#ended
      this.#makeRoom(item)
    } catch (error) {
      return this.#tell(item, error)
    }
    this.#backlog.push(item)
    if (signal !== undefined) item.stop = onAbort(signal, () => this.#abort(item))
    this.#age(item)
  }

  // It is dropped when its time to live, or its message expiry interval, is over before it was sent.
  #age(item: QueuedPublish): void {
    const { left, option } = lifetime(item, this.#host.options.outbound)
    if (left > longestDelay) return
    const expire = (): void => {
      this.#backlog.remove(item)
      this.#fail(item, new MqttError('ERR_EXPIRED', undefined, { option }))
    }
    item.cancel = this.#host.platform.setTimer(expire, left)
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: QueuedPublish): void {
    const { maxQueuedBytes, overflow: usual } = this.#host.options.outbound
    const overflow = item.call.options.overflow ?? usual
    const drops = overflow === 'drop-oldest' && this.#sentBytes + item.size <= maxQueuedBytes
    const waits = overflow === 'wait'
    // One that is larger than the limit waits, and lets others wait, as if it were not.
    const counted = (size: number): number => (waits ? Math.min(size, maxQueuedBytes) : size)
    const bytes = counted(this.#sentBytes) + counted(item.size)
    while (this.#backlog.exceeds(this.#host.options.outbound, bytes, waits ? 2 : 1)) {
      const oldest = drops ? this.#backlog.oldest : undefined
      const error = new MqttError(overflow.startsWith('drop') ? 'ERR_DROPPED' : 'ERR_QUEUE_FULL', undefined, { option: 'outbound' })
      if (oldest === undefined) throw error
      this.#backlog.remove(oldest)
      this.#fail(oldest, error)
    }
  }

  #giveUp(error: MqttError, wanted: (item: QueuedPublish) => boolean = () => true): void {
    for (const item of this.#backlog.select(wanted)) {
      this.#backlog.remove(item)
      this.#fail(item, error)
    }
  }

  #send(item: QueuedPublish, output: PublishWriter): void {
    const { session, counters, platform } = this.#host
    const { topic, options } = item.call
    const { qos } = options
    this.#lent.handleSent(item, output)
    try {
      this.#check(options)
      const wire = aged(item, platform.now)
      item.packetId = qos > 0 ? session.sendWindow.publish(qos) : 0
      // On file before it is written: a listener of `packet` may end the client.
      if (item.packetId > 0) this.#inFlight.add(item)
      item.sent = true
      item.order = ++this.#sends
      item.version = session.version
      this.#sentBytes += item.size
      if (qos === 0) this.#post(output, topic, item.payload, wire)
      else {
        item.wire = wire
        item.length = output.publish(topic, item.payload, wire, item.packetId)
        this.#isolation.handleSent(item)
        if (counters !== undefined) counters.publishesSent += 1
      }
    } catch (error) {
      item.wire = undefined
      if (item.packetId > 0 && this.#inFlight.get(item.packetId) === item) {
        this.#inFlight.delete(item.packetId)
        session.sendWindow.withdraw(item.packetId)
      }
      const told = asInvalidOption(error, '', item.call.topic)
      return this.#fail(item, item.again && MqttError.is(told) ? withOutcome(told, 'unknown') : told)
    }
    if (!item.settled) this.#follow(item, output)
  }

  // Exactly the packet that was sent, but for DUP; unless this server takes less than the one before.
  #resend(item: QueuedPublish, output: PublishWriter): void {
    const { session } = this.#host
    const { wire, packetId, call } = item
    if (!this.#isCarried(item) || wire === undefined) return
    try {
      this.#check(call.options)
      output.assertFits(item.length)
      if (item.version !== session.version) throw sessionLost()
    } catch (error) {
      this.#forget(item)
      return this.#fail(item, withOutcome(error, 'unknown'))
    }
    session.sendWindow.replay(packetId)
    item.repeated = true
    this.#lent.handleSent(item, output)
    tally(this.#host, 'publishesReplayed')
    output.publish(call.topic, item.payload, wire, packetId, true)
    this.#isolation.handleSent(item)
  }

  // Still without an answer since the connection before.
  #isCarried(item: QueuedPublish): boolean {
    return this.#inFlight.get(item.packetId) === item && item.released === 0
  }

  // It is not sent again.
  #forget({ packetId }: QueuedPublish): void {
    this.#host.session.sendWindow.abandon(packetId)
    this.#inFlight.delete(packetId)
  }

  // In front of what was never sent; to be called from the youngest to the oldest.
  #requeue(item: QueuedPublish): void {
    this.#sentBytes -= item.size
    item.sent = false
    item.again = true
    item.released = 0
    item.wire = undefined
    item.packetId = 0
    this.#backlog.unshift(item)
  }

  #follow(item: QueuedPublish, output: PublishWriter): void {
    const { payload, options } = item.call
    if (options.qos === 0 && payload.length < largePayload && options.flush !== true) return this.#succeed(item, qos0Receipt)
    if (options.signal !== undefined) item.stop ??= onAbort(options.signal, () => this.#abort(item))
    if (options.qos > 0) return this.#limit(item)
    // The caller is not to be ahead of a transport that has much to write.
    output.onWritten((error) => (error === undefined ? this.#succeed(item, qos0Receipt) : this.#fail(item, withOutcome(error, 'unknown'))))
  }

  #limit(item: QueuedPublish): void {
    const { options, platform } = this.#host
    this.#progress.handleSent()
    const timeout = item.call.options.ackTimeout || options.outbound.ackTimeout
    if (timeout) item.late ??= platform.setTimer(() => this.#tell(item, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' })), timeout)
  }

  #post(output: PublishWriter, topic: string, payload: Uint8Array | string, how: Sending): void {
    const { counters } = this.#host
    try {
      output.post(topic, payload, how)
    } catch (error) {
      throw asInvalidOption(error, '', topic)
    }
    if (counters !== undefined) counters.publishesSent += 1
  }

  #try(topic: string, payloadLength: number, how: Sending): void {
    const { links, session } = this.#host
    assertSendable(topic, payloadLength, how, links.connection && session.negotiated?.maximumPacketSize)
  }

  #abort(item: QueuedPublish): void {
    const { signal } = item.call.options
    if (item.sent) return this.#tell(item, aborted(signal, 'unknown'))
    this.#backlog.remove(item)
    this.#fail(item, aborted(signal, item.again ? 'unknown' : 'not-sent'))
  }

  #succeed(item: QueuedPublish, done: Receipt): void {
    this.#release(item)
    item.resolve(done)
  }

  #fail(item: QueuedPublish, error: unknown): void {
    this.#release(item)
    this.#tell(item, error)
  }

  #tell(item: QueuedPublish, error: unknown): void {
    if (item.settled) return
    item.reject(error)
    // The exchange goes on without the caller.
    this.#lent.giveBack(item, item.again || (item.sent && item.wire !== undefined))
    // A failure that nobody awaits shows as an event.
    this.#failures.add(item.call.topic, error)
  }

  #release(item: QueuedPublish): void {
    if (item.sent) this.#sentBytes -= item.size
    item.sent = false
    this.#lent.giveBack(item, false)
    if (this.size > 0) this.#host.links.connection?.writer.queueFlush()
    item.stop?.()
    item.cancel?.()
    item.late?.()
    this.#room.tell()
    this.#tellIdle()
  }

  #tellIdle(): void {
    if (this.#idle === undefined || this.size + this.inFlight > 0) return
    this.#idle.resolve()
    this.#idle = undefined
  }
}
