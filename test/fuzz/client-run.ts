/**
 * One run of a client against a hostile peer under virtual time: everything that a program can touch, and what must hold all the time.
 *
 * Keeps a log of events, results and messages for the comparison of two runs. It must never wait in real time but for microtasks.
 */

import type { ClientEvents, Message } from '../../src/client/api/index.js'
import type { BaseClient } from '../../src/client/client.js'
import { Connection } from '../../src/client/connection/connection.js'
import { MessageRouter } from '../../src/client/delivery/message-router.js'
import { Reads } from '../../src/client/memory/reads.js'
import type { Platform } from '../../src/client/platform/platform.js'
import { PublishQueue } from '../../src/client/publishing/publish-queue.js'
import { Session } from '../../src/client/session/session.js'
import { MqttError } from '../../src/errors.js'
import type { Transport } from '../../src/transport/transport.js'
import { clientWith, type Defect } from '../support/defective.js'
import { eventNames } from '../unit/client/event-names.js'
import { property, type Seen } from '../world/reader.js'
import type { Setup } from './client-setup.js'
import { FuzzClock } from './clock.js'
import { type Around, HostilePeer, type Manner, stale } from './hostile-peer.js'
import { check, OracleError, sameBytes, shownError } from './oracle.js'
import { Tables } from './tables.js'

/** The parts of the client that is running, as they show themselves by their work. */
interface Parts {
  session: Session | undefined
  tables: Tables | undefined
  inbox: MessageRouter | undefined
  connection: Connection | undefined
  outbox: PublishQueue | undefined
  /** Exchanges at QoS 2 whose identifier stays occupied. */
  abandoned: number
  /** Bytes of messages that the application had in hand and gave back: they count again, whatever came in meanwhile. */
  givenBack: number
}

let parts: Parts = noParts()
let current: ClientRun | undefined

function noParts(): Parts {
  return { session: undefined, tables: undefined, inbox: undefined, connection: undefined, outbox: undefined, abandoned: 0, givenBack: 0 }
}

const { connect } = Session.prototype
Session.prototype.connect = function (this: Session, packet): void {
  if (parts.session === undefined) {
    parts.session = this
    parts.tables = new Tables(this)
    const abandon = this.sendWindow.abandon.bind(this.sendWindow)
    this.sendWindow.abandon = (id) => {
      parts.abandoned += 1
      abandon(id)
    }
  }
  connect.call(this, packet)
}
const { handleMessage } = MessageRouter.prototype
MessageRouter.prototype.handleMessage = function (this: MessageRouter, view, record, ticket, limit): void {
  parts.inbox = this
  check(record.name !== '' && !/[+#\0]/.test(record.name), 'delivery', () => `a message on ${JSON.stringify(record.name)}`)
  handleMessage.call(this, view, record, ticket, limit)
}
const { requeue } = MessageRouter.prototype
MessageRouter.prototype.requeue = function (this: MessageRouter, messages): void {
  const before = this.budget.bytes
  requeue.call(this, messages)
  parts.givenBack += Math.max(0, this.budget.bytes - before)
}
const { pump } = Connection.prototype
Connection.prototype.pump = function (this: Connection): void {
  parts.connection = this
  pump.call(this)
}

const { flush } = PublishQueue.prototype
PublishQueue.prototype.flush = function (this: PublishQueue): void {
  parts.outbox = this
  flush.call(this)
}

/** Sends what nobody catches to the run that is under way. To be called once for each thread. */
export function catchStrays(): void {
  process.on('unhandledRejection', (reason) => current?.report(new OracleError('unhandled', shownError(reason), reason)))
  process.on('uncaughtException', (error) => current?.report(new OracleError('uncaught', shownError(error), error)))
}

const legal: Readonly<Record<string, readonly string[]>> = {
  idle: ['connecting', 'disconnecting', 'closed'],
  connecting: ['connected', 'reconnecting', 'disconnecting', 'closed'],
  connected: ['reconnecting', 'disconnecting', 'closed'],
  reconnecting: ['connected', 'connecting', 'disconnecting', 'closed'],
  disconnecting: ['closed'],
  closed: [],
}

const mostLent = 16
/** Timers that may run: more is a storm. */
const mostEvents = 6000
/** Virtual milliseconds after which everything must have settled once the client was destroyed. */
const endPatience = 180_000

/** One client, one program. */
export class ClientRun implements Around {
  readonly clock = new FuzzClock(mostEvents, () => this.#writeResults())
  readonly client: BaseClient
  readonly setup: Setup
  readonly peers: HostilePeer[] = []
  readonly manner: Manner
  /** What happened, in order. Promises that settle in one turn owe each other no order: they stand there sorted. */
  readonly log: string[] = []
  /** Entries of the log that two runs must have in common; the rest depends on how the bytes were cut. */
  common = Number.POSITIVE_INFINITY
  finding: OracleError | undefined
  /** The peer has stopped reading at one time. */
  stalled = false
  /** Dials that fail from now on. */
  failingDials = 0
  readonly #pending = new Map<Promise<unknown>, string>()
  /** Results of promises that settled in this turn. */
  #results: string[] = []
  readonly #wakers = new Set<() => void>()
  #state = 'idle'
  #up = false
  #timers = 0
  #random: number
  #mischiefs = 3
  /** Messages that were handed out lately, as they were then. */
  readonly #lent: { readonly message: Message; readonly topic: string; readonly view: Uint8Array; readonly bytes: Uint8Array }[] = []
  /** Most publishes that waited at once, those included that came back with a lost session. */
  #mostInFlight = 0

  constructor(setup: Setup, cut: boolean, defect?: Defect) {
    parts = noParts()
    current = this
    this.setup = setup
    this.#random = (setup.seed * 2_654_435_761) | 1
    const { answers, connack, keepsSession, buffered } = setup
    this.manner = { answers, connack, keepsSession, buffered, seed: cut ? setup.seed : undefined }
    const endpoints = Array.from({ length: setup.endpoints }, (_, index) => ({ url: `memory://p${index}`, transport: () => this.#dial() }))
    this.client = clientWith(defect, this.#platform(), endpoints, setup.options)
    for (const type of eventNames) this.client.on(type, (event) => this.#handleEvent(type, event))
  }

  /** The peer of the latest connection. */
  get peer(): HostilePeer | undefined {
    return this.peers.at(-1)
  }

  // What a program does

  /** Calls the API. It may throw what it documents; a promise that it gives must settle before the end. */
  call(name: string, action: () => unknown): void {
    let result: unknown
    try {
      result = action()
    } catch (error) {
      return this.#result(name, error, this.log)
    }
    if (result instanceof Promise) this.track(name, result)
  }

  /** Follows a promise of the client to its end. */
  track(name: string, promise: Promise<unknown>): void {
    this.#pending.set(promise, name)
    const settled = (text: string): void => {
      this.#pending.delete(promise)
      this.#results.push(`${name} ${text}`)
    }
    promise.then(
      () => settled('done'),
      (error: unknown) => {
        this.#pending.delete(promise)
        this.#result(name, error, this.#results)
      },
    )
  }

  #result(name: string, error: unknown, log: string[]): void {
    if (!MqttError.is(error)) return this.report(new OracleError('api-throw', `${name}: ${shownError(error)}`, error))
    log.push(`${name} ${error.code} ${error.outcome ?? ''} ${error.reasonCode ?? ''}`)
  }

  #writeResults(): void {
    if (this.#results.length > 0) this.log.push(...this.#results.splice(0).sort())
  }

  /** A message was handed out. */
  deliver(where: string, message: Message): void {
    const { topic, qos, retain, payload, properties } = message
    this.log.push(`${where} ${topic} ${qos} ${retain} ${payload.length} ${payload[0] ?? ''} ${Object.keys(properties).join()}`)
    if (payload.length < 1000) message.text()
    const honest = this.peers.every((peer) => !peer.sentStale)
    check(!honest || !payload.includes(stale), 'lifetime', () => `a message on ${topic} shows memory that was given back`)
    this.#lent.push({ message, topic, view: payload, bytes: payload.slice() })
    this.#lent.splice(0, this.#lent.length - mostLent)
  }

  // A message, and every view of it, stays what it was for as long as it may be read.
  #checkMessages(): void {
    for (const { message, topic, view, bytes } of this.#lent) {
      const now = readable(message)
      // Released, and perhaps shown again as another.
      if (now === undefined || now.payload !== view) continue
      check(now.topic === topic && sameBytes(now.payload, bytes), 'lifetime', () => `a message on ${topic} changed while it was valid`)
    }
  }

  /** Everything that happens by itself, then the invariants. */
  async pass(duration: number): Promise<void> {
    await this.clock.advance(duration)
    this.check()
  }

  /** The machine slept. */
  sleep(duration: number): void {
    this.clock.jump(duration)
    this.endComparison()
    for (const wake of [...this.#wakers]) this.guard('a wake-up', wake)
  }

  /** Ends the client whatever it does, and looks at what is left. */
  async finish(): Promise<void> {
    this.guard('destroy', () => this.client.destroy())
    this.track('closed', this.client.closed)
    await this.clock.advance(0)
    // A stream that is being closed in order has one timer: the peer may not end its side.
    const closing = this.peers.filter((peer) => !peer.over).length
    check(this.#timers <= closing, 'leak', () => `${this.#timers} timers are set after the end, ${closing} streams are open`)
    await this.clock.advance(endPatience)
    this.check()
    check(this.client.state === 'closed', 'end', () => `the client is ${this.client.state} after destroy()`)
    const left = [...this.#pending.values()]
    check(left.length === 0, 'pending', () => `never settled: ${left.join(', ')}`)
    check(this.#timers === 0, 'leak', () => `${this.#timers} timers are left after the end`)
    check(this.#wakers.size === 0, 'leak', () => 'a listener for wake-ups is left after the end')
    check(this.client.outbound.size === 0, 'leak', () => 'publishes are queued after the end')
    check(
      this.peers.every((peer) => peer.over),
      'leak',
      () => 'a transport is open after the end',
    )
    const { inbox } = parts
    check(inbox === undefined || inbox.budget.bytes >= 0, 'memory', () => `${inbox?.budget.bytes} bytes are buffered`)
    current = undefined
  }

  // What must hold

  /** Invariants at rest. @throws OracleError */
  check(): void {
    if (this.finding !== undefined) throw this.finding
    check(this.clock.events <= mostEvents, 'hang', () => `${this.clock.events} timers ran and it goes on`)
    this.#checkSession()
    this.#checkQueues()
    this.#checkMessages()
  }

  #checkSession(): void {
    const { session, tables, abandoned } = parts
    if (session === undefined || tables === undefined) return
    const { outbound, receiveMaximum = 256, receiveMaximumExceeded, protocolVersion } = this.setup.options
    if (session.state === 'connected' && session.negotiated !== undefined) {
      const window = Math.min(session.negotiated.receiveMaximum, outbound?.maxInflight ?? 65_535)
      tables.check(window, session.version === 5 && protocolVersion !== 4 && receiveMaximumExceeded === 'disconnect' ? receiveMaximum : 65_535)
    }
    const publishesInFlight = parts.outbox?.inFlight ?? 0
    const slots = tables.publishes
    check(
      slots >= publishesInFlight && slots <= publishesInFlight + abandoned,
      'slots',
      () => `${publishesInFlight} publishes are in flight, ${slots} slots are occupied, ${abandoned} were given up`,
    )
    this.#mostInFlight = Math.max(this.#mostInFlight, slots)
  }

  #checkQueues(): void {
    const { outbound, memoryBudget = 0 } = this.setup.options
    const most = (outbound?.maxQueuedMessages ?? 0) * (outbound?.overflow === 'wait' ? 2 : 1) + this.#mostInFlight
    const { size } = this.client.outbound
    check(size >= 0 && size <= most, 'queue', () => `${size} publishes wait, ${most} may`)
    const held = parts.connection?.held ?? 0
    const bytes = parts.inbox?.budget.bytes ?? 0
    check(bytes >= 0 && held >= 0, 'memory', () => `${bytes} bytes are buffered, ${held} held`)
    // The message that has no room is taken where reading waits for the application.
    const room = memoryBudget + (parts.inbox?.budget.largest ?? 0) + parts.givenBack
    check(bytes <= room, 'memory', () => `${bytes} bytes are buffered, ${room} may`)
    check(held <= memoryBudget + 200_000, 'memory', () => `${held} bytes are held, ${memoryBudget} may`)
  }

  /** A finding that cannot be thrown where it was made. */
  report(error: OracleError): void {
    this.finding ??= error
  }

  guard(where: string, callback: () => void): void {
    try {
      callback()
    } catch (error) {
      this.report(error instanceof OracleError ? error : new OracleError('throw', `${where}: ${shownError(error)}`, error))
    }
  }

  /** From here on it matters how the bytes were cut. */
  endComparison(): void {
    this.common = Math.min(this.common, this.log.length)
  }

  /** Limits that the server announced hold for each packet after CONNACK. */
  handlePacket(seen: Seen): void {
    const { negotiated } = this.client
    this.#mostInFlight += seen.kind === 'publish' && seen.qos > 0 ? 1 : 0
    if (negotiated === undefined || seen.kind === 'connect' || seen.kind === 'auth' || parts.session?.state === 'connecting') return
    this.guard('a packet', () => {
      check(seen.size <= negotiated.maximumPacketSize, 'limits', () => `${seen.kind} of ${seen.size} bytes, ${negotiated.maximumPacketSize} may be`)
      if (seen.kind !== 'publish') return
      const alias = (seen.properties.get(property.topicAlias) as number | undefined) ?? 0
      check(alias <= negotiated.topicAliasMaximum, 'limits', () => `topic alias ${alias}`)
      check(seen.qos <= negotiated.maximumQoS, 'limits', () => `QoS ${seen.qos}`)
      check(!seen.retain || negotiated.retainAvailable, 'limits', () => 'RETAIN')
    })
  }

  // Surroundings

  #handleEvent(type: keyof ClientEvents, event: unknown): void {
    const { state, previous, error, cause, attempt, delay, direction, count, sessionPresent } = event as Record<string, unknown>
    const failure = (error ?? cause) as MqttError | undefined
    this.log.push([type, state, failure?.code, failure?.reasonCode, attempt, delay, direction, count, sessionPresent].join(' '))
    this.guard('an event', () => {
      check(
        this.#state !== 'closed' || type === 'disconnect' || type === 'drop' || type === 'error' || type === 'sessionlost',
        'state',
        () => `${type} after closed`,
      )
      if (type === 'state') {
        check(previous === this.#state, 'state', () => `${String(previous)} → ${String(state)}, but the client was ${this.#state}`)
        check(legal[this.#state]?.includes(String(state)) === true, 'state', () => `${this.#state} → ${String(state)}`)
        check(this.client.state === state, 'state', () => `the event says ${String(state)}, the client ${this.client.state}`)
        this.#state = String(state)
      }
      // Who reads all the time must not be taken for somebody who does not.
      const blamed = type === 'disconnect' && failure?.message.includes('reads nothing') === true
      check(!blamed || this.stalled, 'blame', () => `${failure?.message}, but it does`)
      if (type === 'connect' || type === 'disconnect') {
        check(this.#up === (type === 'disconnect'), 'state', () => `${type} twice in a row`)
        this.#up = type === 'connect'
      }
    })
    this.#misbehave(type)
  }

  // A listener may do anything, also throw.
  #misbehave(type: keyof ClientEvents): void {
    const { mischief } = this.setup
    if (mischief === 'nothing' || this.#mischiefs === 0 || type === 'dial') return
    this.#mischiefs -= 1
    const { client } = this
    if (mischief === 'throw') throw new Error('a listener threw')
    if (mischief === 'publish') this.call('publish in a listener', () => client.publish('l', type, { qos: 1 }))
    if (mischief === 'reconnect') this.call('reconnect in a listener', () => client.reconnect({ force: true }))
    if (mischief === 'subscribe') this.call('subscribe in a listener', () => client.subscription('l', { qos: 1 }).ready)
    if (mischief === 'disconnect' && type !== 'state') this.call('disconnect in a listener', () => client.disconnect({ timeout: 10 }))
  }

  #dial(): Promise<Transport> {
    return new Promise((resolve, reject) => {
      this.clock.setTimer(() => {
        if (this.failingDials > 0) {
          this.failingDials -= 1
          return reject(new Error('nobody listens'))
        }
        this.guard('a dial', () =>
          check(
            this.peers.every((peer) => peer.over || peer.closing),
            'state',
            () => 'two connections',
          ),
        )
        const version = this.setup.options.protocolVersion === 4 ? 4 : 5
        const peer = new HostilePeer(this, this.manner, version, this.peers.length > 0 || this.setup.options.cleanStart === false)
        this.peers.push(peer)
        resolve(peer)
      }, 1)
    })
  }

  #platform(): Platform {
    return {
      now: () => this.clock.now(),
      date: () => this.clock.now(),
      random: () => {
        this.#random ^= this.#random << 13
        this.#random ^= this.#random >>> 17
        this.#random ^= this.#random << 5
        return (this.#random >>> 0) / 4_294_967_296
      },
      setTimer: (callback, delay) => this.#timer(callback, delay),
      microtask: (callback) => queueMicrotask(() => this.guard('a microtask', callback)),
      nextTurn: (callback) => void this.clock.setTimer(() => this.guard('the next turn', callback), 0),
      onWake: (callback) => {
        this.#wakers.add(callback)
        return () => this.#wakers.delete(callback)
      },
      reads: (...parts) => new Reads(...parts),
      schemes: 'every scheme',
      dialler: () => undefined,
      isTlsError: () => false,
      describe: (error) => error.message,
      unsupported: () => undefined,
    }
  }

  #timer(callback: () => void, delay: number): () => void {
    this.#timers += 1
    let live = true
    const done = (): void => {
      if (live) this.#timers -= 1
      live = false
    }
    const cancel = this.clock.setTimer(() => {
      done()
      this.guard('a timer', callback)
    }, delay)
    return () => {
      done()
      cancel()
    }
  }
}

// What a message shows; undefined when it was released.
function readable(message: Message): { readonly topic: string; readonly payload: Uint8Array } | undefined {
  try {
    return { topic: message.topic, payload: message.payload }
  } catch (error) {
    if (MqttError.is(error) && error.code === 'ERR_MESSAGE_RELEASED') return undefined
    throw error
  }
}
