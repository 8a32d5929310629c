/**
 * Watches the events of one client and says where they contradict each other: states that do not follow, connections that end twice or never begin.
 *
 * It looks at public events only, and keeps counts, not events.
 */
import type { Client, ClientEvents, ClientState, MqttError } from '../../src/client/node.js'

/** Which states may follow which. */
const following: Readonly<Record<ClientState, readonly ClientState[]>> = {
  idle: ['connecting', 'closed'],
  connecting: ['connected', 'reconnecting', 'closed'],
  connected: ['reconnecting', 'disconnecting', 'closed'],
  reconnecting: ['connected', 'closed'],
  disconnecting: ['closed'],
  closed: [],
}

export class Lifecycle {
  connects = 0
  disconnects = 0
  /** Connections after the first on which the server had no session. */
  absences = 0
  /** `sessionlost` events, by cause. */
  readonly lost = { absent: 0, expired: 0 }
  /** Contradictions, in words. */
  readonly contradictions: string[] = []
  #state: ClientState = 'idle'

  constructor(client: Client) {
    client.on('state', (event) => this.#handleState(event))
    client.on('connect', ({ sessionPresent }) => this.#handleConnect(sessionPresent))
    client.on('disconnect', ({ cause }) => this.#handleDisconnect(cause))
    client.on('sessionlost', ({ cause }) => {
      this.lost[cause] += 1
    })
  }

  /** All contradictions, with those that only the end shows: every connection that began has ended. */
  ended(): readonly string[] {
    const all = [...this.contradictions]
    if (this.#state !== 'closed') all.push(`the last state is ${this.#state}`)
    if (this.connects !== this.disconnects)
      all.push(`${this.connects} connects, ${this.disconnects} disconnects`)
    const reported = this.lost.absent + this.lost.expired
    if (reported !== this.absences)
      all.push(`${this.absences} sessions were gone, ${reported} reported lost`)
    return all
  }

  #handleState({ state, previous }: ClientEvents['state']): void {
    if (previous !== this.#state) this.contradictions.push(`left ${previous}, was ${this.#state}`)
    if (!following[previous].includes(state)) this.contradictions.push(`${previous} -> ${state}`)
    this.#state = state
  }

  #handleConnect(sessionPresent: boolean): void {
    if (this.connects !== this.disconnects)
      this.contradictions.push('connect without a disconnect before it')
    if (this.#state !== 'connected') this.contradictions.push(`connect in ${this.#state}`)
    if (this.connects > 0 && !sessionPresent) this.absences += 1
    this.connects += 1
  }

  // With brokers that keep to the protocol only the network ends a connection.
  #handleDisconnect(cause: MqttError | undefined): void {
    this.disconnects += 1
    const quarrel = `a connection ended with ${cause?.code}: ${cause?.message}`
    const expected = cause === undefined || cause.code === 'ERR_CONNECTION_LOST'
    if (!expected && !this.contradictions.includes(quarrel)) this.contradictions.push(quarrel)
    if (this.connects !== this.disconnects) this.contradictions.push('disconnect without connect')
  }
}

/** Counts the times that the broker begins a message at QoS 2: each PUBLISH whose identifier is not in use [MQTT-4.3.3-10]. Some begin anew what was cut. */
export function exchanges(client: Client, topic: string): () => number {
  const open = new Set<number>()
  let count = 0
  client.on('packet', ({ direction, packet }) => {
    if (direction === 'out') return
    if (packet.type === 'pubrel') open.delete(packet.packetId)
    if (packet.type !== 'publish' || packet.topic !== topic || packet.packetId === undefined) return
    if (!open.has(packet.packetId)) count += 1
    open.add(packet.packetId)
  })
  return () => count
}
