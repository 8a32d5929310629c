/** One form for what four codecs say of a packet. It must never make up for what a codec lost: that is a difference, to be judged. */
import { createHash } from 'node:crypto'

/** A packet, or a part of it, in the form that is compared. */
export type Fields = Record<string, unknown>

/** A field of more bytes is told by its length and its hash. */
const longest = 64

/** Bytes as text. */
export function told(bytes: Uint8Array): string {
  if (bytes.length <= longest)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
  return `${bytes.length}:${createHash('sha256').update(bytes).digest('hex')}`
}

/** A packet of ours, or of the standard's tables. */
export function normalized(value: unknown): unknown {
  if (value instanceof Uint8Array) return told(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(normalized)
  const fields: Fields = {}
  for (const key of Object.keys(value)) {
    const field = (value as Fields)[key]
    if (field !== undefined) fields[key] = normalized(field)
  }
  return fields
}

const binary = new Set(['payload', 'password', 'correlationData', 'authenticationData'])

/** What the reference decoder says: bytes are hexadecimal text there. */
export function normalizedHex(value: unknown, key = ''): unknown {
  if (typeof value === 'string') {
    return binary.has(key) && value.length > 2 * longest ? told(Buffer.from(value, 'hex')) : value
  }
  if (Array.isArray(value)) return value.map((each) => normalizedHex(each))
  if (typeof value !== 'object' || value === null) return value
  const present = Object.entries(value).filter(([, field]) => field !== undefined)
  return Object.fromEntries(present.map(([name, field]) => [name, normalizedHex(field, name)]))
}

const names: Readonly<Record<string, string>> = {
  ...{ cmd: 'type', messageId: 'packetId', protocolId: 'protocolName', clean: 'cleanStart' },
  ...{
    keepalive: 'keepAlive',
    granted: 'reasonCodes',
    unsubscriptions: 'filters',
    returnCode: 'reasonCode',
  },
}

const ofPublish = new Set(['dup', 'qos', 'retain', 'payload'])
const withCode = new Set(['puback', 'pubrec', 'pubrel', 'pubcomp', 'disconnect'])

/** A packet of mqtt-packet. On 3.1.1 it leaves out codes that are none there. */
export function normalizedPacket(packet: Fields, version: number): Fields {
  const fields: Fields = {}
  const type = packet['cmd'] as string
  for (const [key, value] of Object.entries(packet)) {
    const isFiller = key === 'length' || (key === 'topic' && value === null)
    if (value === undefined || isFiller || (ofPublish.has(key) && type !== 'publish')) continue
    fields[names[key] ?? key] = normalized(value)
  }
  if (type === 'connect' && packet['will'] !== undefined)
    fields['will'] = will(packet['will'] as Fields)
  if (type === 'subscribe')
    fields['subscriptions'] = (packet['subscriptions'] as Fields[]).map((each) =>
      subscription(each),
    )
  if (type === 'publish' && packet['qos'] === 0) delete fields['packetId']
  if (type === 'pingreq' || type === 'pingresp') return { type }
  if (version < 5 && withCode.has(type)) fields['reasonCode'] = 0
  if (version < 5 && type === 'unsuback') fields['reasonCodes'] = []
  fields['properties'] = properties((packet['properties'] ?? {}) as Fields)
  return fields
}

function will(given: Fields): Fields {
  return {
    ...(normalized(given) as Fields),
    properties: properties((given['properties'] ?? {}) as Fields),
  }
}

function subscription({ topic, qos, nl = false, rap = false, rh = 0 }: Fields): Fields {
  return { filter: topic, qos, noLocal: nl, retainAsPublished: rap, retainHandling: rh }
}

function properties(given: Fields): Fields {
  const fields: Fields = {}
  for (const [key, value] of Object.entries(given)) {
    if (key === 'userProperties') fields[key] = pairs(value as Fields)
    else if (key === 'subscriptionIdentifier')
      fields['subscriptionIdentifiers'] = Array.isArray(value) ? value : [value]
    else if (key === 'subscriptionIdentifiersAvailable')
      fields['subscriptionIdentifierAvailable'] = Number(value)
    else fields[key] = typeof value === 'boolean' ? Number(value) : normalized(value)
  }
  return fields
}

function pairs(grouped: Fields): unknown[] {
  return Object.entries(grouped).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each) => [name, each]),
  )
}

/** User properties as an object of names keeps them: those of one name together, whole numbers first, and none whose value is empty before another. */
export function groupedPairs(given: readonly (readonly [string, string])[]): unknown[] {
  const groups: Record<string, string[]> = Object.create(null)
  for (const [name, value] of given) {
    const group = groups[name]
    if (group === undefined || (group.length === 1 && group[0] === '')) groups[name] = [value]
    else group.push(value)
  }
  return Object.entries(groups).flatMap(([name, values]) => values.map((value) => [name, value]))
}

/** One place where two packets are not the same. */
export interface Place {
  readonly path: string
  readonly ours: unknown
  readonly theirs: unknown
}

/** Every place where they differ. Lists are compared as wholes, except for those of objects of the same length. */
export function places(ours: unknown, theirs: unknown, path = ''): Place[] {
  if (ours === theirs) return []
  if (isFields(ours) && isFields(theirs)) {
    const keys = new Set([...Object.keys(ours), ...Object.keys(theirs)])
    return [...keys].flatMap((key) =>
      places(ours[key], theirs[key], path === '' ? key : `${path}.${key}`),
    )
  }
  if (Array.isArray(ours) && Array.isArray(theirs)) {
    if (JSON.stringify(ours) === JSON.stringify(theirs)) return []
    if (isFields(ours[0]) && ours.length === theirs.length)
      return ours.flatMap((each, index) => places(each, theirs[index], `${path}[]`))
  }
  return [{ path, ours, theirs }]
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
