/** What may leave the device only after something is safe: it sees each packet before the other side does, and looks at the disk. */
import {
  decodeInbound,
  decodePublish,
  decodeSession,
  type InboundRecord,
  type PublishRecord,
  payloadOfEntry,
} from '../../../src/client/durable/records.js'
import { recovered, type SimulatedDisk } from '../../unit/store/simulated-disk.js'
import { Malformed, payloadName, readPacket, type Seen, Splitter } from '../reader.js'
import type { History } from './history.js'

/** A publish in flight, as the disk has it. */
export interface KeptPublish {
  readonly number: number
  readonly packetId: number
  readonly stage: PublishRecord['stage']
  readonly qos: number
  readonly name: string
  /** It is that of an entry of a queue. */
  readonly linked: boolean
}

/** Names of messages by number of their record: a record that is released has no payload any more. */
export type Names = Map<number, string>

export class DiskView {
  readonly #disk: SimulatedDisk
  readonly #whole: boolean
  readonly #prefix: string
  readonly #names: Names
  #found = recovered(new Uint8Array(0))
  #publishes: readonly KeptPublish[] | undefined
  #inbound: ReadonlyMap<number, InboundRecord> | undefined

  constructor(disk: SimulatedDisk, whole: boolean, clientId: string, names: Names) {
    this.#disk = disk
    this.#whole = whole
    this.#prefix = `c/${clientId}/`
    this.#names = names
  }

  get entries(): ReadonlyMap<string, Uint8Array> {
    const length = this.#whole ? this.#disk.written.length : this.#disk.synced
    if (length < this.#found.length) this.#read(recovered(this.#disk.written.subarray(0, length)))
    else if (length > this.#found.length)
      this.#read(recovered(this.#disk.written.subarray(0, length), this.#found))
    return this.#found.entries
  }

  get publishes(): readonly KeptPublish[] {
    const { entries } = this
    this.#publishes ??= [...entries]
      .filter(([key]) => key.startsWith(`${this.#prefix}o/`))
      .sort()
      .map(([key, value]) => this.#publishOf(Number(key.slice(this.#prefix.length + 2)), value))
    return this.#publishes
  }

  /** What is known under the identifiers of incoming messages. */
  get inbound(): ReadonlyMap<number, InboundRecord> {
    const { entries } = this
    this.#inbound ??= new Map(
      [...entries]
        .filter(([key]) => key.startsWith(`${this.#prefix}i/`))
        .map(([key, value]) => [
          Number(key.slice(this.#prefix.length + 2)),
          decodeInbound(value) as InboundRecord,
        ]),
    )
    return this.#inbound
  }

  /** What the session's own record says of a CONNECT whose answer is open; undefined without a record. */
  get asking(): boolean | undefined {
    const record = this.entries.get(`${this.#prefix}m`)
    return record && decodeSession(record)?.asking
  }

  /** The name of the message of the entry that a record refers to; undefined where that entry is not on the disk. */
  entryOf({ link, payload }: PublishRecord): string | undefined {
    const entry = link && this.entries.get(link.key)
    const bytes = entry && (typeof payload === 'number' ? payloadOfEntry(entry, payload) : payload)
    return bytes && payloadName(bytes)
  }

  #read(found: ReturnType<typeof recovered>): void {
    this.#found = found
    this.#publishes = undefined
    this.#inbound = undefined
  }

  #publishOf(number: number, value: Uint8Array): KeptPublish {
    const record = decodePublish(value)
    if (record === undefined) throw new Error(`the record of publish ${number} does not parse`)
    const { packet, payload, stage, link } = record
    const { entries } = this
    const bytes =
      typeof payload === 'number'
        ? payloadOfEntry(entries.get(link?.key ?? '') ?? new Uint8Array(0), payload)
        : payload
    if (bytes !== undefined && bytes.length > 0) this.#names.set(number, payloadName(bytes))
    return {
      number,
      packetId: packet.packetId,
      stage,
      qos: packet.qos,
      name: this.#names.get(number) ?? '',
      linked: link !== undefined,
    }
  }
}

interface WireHost {
  readonly history: History
  readonly version: 4 | 5
  readonly inbound: boolean
  /** What is written is on the disk, and QoS 2 must not be sent in another session. */
  readonly strict: boolean
  /** What a crash would leave now. */
  readonly view: DiskView
  /** The record of a publish under this identifier that the store of the process refused last, if it has not taken it since. */
  refused(id: number): PublishRecord | undefined
  /** True until the process that opened a connection dies. */
  alive(): () => boolean
  /** A packet went by: a moment at which the process may die. */
  handlePacket(way: 'up' | 'down', seen: Seen): void
}

const refusal = 0x80

export class WireRules {
  readonly assignedId = ''
  readonly #host: WireHost
  /** Exchanges that are open towards the broker, as the client knows it: the message under each identifier. */
  readonly #open = new Map<number, { readonly name: string; readonly qos: number }>()

  #latest = { asked: false, answered: false, alive: (): boolean => true }

  constructor(host: WireHost) {
    this.#host = host
  }

  connect(): { sent(bytes: Uint8Array): void; arriving(bytes: Uint8Array): void; end(): void } {
    const alive = this.#host.alive()
    const { view, history } = this.#host
    const { asked, answered } = this.#latest
    // What nobody can know: the session may be another one, and its CONNACK never came.
    if (asked && !answered && (this.#latest.alive() || view.asking !== true))
      history.unanswered += 1
    this.#latest = { asked: false, answered: false, alive }
    const ways = { up: new Splitter(), down: new Splitter() }
    /** Messages that this connection brought, by their identifiers. */
    const brought = new Map<number, string>()
    const through = (way: 'up' | 'down') => (bytes: Uint8Array) => {
      if (!alive()) return
      for (const packet of this.#packets(ways[way], bytes)) {
        if (!alive()) return
        this.#host.handlePacket(way, packet)
        if (!alive()) return
        if (way === 'up') this.#handleSent(packet, brought)
        else this.#handleArriving(packet, brought)
      }
    }
    return { sent: through('up'), arriving: through('down'), end: () => undefined }
  }

  *#packets(splitter: Splitter, bytes: Uint8Array): Generator<Seen> {
    try {
      for (const packet of splitter.push(bytes)) yield readPacket(packet, this.#host.version)
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      this.#report('wire', error.message)
    }
  }

  #handleSent(seen: Seen, brought: ReadonlyMap<number, string>): void {
    const { kind, id, reason } = seen
    if (kind === 'connect') this.#handleConnect()
    if (kind === 'publish' && seen.qos > 0) this.#handlePublish(seen)
    if (kind === 'pubrel') this.#handlePubrel(id, reason)
    if (kind === 'pubcomp' && this.#received(id))
      this.#report('early', `PUBCOMP ${id}, and the disk says that the message may come`)
    if (kind !== 'puback' && kind !== 'pubrec') return
    const name = brought.get(id) ?? ''
    if (reason < refusal && this.#host.history.fed.get(name)?.handled === 0)
      this.#report('early', `${kind} ${id} of ${name}, which nobody has handled`)
    if (kind === 'pubrec' && reason < refusal && this.#host.inbound && !this.#received(id))
      this.#report('early', `PUBREC ${id} of ${name}, and it is not on the disk`)
  }

  // A process that dies at its CONNACK cannot say any more that the session was lost. Of an exchange that is over its record may still be there.
  #handleConnect(): void {
    const { view, strict } = this.#host
    this.#latest.asked = true
    const open = view.publishes.some(
      ({ qos, stage, packetId }) =>
        qos === 2 && (stage === 'sent' || stage === 'released') && this.#open.has(packetId),
    )
    if (strict && open && view.asking === false)
      this.#report('early', 'CONNECT, and the disk does not say that its answer is open')
  }

  #handlePublish({ id, qos, dup, payload: name }: Seen): void {
    const stored = this.#host.view.publishes.some(
      (kept) => kept.packetId === id && kept.name === name && kept.stage === 'sent',
    )
    if (!stored && !(qos === 1 && this.#isRefusedEntry(id, name)))
      this.#report('early', `PUBLISH ${id} of ${name}, and it is not on the disk`)
    const open = this.#open.get(id)
    if (open !== undefined && open.name !== name)
      this.#report('wire', `PUBLISH ${id} of ${name}, and ${open.name} has that identifier`)
    if (open?.name === name && !dup)
      this.#report('wire', `PUBLISH ${id} of ${name} again, without DUP`)
    this.#open.set(id, { name, qos })
  }

  // A store that is full has to drain: the entry is on the disk, and is published again by the next process.
  #isRefusedEntry(id: number, name: string): boolean {
    const record = this.#host.refused(id)
    return (
      record?.stage === 'sent' &&
      record.packet.qos === 1 &&
      this.#host.view.entryOf(record) === name
    )
  }

  #handlePubrel(id: number, reason: number): void {
    if (reason !== 0) return
    const stored = this.#host.view.publishes.some(
      (kept) => kept.packetId === id && kept.stage === 'released',
    )
    // Of an exchange that nobody knows, or of a session that may be another one, it clears the identifier.
    if (!stored && this.#host.view.asking !== true && this.#open.get(id)?.qos === 2)
      this.#report('early', `PUBREL ${id}, and it is not on the disk`)
  }

  #received(id: number): boolean {
    return this.#host.view.inbound.get(id)?.received === true
  }

  #handleArriving(
    { kind, id, qos, reason, payload, sessionPresent }: Seen,
    brought: Map<number, string>,
  ): void {
    if (kind === 'publish' && qos > 0) brought.set(id, payload)
    if (kind === 'puback' || kind === 'pubcomp' || (kind === 'pubrec' && reason >= refusal))
      this.#open.delete(id)
    if (kind === 'connack') this.#latest.answered = true
    if (kind === 'connack' && reason === 0 && !sessionPresent) this.#open.clear()
  }

  #report(rule: string, detail: string): void {
    this.#host.history.report(rule, detail)
  }
}
