/** A server that ends the connection at some requests, as brokers do that have limits and access rules; it answers everything else. */
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import type { ClientPacket, Properties } from '../../../src/wire/packets.js'
import { lasting } from './across.js'
import { agreeable, connected, type World } from './harness.js'

/** At what the server ends the connection, and how. */
export interface Strictness {
  /** Filters at which it ends the connection. */
  subscribe?: readonly string[]
  unsubscribe?: readonly string[]
  /** Most filters of a packet. */
  most?: number
  /** DISCONNECT with this reason code goes first. */
  reasonCode?: number
  /** It ends each connection so many milliseconds after CONNACK, and answers nothing but PINGREQ. */
  lives?: number
  /** Packets of these types have no answer. */
  ignores?: readonly ClientPacket['type'][]
  /** It keeps the session. Default true. */
  keeps?: boolean
  properties?: Properties
}

/** The server of one test, and its client. */
export class StrictBroker {
  declare world: World
  /** A test may change it at any time. */
  how: Strictness
  /** Of the session. */
  readonly filters = new Set<string>()
  greeting: PacketInput[] = []
  /** Connections that were ended at a request. */
  ended = 0
  #dead = false

  constructor(how: Strictness) {
    this.how = how
  }

  readonly answer = (packet: ClientPacket): PacketInput[] | undefined => {
    if (packet.type === 'connect') return this.#connect()
    if (this.#dead || this.how.ignores?.includes(packet.type)) return undefined
    if (this.how.lives !== undefined && packet.type !== 'pingreq') return undefined
    const { subscribe = [], unsubscribe = [], most = Number.POSITIVE_INFINITY } = this.how
    const asks = packet.type === 'subscribe'
    const asked = asks ? packet.subscriptions.map(({ filter }) => filter) : []
    const left = packet.type === 'unsubscribe' ? packet.filters : []
    const refused = asks ? subscribe : unsubscribe
    const filters = [...asked, ...left]
    if (filters.length > most || filters.some((filter) => refused.includes(filter)))
      return this.#end()
    for (const filter of asked) this.filters.add(filter)
    for (const filter of left) this.filters.delete(filter)
    if (packet.type === 'unsubscribe' && this.world.version === 4)
      return [{ type: 'unsuback', packetId: packet.packetId, reasonCodes: [] }]
    return [agreeable(packet) ?? []].flat() as PacketInput[]
  }

  /** Filters of each SUBSCRIBE of the latest connection. */
  subscribed(): string[][] {
    const packets = this.world.peer.all('subscribe')
    return packets.map(({ subscriptions }) => subscriptions.map(({ filter }) => filter))
  }

  #connect(): PacketInput[] {
    const { keeps = true, properties = {}, lives } = this.how
    const { peer, clock } = this.world
    if (!keeps) this.filters.clear()
    this.#dead = false
    if (lives !== undefined) clock.setTimer(() => peer.cut(), lives)
    return [{ type: 'connack', sessionPresent: keeps, reasonCode: 0, properties }, ...this.greeting]
  }

  #end(): PacketInput[] {
    const { peer, clock } = this.world
    const { reasonCode } = this.how
    this.#dead = true
    this.ended += 1
    // After a millisecond: what it has answered arrives.
    clock.setTimer(() => peer.cut(), 1)
    return reasonCode === undefined ? [] : [{ type: 'disconnect', reasonCode }]
  }
}

export async function strict(how: Strictness = {}, options: ClientOptions = {}) {
  const broker = new StrictBroker(how)
  broker.world = await connected({ ...lasting, ...options }, (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: how.properties ?? {} }
      : undefined,
  )
  broker.world.answer = broker.answer
  return broker
}
