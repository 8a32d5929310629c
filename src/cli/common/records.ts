/**
 * A message as a line of JSON: what `sub --json` and `record` write and `replay` reads.
 *
 * A payload that is well-formed UTF-8 is text in `payload`, any other is in `base64`.
 */
import type { Message, MessageProperties, PublishOptions, QoS, UserProperties } from 'mqwire'
import { validateTopicName } from 'mqwire/wire'

/** The properties of a message as JSON: bytes are base64. */
interface RecordedProperties
  extends Omit<MessageProperties, 'correlationData' | 'subscriptionIdentifiers'> {
  readonly correlationData?: string | undefined
}

/** One line. */
export interface MessageRecord {
  /** When it arrived: ISO 8601 with milliseconds, UTC. */
  readonly time: string
  readonly topic: string
  readonly qos: QoS
  readonly retain: boolean
  readonly payload?: string
  readonly base64?: string
  readonly properties?: RecordedProperties
}

/** A line, ready to be published. */
export interface Recorded {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly topic: string
  readonly payload: string | Uint8Array
  readonly options: PublishOptions
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a payload; undefined when it is not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

/** A message, as far as a record has it. */
export type Recordable = Pick<Message, 'topic' | 'qos' | 'retain' | 'payload' | 'properties'>

/** The record of a message. */
export function recordOf(message: Recordable, time: Date): MessageRecord {
  const { topic, qos, retain, payload, properties } = message
  const text = textOf(payload)
  return {
    time: time.toISOString(),
    topic,
    qos,
    retain,
    ...(text === undefined ? { base64: base64(payload) } : { payload: text }),
    ...propertiesOf(properties),
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
}

function propertiesOf(properties: MessageProperties): { properties?: RecordedProperties } {
  // Identifiers are those of this subscription.
  const { correlationData, subscriptionIdentifiers: _identifiers, ...rest } = properties
  const all = {
    ...rest,
    ...(correlationData !== undefined && { correlationData: base64(correlationData) }),
  }
  return Object.keys(all).length === 0 ? {} : { properties: all }
}

/** Reads a line. @throws Error that says what is wrong with it */
export function parseRecord(line: string): Recorded {
  // A byte order mark at the start of a file is no part of it.
  const text = line.startsWith('\uFEFF') ? line.slice(1) : line
  const record = objectOf(JSON.parse(text), 'the line')
  const { topic, qos = 0, retain = false } = record
  const time = Date.parse(String(record['time']))
  if (Number.isNaN(time)) throw new Error('time must be a date in ISO 8601')
  if (typeof topic !== 'string') throw new Error('topic must be a string')
  const problem = validateTopicName(topic)
  if (problem !== undefined) throw new Error(`topic ${problem}`)
  if (qos !== 0 && qos !== 1 && qos !== 2) throw new Error('qos must be 0, 1 or 2')
  if (typeof retain !== 'boolean') throw new Error('retain must be true or false')
  const properties = record['properties'] === undefined ? undefined : sendable(record['properties'])
  return {
    time,
    topic,
    payload: payloadOf(record),
    options: { qos, retain, ...(properties !== undefined && { properties }) },
  }
}

function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${what} must be an object`)
  return value as Readonly<Record<string, unknown>>
}

function isBase64(text: string): boolean {
  return /^[\w+/-]*={0,2}$/.test(text)
}

function payloadOf({
  payload,
  base64: bytes,
}: Readonly<Record<string, unknown>>): string | Uint8Array {
  if (typeof payload === 'string') return payload
  if (payload === undefined && typeof bytes === 'string' && isBase64(bytes))
    return new Uint8Array(Buffer.from(bytes, 'base64'))
  throw new Error('payload must be a string, or base64 one in base64')
}

function sendable(given: unknown): NonNullable<PublishOptions['properties']> {
  const { correlationData, ...rest } = objectOf(given, 'properties')
  return {
    ...(rest as { userProperties?: UserProperties }),
    ...(typeof correlationData === 'string' && {
      correlationData: Buffer.from(correlationData, 'base64'),
    }),
  }
}
