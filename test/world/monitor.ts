/** What a broker must never see: it reads both directions of every connection of one client and says which rule was broken. */
import { InboundRules, OutboundRules } from './monitor-messages.js'
import { Malformed, property, readPacket, type Seen, Splitter } from './reader.js'

/** What the monitor knows of the client that it watches. */
export interface Expectations {
  /** As configured. */
  readonly cleanStart: boolean
  readonly version: 4 | 5 | 'auto'
  readonly clientId: string
  readonly now: () => number
  /** True while the client knows that its session has run out: it begins a new one. */
  readonly expired?: () => boolean
  /** True of a message that may not be sent again: its caller gave it up, and it is too large for the client to keep a copy. */
  readonly gaveUp?: (payload: string, size: number) => boolean
  /** True while silence is the client's fault: nothing is stalled, no timer was made late. */
  readonly punctual: () => boolean
}

export interface Violation {
  readonly rule: string
  readonly detail: string
}

export interface Passed {
  readonly way: 'up' | 'down'
  readonly connection: number
  readonly at: number
  readonly seen: Seen
}

/** Everything that the monitor remembers of one client. */
export class Monitor {
  readonly violations: Violation[] = []
  readonly passed: Passed[] = []
  readonly outbound: OutboundRules
  readonly inbound: InboundRules
  /** Told of each packet before the other side gets it. */
  onPacket: ((passed: Passed) => void) | undefined
  /** True once a CONNACK with reason code 0 had arrived. */
  accepted = false
  assignedId = ''
  connections = 0
  /** Number of a connection that the application has given up: its DISCONNECT is queued, and nothing that arrives is handled any more. */
  forsaken = 0
  readonly expect: Expectations
  /** First connection of this process of the application. */
  #fresh = true

  constructor(expect: Expectations) {
    this.expect = expect
    const report = (rule: string, detail: string): void => this.report(rule, detail)
    this.outbound = new OutboundRules(report, expect.gaveUp)
    this.inbound = new InboundRules(report)
  }

  report(rule: string, detail: string): void {
    this.violations.push({
      rule,
      detail: `${detail} (connection ${this.connections}, ${this.expect.now()} ms)`,
    })
  }

  connect(): MonitoredConnection {
    this.connections += 1
    return new MonitoredConnection(this, this.connections)
  }

  /** The application's process starts anew: what the client remembered is gone, what the broker remembers is not. */
  restart(): void {
    this.accepted = false
    this.#fresh = true
    this.assignedId = ''
    this.outbound.forget()
    this.inbound.forget()
  }

  handleSession(present: boolean): void {
    if (!present) {
      this.outbound.forget()
      this.inbound.forget()
    }
    if (present && this.#fresh) this.outbound.mayClear = true
    this.#fresh = false
    this.accepted = true
  }
}

export class MonitoredConnection {
  readonly number: number
  readonly #monitor: Monitor
  readonly #up = new Splitter()
  readonly #down = new Splitter()
  #version = 5
  #connect: Seen | undefined
  #connack: Seen | undefined
  #said: 'disconnect' | undefined
  #lastSent = 0
  #deaf = false
  #over = false
  #keepAlive = 0
  #awaitsAuth = false
  readonly #aliases = new Map<number, string>()

  constructor(monitor: Monitor, number: number) {
    this.#monitor = monitor
    this.number = number
  }

  sent(bytes: Uint8Array): void {
    try {
      for (const packet of this.#up.push(bytes))
        this.#handleSent(readPacket(packet, this.#versionOf(packet)))
      // In the middle of a packet a client is not silent.
      if (this.#up.pending > 0) {
        this.#checkSilence()
        this.#lastSent = this.#monitor.expect.now()
      }
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      this.#monitor.report('malformed', error.message)
    }
  }

  arriving(bytes: Uint8Array): void {
    if (this.#deaf) return
    try {
      for (const packet of this.#down.push(bytes))
        this.#handleArriving(readPacket(packet, this.#version))
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      // The world's own broker wrote something that is no MQTT.
      this.#monitor.report('broker malformed', error.message)
      this.#deaf = true
    }
  }

  end(how: 'closed' | 'destroyed' | 'ended'): void {
    if (this.#over) return
    this.#over = true
    this.#checkSilence()
    if (how === 'closed' && this.#up.pending > 0)
      this.#monitor.report('half a packet', 'the stream was closed in the middle of a packet')
    if (
      how === 'closed' &&
      this.#said === undefined &&
      this.#connack !== undefined &&
      this.#version === 5 &&
      this.#connack.reason === 0
    ) {
      this.#monitor.report('no goodbye', 'the stream was closed in order without DISCONNECT')
    }
  }

  #versionOf(packet: Uint8Array): number {
    // The version of CONNECT follows its name: fixed header, two bytes of length, "MQTT".
    if ((packet[0] as number) >> 4 === 1) {
      const at = packet.findIndex((byte, index) => index > 0 && byte < 128) + 7
      this.#version = packet[at] ?? 5
    }
    return this.#version
  }

  #handleSent(seen: Seen): void {
    const { expect } = this.#monitor
    this.#monitor.onPacket?.({ way: 'up', connection: this.number, at: expect.now(), seen })
    this.#monitor.passed.push({ way: 'up', connection: this.number, at: expect.now(), seen })
    if (this.#said !== undefined)
      return this.#monitor.report('after DISCONNECT', `${seen.kind} was sent after DISCONNECT`)
    this.#checkSilence()
    this.#lastSent = expect.now()
    if (this.#connect === undefined || seen.kind === 'connect') return this.#handleConnect(seen)
    if (seen.kind === 'disconnect') this.#said = 'disconnect'
    if (seen.kind === 'auth' && !this.#awaitsAuth)
      this.#monitor.report('auth', 'AUTH without an authentication method')
    if (seen.kind === 'auth') return
    if (this.#connack === undefined)
      return this.#monitor.report('before CONNACK', `${seen.kind} was sent before CONNACK`)
    this.#checkLimits(seen, this.#connack)
    this.#monitor.outbound.handleSent(seen, this.number)
    this.#monitor.inbound.handleSent(seen, this.number)
  }

  #handleConnect(seen: Seen): void {
    const { expect, accepted, assignedId } = this.#monitor
    const report = (rule: string, detail: string): void => this.#monitor.report(rule, detail)
    if (seen.kind !== 'connect') return report('first packet', `${seen.kind} came before CONNECT`)
    if (this.#connect !== undefined) return report('first packet', 'a second CONNECT')
    this.#connect = seen
    if (expect.version !== 'auto' && seen.version !== expect.version)
      report('version', `CONNECT says ${seen.version}`)
    const clean = accepted && !(seen.version === 4 && expect.cleanStart) ? false : expect.cleanStart
    if (seen.cleanStart !== clean && !(seen.cleanStart && expect.expired?.() === true))
      report('clean start', `Clean Start is ${seen.cleanStart} and must be ${clean}`)
    const wanted = expect.clientId || assignedId
    if (wanted !== '' && seen.clientId !== wanted)
      report('client identifier', `it is not the one that it has`)
    this.#awaitsAuth = seen.properties.has(property.authenticationMethod)
  }

  #handleArriving(seen: Seen): void {
    const { expect } = this.#monitor
    if (this.#deaf) return
    if (seen.kind === 'publish') this.#resolve(seen)
    this.#monitor.onPacket?.({ way: 'down', connection: this.number, at: expect.now(), seen })
    // What comes after the client's goodbye is nobody's any more.
    if (this.#over || this.#said !== undefined || this.#monitor.forsaken === this.number) return
    this.#monitor.passed.push({ way: 'down', connection: this.number, at: expect.now(), seen })
    if (seen.kind === 'connack') return this.#handleConnack(seen)
    if (this.#connack === undefined) return
    this.#monitor.outbound.handleArriving(seen, this.number)
    this.#monitor.inbound.handleArriving(seen, this.number)
    // The client ends the connection at it, and reads nothing behind it.
    if (seen.kind === 'publish' && seen.topic === '') this.#deaf = true
  }

  // A copy whose alias is not known on this connection keeps an empty topic: the client has to refuse it.
  #resolve(seen: Seen): void {
    const alias = seen.properties.get(property.topicAlias)
    if (typeof alias !== 'number') return
    if (seen.topic === '') seen.topic = this.#aliases.get(alias) ?? ''
    else this.#aliases.set(alias, seen.topic)
  }

  #handleConnack(seen: Seen): void {
    if (this.#connack !== undefined || seen.reason !== 0 || this.#connect === undefined) return
    this.#connack = seen
    const assigned = seen.properties.get(property.assignedClientIdentifier)
    if (typeof assigned === 'string') this.#monitor.assignedId = assigned
    // What the client must refuse does not begin a session.
    const connect = this.#connect
    if (seen.sessionPresent && connect.cleanStart) return
    this.#monitor.handleSession(seen.sessionPresent)
    this.#lastSent = this.#monitor.expect.now()
    this.#keepAlive =
      Number(seen.properties.get(property.serverKeepAlive) ?? connect.keepAlive) * 1000
    const [window, size] = [
      limit(seen, property.receiveMaximum, 65_535),
      limit(seen, property.maximumPacketSize, Number.POSITIVE_INFINITY),
    ]
    this.#monitor.outbound.start(this.number, window, size, limit(seen, property.maximumQos, 2))
  }

  #checkLimits(seen: Seen, connack: Seen): void {
    const report = (rule: string, detail: string): void => this.#monitor.report(rule, detail)
    const maximum = limit(connack, property.maximumPacketSize, Number.POSITIVE_INFINITY)
    if (seen.size > maximum)
      report('packet size', `${seen.kind} of ${seen.size} bytes, ${maximum} are allowed`)
    if (
      seen.properties.has(property.subscriptionIdentifier) &&
      limit(connack, property.subscriptionIdentifierAvailable, 1) === 0
    )
      report('subscription identifier', 'Subscription Identifiers are not available')
    if (seen.kind !== 'publish') return
    if (seen.qos > limit(connack, property.maximumQos, 2)) report('maximum QoS', `QoS ${seen.qos}`)
    if (seen.retain && limit(connack, property.retainAvailable, 1) === 0)
      report('retain', 'retain is not available')
    this.#monitor.outbound.checkAlias(
      seen,
      this.number,
      limit(connack, property.topicAliasMaximum, 0),
    )
  }

  #checkSilence(): void {
    const { expect } = this.#monitor
    // Nothing may be sent after DISCONNECT, not even PINGREQ [MQTT-3.14.4-1].
    if (this.#said !== undefined) return
    if (this.#connack === undefined || this.#keepAlive === 0 || !expect.punctual()) return
    const silence = expect.now() - this.#lastSent
    if (silence > this.#keepAlive * 1.5)
      this.#monitor.report(
        'keep-alive',
        `nothing was sent for ${silence} ms, keep-alive is ${this.#keepAlive} ms`,
      )
    this.#lastSent = Math.max(this.#lastSent, expect.now() - this.#keepAlive)
  }
}

function limit(connack: Seen, id: number, otherwise: number): number {
  const value = connack.properties.get(id)
  return typeof value === 'number' ? value : otherwise
}
