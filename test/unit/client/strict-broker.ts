/**
 * A server that ends the connection at some requests, as brokers do that have limits and access rules: what suites about such filters start from.
 *
 * It has one session, which it keeps or loses with the connection, and answers everything else. What it bears is the test's to say, at any time.
 */
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import type { ClientPacket, Properties } from '../../../src/wire/packets.js'
import { lasting } from './across.js'
import { agreeable, connected, type World } from './harness.js'

/** What a server does not bear, and how it shows that. */
export interface Strictness {
  /** Filters at which it ends the connection. */
  subscribe?: readonly string[]
  unsubscribe?: readonly string[]
  /** Most filters of a packet. */
  most?: number
  /** DISCONNECT with this reason code goes first. */
  reasonCode?: number
  /** It is the connection that has no answer, ends it so many milliseconds after CONNACK, and answers nothing but PINGREQ. */
  lives?: number
  /** Packets of these types have no answer. */
  ignores?: readonly ClientPacket['type'][]
  /** It keeps the session. Default true. */
  keeps?: boolean
  /** Of CONNACK. */
  properties?: Properties
}

/** The server of one test, and its client. */
export class StrictBroker {
  declare world: World
  /** As the test wants it. */
  how: Strictness
  /** What the session has. */
  readonly filters = new Set<string>()
  /** Texts of publishes that were acknowledged. */
  readonly acknowledged: string[] = []
  /** Goes behind CONNACK, and behind SUBACK. */
  greeting: PacketInput[] = []
  retained: PacketInput[] = []
  /** Connections that were ended at something unbearable. */
  ended = 0
  #dead = false
  /** One began with the first connection. */
  #session = true

  constructor(how: Strictness) {
    this.how = how
  }

  readonly answer = (packet: ClientPacket): PacketInput[] | undefined => {
    if (packet.type === 'connect') return this.#connect()
    if (this.#dead || this.how.ignores?.includes(packet.type)) return undefined
    if (this.how.lives !== undefined && packet.type !== 'pingreq') return undefined
    const { subscribe = [], unsubscribe = [], most = Number.POSITIVE_INFINITY } = this.how
    const asked =
      packet.type === 'subscribe'
        ? packet.subscriptions.map(({ filter }) => filter)
        : packet.type === 'unsubscribe'
          ? packet.filters
          : []
    const unbearable = packet.type === 'subscribe' ? subscribe : unsubscribe
    if (asked.length > most || asked.some((filter) => unbearable.includes(filter)))
      return this.#end()
    for (const filter of asked)
      packet.type === 'subscribe' ? this.filters.add(filter) : this.filters.delete(filter)
    if (packet.type === 'publish') this.acknowledged.push(new TextDecoder().decode(packet.payload))
    if (packet.type === 'unsubscribe' && this.world.version === 4)
      return [{ type: 'unsuback', packetId: packet.packetId, reasonCodes: [] }]
    const answers = [agreeable(packet) ?? []].flat() as PacketInput[]
    return packet.type === 'subscribe' ? [...answers, ...this.retained] : answers
  }

  /** Filters of each SUBSCRIBE of the latest connection, or another. */
  subscribed(peer = this.world.peer): string[][] {
    return peer
      .all('subscribe')
      .map(({ subscriptions }) => subscriptions.map(({ filter }) => filter))
  }

  #connect(): PacketInput[] {
    const { keeps = true, properties = {}, lives } = this.how
    const sessionPresent = keeps && this.#session
    if (!sessionPresent) this.filters.clear()
    this.#session = true
    this.#dead = false
    if (lives !== undefined) {
      const { peer } = this.world
      this.world.clock.setTimer(() => peer.cut(), lives)
    }
    return [{ type: 'connack', sessionPresent, reasonCode: 0, properties }, ...this.greeting]
  }

  #end(): PacketInput[] {
    const { peer, clock } = this.world
    const { reasonCode } = this.how
    this.#dead = true
    this.ended += 1
    // After a millisecond: what it has answered arrives.
    clock.setTimer(() => peer.cut(), 1)
    return reasonCode === undefined ? [] : [{ type: 'disconnect', reasonCode, properties: {} }]
  }
}

/** A connected client of such a server. */
export async function strict(
  how: Strictness = {},
  options: ClientOptions = {},
): Promise<StrictBroker> {
  const broker = new StrictBroker(how)
  let waiting: World | undefined
  const world = await connected({ ...lasting, ...options }, (packet) => {
    // The first CONNECT comes before there is a world to look at.
    if (waiting === undefined && packet.type === 'connect')
      return {
        type: 'connack',
        sessionPresent: false,
        reasonCode: 0,
        properties: how.properties ?? {},
      }
    return broker.answer(packet)
  })
  waiting = world
  broker.world = world
  world.answer = broker.answer
  return broker
}
