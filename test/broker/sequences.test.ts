/**
 * The broker of `mqwire/testing` on a TCP socket, played the sequences of `sequences.ts`: bytes in, packets out. All at once, each with its own broker.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { MemoryBroker } from '../../src/testing/node.js'
import { Decoder, encode, type PacketInput, type ProtocolVersion, type ServerPacket } from '../../src/wire/index.js'
import { type Sequence, sequences } from './sequences.js'

const bytes = (value: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(value)
const text = (value: Uint8Array): string => new TextDecoder().decode(value)
const many = 1000

/** How long an answer may take before its absence is an error, in milliseconds. */
const patience = 5000

/** A connection of the test, with what came and was not expected yet. */
class Wire {
  readonly #socket: Socket
  readonly #decoder: Decoder
  readonly #version: ProtocolVersion
  readonly #came: string[] = []
  #ended = false
  #wake: (() => void) | undefined

  constructor(socket: Socket, version: ProtocolVersion) {
    this.#socket = socket
    this.#version = version
    this.#decoder = new Decoder({ from: 'server', protocolVersion: version })
    socket.on('data', (chunk) => {
      for (const packet of this.#decoder.push(chunk)) this.#came.push(shortOf(packet as ServerPacket))
      this.#wake?.()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => this.#end())
    socket.on('end', () => this.#end())
  }

  static async to(port: number, version: ProtocolVersion): Promise<Wire> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new Wire(socket, version)
  }

  async send(words: readonly string[]): Promise<void> {
    const isSlow = words[0] === 'slow'
    const whole = Buffer.concat(words.slice(isSlow ? 1 : 0).flatMap((word) => partsOf(word, this.#version)))
    if (!isSlow) this.#socket.write(whole)
    for (const byte of isSlow ? whole : []) {
      this.#socket.write(Uint8Array.of(byte))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async expect(words: readonly string[]): Promise<void> {
    const wanted = words.flatMap((word) => (word === 'manyback' ? Array.from({ length: many }, (_, index) => `PA:${index + 1}:n`) : [word]))
    await this.#until(() => this.#came.length >= wanted.length || this.#ended)
    const got = this.#came.splice(0, wanted.length)
    expect(got.map((packet, index) => (fits(packet, wanted[index] ?? '', this.#version) ? wanted[index] : packet))).toEqual(wanted)
  }

  /** The last words of a broker on 5.0; 3.1.1 has none. */
  async expectGoodbye(word: string): Promise<void> {
    if (this.#version === 5) await this.expect([word])
  }

  async expectEnd(): Promise<void> {
    await this.#until(() => this.#ended)
    expect([this.#ended, this.#came]).toEqual([true, []])
  }

  /** What was sent before has been handled when an answer to this has come. */
  async expectNothing(): Promise<void> {
    if (!this.#ended) this.#socket.write(Uint8Array.of(0xc0, 0))
    await this.#until(() => this.#came.includes('R') || this.#ended)
    expect(this.#came.splice(0)).toEqual(['R'])
  }

  async cut(): Promise<void> {
    this.#socket.resetAndDestroy()
    await this.#until(() => this.#ended)
  }

  close(): void {
    this.#socket.destroy()
  }

  #end(): void {
    this.#ended = true
    this.#wake?.()
  }

  async #until(test: () => boolean): Promise<void> {
    const late = sleep(patience, 'late', { ref: false })
    while (!test()) {
      const news = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      if ((await Promise.race([news, late])) === 'late') return
    }
  }
}

/** What came, in the short form. */
function shortOf(packet: ServerPacket): string {
  switch (packet.type) {
    case 'connack':
      return `K:${packet.reasonCode > 0 ? packet.reasonCode.toString(16) : Number(packet.sessionPresent)}`
    case 'publish': {
      const { qos, dup, retain, packetId, topic, payload, properties } = packet
      const identifiers = properties.subscriptionIdentifiers
      const id = qos > 0 ? `${qos}${dup ? '+' : ''}:${packetId}:` : ':'
      return `P${retain ? 'X' : ''}${identifiers === undefined ? '' : `@${identifiers.join(',')}`}${id}${topic}=${text(payload)}`
    }
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp': {
      const name = { puback: 'PA', pubrec: 'PR', pubrel: 'PL', pubcomp: 'PC' }[packet.type]
      const code = packet.reasonCode === 0 ? '' : packet.reasonCode === 0x10 ? ':n' : `:${packet.reasonCode.toString(16)}`
      return `${name}:${packet.packetId}${code}`
    }
    case 'suback':
      return `SA:${packet.packetId}:${packet.reasonCodes.map((code) => code.toString(16)).join()}`
    case 'unsuback':
      return `UA:${packet.packetId}:${packet.reasonCodes.map((code) => code.toString(16)).join()}`
    case 'pingresp':
      return 'R'
    case 'disconnect':
      return `D:${packet.reasonCode.toString(16)}`
    default:
      return packet.type
  }
}

/** 3.1.1 has no reason codes in acknowledgements, and none at all in UNSUBACK. */
function fits(packet: string, wanted: string, version: ProtocolVersion): boolean {
  if (version === 5) return packet === wanted
  const plain = wanted.startsWith('UA:') ? `${wanted.split(':').slice(0, 2).join(':')}:` : wanted.replace(/^(P[ARC]:\d+):\w+$/, '$1')
  return packet === plain
}

/** The bytes of a word. */
function partsOf(word: string, version: ProtocolVersion): Uint8Array[] {
  if (word.startsWith('hex:')) return [Buffer.from(word.slice(4), 'hex')]
  if (word !== 'many') return [bytesOf(word, version)]
  return Array.from({ length: many }, (_, index) => bytesOf(`P1:${index + 1}:m=${index}`, version))
}

function bytesOf(word: string, version: ProtocolVersion): Uint8Array {
  // No encoder of ours makes a SUBSCRIBE or UNSUBSCRIBE without a filter, or filters and packets that must not be.
  const special = forbidden(word, version)
  return special === undefined ? encode(packetOf(word, version), { protocolVersion: version }) : Buffer.from(special, 'hex')
}

function forbidden(word: string, version: ProtocolVersion): string | undefined {
  const no = version === 5 ? '00' : ''
  const filterOf = (filter: string, options: string): string => {
    const body = `0001${no}00${filter.length.toString(16).padStart(2, '0')}${Buffer.from(filter).toString('hex')}${options}`
    return `82${(body.length / 2).toString(16).padStart(2, '0')}${body}`
  }
  if (word === 'S:1:') return version === 5 ? '8203000100' : '82020001'
  if (word === 'U:1:') return version === 5 ? 'a203000100' : 'a2020001'
  if (word === 'K:0') return version === 5 ? '2003000000' : '20020000'
  const refused = /^S:1:(a\+|#\/a|\$share\/\/t):0$/.exec(word)?.[1]
  return refused === undefined ? undefined : filterOf(refused, '00')
}

/**
 * A packet in short: `C:id` CONNECT, with `~` a session that stays, `*` Clean Start 0 alone, `!topic=text` a will, `!!` retained, `%n` Receive Maximum,
 * `^n` Maximum Packet Size; `P:topic=text` PUBLISH at QoS 0, `P1:id:` and `P2:id:` at 1 and 2, `+` DUP, `X` RETAIN, `Tn` an alias; `PA PR PL PC` the
 * acknowledgements; `S:id:filter:qos,…` SUBSCRIBE, with `Sn:` an identifier, `n` No Local, `r` Retain As Published, `h2` Retain Handling;
 * `U:id:filter,…`, `Q` PINGREQ, `D` DISCONNECT, `D4` with the will, `D0` that ends the session.
 */
function packetOf(word: string, version: ProtocolVersion): PacketInput {
  const [head = '', ...rest] = word.split(':')
  if (head === 'C') return connectOf(rest.join(':'), version)
  if (head === 'Q') return { type: 'pingreq' }
  if (head[0] === 'D') return disconnectOf(head)
  if (head[0] === 'S') return subscribeOf(head, rest)
  if (head === 'U') return { type: 'unsubscribe', packetId: Number(rest[0]), filters: (rest[1] ?? '').split(',') }
  const ack = ({ PA: 'puback', PR: 'pubrec', PL: 'pubrel', PC: 'pubcomp' } as const)[head]
  if (ack === undefined) return publishOf(head, rest)
  return { type: ack, packetId: Number(rest[0]), reasonCode: Number.parseInt(rest[1] ?? '0', 16) }
}

function connectOf(given: string, version: ProtocolVersion): PacketInput {
  const [, clientId = '', mark = '', , receiveMaximum, , size, , retain, topic, payload = ''] =
    /^(\w*)([~*]?)(%(\d+))?(\^(\d+))?(!(!?)(\w+)=(\w+))?$/.exec(given) ?? []
  const properties = {
    ...(mark === '~' ? { sessionExpiryInterval: 600 } : {}),
    ...(receiveMaximum === undefined ? {} : { receiveMaximum: Number(receiveMaximum) }),
    ...(size === undefined ? {} : { maximumPacketSize: Number(size) }),
  }
  const will = topic === undefined ? {} : { will: { topic, payload: bytes(payload), retain: retain === '!' } }
  return { type: 'connect', clientId, cleanStart: mark === '', protocolVersion: version, ...(version === 5 ? { properties } : {}), ...will }
}

function disconnectOf(head: string): PacketInput {
  if (head === 'D4') return { type: 'disconnect', reasonCode: 4 }
  return head === 'D0' ? { type: 'disconnect', properties: { sessionExpiryInterval: 0 } } : { type: 'disconnect' }
}

function subscribeOf(head: string, [packetId, ...rest]: readonly string[]): PacketInput {
  const subscriptions = rest
    .join(':')
    .split(',')
    .map((each) => {
      const [, filter = '', qos, noLocal, asPublished, , handling] = /^(.*):(\d)(n?)(r?)(h(\d))?$/.exec(each) ?? []
      const options = { ...(noLocal ? { noLocal: true } : {}), ...(asPublished ? { retainAsPublished: true } : {}) }
      return { filter, qos: Number(qos), ...options, ...(handling === undefined ? {} : { retainHandling: Number(handling) }) }
    })
  const identifier = head.length > 1 ? { properties: { subscriptionIdentifiers: [Number(head.slice(1))] } } : {}
  return { type: 'subscribe', packetId: Number(packetId), subscriptions, ...identifier }
}

function publishOf(head: string, rest: readonly string[]): PacketInput {
  const [, retain, alias, qos = '', dup] = /^P(X?)(?:T(\d+))?([12]?)(\+?)$/.exec(head) ?? []
  const [topic = '', payload = ''] = (rest.at(-1) ?? '').split('=')
  return {
    type: 'publish',
    topic,
    payload: bytes(payload),
    qos: Number(qos),
    retain: retain === 'X',
    dup: dup === '+',
    ...(qos === '' ? {} : { packetId: Number(rest[0]) }),
    ...(alias === undefined ? {} : { properties: { topicAlias: Number(alias) } }),
  }
}

async function play({ steps }: Sequence, version: ProtocolVersion): Promise<void> {
  await using broker = new MemoryBroker({ maxInflight: 1000 })
  const { tcp } = await broker.serve({ tcp: 0 })
  const wires = new Map<string, Wire>()
  for (const step of steps.split('; ')) {
    const [, name = '', what, words = ''] = /^(\w)([><.!_]\??)\s*(.*)$/.exec(step) ?? []
    const wire = wires.get(name) ?? (await Wire.to(tcp?.port ?? 0, version))
    wires.set(name, wire)
    const list = words.split(' ').filter((word) => word !== '')
    if (what === '>') await wire.send(list)
    else if (what === '<') await wire.expect(list)
    else if (what === '<?') await wire.expectGoodbye(list[0] ?? '')
    else if (what === '.') await wire.expectEnd()
    else if (what === '_') await wire.expectNothing()
    else if (what === '!') await cutAndSeen(wire, broker)
    else throw new Error(`no step: ${step}`)
  }
  for (const wire of wires.values()) wire.close()
}

/** Cuts a stream; the broker has noticed when this is over. */
async function cutAndSeen(wire: Wire, broker: MemoryBroker): Promise<void> {
  const seen = new Promise((resolve) => broker.on('disconnect', resolve))
  await wire.cut()
  await Promise.race([seen, sleep(patience, undefined, { ref: false })])
}

const cases = sequences.flatMap((sequence) => sequence.versions.map((version) => [sequence.name, version, sequence] as const))

describe.concurrent('packets on a socket', () => {
  it('are a hundred sequences at least, and no two are the same', () => {
    expect(sequences.length).toBeGreaterThanOrEqual(100)
    expect(new Set(sequences.map(({ steps, versions }) => `${versions} ${steps}`)).size).toBe(sequences.length)
  })

  it.each(cases)('%s: level %i', async (_name, version, sequence) => play(sequence, version))
})
