/**
 * One connection of a client: reads its packets, keeps its time, ends it.
 *
 * What a packet means is decided in `handshake.ts` and `requests.ts`. While a hook thinks about one packet, those behind it wait here. Nothing that
 * comes in makes this throw into the transport, and nothing is handled after the end.
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
import { type BrokerClient, type HookName, report } from './events.js'
import type { FaultTable } from './fault-table.js'
import { type Exchange, endHandshake, handleEarly, handleWireError, refuseConnect } from './handshake.js'
import { type Eventually, isPromise } from './hooks.js'
import { intercept } from './interception.js'
import { Lane, type LaneEnds } from './lane.js'
import { Output, type OutputHost } from './output.js'
import { handleRequest, refuseRequest } from './requests.js'
import type { Session } from './session.js'

/** How long the client may take to end a stream that the broker has ended. */
const lingerTime = 5000

/** Bytes kept of the beginning, to tell the version of a CONNECT that cannot be read. */
const headLength = 16

/** Packets that wait for a hook before CONNACK. */
const mostEarly = 1000

/** What a packet that waits for a hook counts for, besides its payload. */
const packetCost = 100

/** Bytes that wait for a hook before the transport is asked for a pause. */
const pauseAt = 65_536

/** A packet, or what came in place of one, behind one that a hook thinks about. */
interface Waiting {
  readonly run: () => void
  readonly bytes: number
}

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
  /** True once the client's stream is over, while what came before is still handled. */
  gone = false
  readonly #transport: Transport
  readonly #decoder: Decoder
  readonly #lane: Lane<ClientPacket>
  readonly #cancels = new Set<() => void>()
  /** Hooks that think about a packet of this client. */
  #thinking = 0
  /** What waits behind that packet, in order. */
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #paused = false
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
      else if (this.state === 'authenticating') endHandshake(this, this.#thinking > 0)
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
    this.core.writes.begin()
    try {
      for (const packet of this.#decoder.push(bytes)) {
        this.#receive(packet as ClientPacket)
        if (this.over) return
      }
      // A large packet over a slow link: as long as it goes on, the client is not silent.
      if (this.#decoder.pending > 0) this.#lastPacket = this.clock.now()
    } catch (error) {
      if (!(error instanceof WireError)) this.#fail(error)
      else if (this.#thinking > 0 && this.state === 'connected') this.#wait(() => handleWireError(this, error), 0)
      else handleWireError(this, error)
    } finally {
      this.core.writes.end()
    }
  }

  drain(): void {
    this.output.drained()
    this.relieved()
  }

  relieved(): void {
    this.core.writes.begin()
    this.session?.outbox.flush()
    this.core.writes.end()
  }

  closed(): void {
    this.#linger?.()
    this.gone = true
    this.core.forgetStream(this)
    this.output.lose()
    // What was sent before the end counts.
    if (this.#thinking === 0 || this.over || (this.state !== 'connected' && this.#waiting.length === 0)) this.#finishOnce('network')
    else this.session?.outbox.detach(this.output)
  }

  /** Takes an incoming packet that passed the faults. */
  deliver(packet: ClientPacket | Uint8Array, again: boolean): void {
    if (packet instanceof Uint8Array) return
    if (this.#thinking === 0 || this.#endsHandshake(packet)) this.#take(packet, again)
    else this.#wait(() => this.#take(packet, again), packet.type === 'publish' ? packet.payload.length : 0)
  }

  /** Goes on with what a hook gave: at once, or when its promise has settled; then what came meanwhile is handled, in order. */
  decide<T>(given: Eventually<T>, next: (value: T) => void): void {
    if (!isPromise(given)) {
      next(given)
      return
    }
    const { lenient } = this
    this.#thinking++
    void given.then((value) => {
      this.#thinking--
      if (this.over) return
      this.#lastPacket = this.clock.now()
      this.core.writes.begin()
      this.#guard(lenient, () => next(value))
      this.#goOn()
      this.core.writes.end()
    })
  }

  refuse(packet: ClientPacket, reasonCode: number): void {
    if (packet.type !== 'connect') refuseRequest(this, packet, reasonCode)
    else if (this.state === 'new') {
      this.output.configure(packet)
      refuseConnect(this, reasonCode)
    }
  }

  cut(): void {
    this.output.flush()
    this.#transport.destroy(new Error('the broker cut the connection'))
    this.#finishOnce('broker')
  }

  finish(): void {
    if (this.over) return
    this.output.end(() => this.#transport.close())
    if (!this.gone) this.#linger = after(this.clock, lingerTime, () => this.#transport.destroy(new Error('the client did not end its stream')))
    this.#finishOnce('broker')
  }

  failHook(hook: HookName, error: unknown): void {
    this.core.tell(hook, this.clientId, error)
    this.cut()
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

  /** The handshake is done: the clock runs. */
  begin(): void {
    this.state = 'connected'
    if (this.keepAlive > 0) this.#watch(this.keepAlive * 1500)
  }

  #receive(packet: ClientPacket): void {
    this.#lastPacket = this.clock.now()
    if (this.state === 'new' && packet.type === 'connect') this.clientId = packet.clientId
    this.#lane.pass(packet)
  }

  #take(packet: ClientPacket, again: boolean): void {
    this.lenient = again
    try {
      this.#handle(packet)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.lenient = false
    }
  }

  #guard(lenient: boolean, run: () => void): void {
    this.lenient = lenient
    try {
      run()
    } catch (error) {
      this.#fail(error)
    } finally {
      this.lenient = false
    }
  }

  #handle(packet: ClientPacket): void {
    const hook = this.core.settings.intercept
    if (hook === undefined) {
      this.#understand(packet)
      return
    }
    this.decide(intercept(this.core, hook, this, 'in', packet), (taken) => {
      if (taken === undefined) this.cut()
      else if (taken !== false && !this.over) this.#understand(taken)
    })
  }

  #understand(packet: ClientPacket): void {
    if (this.state === 'connected') handleRequest(this, packet)
    else handleEarly(this, packet)
  }

  /** What ends a connection before CONNACK whatever the hook says: nothing of it may be handled then [MQTT-3.1.4-6]. */
  #endsHandshake({ type }: ClientPacket): boolean {
    if (this.state !== 'authenticating') return false
    return type === 'connect' || type === 'auth' || (type === 'disconnect' && this.#waiting.length === 0)
  }

  #wait(run: () => void, size: number): void {
    const bytes = size + packetCost
    this.#waiting.push({ run, bytes })
    this.#waitingBytes += bytes
    const isFlood = this.#waitingBytes > this.core.settings.maxBacklog || (this.state !== 'connected' && this.#waiting.length > mostEarly)
    if (isFlood) this.#refuseFlood()
    else if (this.#waitingBytes > pauseAt && !this.#paused) {
      this.#paused = true
      this.#transport.pause?.()
    }
  }

  #refuseFlood(): void {
    const text = 'too much was sent while a hook was asked'
    if (this.state === 'connected') this.disconnect(0x97, { reasonString: text })
    else refuseConnect(this, 0x97, text)
  }

  #goOn(): void {
    let next = 0
    while (next < this.#waiting.length && this.#thinking === 0 && !this.over) {
      const { run, bytes } = this.#waiting[next++] as Waiting
      this.#waitingBytes -= bytes
      run()
    }
    this.#waiting.splice(0, next)
    if (this.over) return
    if (this.#paused && this.#waitingBytes < pauseAt / 2) {
      this.#paused = false
      this.#transport.resume?.()
    }
    if (this.gone && this.#thinking === 0) this.#finishOnce('network')
  }

  /** Closes after one and a half times the Keep Alive without a packet, or a part of one [MQTT-3.1.2-22]. */
  #watch(limit: number): void {
    this.#later(Math.max(1, this.#lastPacket + limit - this.clock.now()), () => {
      // A client whose packets wait is not silent.
      if (this.#thinking > 0) this.#lastPacket = this.clock.now()
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
    this.#waiting = []
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
