/**
 * The pool: clients that only publish, and which of them takes what.
 *
 * A publish is handed to one client and stays there: that client sends it again after a loss. It goes to another one only when its client has ended and has
 * certainly not sent it. Every promise settles.
 */
import type {
  ClientEvents,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Endpoint,
  ListenerOptions,
  Payload,
  PublishOptions,
  Receipt,
  Unlisten,
} from '../client/api/index.js'
import { assertNotAborted, rejected, silent, tolerant, within } from '../client/common/abort.js'
import { asyncDisposeSymbol } from '../client/common/dispose.js'
import { type CheckedDisconnect, disconnectOptions } from '../client/parsing/requests.js'
import { MqttError } from '../errors.js'
import { Asked } from '../members/asked.js'
import { attempt, membersError } from '../members/failure.js'
import { Gate } from '../members/gate.js'
import { settledInTime } from '../members/in-time.js'
import type { MemberEvents } from '../members/listeners.js'
import { Router } from '../members/router.js'
import { Readiness, stateOf, storyOf } from '../members/standing.js'
import { type MakeClient, PoolConnections, type PooledClient } from './connections.js'
import { connectCall, type PoolConfig, poolConfig, poolSize } from './options.js'
import type { Pool, PoolMember, PoolOptions, PoolStats } from './types.js'

/** Makes a pool of clients of one kind. @throws MqttError as `createPool` */
export function poolOf(make: MakeClient, endpoints: Endpoint | readonly Endpoint[], options: PoolOptions | undefined): Pool {
  return new PublisherPool(make, endpoints, poolConfig(options))
}

class PublisherPool implements Pool {
  readonly ordered: boolean
  #state: 'idle' | 'open' | 'draining' | 'ended' = 'idle'
  readonly #config: PoolConfig
  readonly #connections: PoolConnections
  readonly #router: Router<PooledClient>
  /** The first round of all, while no connection was up yet, and the publishes that wait for it. */
  #first: Promise<void> | undefined
  readonly #early = new Gate()
  readonly #readiness = new Readiness()
  #fallback = 0

  constructor(make: MakeClient, endpoints: Endpoint | readonly Endpoint[], config: PoolConfig) {
    const { routing, onLost } = config
    this.#config = config
    this.ordered = routing === 'hash' && onLost === 'wait'
    this.#connections = new PoolConnections(make, endpoints, config, () => this.#readiness.handleChange())
    this.#router = new Router(() => this.#connections.all, routing, onLost)
    for (let count = 0; count < config.size; count++) this.#connections.add()
  }

  get state(): ClientState {
    return stateOf(this.#connections.all, this.#state === 'ended')
  }

  get size(): number {
    return this.#connections.size
  }

  members(): readonly PoolMember[] {
    return this.#connections.all.map(({ name, client, inFlight, error }) => ({ name, client, state: client.state, inFlight, error }))
  }

  async connect(options?: ConnectOptions): Promise<void> {
    this.#assertOpen()
    const { signal } = connectCall(options)
    assertNotAborted(signal)
    return within(this.#open(), signal)
  }

  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt> {
    if (this.#stopping) return rejected(new MqttError('ERR_CLOSED'))
    return attempt(() => {
      const asked = new Asked(topic, payload, options, this.#connections.time, this.#config.options.outbound?.ttl)
      const first = this.#state === 'idle' ? this.#open() : this.#first
      const send = (): Promise<Receipt> => this.#publish(asked)
      return first === undefined ? send() : this.#early.run(send, asked)
    })
  }

  post(topic: string, payload: Payload): boolean {
    if (this.#stopping) return false
    const member = this.#router.choose(topic)
    if (member !== undefined) return member.client.post(topic, payload)
    const { fallback } = this.#config
    const taken = fallback !== undefined && 'post' in fallback && (fallback as unknown as PooledClient).post(topic, payload)
    if (taken) this.#fallback += 1
    return taken
  }

  get writable(): Promise<void> {
    const { fallback } = this.#config
    return silent(
      this.#readiness.wait(() => {
        this.#assertOpen()
        const up = this.#connections.all.filter((member) => member.up).map(({ client }) => client.writable)
        return up.length > 0 || fallback === undefined ? up : [fallback.writable]
      }),
    )
  }

  async resize(size: number, options?: DisconnectOptions): Promise<void> {
    this.#assertOpen()
    const wanted = poolSize(size)
    const checked = disconnectOptions(options)
    while (this.#connections.size < wanted) {
      const member = this.#connections.add()
      // The client goes on trying, and says why it fails.
      if (this.#state === 'open') void silent(member.connect(undefined))
    }
    const going = this.#connections.all.slice(wanted)
    await Promise.all(going.map((member) => this.#connections.remove(member, checked)))
  }

  async disconnect(options?: DisconnectOptions): Promise<void> {
    await this.#end('disconnect', disconnectOptions(options))
  }

  async drain(given?: DisconnectOptions): Promise<void> {
    const options = disconnectOptions(given)
    // What was published before the first connection waits for it, and some for connections that leave.
    const first = this.#first ?? this.#router.settling
    if (first === undefined || this.#state === 'ended') return this.#end('drain', options)
    this.#state = 'draining'
    this.#readiness.handleChange()
    const settled = first.then(() => this.#router.settling)
    await this.#end('drain', await settledInTime(settled, options, this.#connections.time))
  }

  on<K extends keyof ClientEvents>(type: K, listener: (event: MemberEvents[K]) => void, options?: ListenerOptions): Unlisten {
    return this.#connections.listeners.on(type, listener, options)
  }

  stats(): PoolStats {
    const members = this.#connections.all
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
    const members = this.#connections.all
    try {
      await Promise.any(members.map((member) => member.connect(undefined)))
    } catch (error) {
      if (this.#state === 'ended') throw new MqttError('ERR_CLOSED')
      const { errors } = error as AggregateError
      throw membersError('no connection', new Map(members.map(({ name }, index) => [name, errors[index]])))
    }
  }

  #publish(asked: Asked): Promise<Receipt> {
    if (this.#state === 'ended') return rejected(new MqttError('ERR_CLOSED'))
    return this.#router.publish(
      asked,
      (member) => member.publish(asked.topic, asked.payload, asked.options),
      () => this.#publishElsewhere(asked),
    )
  }

  #publishElsewhere({ topic, payload, options }: Asked): Promise<Receipt> {
    const { fallback } = this.#config
    if (fallback === undefined)
      return rejected(new MqttError('ERR_NO_HEALTHY_PUBLISHERS', `no connection of the pool is up:\n${storyOf(this.#connections.all, 4)}`))
    this.#fallback += 1
    return tolerant(fallback.publish(topic, payload, options) as Promise<Receipt>)
  }

  async #end(how: 'disconnect' | 'drain', options: CheckedDisconnect): Promise<void> {
    this.#state = 'ended'
    this.#readiness.handleChange()
    await this.#connections.end(how, options)
  }

  get #stopping(): boolean {
    return this.#state === 'draining' || this.#state === 'ended'
  }

  #assertOpen(): void {
    if (this.#stopping) throw new MqttError('ERR_CLOSED')
  }
}
