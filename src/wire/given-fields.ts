/**
 * Protects packets and options from fields on `Object.prototype` (prototype pollution).
 *
 * A field counts if the object or its class has it, never if it is on the root prototype. Checking
 * is free; only a polluted prototype costs a copy.
 */
import { isObject } from './writer.js'

// An empty object has only what every object has. The fields are listed one by one, so that the
// compiler can prove the result and optimise it away.
type Fields = Readonly<Record<string, unknown>>

function hasOtherFields(): boolean {
  const {
    protocolName,
    protocolVersion,
    cleanStart,
    keepAlive,
    clientId,
    will,
    username,
    password,
  }: Fields = {}
  const {
    reasonCode,
    reasonCodes,
    sessionPresent,
    subscriptions,
    filters,
    from,
    maximumPacketSize,
    scanner,
  }: Fields = {}
  const { filter, noLocal, retainAsPublished, retainHandling }: Fields = {}
  return (
    (protocolName ??
      protocolVersion ??
      cleanStart ??
      keepAlive ??
      clientId ??
      will ??
      username ??
      password) !== undefined ||
    (reasonCode ??
      reasonCodes ??
      sessionPresent ??
      subscriptions ??
      filters ??
      from ??
      maximumPacketSize ??
      scanner) !== undefined ||
    (filter ?? noLocal ?? retainAsPublished ?? retainHandling) !== undefined
  )
}

/** The packet without fields that every object has. */
export function givenPacket<T extends { readonly type: string }>(packet: T): T {
  const { type, topic, payload, qos, retain, dup, packetId, properties }: Fields = {}
  const isClean =
    (type ?? topic ?? payload ?? qos ?? retain ?? dup ?? packetId ?? properties) === undefined
  return isClean && (packet.type === 'publish' || !hasOtherFields())
    ? packet
    : (ownFields(packet) as unknown as T)
}

/** The same for options. */
export function givenOptions<T extends object>(options: T): T {
  return hasOtherFields() ? (ownFields(options) as T) : options
}

function ownFields(given: object): Record<string, unknown> {
  const fields = Object.create(null) as Record<string, unknown>
  for (
    let owner: object | null = given;
    owner !== null;
    owner = Object.getPrototypeOf(owner) as object | null
  ) {
    if (owner !== given && Object.getPrototypeOf(owner) === null) break
    for (const key of Object.getOwnPropertyNames(owner))
      fields[key] ??= (given as Record<string, unknown>)[key]
  }
  const { will, subscriptions } = fields
  if (isObject(will)) fields['will'] = ownFields(will)
  if (Array.isArray(subscriptions))
    fields['subscriptions'] = subscriptions.map((item: unknown) =>
      isObject(item) ? ownFields(item) : item,
    )
  return fields
}
