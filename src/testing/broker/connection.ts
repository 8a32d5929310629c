/**
 * One connection of a client: reads its packets, keeps its time, ends it.
 *
 * What a packet means is decided in `handshake.ts` and `requests.ts`. Nothing that comes in makes this throw into the transport, and nothing is
 * handled after the end.
 */
import type { Sink, Transport } from '../../transport/transport.js'
import { DISCONNECT } from '../../wire/constants.js'
import { Decoder } from '../../wire/decode.js'
import { WireError } from '../../wire/error.js'
import type { ClientPacket, ConnectPacket, Properties, ProtocolVersion, ServerPacket, Will } from '../../wire/packets.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import { ClientView } from './client-view.js'
import { after, type BrokerClock } from './clock.js'
import type { Core } from './core.js'
import { type BrokerClient, report } from './events.js'
import type { FaultTable } from './fault-table.js'
import { type Exchange, handleEarly, handleWireError, refuseConnect } from './handshake.js'
import { Lane, type LaneEnds } from './lane.js'
import { Output, type OutputHost } from './output.js'
import { handleRequest, refuseRequest } from './requests.js'
import type { Session } from './session.js'

/** How long the client may take to end a stream that the broker has ended. */
const lingerTime = 5000

/** Bytes kept of the beginning, to tell the version of a CONNECT that cannot be read. */
const headLength = 16

/** Packets of a client that wait for its authentication. */
const mostEarly = 1000

/** See the file's comment. */
export class Connection implements Sink, OutputHost, LaneEnds<ClientPacket> {
  // valid for the connection
  readonly core: Core
  readonly remote: string | undefined
  readonly output: Output
  readonly client = new ClientView(this)
  clientId = ''
  connect: ConnectPacket | undefined
  state: 'new' | 'authenticating' | 'connected' = 'new'
  over = false
  session: Session | undefined
  /** To be published when the connection ends; undefined after DISCONNECT 0x00. */
  will: Will | undefined
  exchange: Exchange | undefined
  keepAlive = 0
  bytesIn = 0
  /** The first bytes that came. */
  head: Uint8Array = new Uint8Array(0)
  /** Topics by the client's alias [MQTT-3.3.2-7]. */
  readonly aliases = new Map<number, string>()
  /** Of {@link open}, the publishes at QoS 1. */
  readonly openAtQos1 = new Set<number>()
  /** Requests that were not answered on this connection, by packet identifier. */
  readonly open = new Map<number, 'publish' | 'subscribe' | 'unsubscribe'>()
  /** How many of them are PUBLISH [MQTT-3.3.4-7]. */
  openPublishes = 0
  /** PUBREC that were sent here and not answered, in order. */
  readonly receipts = new Set<number>()
  /** True while a copy that a fault made is handled: it breaks no rules. */
  lenient = false
  readonly #transport: Transport
  readonly #decoder: Decoder
  readonly #lane: Lane<ClientPacket>
  readonly #cancels = new Set<() => void>()
  #early: ClientPacket[] = []
  #earlyBytes = 0
  #lastPacket: number
  #linger: (() => void) | undefined
  #ended = false
  #end: { by: 'client' | 'broker' | 'network'; reasonCode: number | undefined } = { by: 'network', reasonCode: undefined }

  constructor(core: Core, transport: Transport, remote: string | undefined) {
    const { settings } = core
    this.core = core
    this.remote = remote
    this.#transport = transport
    this.#decoder = new Decoder({ from: 'client', maximumPacketSize: settings.maximumPacketSize })
    this.output = new Output(this, transport, settings)
    this.#lane = new Lane('in', this)
    this.#lastPacket = this.clock.now()
    this.#later(settings.connectTimeout, () => {
      if (this.state === 'new') this.violate('no CONNECT in time [MQTT-3.1.0-1]', undefined, 0x80)
    })
    transport.open(this)
  }

  get clock(): BrokerClock {
    return this.core.settings.clock
  }

  get faults(): FaultTable {
    return this.core.faults
  }

  get protocolVersion(): ProtocolVersion {
    return this.output.version
  }

  get accepted(): BrokerClient | undefined {
    return this.state === 'connected' ? this.client : undefined
  }

  /** Whether a fault happened to the order of packets on this connection. */
  get disturbed(): boolean {
    return this.#lane.disturbed || this.output.lane.disturbed
  }

  buffer(): Uint8Array {
    return this.core.window
  }

  read(length: number): void {
    this.chunk(this.core.window.subarray(0, length))
  }

  chunk(bytes: Uint8Array): void {
    if (this.over) return
    this.bytesIn += bytes.length
    if (this.head.length < headLength) this.#rememberHead(bytes)
    if (this.state === 'authenticating') this.#earlyBytes += bytes.length
    try {
      for (const packet of this.#decoder.push(bytes)) {
        this.#receive(packet as ClientPacket)
        if (this.over) return
      }
    } catch (error) {
      if (error instanceof WireError) handleWireError(this, error)
      else this.#fail(error)
    }
  }

  drain(): void {
    this.output.drained()
    this.session?.outbox.flush()
  }

  closed(): void {
    this.#linger?.()
    this.#finishOnce('network')
  }

  /** Takes an incoming packet that passed the faults. */
  deliver(packet: ClientPacket | Uint8Array, again: boolean): void {
    if (packet instanceof Uint8Array) return
    this.lenient = again
    try {
      this.#handle(packet)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.lenient = false
    }
  }

  refuse(packet: ClientPacket, reasonCode: number): void {
    if (packet.type !== 'connect') refuseRequest(this, packet, reasonCode)
    else if (this.state === 'new') {
      this.output.configure(packet)
      refuseConnect(this, reasonCode)
    }
  }

  cut(): void {
    this.#transport.destroy(new Error('the broker cut the connection'))
    this.#finishOnce('broker')
  }

  finish(): void {
    if (this.over) return
    this.#transport.close()
    this.#linger = after(this.clock, lingerTime, () => this.#transport.destroy(new Error('the client did not end its stream')))
    this.#finishOnce('broker')
  }

  restart(keepSessions: boolean): void {
    this.core.restart(keepSessions)
  }

  sent(packet: ServerPacket): void {
    if (packet.type === 'pubrec' && packet.reasonCode < 0x80) {
      this.receipts.delete(packet.packetId)
      this.receipts.add(packet.packetId)
    }
    const kind = settled(packet)
    if (kind === undefined || !('packetId' in packet) || packet.packetId === undefined || this.open.get(packet.packetId) !== kind) return
    // A refusal because the identifier is in use ends nothing, but for what this connection itself opened at QoS 1 [MQTT-4.9.0-2].
    const ends = this.openAtQos1.delete(packet.packetId) || this.session?.unreleased.has(packet.packetId) !== true
    if (kind === 'publish' && !ends) return
    if (kind === 'publish') this.openPublishes--
    this.open.delete(packet.packetId)
  }

  disown(packetId: number): void {
    this.session?.unreleased.delete(packetId)
  }

  /** Notes that the client broke a rule; with a reason code the connection ends [MQTT-4.13.1-1]. */
  violate(text: string, packet: ClientPacket['type'] | undefined, reasonCode?: number): void {
    if (this.lenient) return
    const { clientId, core } = this
    const violation = { clientId, time: this.clock.now(), packet, reasonCode, text }
    core.violations.add(violation)
    core.events.emit('violation', violation)
    if (reasonCode !== undefined) this.disconnect(reasonCode, { reasonString: text })
  }

  /** Ends the connection, after a DISCONNECT where the client understands one [MQTT-3.14.0-1] [MQTT-4.13.2-1]. */
  disconnect(reasonCode: number, properties: Properties = {}): void {
    if (this.over) return
    // 0x8C is in section 2.4, not in section 3.14.2.1 [MQTT-3.14.2-1].
    const code = isReasonCode(DISCONNECT, reasonCode, 'server') && reasonCode !== 0x8c ? reasonCode : 0x82
    this.#end = { by: 'broker', reasonCode: code }
    if (this.output.welcomed && this.protocolVersion === 5) this.output.send({ type: 'disconnect', reasonCode: code, properties })
    this.finish()
  }

  /** The client said goodbye. */
  leave(reasonCode: number): void {
    this.#end = { by: 'client', reasonCode }
    this.finish()
  }

  /** The handshake is done: the clock runs, and what came early is handled. */
  begin(): void {
    this.state = 'connected'
    if (this.keepAlive > 0) this.#watch(this.keepAlive * 1500)
  }

  /** Handles what came while the client was authenticated [MQTT-3.1.4-6]. */
  handleEarlier(): void {
    const early = this.#early
    this.#early = []
    for (const packet of early) if (!this.over) this.#handle(packet)
  }

  /** Keeps a packet until the client is authenticated; false when there are too many. */
  keepEarly(packet: ClientPacket): boolean {
    this.#early.push(packet)
    return this.#early.length <= mostEarly && this.#earlyBytes <= this.core.settings.maxBacklog
  }

  #receive(packet: ClientPacket): void {
    this.#lastPacket = this.clock.now()
    if (this.state === 'new' && packet.type === 'connect') this.clientId = packet.clientId
    this.#lane.pass(packet)
  }

  #handle(packet: ClientPacket): void {
    const { intercept } = this.core.settings
    let taken = packet
    if (intercept !== undefined) {
      const other = intercept('in', packet, this.accepted)
      if (other === false || this.over) return
      taken = (other ?? packet) as ClientPacket
    }
    if (this.state === 'connected') handleRequest(this, taken)
    else handleEarly(this, taken)
  }

  /** Closes after one and a half times the Keep Alive without a packet [MQTT-3.1.2-22]. */
  #watch(limit: number): void {
    this.#later(Math.max(1, this.#lastPacket + limit - this.clock.now()), () => {
      if (this.clock.now() - this.#lastPacket < limit) this.#watch(limit)
      else this.violate('silent for more than one and a half times the keep alive [MQTT-3.1.2-22]', undefined, 0x8d)
    })
  }

  #later(delay: number, callback: () => void): void {
    const cancel = after(this.clock, delay, () => {
      this.#cancels.delete(cancel)
      if (!this.over) callback()
    })
    this.#cancels.add(cancel)
  }

  #rememberHead(bytes: Uint8Array): void {
    const head = new Uint8Array(Math.min(headLength, this.head.length + bytes.length))
    head.set(this.head)
    head.set(bytes.subarray(0, headLength - this.head.length), this.head.length)
    this.head = head
  }

  // A defect of the broker or of a hook: the connection is of no use any more, and the test must see it.
  #fail(error: unknown): void {
    report(error)
    this.cut()
  }

  #finishOnce(by: 'broker' | 'network'): void {
    if (this.#ended) return
    this.#ended = true
    this.over = true
    for (const cancel of this.#cancels) cancel()
    this.#lane.stop()
    this.output.lane.stop()
    this.#early = []
    const end = this.#end.by === 'network' ? { by, reasonCode: undefined } : this.#end
    this.core.leave(this)
    if (this.state === 'connected') this.core.events.emit('disconnect', { client: this.client, ...end })
  }
}

/** The kind of request that a packet is the end of, if it is one. */
function settled(packet: ServerPacket): 'publish' | 'subscribe' | 'unsubscribe' | undefined {
  if (packet.type === 'puback' || packet.type === 'pubcomp' || (packet.type === 'pubrec' && packet.reasonCode >= 0x80)) return 'publish'
  if (packet.type === 'suback') return 'subscribe'
  return packet.type === 'unsuback' ? 'unsubscribe' : undefined
}
