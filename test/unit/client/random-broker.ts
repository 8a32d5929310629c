/**
 * What random histories are made of: repeatable choices, and a broker that answers late, out of order, and now and then with a refusal.
 *
 * Everything follows from the seed; time is the world's.
 */
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { Random } from '../../world/random.js'
import { connected, type World } from './harness.js'
import { publish } from './incoming.js'

/** What a history may hold. */
export interface Profile {
  readonly name: string
  /** Reason codes that SUBACK and UNSUBACK choose from. */
  readonly subacks: readonly number[]
  readonly unsubacks: readonly number[]
  /** Readers never give a message away unread: detach only, QoS 1 only, acknowledged by reading only. */
  readonly careful: boolean
}

/** A server's side: subscriptions change when the packet comes, answers leave later. */
export class Broker {
  readonly subscriptions = new Map<string, { readonly qos: number; readonly identifiers: readonly number[] }>()
  /** Texts of QoS 1 messages, in the order of sending, by packet identifier; and those that were acknowledged. */
  readonly unacknowledged = new Map<number, string>()
  readonly acknowledged: string[] = []
  /** Filters that were not given up when asked: a client that is refused them later may not know of them any more. */
  readonly kept = new Set<string>()
  readonly faults: string[] = []
  sent = 0
  #packetId = 0
  agrees = false
  readonly world: Promise<World>
  readonly #random: Random
  readonly #profile: Profile
  #world: World | undefined

  constructor(random: Random, profile: Profile) {
    this.#random = random
    this.#profile = profile
    this.world = connected({ clientId: 'c', cleanStart: false, maxFiltersPerSubscribe: 2 }, this.#answer)
    this.world.then((world) => {
      this.#world = world
    })
  }

  /** A message on a topic that is subscribed to; its text, or undefined when nobody wants it. */
  publish(topic: string): string | undefined {
    const subscription = this.subscriptions.get(topic)
    if (subscription === undefined || this.unacknowledged.size > 1000) return undefined
    this.sent += 1
    const text = `${topic}${this.sent}`
    const packetId = subscription.qos > 0 ? ++this.#packetId : undefined
    if (packetId !== undefined) this.unacknowledged.set(packetId, text)
    this.#world?.peer.send(publish(topic, text, packetId, { properties: { subscriptionIdentifiers: [...subscription.identifiers] } }))
    return text
  }

  readonly #answer: Answer = (packet) => {
    if (packet.type === 'connect') return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} }
    if (packet.type === 'pingreq') return { type: 'pingresp' }
    if (packet.type === 'subscribe') {
      const reasonCodes = packet.subscriptions.map(({ filter, qos }) => {
        const most = this.agrees ? 2 : this.#random.pick(this.#profile.subacks)
        if (most >= 0x80) return most
        const identifiers = packet.properties.subscriptionIdentifiers ?? []
        this.subscriptions.set(filter, { qos: Math.min(most, qos), identifiers })
        return Math.min(most, qos)
      })
      this.#later({ type: 'suback', packetId: packet.packetId, reasonCodes })
    } else if (packet.type === 'unsubscribe') {
      const reasonCodes = packet.filters.map((filter) => {
        const reasonCode = this.agrees ? 0 : this.#random.pick(this.#profile.unsubacks)
        if (reasonCode === 0) this.subscriptions.delete(filter)
        else this.kept.add(filter)
        return reasonCode
      })
      this.#later({ type: 'unsuback', packetId: packet.packetId, reasonCodes })
    } else if (packet.type === 'puback') this.#handlePuback(packet.packetId)
    return undefined
  }

  #later(packet: Parameters<World['peer']['send']>[0]): void {
    this.#world?.clock.setTimer(() => this.#world?.peer.send(packet), this.#random.below(30))
  }

  #handlePuback(packetId: number): void {
    const [oldest] = this.unacknowledged.keys()
    if (oldest !== packetId) this.faults.push(`PUBACK ${packetId}, where ${oldest} was next`)
    this.acknowledged.push(this.unacknowledged.get(packetId) ?? '')
    this.unacknowledged.delete(packetId)
  }
}
