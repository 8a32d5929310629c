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
import { assertNotAborted, onAbort, rejected } from '../common/abort.js'
import { largePayload } from '../common/bounds.js'
import { tally } from '../common/counters.js'
import { withOutcome } from '../common/outcome.js'
import { Ring } from '../common/ring.js'
import { StallWatch, stallAge } from '../common/stall-watch.js'
import { asInvalidOption } from '../parsing/options.js'
import { type CheckedPublish, type PublishCall, payloadBytes, type Sending } from '../parsing/requests.js'
import { Admission } from './admission.js'
import { Backlog } from './backlog.js'
import { identifierInUse, mostRetries } from './bounds.js'
import { Draining } from './draining.js'
import { Isolation } from './isolation.js'
import type { PublishingHost, PublishWriter } from './ports.js'
import { PublishTable } from './publish-table.js'
import {
  aged,
  assertTaken,
  type Losses,
  lossesOf,
  offlinePolicy,
  QueuedPublish,
  receipt,
  refused,
  republishes,
  sessionLost,
} from './queued-publish.js'
import { Room } from './room.js'
import { Settlement } from './settlement.js'

/** What `post` sends with. */
const noSettings: Sending = { qos: 0, retain: false, properties: undefined }
const qos0Receipt = /* @__PURE__ */ receipt(0, undefined)
const qos0Done = /* @__PURE__ */ Promise.resolve(qos0Receipt)

/** Outgoing messages of one client. */
export class PublishQueue {
  readonly draining: Draining
  readonly #host: PublishingHost
  readonly #backlog = new Backlog()
  readonly #admission: Admission
  #releases = 0
  /** What was sent and lacks its last acknowledgement. */
  readonly #inFlight = new PublishTable()
  /** To be sent again on this connection. */
  readonly #replays = new Ring<QueuedPublish>()
  readonly #room: Room
  readonly #watch: StallWatch
  /** Acknowledgements. */
  #acks = 0
  readonly #isolation: Isolation
  readonly #ends: Settlement

  constructor(host: PublishingHost) {
    this.#host = host
    this.#watch = new StallWatch(host.platform, {
      open: () => this.inFlight,
      // What has not left whole cannot be acknowledged.
      progress: () => (host.links.connection?.writer.source === undefined ? this.#acks : Number.NaN),
      patience: () => stallAge,
      tell: (age) => {
        host.log('warn', `the server acknowledges nothing since ${Math.round(age)} ms`)
        host.events.emit('stalled', { direction: 'out', subscription: undefined, age, inFlight: this.inFlight })
      },
    })
    this.#isolation = new Isolation(host)
    this.#ends = new Settlement(host, () => this.#handleRoom())
    this.#admission = new Admission(host, this.#backlog, this.#ends)
    this.draining = new Draining(host, this.#backlog)
    this.#room = new Room(host, (post) => this.#hasRoom(post))
  }

  /** Publishes that have not been sent. */
  get size(): number {
    return this.#backlog.size
  }

  /** Something waits to be sent. */
  get waiting(): boolean {
    return this.size + this.#replays.length > 0
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
      this.#admission.assertSendable(topic, payloadBytes(payload).length, noSettings)
      this.#room.handleRefusal()
      return false
    }
    this.#post(output, topic, payload, noSettings)
    // The caller may write into its bytes again as soon as this returns.
    if (output.source === payload) output.source = new Uint8Array(payload)
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
    else this.#admission.enqueue(item)
    return item.promise
  }

  /** A publish that was refused before it began. */
  refuse(topic: string, error: unknown): Promise<never> {
    this.#ends.failures.add(topic, error)
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

  #handleAck(): void {
    this.#acks += 1
    if (this.inFlight === 0) this.#watch.stop()
    else this.#watch.renew()
  }

  /** PUBREC came in: the message is the server's now. */
  handleReleased(packetId: number, reasonCode: number): void {
    const item = this.#inFlight.get(packetId)
    if (item === undefined || item.released > 0) return
    this.#handleAck()
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
    this.#handleAck()
    this.#isolation.handleAnswer(item, true)
    const { session } = this.#host
    const retries = reasonCode === identifierInUse && packetType === PUBACK && !item.settled && item.retries++ < mostRetries
    if (retries && session.sendWindow.disown(packetId)) return this.#requeue(item)
    tally(this.#host, 'publishesAcked')
    if (reasonCode < 0x80 || packetType === PUBCOMP) return this.#ends.succeed(item, receipt(reasonCode || item.received, packetId, properties))
    tally(this.#host, 'refusals')
    this.#ends.fail(item, refused(item, packetType, reasonCode, properties))
  }

  /** A connection is up: PUBREL goes on at once, messages follow with DUP as the quota allows. */
  handleConnected(): void {
    const { sendWindow } = this.#host.session
    this.#isolation.handleConnected()
    for (const item of this.#inFlight.released()) sendWindow.replayRelease(item.packetId)
    for (const item of this.#inFlight.unreleased()) this.#replays.push(item)
    if (this.inFlight > 0) this.#watch.start()
  }

  /** The connection is over: what the policy does not keep for the next one is given up. */
  handleLost(error: MqttError): void {
    this.#watch.stop()
    this.#replays.drain()
    const [oldest] = this.#inFlight.unreleased()
    const poisoned = this.#isolation.handleLost(oldest, error)
    for (const item of this.#inFlight.all()) item.end = 0
    const offline = new MqttError('ERR_NOT_CONNECTED', undefined, { option: 'outbound.offline', cause: error })
    this.#admission.giveUp(offline, (item) => offlinePolicy(item, this.#host.options.outbound) === 'reject')
    if (oldest !== undefined && poisoned !== undefined) {
      this.#forget(oldest)
      this.#ends.fail(oldest, poisoned)
    }
    this.draining.tell(false)
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
    const settle = (): void => void lost.map((item) => this.#ends.fail(item, sessionLost()))
    return { losses, settle }
  }

  /** Gives up what was not sent. */
  clear(): void {
    this.#admission.giveUp(new MqttError('ERR_DROPPED'), (item) => !item.again)
  }

  /** The client is over: everything ends, each with what is known about it. */
  end(error: MqttError): void {
    this.#watch.stop()
    const notSent = withOutcome(error, 'not-sent')
    this.#admission.ended = notSent
    const unknown = withOutcome(error, 'unknown')
    for (const item of [...this.#inFlight.unreleased(), ...this.#inFlight.released()]) this.#ends.fail(item, unknown)
    this.#admission.giveUp(unknown, (item) => item.again)
    this.#admission.giveUp(notSent)
    this.#inFlight.clear()
    this.#replays.drain()
    this.handleStopping()
    this.draining.tell(true)
    this.#ends.failures.end()
  }

  /** The client takes nothing more from whoever waits to write. */
  handleStopping(): void {
    this.#room.close()
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
    return open && !this.#backlog.exceeds(options.outbound, this.#ends.sentBytes)
  }

  // Quota and identifiers, and the share of the limit that sent messages take. One message may always go.
  #maySend(item: QueuedPublish, output: PublishWriter): boolean {
    const { size, call } = item
    const { session } = this.#host
    const fits = this.#ends.sentBytes === 0 || this.#ends.sentBytes + size <= this.#host.options.outbound.maxQueuedBytes
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

  #send(item: QueuedPublish, output: PublishWriter): void {
    const { session, counters, platform } = this.#host
    const { topic, options } = item.call
    const { qos } = options
    this.#ends.lent.handleSent(item, output)
    try {
      this.#check(options)
      const wire = aged(item, platform.now)
      item.packetId = qos > 0 ? session.sendWindow.publish(qos) : 0
      // On file before it is written: a listener of `packet` may end the client.
      if (item.packetId > 0) this.#inFlight.add(item)
      item.version = session.version
      this.#ends.handleSent(item)
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
      return this.#ends.fail(item, item.again && MqttError.is(told) ? withOutcome(told, 'unknown') : told)
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
      return this.#ends.fail(item, withOutcome(error, 'unknown'))
    }
    session.sendWindow.replay(packetId)
    item.repeated = true
    this.#ends.lent.handleSent(item, output)
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
    this.#ends.handleUnsent(item)
    this.#backlog.unshift(item)
  }

  #follow(item: QueuedPublish, output: PublishWriter): void {
    const { payload, options } = item.call
    if (options.qos === 0 && payload.length < largePayload && options.flush !== true) return this.#ends.succeed(item, qos0Receipt)
    if (options.signal !== undefined) item.stop ??= onAbort(options.signal, () => this.#admission.abort(item))
    if (options.qos > 0) return this.#limit(item)
    // The caller is not to be ahead of a transport that has much to write.
    output.onWritten((error) => (error === undefined ? this.#ends.succeed(item, qos0Receipt) : this.#ends.fail(item, withOutcome(error, 'unknown'))))
  }

  #limit(item: QueuedPublish): void {
    const { options, platform } = this.#host
    this.#watch.start()
    const timeout = item.call.options.ackTimeout || options.outbound.ackTimeout
    if (timeout)
      item.late ??= platform.setTimer(() => this.#ends.tell(item, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' })), timeout)
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

  #handleRoom(): void {
    if (this.size > 0) this.#host.links.connection?.writer.queueFlush()
    this.#room.tell()
    this.draining.tell(false)
  }
}
