/**
 * A second decoder, made from the tables of the standard alone, to be held against ours: slow, plain, and without a line in common with `src`.
 *
 * It says what a packet holds (binary values in hex, absent fields left out, as in the vectors), or throws. It does not say which error it is.
 */
import { readFileSync } from 'node:fs'

/** A property in the tables. */
export interface Property {
  id: number
  key: string
  type: 'byte' | 'u16' | 'u32' | 'varint' | 'utf8' | 'binary' | 'utf8pair'
  packets: string[]
  will: boolean
  repeatableIn: string[]
  limits: { min?: number }
}

interface PacketType {
  value: number
  name: string
  direction: 'c2s' | 's2c' | 'both' | 'forbidden'
  flags: string | null
  minRemainingLength: number
}

interface Tables {
  packetTypes: PacketType[]
  properties: Property[]
  reasonCodes: { code: number; name: string; packets: string[] }[]
  reasonCodesByPacket: Record<string, number[]>
  disconnectCodesBySender: Record<Sender, number[]>
  authCodesBySender: Record<Sender, number[]>
}

type Sender = 'client' | 'server'
type Fields = Record<string, unknown>

/** The tables of the standard. */
export const tables = JSON.parse(
  readFileSync(new URL('../../rules/tables.json', import.meta.url), 'utf8'),
) as Tables

/** The codes that a packet may have from one side. */
export function codesOf(packet: string, from: Sender): readonly number[] {
  // Section 2.4 has 0x8C here, section 3.14 has not: taken from a server.
  if (packet === 'DISCONNECT')
    return [...tables.disconnectCodesBySender[from], ...(from === 'server' ? [0x8c] : [])]
  if (packet === 'AUTH') return tables.authCodesBySender[from]
  const codes = tables.reasonCodesByPacket[packet] as number[]
  // No matching subscribers: said by servers only.
  return from === 'client' ? codes.filter((code) => code !== 0x10) : codes
}

function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(rule)
}

/** What is left of the bytes, taken from the front. */
class Rest {
  #bytes: Buffer
  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes)
  }
  get size(): number {
    return this.#bytes.length
  }
  take(count: number): Buffer {
    must(count <= this.size, 'cut off')
    const taken = this.#bytes.subarray(0, count)
    this.#bytes = this.#bytes.subarray(count)
    return taken
  }
  number(size: 1 | 2 | 4): number {
    return this.take(size).readUIntBE(0, size)
  }
  varint(): number {
    const digits: number[] = []
    do digits.push(this.number(1))
    while ((digits.at(-1) as number) >= 128)
    must(digits.length <= 4, 'five bytes')
    must(digits.length === 1 || digits.at(-1) !== 0, 'longer than needed')
    return digits.reduceRight((value, digit) => value * 128 + (digit % 128), 0)
  }
  binary(): Buffer {
    return this.take(this.number(2))
  }
  text(): string {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.binary())
    must(!text.includes('\0'), 'U+0000')
    return text
  }
  rest(): Buffer {
    return this.take(this.size)
  }
}

function topicName(text: string): string {
  must(text.length > 0 && ![...text].some((character) => '+#'.includes(character)), 'topic name')
  return text
}

function topicFilter(text: string, version: number): string {
  const levels = text.split('/')
  if (version === 5 && levels[0] === '$share' && levels.length > 1) {
    must(levels.length > 2 && levels[1] !== '', 'share name')
    must(
      ![...(levels[1] as string)].some((character) => '+#'.includes(character)),
      'share name with a wildcard',
    )
    topicFilter(levels.slice(2).join('/'), 4)
    return text
  }
  must(text.length > 0, 'empty filter')
  levels.forEach((level, index) => {
    must(level === '+' || !level.includes('+'), '+ beside something')
    must(level === '#' || !level.includes('#'), '# beside something')
    must(level !== '#' || index === levels.length - 1, '# before the end')
  })
  return text
}

function readValue(rest: Rest, { type, key, limits }: Property): unknown {
  if (type === 'utf8') return key === 'responseTopic' ? topicName(rest.text()) : rest.text()
  if (type === 'utf8pair') return [rest.text(), rest.text()]
  if (type === 'binary') return rest.binary().toString('hex')
  const value =
    type === 'varint' ? rest.varint() : rest.number(type === 'byte' ? 1 : type === 'u16' ? 2 : 4)
  must(type !== 'byte' || value <= 1, 'no flag')
  must(value >= (limits.min ?? 0), 'too small')
  return value
}

/** In these packets the property comes from the other side. */
function isOthers(key: string, packet: string, from: Sender): boolean {
  if (key === 'subscriptionIdentifier') return packet === 'PUBLISH' && from === 'client'
  if (packet !== 'DISCONNECT') return false
  return (
    (key === 'sessionExpiryInterval' && from === 'server') ||
    (key === 'serverReference' && from === 'client')
  )
}

function properties(rest: Rest, packet: string, from: Sender): Fields {
  const block = new Rest(rest.take(rest.varint()))
  const found: Fields = {}
  while (block.size > 0) {
    const id = block.varint()
    const property = tables.properties.find((entry) => entry.id === id)
    must(
      property !== undefined &&
        (packet === 'WILL' ? property.will : property.packets.includes(packet)),
      'not of this packet',
    )
    must(!isOthers(property.key, packet, from), 'not of this sender')
    const value = readValue(block, property)
    const several = property.type === 'utf8pair' || property.type === 'varint'
    const key =
      property.key === 'userProperty'
        ? 'userProperties'
        : several
          ? 'subscriptionIdentifiers'
          : property.key
    must(found[key] === undefined || property.repeatableIn.includes(packet), 'twice')
    found[key] = several ? [...((found[key] as unknown[] | undefined) ?? []), value] : value
  }
  return found
}

function code(rest: Rest, packet: string, from: Sender, version: number): number {
  const value = rest.number(1)
  const old = packet === 'CONNACK' ? [0, 1, 2, 3, 4, 5] : [0, 1, 2, 0x80]
  must((version === 4 ? old : codesOf(packet, from)).includes(value), 'reason code')
  return value
}

function packetIdentifier(rest: Rest): number {
  const id = rest.number(2)
  must(id > 0, 'packet identifier 0')
  return id
}

function connect(rest: Rest): Fields {
  const protocolName = rest.text()
  const protocolVersion = rest.number(1)
  must(protocolName === 'MQTT' && (protocolVersion === 4 || protocolVersion === 5), 'version')
  const bits = [...rest.number(1).toString(2).padStart(8, '0')].map((bit) => bit === '1')
  const [hasUsername, hasPassword, retain, qos2, qos1, hasWill, cleanStart, reserved] = bits
  must(!reserved, 'reserved flag')
  must(hasWill ? !(qos2 && qos1) : !(qos2 || qos1 || retain), 'will flags')
  must(protocolVersion === 5 || hasUsername || !hasPassword, 'password alone')
  const keepAlive = rest.number(2)
  const block = (name: string): Fields =>
    protocolVersion === 5 ? properties(rest, name, 'client') : {}
  const own = block('CONNECT')
  must(
    own['authenticationData'] === undefined || own['authenticationMethod'] !== undefined,
    'data without method',
  )
  const clientId = rest.text()
  must(protocolVersion === 5 || clientId !== '' || !!cleanStart, 'empty client identifier')
  const packet: Fields = {
    type: 'connect',
    protocolName,
    protocolVersion,
    cleanStart,
    keepAlive,
    clientId,
    properties: own,
  }
  if (hasWill) {
    const qos = (qos2 ? 2 : 0) + (qos1 ? 1 : 0)
    const willProperties = block('WILL')
    packet['will'] = {
      properties: willProperties,
      topic: topicName(rest.text()),
      payload: rest.binary().toString('hex'),
      qos,
      retain,
    }
  }
  if (hasUsername) packet['username'] = rest.text()
  if (hasPassword) packet['password'] = rest.binary().toString('hex')
  return packet
}

function publish(rest: Rest, flags: number, from: Sender, version: number): Fields {
  const qos = Math.floor(flags / 2) % 4
  const dup = flags >= 8
  must(qos < 3, 'QoS 3')
  must(!dup || qos > 0 || version === 4, 'DUP at QoS 0')
  const topic = rest.text()
  const packet: Fields = { type: 'publish', dup, qos, retain: flags % 2 === 1, topic }
  if (qos > 0) packet['packetId'] = packetIdentifier(rest)
  const own = version === 5 ? properties(rest, 'PUBLISH', from) : {}
  if (topic !== '' || own['topicAlias'] === undefined) topicName(topic)
  return { ...packet, properties: own, payload: rest.rest().toString('hex') }
}

function subscription(rest: Rest, version: number): Fields {
  const filter = topicFilter(rest.text(), version)
  const options = rest.number(1)
  const retainHandling = Math.floor(options / 16)
  const noLocal = (options & 4) > 0
  must(options % 4 < 3 && retainHandling < 3 && (version === 5 || options < 3), 'options')
  must(!noLocal || !filter.startsWith('$share/'), 'no local, shared')
  return { filter, qos: options % 4, noLocal, retainAsPublished: (options & 8) > 0, retainHandling }
}

function list<T>(rest: Rest, read: () => T): T[] {
  const items: T[] = []
  do items.push(read())
  while (rest.size > 0)
  return items
}

/** Everything but CONNECT and PUBLISH. */
function other(name: string, rest: Rest, from: Sender, version: number): Fields {
  const type = name.toLowerCase()
  if (type.startsWith('ping')) return { type }
  const block = (): Fields => (version === 5 ? properties(rest, name, from) : {})
  if (name === 'CONNACK') {
    const flags = rest.number(1)
    const reasonCode = code(rest, name, from, version)
    must(flags === 0 || (flags === 1 && reasonCode === 0), 'acknowledge flags')
    return { type, sessionPresent: flags === 1, reasonCode, properties: block() }
  }
  const id: Fields =
    name === 'DISCONNECT' || name === 'AUTH' ? {} : { packetId: packetIdentifier(rest) }
  if (name === 'SUBSCRIBE')
    return {
      type,
      ...id,
      properties: block(),
      subscriptions: list(rest, () => subscription(rest, version)),
    }
  if (name === 'UNSUBSCRIBE')
    return {
      type,
      ...id,
      properties: block(),
      filters: list(rest, () => topicFilter(rest.text(), version)),
    }
  if (name === 'UNSUBACK' && version === 4) return { type, ...id, properties: {}, reasonCodes: [] }
  if (name === 'SUBACK' || name === 'UNSUBACK') {
    return {
      type,
      ...id,
      properties: block(),
      reasonCodes: list(rest, () => code(rest, name, from, version)),
    }
  }
  const reasonCode = version === 5 && rest.size > 0 ? code(rest, name, from, version) : 0
  const own = rest.size > 0 ? block() : {}
  must(name !== 'AUTH' || own['authenticationMethod'] !== undefined, 'AUTH without method')
  return { type, ...id, reasonCode, properties: own }
}

/** The one packet that the bytes are. @throws when they are none */
export function referenceDecode(bytes: Uint8Array, from: Sender, version: 4 | 5): Fields {
  const stream = new Rest(bytes)
  const first = stream.number(1)
  const kind = tables.packetTypes.find(({ value }) => value === first >> 4)
  must(kind !== undefined && kind.direction !== 'forbidden', 'type')
  const { name, direction, flags } = kind
  must(direction === 'both' || (direction === 'c2s') === (from === 'client'), 'direction')
  must(
    version === 5 || (name !== 'AUTH' && !(name === 'DISCONNECT' && from === 'server')),
    'not on 3.1.1',
  )
  must(name === 'PUBLISH' || first % 16 === Number.parseInt(flags as string, 2), 'flags')
  const rest = new Rest(stream.take(stream.varint()))
  must(stream.size === 0, 'something behind it')
  let packet: Fields
  if (name === 'CONNECT') packet = connect(rest)
  else if (name === 'PUBLISH') packet = publish(rest, first % 16, from, version)
  else packet = other(name, rest, from, version)
  must(rest.size === 0, 'something behind the last field')
  return packet
}
