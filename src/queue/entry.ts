/**
 * One entry of a queue: a message that was accepted and is not delivered yet, and its binary
 * format.
 *
 * A record is the length of a JSON header, the header, and the payload. Records are checked when
 * read; one that does not parse is damaged.
 */
import type { Bytes, PublishProperties } from '../client/options/index.js'
import { encoder } from '../common/schema.js'

/** A message in a queue. */
export interface QueueEntry {
  /** Counts up from 1; never reused in this queue. */
  readonly id: number
  /** Topic Name (section 4.7). */
  readonly topic: string
  /** A copy of the payload. */
  readonly payload: Bytes
  /** Quality of Service (section 4.3). */
  readonly qos: 1 | 2
  /** The server keeps it for later subscribers (section 3.3.1.3). */
  readonly retain: boolean
  /** Properties (section 3.3.2.3); undefined if there are none. */
  readonly properties: PublishProperties | undefined
  /** When it was added: milliseconds since 1970, by this machine's clock. */
  readonly at: number
  /** When it expires, by the same clock; undefined: never. */
  readonly expires: number | undefined
}

/** Bytes of the length prefix. */
const lengthBytes = 4

const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The record of an entry without its number, which is its key; `free` bytes are reserved at the
 * start.
 */
export function encodeEntry(
  { topic, payload, qos, retain, properties, at, expires }: Omit<QueueEntry, 'id'>,
  free = 0,
): Uint8Array {
  const correlation = properties?.correlationData as Uint8Array | undefined
  const plain = properties && {
    ...properties,
    correlationData: correlation && Array.from(correlation),
  }
  const header = encoder.encode(
    JSON.stringify([topic, qos, retain ? 1 : 0, at, expires ?? null, plain]),
  )
  const start = free + lengthBytes
  const record = new Uint8Array(start + header.length + payload.length)
  new DataView(record.buffer).setUint32(free, header.length)
  record.set(header, start)
  record.set(payload, start + header.length)
  return record
}

/** The entry in a record; undefined when it is damaged. */
export function decodeEntry(id: number, record: Uint8Array): QueueEntry | undefined {
  try {
    const end =
      lengthBytes + new DataView(record.buffer, record.byteOffset, record.length).getUint32(0)
    if (end > record.length) return undefined
    const [topic, qos, retain, at, expires, plain] = JSON.parse(
      decoder.decode(record.subarray(lengthBytes, end)),
    )
    if (typeof topic !== 'string' || !(qos === 1 || qos === 2) || !Number.isFinite(at))
      return undefined
    const properties = plain === null || plain === undefined ? undefined : propertiesOf(plain)
    return {
      id,
      topic,
      payload: record.slice(end) as Bytes,
      qos,
      retain: retain === 1,
      properties,
      at,
      expires: expires ?? undefined,
    }
  } catch {
    return undefined
  }
}

function propertiesOf({
  correlationData,
  ...rest
}: PublishProperties & { correlationData?: number[] }): PublishProperties {
  return correlationData === undefined
    ? rest
    : { ...rest, correlationData: Uint8Array.from(correlationData) }
}
