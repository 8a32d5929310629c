/**
 * Publishes in flight, in the store: each is there before it is sent, under a number that says its place, and until its exchange is over.
 *
 * It may assume that `restore` is called before there is a connection. It must never delete what the end of the client leaves in flight.
 */
import type { MqttError } from '../../errors.js'
import type { StoreOperation } from '../../store/store.js'
import type { Receipt } from '../api/index.js'
import { withOutcome } from '../common/outcome.js'
import type { CheckedPublish } from '../parsing/requests.js'
import type { Keeper } from '../publishing/keeping.js'
import { QueuedPublish, republishes } from '../publishing/queued-publish.js'
import { AWAIT_PUBACK, AWAIT_PUBCOMP, AWAIT_PUBREC, held } from '../session/numbers.js'
import type { Journal } from './journal.js'
import { KeptEntries } from './kept-entries.js'
import type { DurableHost } from './ports.js'
import { decodePublish, encodePublish, noPayload, type PublishRecord, type PublishStage, putting, type SessionKeys } from './records.js'

/** What waits for the store is marked so. */
const notStored = -1

/** Keeps publishes. */
export class KeptPublishes implements Pick<Keeper, 'keep' | 'forget'> {
  readonly entries: KeptEntries
  readonly #host: DurableHost
  readonly #journal: Journal
  readonly #keys: SessionKeys
  readonly #numbers = new Map<QueuedPublish, number>()
  /** Numbers of what could not be stored. */
  readonly #failed = new Set<number>()
  #last = 0

  constructor(host: DurableHost, journal: Journal, keys: SessionKeys) {
    this.#host = host
    this.#journal = journal
    this.#keys = keys
    this.entries = new KeptEntries(host, journal)
  }

  /** Publishes in flight that are stored, or about to be. */
  get size(): number {
    return this.#numbers.size
  }

  keep(item: QueuedPublish): void {
    const { packetId, options } = item
    const { unacknowledged } = this.#host.publishQueue
    const known = this.#numbers.get(item)
    const number = known ?? ++this.#last
    const key = this.#keys.publish(number)
    this.#numbers.set(item, number)
    if (options.link !== undefined) this.entries.handleKept(options.link.key, key)
    item.length = notStored
    // It may be in flight anew by then, in another session.
    const isCurrent = (): boolean => item.packetId === packetId && unacknowledged.get(packetId) === item
    const written = (): void => {
      if (isCurrent()) unacknowledged.handleKept(item)
    }
    const failed = (error: MqttError): void => {
      if (known === undefined) {
        this.#numbers.delete(item)
        this.#giveBack(number)
        // Whatever is there goes with the next write: the entry may be published again.
        if (options.link !== undefined) this.entries.handleFailed(options.link.key, withOutcome(error, 'not-sent'))
      }
      if (isCurrent()) unacknowledged.handleUnkept(item, error)
    }
    this.#journal.write([putting(key, this.#encode(item, 'sent', item.payload))], written, failed)
  }

  forget(item: QueuedPublish, error: unknown, receipt: Receipt | undefined): void {
    const number = this.#numbers.get(item)
    if (number === undefined || this.#journal.stopped) return
    this.#numbers.delete(item)
    const key = this.#keys.publish(number)
    const { link } = item.options
    const gone = this.#reserve(item.packetId)
    if (link === undefined) return this.#journal.write([{ type: 'delete', key }], gone)
    const failure = (): StoreOperation => putting(key, this.#encode(item, 'failed', noPayload))
    this.entries.handleOver(link.key, { error, receipt, failure, gone })
  }

  // The identifier is not used before the record is gone: gives what says so.
  #reserve(packetId: number): () => void {
    const { reserved } = this.#host.session.sendWindow
    reserved.add(packetId)
    return () => {
      reserved.delete(packetId)
      if (reserved.size === 0) this.#host.flush()
    }
  }

  /** PUBREC came: the change that says so. */
  releasing(packetId: number): StoreOperation[] {
    const item = this.#host.publishQueue.unacknowledged.get(packetId)
    const number = item && this.#numbers.get(item)
    if (item === undefined || number === undefined) return []
    // What is published anew when the session is lost is needed until then.
    const payload = republishes(item, this.#host) ? item.payload : noPayload
    return [putting(this.#keys.publish(number), this.#encode(item, 'released', payload))]
  }

  /** Takes a record of an earlier process; false when it is damaged. */
  restore(number: number, value: Uint8Array): boolean {
    const record = decodePublish(value)
    if (record === undefined || !Number.isSafeInteger(number)) return false
    const { stage, link, packet } = record
    const key = this.#keys.publish(number)
    this.#last = Math.max(this.#last, number)
    if (stage === 'failed') {
      if (link !== undefined) this.entries.restoreFailed(link, key)
      return link !== undefined
    }
    if (this.#host.publishQueue.unacknowledged.get(packet.packetId) !== undefined) return false
    const item = this.#itemOf(record, link && this.entries.restore(link, key))
    this.#numbers.set(item, number)
    this.#goOn(item, stage)
    return true
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
    const options = { qos, retain, properties, onSessionLost: record.onSessionLost, link } as CheckedPublish
    const waited = Math.max(0, platform.date() - record.taken)
    const item = new QueuedPublish(topic, record.payload, options, properties?.messageExpiryInterval === undefined ? 0 : platform.now() - waited)
    item.packetId = packetId
    item.version = record.version
    item.length = record.length
    item.wire = options
    return item
  }

  #goOn(item: QueuedPublish, stage: PublishStage): void {
    const { publishQueue, session } = this.#host
    const released = stage === 'released'
    if (released && !republishes(item, this.#host)) item.wire = undefined
    session.sendWindow.restore(item.packetId, held | (released ? AWAIT_PUBCOMP : item.options.qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK))
    publishQueue.unacknowledged.restore(item, released)
    this.#tell(item)
  }

  #encode({ topic, packetId, options, wire, version, since }: QueuedPublish, stage: PublishStage, payload: Uint8Array): Uint8Array {
    const { platform } = this.#host
    const { qos, retain, properties } = wire ?? options
    const packet = { topic, qos, retain, properties, packetId }
    const taken = platform.date() - (since > 0 ? platform.now() - since : 0)
    return encodePublish({ stage, version, onSessionLost: options.onSessionLost, taken, link: options.link, packet, payload })
  }

  // Nobody awaits it any more.
  #tell({ topic, options, packetId, promise }: QueuedPublish): void {
    const { events } = this.#host
    const tell = (receipt: Receipt | undefined, error: MqttError | undefined): void =>
      events.emit('recovered', { topic, qos: options.qos, packetId, receipt, error })
    promise.then(
      (receipt) => tell(receipt, undefined),
      (error) => tell(undefined, error),
    )
  }
}
