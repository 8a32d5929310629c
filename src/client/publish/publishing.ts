/**
 * Outgoing publishes: checked, queued within limits, sent as quota and transport allow, and settled
 * by their acknowledgement.
 *
 * QoS 1 and 2 are sent in the order of the calls, except that QoS 1 may overtake QoS 2 publishes of
 * other topics that have to wait. QoS 0 may overtake both. QoS 1 and 2 publishes are kept until
 * their last acknowledgement, and resent first on the next connection [MQTT-4.4.0-1]. Every promise
 * settles with what is known about the outcome. No more is kept than the limits allow.
 */
import { assertNotAborted, type Deferred, deferred, onAbort, rejected } from '../../common/abort.js'
import { largePayload, withOutcome } from '../../common/outcome.js'
import { MqttError } from '../../errors.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import { type CheckedPublish, payloadBytes, type Sending } from '../options/check-calls.js'
import { asInvalidOption } from '../options/check-options.js'
import type { Receipt } from '../options/index.js'
import type { Keeper, StoringPublishHost } from './keeper.js'
import { Admission, Backlog, RateLimit, WritableGate } from './outbound-queue.js'
import { PoisonDetector } from './poison-detector.js'
import type { PublishHost } from './ports.js'
import {
  aged,
  assertSendable,
  assertTaken,
  isKept,
  notConnected,
  offlinePolicy,
  QueuedPublish,
  receipt,
} from './queued-publish.js'
import { SentPublishes } from './sent-publishes.js'
import { Settlement } from './settlement.js'

/** Options of `post`. */
const noSettings: Sending = { qos: 0, retain: false, properties: undefined }
const qos0Receipt = /* @__PURE__ */ receipt(0, undefined)
const qos0Done = /* @__PURE__ */ Promise.resolve(qos0Receipt)

/** The outgoing messages of one client. */
export class Publishing {
  /** Undefined without the `store` option, and until the store has been read. */
  keeper: Keeper | undefined
  readonly draining: Draining
  /** Publishes that were given up at the end of the client and are in no store. */
  readonly givenUp = { queued: 0, inFlight: 0 }
  /** Sent publishes that lack their last acknowledgement. */
  readonly sent: SentPublishes
  readonly #host: StoringPublishHost
  readonly #backlog = new Backlog()
  readonly #admission: Admission
  readonly #gate: WritableGate
  readonly #settlement: Settlement
  readonly #poison: PoisonDetector
  /** Undefined without `outbound.rate`. */
  readonly #rate: RateLimit | undefined

  constructor(host: StoringPublishHost) {
    const { rate } = host.options.outbound
    this.#host = host
    this.#rate =
      rate &&
      new RateLimit(rate, host.platform, () => this.#gate.lead(this.#rate?.ordered === false))
    this.#poison = new PoisonDetector(host)
    this.#settlement = new Settlement(host, () => this.#handleRoom())
    this.sent = new SentPublishes(host, this.#backlog, this.#settlement, this.#poison, this.#rate)
    this.#admission = new Admission(host, this.#backlog, this.#settlement)
    this.draining = new Draining(host, this.#backlog)
    this.#gate = new WritableGate(host, (post) => this.#hasRoom(post))
  }

  /** Publishes that are not sent yet. */
  get size(): number {
    return this.#backlog.size
  }

  /** True when a caller of `writable` waits. */
  get awaited(): boolean {
    return this.#gate.awaited
  }

  /** True when a publish waits to be sent or resent. */
  get waiting(): boolean {
    return this.size > 0 || this.sent.waiting
  }

  /** Sent publishes that lack their last acknowledgement. */
  get inFlight(): number {
    return this.sent.size
  }

  /** True while a suspect is sent alone or waits for it (see `PoisonDetector`). */
  get isolating(): boolean {
    return this.#poison.trying
  }

  /**
   * Resolves when a QoS 0 publish could be sent or queued without waiting. A loop over it lets the
   * event loop turn now and then.
   */
  get writable(): Promise<void> {
    return this.#gate.promise
  }

  /**
   * Sends at QoS 0 at once, or returns false. Keeps no reference to the payload. @throws MqttError
   * when it can never be sent
   */
  post(topic: string, payload: Uint8Array | string): boolean {
    const output = this.#host.states.stopping ? undefined : this.#immediate
    if (output === undefined) {
      assertSendable(topic, payloadBytes(payload).length, noSettings, this.#host)
      this.#gate.handleRefusal()
      return false
    }
    this.#post(output, topic, payload, noSettings)
    // The caller may write into its bytes again as soon as this returns.
    if (output.source === payload) output.source = new Uint8Array(payload)
    return true
  }

  /** @throws MqttError when it can never be sent */
  publish(topic: string, payload: Uint8Array, options: CheckedPublish): Promise<Receipt> {
    const { signal, flush, qos, properties } = options
    const { session } = this.#host
    assertNotAborted(signal)
    assertTaken(options, this.#host)
    if (qos === 0 && payload.length < largePayload && flush !== true) {
      const output = this.#immediate
      if (output !== undefined) {
        this.#post(output, topic, payload, options)
        return qos0Done
      }
    }
    const output = this.#open
    const item = new QueuedPublish(
      topic,
      payload,
      options,
      properties?.messageExpiryInterval === undefined ? 0 : this.#host.platform.now(),
    )
    if (
      output !== undefined &&
      !this.#backlog.precedes(item, session.sendWindow.exact) &&
      !this.#rate?.yields(qos > 0, this.#backlog, output) &&
      this.#maySend(item, output)
    )
      this.#send(item, output)
    else this.#admission.enqueue(item)
    return item.promise
  }

  /** Rejects a publish that failed its checks. */
  refuse(topic: unknown, error: unknown): Promise<never> {
    this.#settlement.failures.add(typeof topic === 'string' ? topic : '', error)
    return rejected(error)
  }

  /**
   * Sends what waits, as far as connection, quota and identifiers allow. Publishes of an earlier
   * connection are resent first.
   */
  flush(): void {
    for (let output = this.#open; output !== undefined && this.sent.replay(output); )
      output = this.#open
    const rate = this.#rate
    const { sendWindow } = this.#host.session
    let ordered = rate?.ordered === true
    for (let passed = 0; passed < 2; ) {
      const output = this.#open
      const item =
        output && (ordered ? this.#backlog.next(sendWindow.exact) : this.#backlog.immediate.first)
      const goes = output !== undefined && item !== undefined && this.#maySend(item, output)
      passed = goes ? 0 : passed + 1
      if (goes) {
        this.#backlog.remove(item)
        this.#send(item, output)
      }
      // With a rate limit, QoS 0 and the others take turns.
      if (!goes || rate !== undefined) ordered = !ordered
    }
    // There is rate to spare, so the next publish of either kind may be sent.
    if (rate?.open) rate.ordered = undefined
    this.#gate.notify()
  }

  /** The connection is over: publishes that the offline policy does not keep are rejected. */
  handleLost(error: MqttError): void {
    const offline = notConnected(this.#host, error)
    this.#admission.giveUp(
      offline,
      (item) => offlinePolicy(item, this.#host.options.outbound) === 'reject',
    )
    this.sent.handleLost(error)
    this.draining.notify(false)
  }

  /** Drops every publish that was never sent. */
  clear(): void {
    this.#admission.giveUp(new MqttError('ERR_DROPPED'), (item) => !item.again)
  }

  /**
   * The client has ended: every publish settles with its outcome. `asked`: the program ended it, so
   * failures are not reported.
   */
  end(error: MqttError, asked = false): void {
    const lost = (item: QueuedPublish): boolean => !item.settled && !isKept(item)
    this.givenUp.queued += this.#backlog.select(lost).length
    if (this.keeper === undefined) this.givenUp.inFlight += this.sent.all().filter(lost).length
    this.#settlement.failures.quiet ||= asked
    this.keeper?.stop()
    this.#rate?.stop?.()
    const notSent = withOutcome(error, 'not-sent')
    this.#admission.ended = notSent
    const unknown = withOutcome(error, 'unknown')
    this.sent.end(unknown)
    this.#admission.giveUp(unknown, (item) => item.again)
    this.#admission.giveUp(notSent)
    this.handleStopping()
    this.draining.notify(true)
    this.#settlement.failures.end()
  }

  /** Callers of `writable` are rejected. */
  handleStopping(): void {
    this.#gate.close()
  }

  get #open(): PacketWriter | undefined {
    const output = this.#host.connections.connection?.writer
    return output?.writable === true && !this.#poison.silent && this.#rate?.open !== false
      ? output
      : undefined
  }

  get #immediate(): PacketWriter | undefined {
    const output = this.#backlog.immediate.length > 0 ? undefined : this.#open
    return output !== undefined && this.#rate?.yields(false, this.#backlog, output)
      ? undefined
      : output
  }

  #hasRoom(post: boolean): boolean {
    const { connection } = this.#host.connections
    const { options } = this.#host
    const open = post
      ? this.#immediate !== undefined
      : (connection?.writer.writable ?? options.outbound.offline.qos0 === 'queue')
    return open && !this.#backlog.exceeds(options.outbound, this.#settlement.sentBytes)
  }

  // Checks bytes in flight, quota and identifiers. With nothing in flight, a message of any size
  // may be sent.
  #maySend(item: QueuedPublish, output: PacketWriter): boolean {
    const { size, options } = item
    const { session } = this.#host
    const fits =
      this.#settlement.sentBytes === 0 ||
      this.#settlement.sentBytes + size <= this.#host.options.outbound.maxQueuedBytes
    const { qos } = options
    if (!fits || qos === 0) return fits
    if (!this.sent.admits(item)) return false
    if (session.sendWindow.prepare(qos)) return true
    output.queueFlush()
    return false
  }

  #send(item: QueuedPublish, output: PacketWriter): void {
    const { session, counters, platform } = this.#host
    const { topic, options } = item
    const { qos } = options
    try {
      // Refused before a byte is sent when the server does not support it.
      assertTaken(options, this.#host)
      const wire = aged(item, platform.now)
      item.packetId = qos > 0 ? session.sendWindow.publish(qos) : 0
      // Registered before it is written, because a `packet` listener may end the client.
      if (item.packetId > 0) this.sent.add(item)
      this.#settlement.handleSent(item)
      if (qos === 0) {
        this.#settlement.handleWriting(item, output)
        this.#post(output, topic, item.payload, wire)
      } else {
        item.wire = wire
        this.#rate?.spend(topic, item.payload, wire)
        if (this.keeper === undefined) this.sent.write(item, output)
        else this.keeper.keep(item, output)
        if (counters !== undefined) counters.publishesSent += 1
      }
    } catch (error) {
      item.wire = undefined
      if (item.packetId > 0) this.sent.withdraw(item)
      const refusal = asInvalidOption(error, '', item.topic)
      return this.#settlement.fail(
        item,
        item.again && MqttError.is(refusal) ? withOutcome(refusal, 'unknown') : refusal,
      )
    }
    if (!item.settled) this.#follow(item, output)
  }

  #follow(item: QueuedPublish, output: PacketWriter): void {
    const { payload, options } = item
    if (options.qos === 0 && payload.length < largePayload && options.flush !== true)
      return this.#settlement.succeed(item, qos0Receipt)
    if (options.signal !== undefined)
      item.stop ??= onAbort(options.signal, () => this.#admission.abort(item))
    const timeout = options.ackTimeout || this.#host.options.outbound.ackTimeout
    const late = (): void =>
      this.#settlement.report(item, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' }))
    if (options.qos > 0 && timeout) item.late ??= this.#host.platform.setTimer(late, timeout)
    if (options.qos > 0) return
    // Resolves only when the bytes have left, so that callers do not outrun a slow transport.
    output.onWritten((error) =>
      error === undefined
        ? this.#settlement.succeed(item, qos0Receipt)
        : this.#settlement.fail(item, withOutcome(error, 'unknown')),
    )
  }

  #post(output: PacketWriter, topic: string, payload: Uint8Array | string, how: Sending): void {
    const { counters } = this.#host
    try {
      output.post(topic, payload, how)
    } catch (error) {
      throw asInvalidOption(error, '', topic)
    }
    this.#rate?.spend(topic, payloadBytes(payload), how)
    if (counters !== undefined) counters.publishesSent += 1
  }

  #handleRoom(): void {
    if (this.size > 0) this.#host.connections.connection?.writer.queueFlush()
    this.#gate.notify()
    this.draining.notify(false)
  }
}

/** Callers that wait for publishes to leave: `flush()` and `drain()`. */
export class Draining {
  readonly #host: PublishHost
  readonly #backlog: Backlog
  #idle: Deferred<void> | undefined

  constructor(host: PublishHost, backlog: Backlog) {
    this.#host = host
    this.#backlog = backlog
  }

  /** Resolves when no QoS 0 publish is queued and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#host.connections
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    await this.#backlog.immediate.last?.promise.catch(() => undefined)
    const { promise, resolve, reject } = deferred<void>()
    connection.writer.onWritten((error) =>
      error === undefined ? resolve() : reject(withOutcome(error, 'unknown')),
    )
    await promise
  }

  /** Resolves when nothing is queued or in flight and everything sent has left. */
  async drained(): Promise<void> {
    while (this.open > 0 && !this.#host.states.ended) {
      this.#idle ??= deferred()
      await this.#idle.promise
    }
    if (this.#host.connections.connection !== undefined) await this.flushed().catch(() => undefined)
  }

  /** A publish has settled, or the client has ended. */
  notify(over: boolean): void {
    if (this.#idle === undefined || (!over && this.open > 0)) return
    this.#idle.resolve()
    this.#idle = undefined
  }

  /** Publishes that have not settled, including those in a hook. */
  get open(): number {
    return this.#backlog.size + this.#host.publishing.inFlight + (this.#host.hooks?.publishing ?? 0)
  }
}
