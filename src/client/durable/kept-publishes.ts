/**
 * Publishes in flight in the store: each is stored before it is sent, under a number that gives its
 * order, until its exchange is over.
 *
 * `restore` must be called before there is a connection. What is in flight at the end of the client
 * is never deleted.
 */

import { withOutcome } from '../../common/outcome.js'
import { MqttError } from '../../errors.js'
import type { Store, StoreOperation } from '../../store/base/store.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { CheckedPublish } from '../options/check-calls.js'
import type { Receipt } from '../options/index.js'
import type { Keeper } from '../publish/keeper.js'
import {
  earlierSuspicion,
  QueuedPublish,
  receipt,
  republishes,
  sessionLost,
} from '../publish/queued-publish.js'
import {
  AWAIT_PUBACK,
  AWAIT_PUBCOMP,
  AWAIT_PUBREC,
  held,
  STORING_RELEASE,
} from '../session/packet-identifiers.js'
import type { Journal } from './journal.js'
import { KeptEntries } from './kept-entries.js'
import type { DurableHost } from './ports.js'
import {
  decodePublish,
  encodePublish,
  noPayload,
  type PublishRecord,
  type PublishStage,
  payloadOfEntry,
  putting,
  type SessionKeys,
  sizeOfPacket,
} from './records.js'

/** A record of an earlier process. */
interface Found {
  readonly number: number
  readonly record: PublishRecord
  /** Its queue entry was deleted. */
  readonly isEvicted?: boolean
}

/**
 * Reserved space in the store, for records of QoS 2 publishes, which are not sent without a record.
 */
export interface Spare {
  readonly isThere: boolean
  /** The change that releases the space. */
  take(): StoreOperation
  /** Reserves it again, if it was released. */
  putBack(): void
}

/** Replacement for a publish whose entry was deleted: only the identifier is left. */
const gone = {
  stage: 'released',
  payload: noPayload,
  onSessionLost: 'reject',
  link: undefined,
} as const

/**
 * A store that accepts no record for longer than this many milliseconds counts as full, before that
 * as failing.
 */
const patience = 1000

/** The stored publishes of one client. */
export class KeptPublishes implements Pick<Keeper, 'keep' | 'forget'> {
  readonly entries: KeptEntries
  readonly #spare: Spare
  readonly #host: DurableHost
  readonly #journal: Journal
  readonly #keys: SessionKeys
  readonly #numbers = new Map<QueuedPublish, number>()
  /** Numbers whose record could not be stored. */
  readonly #failed = new Set<number>()
  /** Since when the store has accepted no record. */
  #refusing: number | undefined
  /** Publishes of an earlier process, by packet identifier. */
  readonly #found = new Map<number, Found>()
  #last = 0
  /** Keys of obsolete records. */
  readonly #stale: string[] = []

  constructor(host: DurableHost, journal: Journal, keys: SessionKeys, spare: Spare) {
    this.#spare = spare
    this.#host = host
    this.#journal = journal
    this.#keys = keys
    this.entries = new KeptEntries(host, journal)
  }

  /** Number of publishes in flight that are stored or being stored. */
  get size(): number {
    return this.#numbers.size
  }

  /** True when QoS 2 publishes are in flight that must not be sent in another session. */
  get exchanges(): boolean {
    return this.#once.length > 0
  }

  get #once(): QueuedPublish[] {
    return [...this.#numbers.keys()].filter(
      (item) => item.options.qos === 2 && !republishes(item, this.#host),
    )
  }

  /**
   * True when it is unknown for some of them whether the session is still the one they were sent
   * in.
   */
  get doubtful(): boolean {
    return this.#once.some(({ doubt }) => doubt !== undefined)
  }

  /**
   * Marks those QoS 2 publishes as not to be resent: PUBREL ends them. Call it before anything is
   * replayed.
   */
  doubt(): void {
    const { publishing, session } = this.#host
    const { sent } = publishing
    for (const item of this.#once) {
      if (sent.get(item.packetId) !== item) continue
      item.doubt = sessionLost()
      item.wire = undefined
      item.released ||= ++sent.releases
      session.sendWindow.set(item.packetId, held | AWAIT_PUBCOMP)
    }
  }

  keep(item: QueuedPublish, output: PacketWriter): void {
    const { packetId, options } = item
    const { sent } = this.#host.publishing
    const body = this.#encode(item, 'sent', payloadOf(item))
    // A message that no packet can carry is not stored.
    const size = sizeOfPacket(body)
    output.assertFits(size)
    const known = this.#numbers.get(item)
    const number = known ?? ++this.#last
    const key = this.#keys.publish(number)
    this.#numbers.set(item, number)
    if (options.link !== undefined) this.entries.handleKept(options.link.key, key)
    item.length = -size
    // By then, the message may be in flight again in another session.
    const isCurrent = (): boolean => item.packetId === packetId && sent.get(packetId) === item
    const send = (): void => {
      if (isCurrent()) this.#write(item)
    }
    const written = (): void => {
      this.#refusing = undefined
      send()
    }
    const failed = (error: MqttError, takesDeletions: boolean): void => {
      // At QoS 1, the queue entry itself is a sufficient record.
      if (this.#isFull(takesDeletions) && options.link !== undefined && options.qos === 1)
        return send()
      if (known === undefined) {
        this.#numbers.delete(item)
        this.#giveBack(number)
        // What may have been written is deleted with the next write, so the entry can be published
        // again.
        if (options.link !== undefined)
          this.entries.handleFailed(options.link.key, withOutcome(error, 'not-sent'))
      }
      if (isCurrent()) this.#giveUp(item, error)
    }
    const record = putting(key, body)
    // A full store still has the reserved space.
    const retry = (): void =>
      this.#journal.write([this.#spare.take(), record], written, failed, key)
    this.#journal.write(
      [record],
      written,
      options.link !== undefined && options.qos === 2 && this.#spare.isThere ? retry : failed,
    )
  }

  // A record was refused. A temporary failure is waited for; a full store has to drain.
  #isFull(takesDeletions: boolean): boolean {
    const now = this.#host.platform.now()
    this.#refusing ??= now
    return takesDeletions && now - this.#refusing >= patience
  }

  // The record is stored: sends the message, unless the next connection replays it.
  #write(item: QueuedPublish): void {
    const { connections, publishing, session } = this.#host
    const output = connections.connection?.writer
    item.length = Math.abs(item.length)
    if (output === undefined) return
    const isHeld = session.sendWindow.get(item.packetId) >= held
    try {
      output.assertFits(item.length)
      if (!isHeld) publishing.sent.write(item, output)
      output.queueFlush()
    } catch (error) {
      this.#giveUp(item, error)
    }
  }

  #giveUp(item: QueuedPublish, error: unknown): void {
    const { sent } = this.#host.publishing
    sent.withdraw(item)
    sent.settlement.fail(
      item,
      item.again && MqttError.is(error) ? withOutcome(error, 'unknown') : error,
    )
  }

  forget(item: QueuedPublish, error: unknown, given: Receipt | undefined): void {
    const number = this.#numbers.get(item)
    if (number === undefined || this.#journal.stopped || this.#journal.closed) return
    this.#numbers.delete(item)
    if (this.#numbers.size === 0) this.#spare.putBack()
    const key = this.#keys.publish(number)
    const { link } = item.options
    if (link === undefined) return this.#journal.insist([{ type: 'delete', key }])
    const ending = (): StoreOperation =>
      putting(key, this.#encode(item, given === undefined ? 'failed' : 'acknowledged', noPayload))
    this.entries.handleOver(link.key, error, given, ending)
  }

  /**
   * The store was closed: publishes whose PUBREL would need a write end here, and ends of entries
   * are no longer reported.
   */
  handleClosed(error: MqttError): void {
    const { sendWindow } = this.#host.session
    const { sent } = this.#host.publishing
    for (const item of [...this.#numbers.keys()]) {
      if (
        (sendWindow.get(item.packetId) & ~held) !== STORING_RELEASE ||
        sent.get(item.packetId) !== item
      )
        continue
      sent.delete(item.packetId)
      sent.settlement.fail(item, error, true)
    }
    this.entries.stop(error)
  }

  /** A connection ended on this message: stores that for the next process. */
  suspect(item: QueuedPublish): Promise<void> | undefined {
    const number = this.#numbers.get(item)
    if (number === undefined) return undefined
    const change = [
      putting(this.#keys.publish(number), this.#encode(item, 'sent', payloadOf(item))),
    ]
    const isCurrent = (): boolean => this.#numbers.get(item) === number
    return new Promise((resolve) =>
      this.#journal.write(change, resolve, () => resolve(), '', isCurrent),
    )
  }

  /** PUBREC came: the change to store. */
  releasing(packetId: number): StoreOperation[] {
    const item = this.#host.publishing.sent.get(packetId)
    const number = item && this.#numbers.get(item)
    if (item === undefined || number === undefined) return []
    // If the message is published again after a lost session, its payload is still needed.
    const payload = republishes(item, this.#host) ? payloadOf(item) : noPayload
    return [putting(this.#keys.publish(number), this.#encode(item, 'released', payload))]
  }

  /** Restores a record of an earlier process; false when it is damaged. */
  restore(number: number, value: Uint8Array): boolean {
    const record = decodePublish(value)
    if (!Number.isSafeInteger(number)) return false
    // A damaged record may stay under its number.
    this.#last = Math.max(this.#last, number)
    if (record === undefined) return false
    const { stage, link, packet } = record
    const key = this.#keys.publish(number)
    if (stage === 'failed' || stage === 'acknowledged') {
      if (link !== undefined)
        this.entries.restoreEnded(
          link,
          key,
          stage === 'failed' ? undefined : receipt(0, packet.packetId),
        )
      return link !== undefined
    }
    const earlier = this.#found.get(packet.packetId)
    if (earlier !== undefined) this.#supersede(earlier)
    this.#found.set(packet.packetId, { number, record })
    return true
  }

  /**
   * After all records were read: resumes what is in flight. Returns keys of records with a damaged
   * payload.
   */
  async goOn(store: Store): Promise<readonly string[]> {
    const damaged = await this.#findPayloads(store)
    for (const { number, record, isEvicted } of [...this.#found.values()].sort(
      (one, other) => one.number - other.number,
    )) {
      const item = this.#itemOf(
        record,
        record.link && this.entries.restore(record.link, this.#keys.publish(number)),
      )
      this.#numbers.set(item, number)
      this.#resume(item, record.stage)
      if (isEvicted)
        item.doubt = new MqttError('ERR_DROPPED', 'its entry is not in the queue any more', {
          outcome: 'unknown',
        })
    }
    // Identifiers continue behind those of the previous process, for which acknowledgements may
    // still come.
    const last = [...this.#found.keys()].reduce((most, each) => Math.max(most, each), 0)
    this.#host.session.sendWindow.avoid((last + 32_767) % 65_535)
    this.#found.clear()
    return damaged
  }

  // Loads payloads from queue entries. A released publish needs its payload only if the session is
  // lost.
  async #findPayloads(store: Store): Promise<readonly string[]> {
    const damaged: string[] = []
    for (const [packetId, { number, record }] of this.#found) {
      const { payload: length, link, stage } = record
      if (typeof length !== 'number' || link === undefined) continue
      const entry = await store.get(link.key)
      const payload = entry && payloadOfEntry(entry, length)
      if (payload === undefined && stage === 'sent') {
        this.#found.delete(packetId)
        // A missing entry was evicted, or its queue reports it as damaged. If the server may have
        // the QoS 2 message, PUBREL ends it.
        if (entry !== undefined) damaged.push(this.#keys.publish(number))
        else if (record.packet.qos === 1) this.#stale.push(this.#keys.publish(number))
        else this.#found.set(packetId, { number, record: { ...record, ...gone }, isEvicted: true })
      } else if (payload === undefined)
        this.#found.set(packetId, {
          number,
          record: { ...record, payload: noPayload, onSessionLost: 'reject' },
        })
      else this.#found.set(packetId, { number, record: { ...record, payload } })
    }
    return damaged
  }

  // Another publish has reused its identifier, so it has ended, and the process died before that
  // was stored. A released one is the server's; failures of entries have a record; otherwise the
  // outcome is unknown, and the queue decides.
  #supersede({ number, record: { link, stage, packet } }: Found): void {
    const key = this.#keys.publish(number)
    if (link === undefined) this.#stale.push(key)
    else
      this.entries.restoreEnded(
        link,
        key,
        stage === 'released' ? receipt(0, packet.packetId) : undefined,
      )
  }

  /** Deletes obsolete records, after everything was read. */
  async tidy(store: Store): Promise<void> {
    if (this.#stale.length > 0)
      await store.batch(this.#stale.map((key): StoreOperation => ({ type: 'delete', key })))
    await this.entries.forgetDeleted(store)
  }

  // Reuses the numbers of failed records, so that a failing store needs only as many as are in
  // flight.
  #giveBack(number: number): void {
    this.#failed.add(number)
    while (this.#failed.delete(this.#last)) this.#last -= 1
    if (this.#numbers.size === 0) this.#failed.clear()
  }

  #itemOf(record: PublishRecord, link: CheckedPublish['link']): QueuedPublish {
    const { platform } = this.#host
    const { packetId, topic, qos, retain, properties } = record.packet
    const options = {
      qos,
      retain,
      properties,
      onSessionLost: record.onSessionLost,
      link,
    } as CheckedPublish
    const waited = Math.max(0, platform.date() - record.taken)
    const item = new QueuedPublish(
      topic,
      record.payload as Uint8Array,
      options,
      properties?.messageExpiryInterval === undefined ? 0 : platform.now() - waited,
    )
    item.packetId = packetId
    item.length = record.length
    item.wire = options
    item.suspicion = earlierSuspicion(record.strikes)
    return item
  }

  #resume(item: QueuedPublish, stage: PublishStage): void {
    const { publishing, session } = this.#host
    const released = stage === 'released'
    if (released && !republishes(item, this.#host)) item.wire = undefined
    session.sendWindow.set(
      item.packetId,
      held | (released ? AWAIT_PUBCOMP : item.options.qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK),
    )
    const { sent } = publishing
    sent.add(item)
    sent.settlement.handleSent(item)
    if (released) item.released = ++sent.releases
    this.#emitRecovered(item)
  }

  #encode(
    { topic, packetId, options, wire, since, suspicion }: QueuedPublish,
    stage: PublishStage,
    payload: Uint8Array | number,
  ): Uint8Array {
    const { platform } = this.#host
    const { qos, retain, properties } = wire ?? options
    const packet = { topic, qos, retain, properties, packetId }
    // The stored expiry interval counts from when the message was sent, or from the call if it was
    // not.
    const aged =
      (options.properties?.messageExpiryInterval ?? 0) - (properties?.messageExpiryInterval ?? 0)
    const taken = platform.date() - (since > 0 ? platform.now() - since - aged * 1000 : 0)
    const strikes = stage === 'sent' ? (suspicion?.strikes ?? 0) : 0
    return encodePublish({
      stage,
      onSessionLost: options.onSessionLost,
      taken,
      link: options.link,
      packet,
      payload,
      strikes,
    })
  }

  // Emits `recovered` when a publish of an earlier process ends: no caller waits for it.
  #emitRecovered({ topic, options, packetId, promise }: QueuedPublish): void {
    const { events } = this.#host
    const emitRecovered = (given: Receipt | undefined, error: MqttError | undefined): void =>
      events.emit('recovered', { topic, qos: options.qos, packetId, receipt: given, error })
    promise.then(
      (given) => emitRecovered(given, undefined),
      (error) => emitRecovered(undefined, error),
    )
  }
}

// The payload of a queue entry is stored only in the entry; here, its length.
function payloadOf({ options, payload }: QueuedPublish): Uint8Array | number {
  return options.link === undefined ? payload : payload.length
}
