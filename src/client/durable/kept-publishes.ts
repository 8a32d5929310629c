/**
 * Publishes in flight, in the store: each is there before it is sent, under a number that says its place, and until its exchange is over.
 *
 * It may assume that `restore` is called before there is a connection. It must never delete what the end of the client leaves in flight.
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
  /** Its entry is gone. */
  readonly isEvicted?: boolean
}

/** Room in the store that the session keeps for records of publishes at QoS 2, which are not sent without one. */
export interface Spare {
  readonly isThere: boolean
  /** The change that gives it up. */
  take(): StoreOperation
  /** Asks for it again, if it was given up. */
  putBack(): void
}

/** What is left of a publish whose entry is gone: its identifier. */
const gone = {
  stage: 'released',
  payload: noPayload,
  onSessionLost: 'reject',
  link: undefined,
} as const

/** Milliseconds for which a store that takes no record may be failing; after that it is full. */
const patience = 1000

/** Keeps publishes. */
export class KeptPublishes implements Pick<Keeper, 'keep' | 'forget'> {
  readonly entries: KeptEntries
  readonly #spare: Spare
  readonly #host: DurableHost
  readonly #journal: Journal
  readonly #keys: SessionKeys
  readonly #numbers = new Map<QueuedPublish, number>()
  /** Numbers of what could not be stored. */
  readonly #failed = new Set<number>()
  /** Since when the store has taken no record. */
  #refusing: number | undefined
  /** What an earlier process had in flight, by packet identifier. */
  readonly #found = new Map<number, Found>()
  #last = 0
  /** Keys of publishes that are over. */
  readonly #stale: string[] = []

  constructor(host: DurableHost, journal: Journal, keys: SessionKeys, spare: Spare) {
    this.#spare = spare
    this.#host = host
    this.#journal = journal
    this.#keys = keys
    this.entries = new KeptEntries(host, journal)
  }

  /** Publishes in flight that are stored, or about to be. */
  get size(): number {
    return this.#numbers.size
  }

  /** Some at QoS 2 are in flight that must not be sent in another session. */
  get exchanges(): boolean {
    return this.#once.length > 0
  }

  get #once(): QueuedPublish[] {
    return [...this.#numbers.keys()].filter(
      (item) => item.options.qos === 2 && !republishes(item, this.#host),
    )
  }

  /** True while there are some of which it is unknown whether the session is the one in which they were sent. */
  get doubtful(): boolean {
    return this.#once.some(({ doubt }) => doubt !== undefined)
  }

  /** Those at QoS 2 are not sent again: PUBREL ends them. To be called before what is in flight goes on. */
  doubt(): void {
    const { publishQueue, session } = this.#host
    const { sent } = publishQueue
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
    const { sent } = this.#host.publishQueue
    const body = this.#encode(item, 'sent', payloadOf(item))
    // What no packet can carry is not stored.
    const size = sizeOfPacket(body)
    output.assertFits(size)
    const known = this.#numbers.get(item)
    const number = known ?? ++this.#last
    const key = this.#keys.publish(number)
    this.#numbers.set(item, number)
    if (options.link !== undefined) this.entries.handleKept(options.link.key, key)
    item.length = -size
    // It may be in flight again by then, in another session.
    const isCurrent = (): boolean => item.packetId === packetId && sent.get(packetId) === item
    const send = (): void => {
      if (isCurrent()) this.#write(item)
    }
    const written = (): void => {
      this.#refusing = undefined
      send()
    }
    const failed = (error: MqttError, takesDeletions: boolean): void => {
      // At QoS 1 the entry is record enough.
      if (this.#isFull(takesDeletions) && options.link !== undefined && options.qos === 1)
        return send()
      if (known === undefined) {
        this.#numbers.delete(item)
        this.#giveBack(number)
        // Whatever is there goes with the next write: the entry may be published again.
        if (options.link !== undefined)
          this.entries.handleFailed(options.link.key, withOutcome(error, 'not-sent'))
      }
      if (isCurrent()) this.#giveUp(item, error)
    }
    const record = putting(key, body)
    // A full store has no room but what the session keeps.
    const retry = (): void =>
      this.#journal.write([this.#spare.take(), record], written, failed, key)
    this.#journal.write(
      [record],
      written,
      options.link !== undefined && options.qos === 2 && this.#spare.isThere ? retry : failed,
    )
  }

  // It was refused a record. A failure that passes is waited for; a store that is full has to drain.
  #isFull(takesDeletions: boolean): boolean {
    const now = this.#host.platform.now()
    this.#refusing ??= now
    return takesDeletions && now - this.#refusing >= patience
  }

  // It is safe: it leaves, or is a replay of the next connection.
  #write(item: QueuedPublish): void {
    const { connections, publishQueue, session } = this.#host
    const output = connections.connection?.writer
    item.length = Math.abs(item.length)
    if (output === undefined) return
    const isHeld = session.sendWindow.get(item.packetId) >= held
    try {
      output.assertFits(item.length)
      if (!isHeld) publishQueue.sent.write(item, output)
      output.queueFlush()
    } catch (error) {
      this.#giveUp(item, error)
    }
  }

  #giveUp(item: QueuedPublish, error: unknown): void {
    const { sent } = this.#host.publishQueue
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

  /** The store was closed: those whose PUBREL it would have to know of first come to no end here, and ends of entries are not reported any more. */
  handleClosed(error: MqttError): void {
    const { sendWindow } = this.#host.session
    const { sent } = this.#host.publishQueue
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

  /** A connection ended over it: the next process is to know. */
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

  /** PUBREC came: the change that says so. */
  releasing(packetId: number): StoreOperation[] {
    const item = this.#host.publishQueue.sent.get(packetId)
    const number = item && this.#numbers.get(item)
    if (item === undefined || number === undefined) return []
    // What is published again when the session is lost is needed until then.
    const payload = republishes(item, this.#host) ? payloadOf(item) : noPayload
    return [putting(this.#keys.publish(number), this.#encode(item, 'released', payload))]
  }

  /** Takes a record of an earlier process; false when it is damaged. */
  restore(number: number, value: Uint8Array): boolean {
    const record = decodePublish(value)
    if (!Number.isSafeInteger(number)) return false
    // One that is damaged may have to stay in its place.
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

  /** Every record is read: what is in flight goes on. Gives keys of those whose payload was damaged. */
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
    // Identifiers go on behind those of the process before: the server may still answer for them.
    const last = [...this.#found.keys()].reduce((most, each) => Math.max(most, each), 0)
    this.#host.session.sendWindow.avoid((last + 32_767) % 65_535)
    this.#found.clear()
    return damaged
  }

  // One that was released needs it no more, unless its session is lost.
  async #findPayloads(store: Store): Promise<readonly string[]> {
    const damaged: string[] = []
    for (const [packetId, { number, record }] of this.#found) {
      const { payload: length, link, stage } = record
      if (typeof length !== 'number' || link === undefined) continue
      const entry = await store.get(link.key)
      const payload = entry && payloadOfEntry(entry, length)
      if (payload === undefined && stage === 'sent') {
        this.#found.delete(packetId)
        // An entry that is gone was evicted, or its queue reports it as damaged: what the server may have of it ends with PUBREL.
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

  // Its identifier has another publish: it has ended, and the process died before the store knew that. The failure of an entry has a record, and what was
  // released is the server's; otherwise the outcome is unknown, and the queue decides.
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

  /** Everything is read: records without a purpose are deleted. */
  async tidy(store: Store): Promise<void> {
    if (this.#stale.length > 0)
      await store.batch(this.#stale.map((key): StoreOperation => ({ type: 'delete', key })))
    await this.entries.forgetDeleted(store)
  }

  // While the store fails the same numbers serve again: as many as are asked for at a time.
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
    const { publishQueue, session } = this.#host
    const released = stage === 'released'
    if (released && !republishes(item, this.#host)) item.wire = undefined
    session.sendWindow.set(
      item.packetId,
      held | (released ? AWAIT_PUBCOMP : item.options.qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK),
    )
    const { sent } = publishQueue
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
    // What is stored goes down from the time at which it was sent, or else from the call.
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

  // No caller awaits it any more.
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

// That of an entry lies in the entry.
function payloadOf({ options, payload }: QueuedPublish): Uint8Array | number {
  return options.link === undefined ? payload : payload.length
}
