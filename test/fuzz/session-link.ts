/**
 * One session with its connections, driven as the client drives them, without a client: `Connection` over a host that keeps a record.
 *
 * Everything is synchronous: microtasks, turns and timers are queues that run when they are told to. Each message is settled by a rule that counts
 * messages, not reads. What comes in at QoS 1 and 2 is judged by the reference session too.
 */
import { Connection } from '../../src/client/connection/connection.js'
import type { ConnectionHost } from '../../src/client/connection/ports.js'
import type { Platform } from '../../src/client/platform.js'
import type { Action } from '../../src/client/session/actions.js'
import { REPEAT } from '../../src/client/session/receive-window.js'
import { FAULT } from '../../src/client/session/refusal.js'
import { Session } from '../../src/client/session/session.js'
import type { MqttError } from '../../src/errors.js'
import type { Sink, Transport } from '../../src/transport/transport.js'
import type { ConnectPacket } from '../../src/wire/packets.js'
import type { PublishView } from '../../src/wire/publish.js'
import type { TopicRecord } from '../../src/wire/topic-table.js'
import { type Defect, transportWith, type Wrapper } from '../support/defective.js'
import { check, checkMost, checkSame, guarded, shownError } from './oracle.js'
import { Outlet, ReferenceInbound } from './reference.js'
import { Tables } from './tables.js'

/** What a run is set to. */
export interface Setting {
  readonly version: 4 | 5
  readonly receiveMaximum: number
  readonly receiveMaximumExceeded: 'tolerate' | 'disconnect'
  readonly maximumInflight: number
  readonly topicAliasMaximum: number
  readonly ownsSession: boolean
  readonly authenticated: boolean
  readonly keepAlive: number
  /** When messages are settled: at once, at the end, two by two in reverse, or at once with a refusal every other time. */
  readonly settling: 0 | 1 | 2 | 3
  /** What is sent on each connection: how many at QoS 1, at QoS 2, SUBSCRIBE and UNSUBSCRIBE. */
  readonly sending: readonly [number, number, number, number]
}

/** What one connection came to. */
export interface Told {
  /** What the host was told, in order. */
  readonly events: unknown[]
  /** Acknowledgements of what came in, as sent: type, identifier, reason code. */
  readonly acks: (readonly [string, number, number])[]
  /** Why it ended: the error's code and reason code. */
  end: readonly [string, number | undefined] | undefined
  /** It ended by what came in: acknowledgements of the same read stay behind. */
  endedInRead: boolean
}

const tellOff = [
  'ERR_MALFORMED_PACKET',
  'ERR_PROTOCOL_ERROR',
  'ERR_PACKET_TOO_LARGE',
  'ERR_UNEXPECTED_PACKET',
]
const inboundAcks = ['puback', 'pubrec', 'pubcomp']

const guard = (callback: () => void): void => guarded('session-throw', 'a callback threw', callback)

/** Drives one session over several connections. */
export class SessionLink {
  readonly told: Told[] = []
  readonly session: Session
  readonly #setting: Setting
  readonly #reference: ReferenceInbound
  readonly #tables: Tables
  /** Tickets of the session by those of the reference. */
  readonly #tickets = new Map<number, number>()
  readonly #unsettled: number[] = []
  /** Publishes of ours without their last acknowledgement: the QoS that is waited for, 3 once released. */
  readonly #outgoing = new Map<number, number>()
  #messages = 0
  #now = 0
  readonly #tasks: (() => void)[] = []
  #timers: { readonly at: number; readonly callback: () => void }[] = []
  readonly #host: ConnectionHost
  readonly #wrapper: Wrapper
  // valid for the connection
  #link: Connection | undefined
  #sink: Sink | undefined
  #outlet: Outlet
  #connected = false
  #reading = false

  /** @param defect what is wrong with the client, which has to be found */
  constructor(setting: Setting, defect?: Defect) {
    this.#wrapper = defect?.make() ?? {}
    this.#setting = setting
    this.session = new Session({ ...setting, pingTimeout: 10_000, identifierBase: 100 })
    this.#tables = new Tables(this.session)
    this.#reference = new ReferenceInbound(
      setting.receiveMaximum,
      setting.receiveMaximumExceeded === 'tolerate',
    )
    this.#outlet = new Outlet(setting.version)
    this.#host = this.#makeHost()
    this.#judgeInbound()
  }

  /** Opens the next connection: CONNECT leaves. */
  open(cleanStart: boolean): void {
    const { version } = this.#setting
    this.told.push({ events: [], acks: [], end: undefined, endedInRead: false })
    this.#outlet = new Outlet(version)
    this.#connected = false
    const packet = this.#connectPacket(cleanStart)
    const later = (callback: () => void) => void this.#tasks.push(callback)
    const stream = transportWith(
      this.#wrapper,
      this.#transport(this.#outlet),
      this.told.length,
      later,
    )
    const link = new Connection(stream, this.#host, packet)
    this.#link = link
    this.session.connect(packet)
    this.#reference.start(version === 5 ? this.#setting.receiveMaximum : 65_535, version === 4)
    link.pump()
    this.#runTasks()
  }

  /** A piece of the server's stream comes in. */
  receive(bytes: Uint8Array): void {
    this.#outlet.answered = true
    this.#reading = true
    guard(() => this.#sink?.chunk(bytes))
    this.#reading = false
    bytes.fill(0xee)
    this.#runTasks()
    this.check()
  }

  /** Settles what was left open, the latest first. */
  settleAll(): void {
    for (const ticket of this.#unsettled.splice(0).reverse()) this.#settle(ticket, 0)
    this.#runTasks()
    this.check()
  }

  /** Lets time pass. */
  pass(duration: number): void {
    const until = this.#now + duration
    for (;;) {
      const [due] = this.#timers
        .filter(({ at }) => at <= until)
        .sort((one, other) => one.at - other.at)
      if (due === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== due)
      this.#now = Math.max(this.#now, due.at)
      guard(due.callback)
      this.#runTasks()
    }
    this.#now = until
    this.check()
  }

  /** The stream ends, if it has not. */
  close(): void {
    guard(() => this.#sink?.closed(undefined))
    this.#runTasks()
    check(this.#link === undefined, 'session-end', () => 'the host was not told of the end')
    checkSame(this.#outlet.pending, 0, 'output', 'bytes of half a packet')
  }

  /** The invariants that hold whenever nothing runs. @throws OracleError */
  check(): void {
    const { session } = this
    if (session.state !== 'connected') {
      if (this.#link === undefined) this.#tables.checkSuspended()
      return
    }
    const { version, maximumInflight, receiveMaximum, receiveMaximumExceeded } = this.#setting
    const isStrict = version === 5 && receiveMaximumExceeded === 'disconnect'
    const window = Math.min(session.negotiated?.receiveMaximum ?? 0, maximumInflight)
    this.#tables.check(window, isStrict ? receiveMaximum : 65_535)
    const { receiveWindow } = session
    const { occupied, messages } = this.#reference
    checkSame(receiveWindow.open, occupied, 'session-model', 'open')
    checkSame(receiveWindow.unsettled, messages.length, 'session-model', 'unsettled')
  }

  get #telling(): Told {
    return this.told.at(-1) as Told
  }

  #runTasks(): void {
    for (let count = 0; ; count++) {
      const task = this.#tasks.shift()
      if (task === undefined) return
      check(count < 10_000, 'session-hang', () => 'tasks without end')
      guard(task)
    }
  }

  #connectPacket(cleanStart: boolean): ConnectPacket {
    const { version, receiveMaximum, topicAliasMaximum, authenticated, keepAlive } = this.#setting
    const authenticationMethod = authenticated ? 'm' : undefined
    const five = {
      receiveMaximum,
      topicAliasMaximum: topicAliasMaximum || undefined,
      authenticationMethod,
    }
    return {
      ...{
        type: 'connect',
        protocolName: 'MQTT',
        protocolVersion: version,
        cleanStart,
        keepAlive,
        clientId: 'c',
      },
      ...{
        will: undefined,
        username: undefined,
        password: undefined,
        properties: version === 5 ? five : {},
      },
    }
  }

  #transport(outlet: Outlet): Transport {
    let over = false
    return {
      open: (sink) => {
        this.#sink = sink
      },
      write: (bytes, written) => {
        check(!over, 'output', () => 'a write after the end')
        for (const seen of outlet.take(bytes)) {
          if (inboundAcks.includes(seen.kind))
            this.#telling.acks.push([seen.kind, seen.id, seen.reason])
        }
        this.#tasks.push(() => written?.())
        return true
      },
      close: () => {
        over = true
      },
      destroy: () => {
        over = true
      },
    }
  }

  // Each arrival and each PUBREL goes to the reference as well.
  #judgeInbound(): void {
    const { receiveWindow } = this.session
    const handlePublish = receiveWindow.handlePublish.bind(receiveWindow)
    const handlePubrel = receiveWindow.handlePubrel.bind(receiveWindow)
    receiveWindow.handlePublish = (id, qos, dup = false) => {
      const verdict = handlePublish(id, qos, dup)
      const expected = this.#reference.receive(id, qos, dup)
      const word = verdict === REPEAT ? 'repeat' : verdict === FAULT ? 'close' : 'ticket'
      const wanted = typeof expected === 'number' ? 'ticket' : String(expected).split(' ')[0]
      checkSame(word, wanted, 'session-model', `PUBLISH ${id} at QoS ${qos}`)
      if (typeof expected === 'number') this.#tickets.set(verdict, expected)
      return verdict
    }
    receiveWindow.handlePubrel = (id) => {
      handlePubrel(id)
      const closes = !this.#reference.pubrel(id)
      checkSame(this.session.state === 'closed', closes, 'session-model', `PUBREL ${id} closes`)
    }
  }

  #settle(ticket: number, code: number): void {
    // 3.1.1 cannot say no.
    const said = this.#setting.version === 5 ? code : 0
    const settled = this.session.receiveWindow.settle(ticket, said)
    const expected = this.#reference.settle(this.#tickets.get(ticket) ?? -1, said)
    checkSame(settled, expected, 'session-model', `settling ${ticket}`)
    this.#link?.writer.queueFlush()
  }

  #handleMessage(view: PublishView, topic: string, ticket: number): void {
    check(
      topic !== '' && !/[+#\0]/.test(topic),
      'session-topic',
      () => `a message on ${JSON.stringify(topic)}`,
    )
    check(view.qos === 0 || ticket >= 0, 'session-topic', () => 'a message without a ticket')
    this.#telling.events.push([
      'message',
      topic,
      view.payload().slice(),
      view.qos,
      view.retain,
      ticket,
    ])
    if (view.qos === 0) return
    this.#messages += 1
    const { settling } = this.#setting
    if (settling === 0) return this.#settle(ticket, 0)
    if (settling === 3) return this.#settle(ticket, this.#messages % 2 === 0 ? 0x80 : 0)
    this.#unsettled.push(ticket)
    if (settling !== 2 || this.#messages % 2 !== 0) return
    for (const late of this.#unsettled.splice(-2).reverse()) this.#settle(late, 0)
  }

  #makeHost(): ConnectionHost {
    const platform: Pick<Platform, 'now' | 'microtask' | 'nextTurn' | 'setTimer'> = {
      now: () => this.#now,
      microtask: (callback) => void this.#tasks.push(callback),
      nextTurn: (callback) => void this.#tasks.push(callback),
      setTimer: (callback, delay) => {
        const timer = { at: this.#now + delay, callback }
        this.#timers.push(timer)
        return () => {
          this.#timers = this.#timers.filter((other) => other !== timer)
        }
      },
    }
    const tell = (...event: unknown[]): void => void this.#telling.events.push(event)
    const done = (name: string, id: number, code: number): void => {
      tell(name, id, code)
      const known = name === 'released' ? this.#outgoing.has(id) : this.#outgoing.delete(id)
      check(known, 'session-outbound', () => `${name} ${id} was not in flight`)
      if (name === 'released') this.#outgoing.set(id, 3)
    }
    const host = {
      platform,
      log: () => undefined,
      session: this.session,
      options: { maximumPacketSize: 1 << 20, memoryBudget: 1 << 22 },
      subscriptions: { filters: 0 },
      events: { transition: (change: () => void) => change(), emit: () => undefined },
      publishing: {
        sent: {
          handleAcknowledged: (_type: number, id: number, code: number) =>
            done('acknowledged', id, code),
          handleReleased: (id: number, code: number) => done('released', id, code),
        },
        flush: () => undefined,
      },
      counters: undefined,
      connections: {
        inbox: {
          handleMessage: (view: PublishView, { name }: TopicRecord, ticket: number) => {
            this.#handleMessage(view, name, ticket)
          },
          handleRead: () => undefined,
          handleReadEnd: () => undefined,
          borrowers: 0,
          handleRepeat: () => tell('repeat'),
        },
        watch: undefined,
        verify: () => undefined,
        handleClosed: (error: MqttError | undefined) => this.#handleClosed(error),
      },
      waiting: false,
      flush: () => undefined,
      handleAction: (action: Action) => this.#handleAction(action),
    }
    return host as unknown as ConnectionHost
  }

  #handleAction(action: Action): void {
    const { events } = this.#telling
    if (action.type === 'connected') return this.#handleConnected(action)
    if (action.type === 'answered')
      events.push(['answered', action.packet.type, action.packet.packetId])
    if (action.type === 'auth') {
      events.push(['auth', action.packet.reasonCode])
      if (action.packet.reasonCode === 0x18) this.session.authExchange.authenticate(0x18, undefined)
    }
    if (action.type === 'refused' || action.type === 'server-disconnect') {
      events.push([action.type])
      this.#link?.destroy()
    }
  }

  #handleConnected({ connack, lost }: Action & { type: 'connected' }): void {
    const { sendWindow } = this.session
    this.#connected = true
    this.#telling.events.push(['connected', connack.sessionPresent, lost])
    if (!connack.sessionPresent) {
      this.#reference.reset()
      this.#outgoing.clear()
    }
    const { version, receiveMaximum } = this.#setting
    this.#reference.start(version === 5 ? receiveMaximum : 65_535, version === 4)
    for (const [id, state] of this.#outgoing) if (state === 3) sendWindow.replayRelease(id)
    for (const [id, state] of this.#outgoing)
      if (state !== 3 && sendWindow.mayReplay) sendWindow.replay(id)
    this.#send()
    checkMost(sendWindow.inFlight, this.#outgoing.size, 'session-outbound', 'in flight')
  }

  #send(): void {
    const { sendWindow } = this.session
    const [once, twice, subscribes, unsubscribes] = this.#setting.sending
    for (let count = 0; count < once + twice; count++) {
      const qos = count < once ? 1 : 2
      if (!sendWindow.mayPublish || !sendWindow.prepare(qos)) break
      const id = sendWindow.publish(qos)
      check(!this.#outgoing.has(id), 'session-outbound', () => `identifier ${id} is in use`)
      this.#outgoing.set(id, qos)
      const settings = { qos, retain: false, properties: undefined } as const
      const wrote = this.#write(id, (writer) =>
        writer.publish('t', new Uint8Array(2), settings, id),
      )
      if (!wrote) this.#outgoing.delete(id)
    }
    const options = { noLocal: false, retainAsPublished: false, retainHandling: 0 } as const
    const subscriptions = [{ filter: 'f', qos: 1, ...options } as const]
    for (let count = 0; count < subscribes; count++) {
      const packetId = sendWindow.request('subscribe', 1)
      this.#write(packetId, (writer) =>
        writer.send({ type: 'subscribe', packetId, properties: {}, subscriptions }),
      )
    }
    const filters = ['f', 'g']
    for (let count = 0; count < unsubscribes; count++) {
      const packetId = sendWindow.request('unsubscribe', 2)
      this.#write(packetId, (writer) =>
        writer.send({ type: 'unsubscribe', packetId, properties: {}, filters }),
      )
    }
  }

  // A server's Maximum Packet Size may forbid it: nothing was written then.
  #write(id: number, write: (writer: Connection['writer']) => unknown): boolean {
    try {
      if (this.#link !== undefined) write(this.#link.writer)
      return true
    } catch (error) {
      const { code } = error as MqttError
      check(code === 'ERR_PACKET_TOO_LARGE', 'session-throw', () => shownError(error))
      this.session.sendWindow.withdraw(id)
      return false
    }
  }

  #handleClosed(error: MqttError | undefined): void {
    check(this.#link !== undefined, 'session-end', () => 'the end was told twice')
    this.#link = undefined
    this.#telling.endedInRead = this.#reading
    this.#telling.end = [error?.code ?? '', error?.reasonCode]
    this.#checkGoodbye(error)
    this.#checkAcks()
    this.session.suspend()
    this.#reference.suspend()
    const { acks, actions } = this.session
    checkSame(acks.length + actions.length, 0, 'session-end', 'left to be sent')
    const { parked } = this.session.receiveWindow
    checkSame(parked, this.#reference.parked.length, 'session-model', 'parked')
  }

  // Section 4.13: the peer is told why where it can be, and with nothing behind it.
  #checkGoodbye(error: MqttError | undefined): void {
    if (error === undefined || error.fault !== 'remote' || !tellOff.includes(error.code)) return
    const last = this.#outlet.packets.at(-1)
    const announced =
      this.#setting.version === 5 && (this.#connected || this.session.negotiated !== undefined)
    if (last?.kind !== 'disconnect') {
      check(
        !this.#connected || this.#setting.version === 4 || this.#tiny,
        'session-goodbye',
        () => `${error.code} without DISCONNECT`,
      )
      return
    }
    check(
      announced || this.#setting.version === 5,
      'session-goodbye',
      () => 'DISCONNECT on 3.1.1 keeps the will back',
    )
    checkSame(last.reason, error.reasonCode, 'session-goodbye', 'the reason of DISCONNECT')
  }

  /** The server takes no packet at all. */
  get #tiny(): boolean {
    return (this.session.negotiated?.maximumPacketSize ?? 99) < 4
  }

  // What was acknowledged is what the model acknowledges, in that order; what an error cut off stays behind.
  #checkAcks(): void {
    const { acks } = this.#telling
    const version = this.#setting.version
    const expected = this.#reference.acks.map(
      ([kind, id, code]) => [kind, id, version === 5 ? code : 0] as const,
    )
    const whole =
      acks.length <= expected.length &&
      acks.every((ack, index) => String(ack) === String(expected[index]))
    check(whole, 'session-acks', () => `sent ${acks.join(' ')}, the model ${expected.join(' ')}`)
  }
}
