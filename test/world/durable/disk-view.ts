/** What a crash would leave of a session at any moment: the records that are on the disk, read from its bytes and not from the store. */
import type { InboundRecord, PublishRecord } from '../../../src/client/durable/records.js'
import {
  decodeInbound,
  decodePublish,
  decodeSession,
  payloadOfEntry,
} from '../../../src/client/durable/records.js'
import { recovered, type SimulatedDisk } from '../../unit/store/simulated-disk.js'
import { payloadName } from '../reader.js'

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
