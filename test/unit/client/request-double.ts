/**
 * A client as requests and responders see one, in the hands of a test: it connects, loses its link and ends when told to, and shows what was asked
 * of it. Also the same view of a real client.
 */
import type {
  ClientEvents,
  ClientState,
  Handler,
  Handling,
  ListenOptions,
  Message,
  MessageProperties,
  Payload,
  PublishOptions,
} from '../../../src/client/api/index.js'
import { asyncDisposeSymbol } from '../../../src/client/common/dispose.js'
import { OwnedMessage } from '../../../src/client/delivery/message.js'
import { Piece } from '../../../src/client/memory/message-memory.js'
import type { RequestHost } from '../../../src/client/requesting/ports.js'
import { noTicket } from '../../../src/client/session/receive-window.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { encode } from '../../../src/wire/encode.js'
import { Framer } from '../../../src/wire/framer.js'
import type { ProtocolVersion } from '../../../src/wire/packets.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { Random } from '../../world/random.js'
import type { World } from './harness.js'
import { type Gate, gate } from './incoming.js'

/** One call of `publish`, to be settled by the test; an abort settles it with this outcome. */
export interface Published {
  readonly topic: string
  readonly text: string
  readonly options: PublishOptions
  readonly gate: Gate
  outcome: 'not-sent' | 'unknown'
}

/** One call of `listen`. */
export interface Listened {
  readonly filter: string
  readonly options: ListenOptions
  readonly handler: Handler
  readonly grant: Gate
  readonly end: Gate
  unsubscribed: boolean
}

const utf8 = new TextEncoder()
/** Nobody wants to know what becomes of a message. */
const nobody = { settle: () => false }

/** A message as it is handed to a handler. */
export function message(topic: string, text: string, properties: MessageProperties = {}, qos: 0 | 1 | 2 = 0): Message {
  const bytes = encode({ type: 'publish', topic, payload: utf8.encode(text), qos, packetId: qos > 0 ? 1 : undefined })
  const framer = new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize: 100_000 })
  framer.push(bytes)
  framer.next()
  const view = new PublishView()
  framer.read(view, new TopicTable())
  const made = new OwnedMessage(0, nobody, false).place(view, topic, new Piece(bytes), 0, noTicket, undefined)
  // Also such that no server may send.
  return Object.defineProperty(made, 'properties', { value: properties })
}

/** The client. `obliging` ones publish and subscribe at once. */
export class ClientDouble implements RequestHost {
  readonly client = this
  readonly platform = this
  readonly clock = new VirtualClock()
  state: ClientState = 'idle'
  negotiated: { readonly responseInformation: string | undefined } | undefined
  readonly session = { negotiated: undefined, sendWindow: { asking: 0, answersOn: undefined } }
  version: ProtocolVersion | undefined = 5
  readonly published: Published[] = []
  readonly listened: Listened[] = []
  readonly closed: Promise<MqttError | undefined>
  readonly #listeners: { readonly type: string; readonly listener: (event: never) => void }[] = []
  readonly #obliging: boolean
  #close: (error: MqttError | undefined) => void = () => undefined
  readonly #random = new Random(0)

  constructor(obliging = true) {
    this.#obliging = obliging
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
  }

  get options(): RequestHost['options'] {
    return { protocolVersion: this.version ?? 'auto' }
  }

  // As a client

  publish(topic: string, payload: Payload, options: PublishOptions): Promise<unknown> {
    const item: Published = { topic, text: new TextDecoder().decode(payload as Uint8Array), options, gate: gate(), outcome: 'unknown' }
    this.published.push(item)
    options.signal?.addEventListener('abort', () => item.gate.fail(new MqttError('ERR_ABORTED', undefined, { outcome: item.outcome })))
    if (this.#obliging) item.gate.open()
    return item.gate.promise
  }

  async listen(filter: unknown, handler: Handler, options: ListenOptions): Promise<Handling> {
    const entry: Listened = { filter: String(filter), options, handler, grant: gate(), end: gate(), unsubscribed: false }
    this.listened.push(entry)
    if (this.#obliging) entry.grant.open()
    await entry.grant.promise
    const unsubscribe = async (): Promise<void> => {
      entry.unsubscribed = true
      entry.end.open()
    }
    return { granted: [], done: entry.end.promise, unsubscribe, detach: () => undefined, [asyncDisposeSymbol]: unsubscribe }
  }

  on<K extends 'state' | 'connect'>(type: K, listener: (event: ClientEvents[K]) => void): () => void {
    const entry = { type, listener }
    this.#listeners.push(entry)
    return () => this.#listeners.splice(this.#listeners.indexOf(entry), 1)
  }

  random(): number {
    return this.#random.float()
  }

  setTimer(callback: () => void, delay: number): () => void {
    return this.clock.setTimer(callback, delay)
  }

  // In the hands of a test

  /** A connection, new or again. */
  async connect(responseInformation?: string): Promise<void> {
    this.negotiated = { responseInformation }
    this.#enter('connected')
    this.#emit('connect', {})
    await this.clock.settle()
  }

  /** The link is lost. */
  async lose(): Promise<void> {
    this.#enter('reconnecting')
    await this.clock.settle()
  }

  /** The end: in order, or with an error. */
  async end(error?: MqttError): Promise<void> {
    if (error === undefined) this.#enter('disconnecting')
    this.#enter('closed')
    this.#close(error)
    await this.clock.settle()
  }

  /** A message for a subscription. */
  async deliver(to: Listened | undefined, text: string, properties: MessageProperties = {}, qos: 0 | 1 | 2 = 0): Promise<void> {
    await to?.handler(message(to.filter, text, properties, qos))
    await this.clock.settle()
  }

  /** Answers the request that was published as this one. */
  answer(index: number, text: string): Promise<void> {
    const { responseTopic, correlationData } = this.request(index)
    const route = this.listened.find(({ filter }) => filter === responseTopic)
    return this.deliver(route, text, { correlationData })
  }

  /** What a responder needs to know of a request. */
  request(index: number): { readonly responseTopic: string; readonly correlationData: ReturnType<Uint8Array['slice']> } {
    const { responseTopic = '', correlationData } = this.published[index]?.options.properties ?? {}
    return { responseTopic, correlationData: (correlationData as Uint8Array).slice() }
  }

  #enter(state: ClientState): void {
    const previous = this.state
    this.state = state
    this.#emit('state', { state, previous })
  }

  #emit(type: string, event: unknown): void {
    for (const each of this.#listeners) if (each.type === type) each.listener(event as never)
  }
}

let viewsMade = 0

/** A real client, as requests see it. */
export function viewOf({ client, clock }: Pick<World, 'client' | 'clock'>): RequestHost {
  let seed = viewsMade++ * 0.0123
  return {
    client,
    platform: {
      random: () => {
        seed = (seed + 0.377) % 1
        return seed
      },
      setTimer: (callback, delay) => clock.setTimer(callback, delay),
    },
    options: { protocolVersion: 'auto' },
    session: {
      sendWindow: { asking: 0, answersOn: undefined },
      get negotiated() {
        return client.negotiated
      },
    },
  }
}

/** What became of a promise so far. */
export function watched<T>(promise: Promise<T>): { readonly settled: unknown[] } {
  const settled: unknown[] = []
  promise.then(
    (value) => settled.push(value),
    (error: unknown) => settled.push(error),
  )
  return { settled }
}
