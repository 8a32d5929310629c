/**
 * Converts packets and properties between the two libraries: names, flags, user properties, bytes.
 *
 * Pure functions: arguments are never changed.
 */
import type { Message, Packet as OwnPacket } from 'mqwire'
import type { IPublishPacket, Packet, PayloadBytes, UserProperties } from './packet-types.js'

const { Buffer: NodeBuffer } = globalThis as {
  readonly Buffer?: { from(bytes: Uint8Array): Uint8Array }
}

/** A copy of bytes: a Buffer if the platform has Buffers. */
export function bytesOf(bytes: Uint8Array): PayloadBytes {
  return (NodeBuffer === undefined ? bytes.slice() : NodeBuffer.from(bytes)) as PayloadBytes
}

/** Names of MQTT.js by names of mqwire. */
const names: Readonly<Record<string, string>> = {
  type: 'cmd',
  packetId: 'messageId',
  protocolName: 'protocolId',
  cleanStart: 'clean',
  keepAlive: 'keepalive',
  reasonCodes: 'granted',
  filters: 'unsubscriptions',
  filter: 'topic',
  noLocal: 'nl',
  retainAsPublished: 'rap',
  retainHandling: 'rh',
  subscriptionIdentifierAvailable: 'subscriptionIdentifiersAvailable',
  subscriptionIdentifiers: 'subscriptionIdentifier',
}

/** Properties that are one byte on the wire, and true or false in MQTT.js. */
const isFlag = (name: string): boolean =>
  name === 'payloadFormatIndicator' || name.endsWith('Available') || name.startsWith('request')

function converted(name: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return bytesOf(value)
  if (name === 'userProperties')
    return namedProperties(value as readonly (readonly [string, string])[])
  if (isFlag(name)) return Boolean(value)
  if (name === 'subscriptionIdentifiers' && (value as number[]).length === 1)
    return (value as number[])[0]
  if (Array.isArray(value)) return value.map((item) => converted('', item))
  return typeof value === 'object' ? renamed(value as object) : value
}

function renamed(given: object): Record<string, unknown> {
  const pairs = Object.entries(given).filter(
    ([name, value]) => value !== undefined && (name !== 'properties' || hasValues(value)),
  )
  return Object.fromEntries(
    pairs.map(([name, value]) => [names[name] ?? name, converted(name, value)]),
  )
}

const hasValues = (given: object): boolean =>
  Object.values(given).some((value) => value !== undefined)

function namedProperties(
  pairs: readonly (readonly [name: string, value: string])[],
): UserProperties {
  const found = new Map<string, string | string[]>()
  for (const [name, value] of pairs) {
    const known = found.get(name)
    found.set(name, known === undefined ? value : [known, value].flat())
  }
  return Object.fromEntries(found)
}

/** A packet in the form of MQTT.js. On 3.1.1, CONNACK has a return code. */
export function packetOf<P extends Packet>(packet: OwnPacket, modern: boolean): P {
  const { reasonCode, ...rest } = renamed(packet)
  if (reasonCode === undefined) return rest as never
  return {
    ...rest,
    [packet.type === 'connack' && !modern ? 'returnCode' : 'reasonCode']: reasonCode,
  } as never
}

/**
 * A message in the form of its PUBLISH. Includes only Subscription Identifiers chosen by the
 * program, because programs that forward the packet would be refused with others.
 */
export function publishOf(
  message: Message,
  modern: boolean,
  identifiers: ReadonlySet<number>,
): IPublishPacket & { readonly payload: PayloadBytes } {
  const { topic, payload, qos, retain, dup } = message
  const packet = { cmd: 'publish' as const, topic, payload: bytesOf(payload), qos, retain, dup }
  const own = message.properties.subscriptionIdentifiers?.filter((identifier) =>
    identifiers.has(identifier),
  )
  const properties = {
    ...message.properties,
    subscriptionIdentifiers: own?.length ? own : undefined,
  }
  return modern && hasValues(properties) ? { ...packet, properties: renamed(properties) } : packet
}

/** Pairs of user properties. */
function pairsOf(given: UserProperties): [string, string][] {
  return Object.entries(given).flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, item]),
  )
}

/** Properties in the form of mqwire; undefined if there are none. */
export function propertiesOf(
  given: object | undefined | null,
): Record<string, unknown> | undefined {
  if (given === undefined || given === null) return undefined
  const own = Object.entries(given).map(([name, value]) => {
    if (name === 'userProperties' && typeof value === 'object' && !Array.isArray(value))
      return [name, pairsOf(value)]
    return [
      name,
      name === 'payloadFormatIndicator' && typeof value === 'boolean' ? Number(value) : value,
    ]
  })
  return Object.fromEntries(own)
}
