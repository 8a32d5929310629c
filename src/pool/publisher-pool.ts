/**
 * The pool: clients that only publish, and which of them takes what.
 *
 * A publish is handed to one client and stays there: that client sends it again after a loss. It goes to another one only when its client has ended and has
 * certainly not sent it. Every promise settles.
 */
import type {
  ClientEvents,
  ClientOptions,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Endpoint,
  ListenerOptions,
  Payload,
  PublishOptions,
  Receipt,
  Stats,
  Unlisten,
} from '../client/api/index.js'
import { assertNotAborted, deferred, rejected, silent, within } from '../client/common/abort.js'
import { asyncDisposeSymbol } from '../client/common/dispose.js'
import { MqttError } from '../errors.js'
import { membersError } from '../members/failure.js'
import { Gate, signalOf } from '../members/gate.js'
import { type MemberEvents, MemberListeners } from '../members/listeners.js'
import { Member, type MemberClient } from '../members/member.js'
import { Router } from '../members/router.js'
import { type PoolConfig, poolConfig, poolSize } from './options.js'
import type { Pool, PoolMember, PoolOptions, PoolStats } from './types.js'

/** A client, as the pool makes it. */
export interface PooledClient extends MemberClient {
  stats(): Stats
}

/** Makes a client. */
export type MakeClient = (endpoints: Endpoint | readonly Endpoint[], options: ClientOptions) => PooledClient

/** Makes a pool of clients of one kind. @throws MqttError as `createPool` */
export function poolOf(make: MakeClient, endpoints: Endpoint | readonly Endpoint[], options: PoolOptions | undefined): Pool {
  return new PublisherPool(make, endpoints, poolConfig(options))
}

class PublisherPool implements Pool {
  readonly ordered: boolean
  #state: 'idle' | 'open' | 'ended' = 'idle'
  readonly #make: (n: number) => PooledClient
  readonly #config: PoolConfig
  readonly #members = new Map<string, Member<PooledClient>>()
  readonly #router: Router<PooledClient>
  readonly #listeners = new MemberListeners(() => this.#members.values())
  /** Those that leave. */
  readonly #leaving = new Set<Promise<void>>()
  /** The first round of all, while no connection was up yet, and the publishes that wait for it. */
  #first: Promise<void> | undefined
  readonly #early = new Gate()
  #arrived = deferred<void>()
  #next = 1
  #fallback = 0

  constructor(make: MakeClient, endpoints: Endpoint | readonly Endpoint[], config: PoolConfig) {
    const { routing, onLost, options } = config
    this.#config = config
    this.ordered = routing === 'hash' && onLost === 'wait'
    this.#make = (n) => make(endpoints, { firstConnect: 'wait', ...options, clientId: this.#clientId(n) })
    this.#router = new Router(() => this.#members.values(), routing, onLost)
    for (let count = 0; count < config.size; count++) this.#add()
  }

  get state(): ClientState {
    const states = [...this.#members.values()].map(({ client }) => client.state)
    const order: readonly ClientState[] = ['connected', 'connecting', 'reconnecting', 'disconnecting', 'idle']
    return this.#state === 'ended' && !states.includes('disconnecting') ? 'closed' : (order.find((state) => states.includes(state)) ?? 'closed')
  }

  get size(): number {
    return this.#members.size
  }

  members(): readonly PoolMember[] {
    return [...this.#members.values()].map(({ name, client, inFlight, error }) => ({ name, client, state: client.state, inFlight, error }))
  }

  async connect({ signal }: ConnectOptions = {}): Promise<void> {
    this.#assertOpen()
    assertNotAborted(signal)
    return within(this.#open(), signal)
  }

  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt> {
    if (this.#state === 'ended') return rejected(new MqttError('ERR_CLOSED'))
    const first = this.#state === 'idle' ? this.#open() : this.#first
    const send = (): Promise<Receipt> => this.#publish(topic, payload, options)
    return first === undefined ? send() : this.#early.run(send, signalOf(options))
  }

  post(topic: string, payload: Payload): boolean {
    if (this.#state === 'ended') return false
    const member = this.#router.choose(topic)
    if (member !== undefined) return member.client.post(topic, payload)
    const { fallback } = this.#config
    const taken = fallback !== undefined && 'post' in fallback && (fallback as unknown as PooledClient).post(topic, payload)
    if (taken) this.#fallback += 1
    return taken
  }

  get writable(): Promise<void> {
    return silent(this.#writable())
  }

  async resize(size: number, options?: DisconnectOptions): Promise<void> {
    this.#assertOpen()
    const wanted = poolSize(size)
    while (this.#members.size < wanted) {
      const member = this.#add()
      // The client goes on trying, and says why it fails.
      if (this.#state === 'open') void silent(member.connect(undefined))
    }
    const going = [...this.#members.values()].slice(wanted)
    await Promise.all(going.map((member) => this.#remove(member, options)))
  }

  disconnect(options?: DisconnectOptions): Promise<void> {
    return this.#end((client) => client.disconnect(options))
  }

  drain(options?: DisconnectOptions): Promise<void> {
    return this.#end((client) => client.drain(options))
  }

  on<K extends keyof ClientEvents>(type: K, listener: (event: MemberEvents[K]) => void, options?: ListenerOptions): Unlisten {
    return this.#listeners.on(type, listener, options)
  }

  stats(): PoolStats {
    const members = [...this.#members.values()]
    return {
      size: members.length,
      up: members.filter(({ up }) => up).length,
      inFlight: members.reduce((sum, { inFlight }) => sum + inFlight, 0),
      fallback: this.#fallback,
      moved: this.#router.moved,
      members: Object.fromEntries(members.map(({ name, client }) => [name, client.stats()])),
    }
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.disconnect()
  }

  #clientId(n: number): string {
    const { clientId, options } = this.#config
    if (typeof clientId === 'function') return clientId(n)
    const base = clientId ?? options.clientId ?? ''
    return base === '' ? '' : `${base}-pub-${n}`
  }

  #add(): Member<PooledClient> {
    const n = this.#next
    this.#next += 1
    const member = new Member(`pub-${n}`, this.#make(n))
    this.#members.set(member.name, member)
    this.#listeners.handleAdded(member)
    const changed = (): void => {
      this.#arrived.resolve()
      this.#arrived = deferred()
    }
    member.client.on('state', changed)
    return member
  }

  // Its number is never that of another one.
  async #remove(member: Member<PooledClient>, options: DisconnectOptions | undefined): Promise<void> {
    member.leaving = true
    this.#members.delete(member.name)
    const gone = member.client.drain(options)
    this.#leaving.add(gone)
    try {
      await gone
    } finally {
      this.#leaving.delete(gone)
      this.#listeners.handleRemoved(member)
    }
  }

  #open(): Promise<void> {
    this.#state = 'open'
    if (this.#first !== undefined) return this.#first
    const first = silent(this.#firstRound())
    this.#first = first
    const over = (): void => {
      this.#first = undefined
      this.#early.open()
    }
    // Those that came first publish first.
    first.then(over, over)
    return first
  }

  // The first that is up is enough.
  async #firstRound(): Promise<void> {
    const members = [...this.#members.values()]
    try {
      await Promise.any(members.map((member) => member.connect(undefined)))
    } catch (error) {
      if (this.#state === 'ended') throw new MqttError('ERR_CLOSED')
      const { errors } = error as AggregateError
      throw membersError('no connection', new Map(members.map(({ name }, index) => [name, errors[index]])))
    }
  }

  #publish(topic: string, payload: Payload, options: PublishOptions | undefined): Promise<Receipt> {
    if (this.#state === 'ended') return rejected(new MqttError('ERR_CLOSED'))
    return this.#router.publish(
      topic,
      signalOf(options),
      (member) => member.publish(topic, payload, options),
      () => this.#publishElsewhere(topic, payload, options),
    )
  }

  #publishElsewhere(topic: string, payload: Payload, options: PublishOptions | undefined): Promise<Receipt> {
    const { fallback } = this.#config
    if (fallback === undefined) return rejected(new MqttError('ERR_NO_HEALTHY_PUBLISHERS', this.#why()))
    this.#fallback += 1
    return silent(fallback.publish(topic, payload, options)) as Promise<Receipt>
  }

  #why(): string {
    const texts = [...this.#members.values()].map(({ name, client, error }) => `${name}: ${error?.message ?? client.state}`)
    return `no connection of the pool is up:\n${texts.slice(0, 4).join('\n')}${texts.length > 4 ? '\n…' : ''}`
  }

  async #writable(): Promise<void> {
    for (;;) {
      if (this.#state === 'ended') throw new MqttError('ERR_CLOSED')
      const change = this.#arrived.promise
      const up = [...this.#members.values()].filter((member) => member.up)
      const { fallback } = this.#config
      const ready = up.length > 0 ? up.map(({ client }) => client.writable) : fallback === undefined ? [] : [fallback.writable]
      // One that ends meanwhile is a change.
      const settled = ready.map((promise) =>
        Promise.resolve(promise).then(
          () => true,
          () => change.then(() => false),
        ),
      )
      if (await Promise.race([...settled, change.then(() => false)])) return
    }
  }

  async #end(end: (client: PooledClient) => Promise<void>): Promise<void> {
    this.#state = 'ended'
    this.#arrived.resolve()
    const clients = [...this.#members.values()].map(({ client }) => client)
    await Promise.all([...clients.map(end), ...this.#leaving])
  }

  #assertOpen(): void {
    if (this.#state === 'ended') throw new MqttError('ERR_CLOSED')
  }
}
