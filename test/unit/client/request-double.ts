/** A client as requests and responders see one, in the hands of a test. */

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
} from '../../../src/client/options/index.js'
import type { RequestHost } from '../../../src/client/request/request.js'
import { asyncDisposeSymbol } from '../../../src/common/dispose.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import type { ProtocolVersion } from '../../../src/wire/packets.js'
import { Random } from '../../world/random.js'
import { type Gate, gate } from './incoming.js'

/** One call of `publish`, to be settled by the test; an abort settles it with this outcome. */
export interface Published {
  readonly topic: string
  readonly options: PublishOptions
  readonly gate: Gate
  outcome: 'not-sent' | 'unknown'
}

export interface Listened {
  readonly filter: string
  readonly options: ListenOptions
  readonly handler: Handler
  readonly grant: Gate
  readonly end: Gate
  unsubscribed: boolean
}

/** As much of a message as requests and responders look at; its properties may be such that no server may send. */
const message = (topic: string, text: string, properties: MessageProperties): Message =>
  ({ topic, qos: 0, properties, text: () => text }) as Message

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

  publish(topic: string, _payload: Payload, options: PublishOptions): Promise<unknown> {
    const item: Published = { topic, options, gate: gate(), outcome: 'unknown' }
    this.published.push(item)
    const abort = (): void =>
      item.gate.fail(new MqttError('ERR_ABORTED', undefined, { outcome: item.outcome }))
    options.signal?.addEventListener('abort', abort)
    if (this.#obliging) item.gate.open()
    return item.gate.promise
  }

  async listen(given: unknown, handler: Handler, options: ListenOptions): Promise<Handling> {
    const [grant, end] = [gate(), gate()]
    const filter = String(given)
    const entry: Listened = { filter, options, handler, grant, end, unsubscribed: false }
    this.listened.push(entry)
    if (this.#obliging) grant.open()
    await grant.promise
    const unsubscribe = async (): Promise<void> => {
      entry.unsubscribed = true
      end.open()
    }
    const ends = { unsubscribe, detach: () => undefined, [asyncDisposeSymbol]: unsubscribe }
    return { granted: [], done: end.promise, ...ends }
  }

  on<K extends 'state' | 'connect'>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
  ): () => void {
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

  async connect(responseInformation?: string): Promise<void> {
    this.negotiated = { responseInformation }
    this.#enter('connected')
    this.#emit('connect', {})
    await this.clock.settle()
  }

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

  async deliver(to: Listened | undefined, text: string, properties: MessageProperties = {}) {
    await to?.handler(message(to.filter, text, properties))
    await this.clock.settle()
  }

  /** Answers the request that was published as this one. */
  answer(index: number, text: string): Promise<void> {
    const { responseTopic, correlationData } = this.request(index)
    const route = this.listened.find(({ filter }) => filter === responseTopic)
    return this.deliver(route, text, { correlationData })
  }

  /** What a responder needs to know of a request. */
  request(index: number): {
    readonly responseTopic: string
    readonly correlationData: Uint8Array<ArrayBuffer>
  } {
    const { responseTopic = '', correlationData } = this.published[index]?.options.properties ?? {}
    return { responseTopic, correlationData: Uint8Array.from(correlationData as Uint8Array) }
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

/** What became of a promise so far. */
export function watched<T>(promise: Promise<T>): { readonly settled: unknown[] } {
  const settled: unknown[] = []
  const note = (end: unknown): unknown => settled.push(end)
  promise.then(note, note)
  return { settled }
}
