/**
 * The pool: distributes publishes over several clients.
 *
 * While no client is connected, publishes wait here, within the limits of one client. A publish
 * passed to a client stays there, and that client resends it after a lost connection. It moves to
 * another client only if its client has ended and has certainly not sent it. Every promise settles.
 */

import { access, type ClientAccess } from '../client/access.js'
import { type CheckedDisconnect, disconnectOptions } from '../client/options/check-calls.js'
import type {
  ClientEvents,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Endpoint,
  Hooks,
  ListenerOptions,
  Payload,
  PublishOptions,
  Receipt,
  Unlisten,
} from '../client/options/index.js'
import {
  assertNotAborted,
  type Deferred,
  deferred,
  silent,
  tolerant,
  within,
} from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { assertLast } from '../common/schema.js'
import { MqttError } from '../errors.js'
import { Asked } from '../members/asked.js'
import { membersError } from '../members/failure.js'
import type { MemberEvents } from '../members/listeners.js'
import type { Member } from '../members/member.js'
import { type Members, Readiness, settledInTime } from '../members/members.js'
import { Router } from '../members/router.js'
import { Gate, WaitingRoom } from '../members/waiting.js'
import { type MakeClient, PoolConnections, type PooledClient } from './connections.js'
import { connectCall, type PoolConfig, poolConfig, poolSize } from './options.js'
import type { Pool, PoolMember, PoolOptions, PoolStats } from './types.js'

/** Creates a pool whose clients `make` creates. @throws MqttError as `createPool` */
export function poolOf(
  make: MakeClient,
  endpoints: Endpoint | readonly Endpoint[],
  options: PoolOptions | undefined,
): Pool {
  return new PublisherPool(make, endpoints, poolConfig(options))
}

class PublisherPool implements Pool {
  readonly ordered: boolean
  #state: 'idle' | 'open' | 'draining' | 'ended' = 'idle'
  readonly #config: PoolConfig
  readonly #connections: PoolConnections
  readonly #members: Members<PooledClient>
  readonly #router: Router<PooledClient>
  /** The running first attempt of all connections; undefined before and after it. */
  #first: Promise<void> | undefined
  /** Holds publishes until a connection is up. */
  readonly #gate: Gate
  readonly #room: WaitingRoom
  readonly #readiness = new Readiness()
  #fallback = 0
  readonly #closed: Deferred<MqttError | undefined> = deferred()
  /** The error of the last connection, once all have ended. */
  #failure: MqttError | undefined
  /** How many calls of `connect()` and reads of `closed` give that error to the program. */
  #awaited = 0

  constructor(make: MakeClient, endpoints: Endpoint | readonly Endpoint[], config: PoolConfig) {
    const { routing, onLost } = config
    this.#config = config
    this.ordered = routing === 'hash' && onLost === 'wait'
    this.#connections = new PoolConnections(make, endpoints, config, {
      handleChange: () => this.#handleChange(),
      handleEnded: (member, last) => this.#handleEnded(member, last),
    })
    const { members } = this.#connections
    this.#members = members
    const room = new WaitingRoom(config.options)
    this.#room = room
    this.#gate = new Gate(room)
    this.#router = new Router(() => members.all, { routing, onLost, room })
    for (let count = 0; count < config.size; count++) this.#connections.add()
  }

  get state(): ClientState {
    return this.#members.state(this.#state === 'ended')
  }

  get closed(): Promise<MqttError | undefined> {
    this.#awaited += 1
    return this.#closed.promise
  }

  get size(): number {
    return this.#members.all.length
  }

  members(): readonly PoolMember[] {
    return this.#members.all.map(({ name, client, inFlight, error }) => ({
      name,
      client,
      state: client.state,
      inFlight,
      error,
    }))
  }

  async connect(options?: ConnectOptions): Promise<void> {
    this.#assertOpen()
    const { signal } = connectCall(options)
    assertNotAborted(signal)
    this.#awaited += 1
    try {
      await within(this.#open(), signal)
    } finally {
      this.#awaited -= 1
    }
  }

  publish(
    topic: string,
    payload: Payload,
    options?: PublishOptions,
    more?: unknown,
  ): Promise<Receipt> {
    try {
      assertLast(more)
      this.#assertOpen()
      const { time, access: behind } = this.#members
      const asked = new Asked(
        topic,
        payload,
        options,
        { time, refuse: behind.refuse },
        this.#config.options.outbound?.ttl,
      )
      if (this.#state === 'idle') void this.#open()
      return this.#publish(asked)
    } catch (error) {
      return this.#members.access.refuse(topic, error)
    }
  }

  post(topic: string, payload: Payload, more?: unknown): boolean {
    assertLast(more, 'no callback: it returns true or false', 'no options: publish() does')
    if (this.#stopping) return false
    const member = this.#router.choose(topic)
    if (member !== undefined) return member.client.post(topic, payload)
    const { fallback } = this.#config
    const taken =
      fallback !== undefined &&
      'post' in fallback &&
      (fallback as unknown as PooledClient).post(topic, payload)
    if (taken) this.#fallback += 1
    return taken
  }

  get writable(): Promise<void> {
    const { fallback } = this.#config
    // The caller is about to publish: a queue, for example, awaits this before its first publish.
    if (this.#state === 'idle') void this.#open()
    return silent(
      this.#readiness.wait(() => {
        this.#assertOpen()
        const up = this.#members.all
          .filter((member) => member.up)
          .map(({ client }) => client.writable)
        return up.length > 0 || fallback === undefined ? up : [fallback.writable]
      }),
    )
  }

  async resize(size: number, options?: DisconnectOptions): Promise<void> {
    this.#assertOpen()
    const wanted = poolSize(size)
    const checked = disconnectOptions(options)
    while (this.size < wanted) {
      const member = this.#connections.add()
      // The rejection is ignored: the client keeps trying and reports its errors itself.
      if (this.#state === 'open') void silent(member.connect(undefined))
    }
    await this.#connections.remove(this.size - wanted, checked)
  }

  async disconnect(options?: DisconnectOptions): Promise<void> {
    await this.#end('disconnect', disconnectOptions(options))
  }

  async drain(given?: DisconnectOptions): Promise<void> {
    const options = disconnectOptions(given)
    // Publishes that wait for the first connection, or for leaving connections, must be passed on
    // first.
    const { settling } = this.#room
    if (settling === undefined || this.#state === 'ended') return this.#end('drain', options)
    this.#state = 'draining'
    this.#readiness.handleChange()
    await this.#end('drain', await settledInTime(settling, options, this.#members.time))
  }

  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: MemberEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten {
    return this.#members.listeners.on(type, listener, options)
  }

  use(hooks: Hooks): Unlisten {
    return this.#members.listeners.use(hooks)
  }

  stats(): PoolStats {
    const members = this.#members.all
    return {
      ...this.#members.counts(),
      queued: this.#room.size,
      fallback: this.#fallback,
      moved: this.#router.moved,
      members: Object.fromEntries(members.map(({ name, client }) => [name, client.stats()])),
    }
  }

  [access](): ClientAccess {
    return this.#members.access
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
      this.#gate.open()
    }
    first.then(over, over)
    return first
  }

  // Fulfils when the first connection is up.
  async #firstRound(): Promise<void> {
    const members = this.#members.all
    try {
      await Promise.any(members.map((member) => member.connect(undefined)))
    } catch (error) {
      if (this.#state === 'ended' && this.#failure === undefined) throw this.#closedError
      const { errors } = error as AggregateError
      throw membersError(
        'ERR_CONNECT_FAILED',
        'no connection',
        new Map(members.map(({ name }, index) => [name, errors[index]])),
      )
    }
  }

  #publish(asked: Asked): Promise<Receipt> {
    if (this.#waits(asked))
      return this.#gate.run(
        () => this.#publish(asked),
        asked,
        asked.overflow ?? this.#config.options.outbound?.overflow,
      )
    return this.#router.publish(
      asked,
      (member) => member.publish(asked.topic, asked.payload, asked.options, this.#queues(asked)),
      () => this.#publishElsewhere(asked),
    )
  }

  #publishElsewhere({ topic, payload, options }: Asked): Promise<Receipt> {
    const { fallback } = this.#config
    const isEnded = this.#state === 'ended' && this.#failure === undefined
    if (isEnded || (fallback === undefined && this.#isOver))
      return this.#members.access.refuse(topic, this.#closedError)
    if (fallback === undefined) {
      const story = `no connection of the pool is up:\n${this.#members.story(4)}`
      return this.#members.access.refuse(topic, new MqttError('ERR_NO_HEALTHY_PUBLISHERS', story))
    }
    this.#fallback += 1
    return tolerant(fallback.publish(topic, payload, options) as Promise<Receipt>)
  }

  async #end(how: 'disconnect' | 'drain', options: CheckedDisconnect): Promise<void> {
    this.#state = 'ended'
    this.#handleChange()
    try {
      await this.#connections.end(how, options)
    } finally {
      this.#closed.resolve(undefined)
    }
  }

  #handleEnded(member: Member, last: boolean): void {
    const { name, error } = member
    if (last) {
      this.#state = 'ended'
      this.#failure ??= error
      this.#closed.resolve(error)
    }
    this.#handleChange()
    const what = last
      ? 'as all others: the pool is closed'
      : 'and is replaced while another one is up'
    this.#members.listeners.handleEnded(
      member,
      `connection ${name} of the pool has ended, ${what}`,
      this.#awaited > 0,
    )
  }

  // During the first attempt publishes wait, because a connection may still come up.
  #waits(asked: Asked): boolean {
    if (this.#isUp || this.#isOver || this.#state === 'ended') return false
    return this.#first !== undefined || this.#queues(asked)
  }

  // Whether a publish is queued without a connection; otherwise it is rejected or goes to the
  // fallback.
  #queues({ offline, qos }: Asked): boolean {
    const { fallback, offline: usual, options } = this.#config
    return (
      fallback === undefined &&
      (offline ?? options.outbound?.offline?.[`qos${qos}`] ?? usual) === 'queue'
    )
  }

  // Releases waiting publishes, in order, once a connection is up or none will be.
  #handleChange(): void {
    if (this.#isUp || this.#isOver || this.#state === 'ended') this.#gate.open()
    this.#readiness.handleChange()
  }

  get #isUp(): boolean {
    return this.#members.all.some(({ up }) => up)
  }

  // Reads the states, because clients end before the pool's callback runs.
  get #isOver(): boolean {
    return this.#members.all.every(({ client }) => client.state === 'closed')
  }

  get #stopping(): boolean {
    return this.#state === 'draining' || this.#state === 'ended'
  }

  get #closedError(): MqttError {
    const cause =
      this.#failure ?? this.#members.all.findLast(({ error }) => error !== undefined)?.error
    const why =
      cause === undefined
        ? 'it was ended by disconnect() or drain()'
        : `every connection has ended, the last one as: ${cause.message}`
    return new MqttError(
      'ERR_CLOSED',
      `the pool is closed: ${why}; to start again, make a new pool`,
      { cause },
    )
  }

  #assertOpen(): void {
    if (this.#stopping) throw this.#closedError
  }
}
