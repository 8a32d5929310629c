/**
 * Incoming messages of a stored session: the identifier of each is stored before it is handed out,
 * with one write per read.
 *
 * Reading pauses until the write is done, so that a slow store slows the server down instead of
 * filling memory. Waiting messages are copies and count against the memory budget. A record stays
 * until the server is known to have read the acknowledgement, because until then it may resend the
 * message. A message is never handed out before its record is stored, and ids are never reused.
 */

import { encoder } from '../../common/schema.js'
import { crc32c } from '../../store/base/checksum.js'
import type { StoreOperation } from '../../store/base/store.js'
import { PublishView } from '../../wire/publish.js'
import type { TopicRecord } from '../../wire/topic-table.js'
import type { PacketReader } from '../connection/packet-reader.js'
import type { MessageTaker } from '../connection/ports.js'
import { costOf } from '../deliver/message.js'
import type { Settler } from '../deliver/shared-outcome.js'
import { QOS2_EARLIER } from '../session/receive-window.js'
import type { Journal } from './journal.js'
import type { DurableHost } from './ports.js'
import { encodeInbound, type InboundRecord, putting, type SessionKeys } from './records.js'

/** A message that waits for its record. */
interface Waiting {
  readonly view: PublishView
  readonly record: TopicRecord
  readonly ticket: number
  readonly size: number
  readonly settler: Settler
}

/** Takes messages in for the router. */
export class Inbox implements MessageTaker {
  readonly #host: DurableHost
  readonly #journal: Journal
  readonly #keys: SessionKeys
  readonly #epoch: number
  /** By packet identifier. */
  readonly #known = new Map<number, InboundRecord>()
  /** Records of messages that were acknowledged at the latest PINGRESP of this connection. */
  #acknowledged = new Map<number, InboundRecord>()
  #counter = 0
  /** Resolves when deleted records are gone from the store. */
  #clearing: Promise<void> | undefined
  #handleCleared: (() => void) | undefined
  /** Messages of the current read. */
  #waiting: Waiting[] = []
  #operations: StoreOperation[] = []
  /** Number of reads whose records are being written. */
  #writes = 0
  /**
   * The store failed while records were being written: until it works again, reading is not paused.
   */
  #failing = false
  /** The reader that is paused until they are written. */
  #held: PacketReader | undefined

  constructor(host: DurableHost, journal: Journal, keys: SessionKeys, epoch: number) {
    this.#host = host
    this.#journal = journal
    this.#keys = keys
    this.#epoch = epoch
  }

  get borrowers(): MessageTaker['borrowers'] {
    return this.#host.router.borrowers
  }

  /** Number of known identifiers. */
  get size(): number {
    return this.#known.size
  }

  /** Restores a record of an earlier process. */
  restore(packetId: number, record: InboundRecord): void {
    this.#known.set(packetId, record)
    if (record.received) this.#host.session.receiveWindow.ids.set(packetId, QOS2_EARLIER)
  }

  moveOut(must: boolean): void {
    this.#host.router.moveOut(must)
  }

  handleRead(window: Parameters<MessageTaker['handleRead']>[0]): void {
    this.#host.router.handleRead(window)
  }

  handleMessage(view: PublishView, record: TopicRecord, ticket: number, limit: number): void {
    const { router } = this.#host
    // QoS 0 messages must not overtake waiting messages.
    if (view.qos === 0 && this.#waiting.length + this.#writes === 0)
      return router.handleMessage(view, record, ticket, limit)
    const print = view.qos === 0 ? 0 : printOf(view, record.name)
    const known = this.#known.get(view.packetId)
    const isKnown =
      known !== undefined && view.dup && known.print === print && known.qos === view.qos
    // Already received (QoS 2): acknowledged again, not delivered.
    if (isKnown && known.received) {
      router.handleRepeat()
      this.#host.settle(ticket, 0)
      return
    }
    const size = costOf(view, record.name)
    if (!router.budget.affords(size, record.name, ticket, view.qos)) return
    router.budget.add(size)
    const settler =
      view.qos === 0
        ? this.#host
        : new Outcome(
            this.#host,
            idOf(isKnown ? this.#again(view, known) : this.#take(view, print)),
          )
    this.#waiting.push({ view: copied(view), record, ticket, size, settler })
  }

  handleTooLarge(view: PublishView, topic: string, size: number): void {
    this.#host.router.handleTooLarge(view, topic, size)
  }

  handleRepeat(): void {
    this.#host.router.handleRepeat()
  }

  handleReadEnd(): void {
    this.#host.router.handleReadEnd()
    if (this.#waiting.length === 0) return
    const messages = this.#waiting
    const operations = this.#operations
    const reader = this.#host.connections.current?.reader
    this.#waiting = []
    this.#operations = []
    this.#writes += 1
    if (!this.#failing) {
      reader?.hold(this)
      this.#held = reader
    }
    this.#journal.write(operations, () => this.#handOut(messages, reader))
  }

  /** The QoS 2 message with this identifier was accepted: the change to store. */
  receiving(packetId: number): StoreOperation[] {
    return this.#mark(packetId, true)
  }

  #mark(packetId: number, received: boolean): StoreOperation[] {
    const record = this.#known.get(packetId)
    if (record === undefined) return []
    const marked = { ...record, received }
    this.#known.set(packetId, marked)
    return [putting(this.#keys.inbound(packetId), encodeInbound(marked))]
  }

  /** PUBREL came: the change after which the identifier no longer counts as received. */
  completing(packetId: number): StoreOperation[] {
    return this.#mark(packetId, false)
  }

  /** A connection is up. */
  handleConnected(): void {
    this.#acknowledged.clear()
  }

  /**
   * PINGRESP came: the server has read what was acknowledged when the previous one came, and will
   * not resend it.
   */
  confirm(): void {
    const { ids } = this.#host.session.receiveWindow
    const before = this.#acknowledged
    this.#acknowledged = new Map([...this.#known].filter(([packetId]) => ids.get(packetId) === 0))
    const over = [...this.#acknowledged].filter(
      ([packetId, record]) => before.get(packetId) === record,
    )
    this.#journal.insist(over.flatMap(([packetId]) => this.#forgetting(packetId)))
  }

  /**
   * The session is lost: deletes all records. Resolves when they are gone; undefined when there are
   * none. No message of the new session may come before that, because it would be mistaken for an
   * old one.
   */
  clear(): Promise<void> | undefined {
    const changes = [...this.#known.keys()].flatMap((packetId) => this.#forgetting(packetId))
    if (changes.length > 0) {
      const cleared = new Promise<void>((resolve) => {
        this.#handleCleared = resolve
        this.#journal.write(changes, resolve)
      }).then(() => {
        if (this.#clearing === cleared) this.#clearing = undefined
      })
      this.#clearing = cleared
    }
    return this.#clearing
  }

  /** The program has closed the store: records stay, and connections no longer wait. */
  handleClosed(): void {
    this.#handleCleared?.()
  }

  #forgetting(packetId: number): StoreOperation[] {
    this.#known.delete(packetId)
    return [{ type: 'delete', key: this.#keys.inbound(packetId) }]
  }

  /**
   * The store fails: reading continues, because acknowledgements of the server free space in the
   * store. Messages wait within the memory budget.
   */
  handleFailing(): void {
    this.#failing ||= this.#writes > 0
    const reader = this.#held
    this.#held = undefined
    if (reader !== undefined && this.#host.connections.current?.reader === reader)
      reader.release(this)
  }

  #handOut(messages: readonly Waiting[], reader: PacketReader | undefined): void {
    const { connections, router, states } = this.#host
    this.#writes -= 1
    this.#failing &&= this.#writes > 0
    if (states.ended) return
    const { budget, factory } = router
    router.handleRead(undefined)
    for (const { view, record, ticket, size, settler } of messages) {
      if (states.ended) break
      budget.add(-size)
      budget.granted = true
      factory.settler = settler
      router.handleMessage(view, record, ticket)
    }
    budget.granted = false
    factory.settler = this.#host
    router.handleReadEnd()
    if (this.#writes === 0 && reader !== undefined && connections.current?.reader === reader)
      reader.release(this)
  }

  // The server may resend it once more.
  #again({ packetId }: PublishView, known: InboundRecord): InboundRecord {
    this.#acknowledged.delete(packetId)
    return known
  }

  #take({ packetId, qos }: PublishView, print: number): InboundRecord {
    const record = { qos, received: false, epoch: this.#epoch, counter: ++this.#counter, print }
    this.#known.set(packetId, record)
    this.#operations.push(putting(this.#keys.inbound(packetId), encodeInbound(record)))
    return record
  }
}

// A checksum of topic and payload. DUP only says that there may be an earlier copy, so a message
// with another checksum is a different one.
function printOf(view: PublishView, topic: string): number {
  return crc32c(view.payload(), crc32c(encoder.encode(topic)))
}

function idOf({ epoch, counter }: InboundRecord): string {
  return `${epoch.toString(36)}-${counter.toString(36)}`
}

/** Receives the outcome of a message that has an id. */
class Outcome implements Settler {
  readonly id: string
  readonly #host: Settler

  constructor(host: Settler, id: string) {
    this.#host = host
    this.id = id
  }

  settle(ticket: number, reasonCode: number): boolean {
    return this.#host.settle(ticket, reasonCode)
  }

  handleTurnEnd(): void {
    this.#host.handleTurnEnd?.()
  }
}

/**
 * A copy of a view in its own memory. A payload that lies apart is not shared and needs no copy.
 */
function copied(view: PublishView): PublishView {
  const copy = new PublishView()
  const { topicStart, apart } = view
  copy.bytes = view.bytes.slice(
    topicStart,
    apart === undefined ? view.payloadEnd : view.propertiesEnd,
  )
  copy.record = view.record
  copy.qos = view.qos
  copy.dup = view.dup
  copy.retain = view.retain
  copy.packetId = view.packetId
  copy.topicEnd = view.topicEnd - topicStart
  copy.propertiesStart = view.propertiesStart - topicStart
  copy.propertiesEnd = view.propertiesEnd - topicStart
  copy.payloadStart = view.payloadStart - topicStart
  copy.payloadEnd = view.payloadEnd - topicStart
  copy.apart = apart
  copy.topicAlias = view.topicAlias
  copy.userPropertyCount = view.userPropertyCount
  copy.subscriptionIdentifierCount = view.subscriptionIdentifierCount
  copy.subscriptionIdentifiers.push(
    ...view.subscriptionIdentifiers.slice(0, view.subscriptionIdentifierCount),
  )
  return copy
}
