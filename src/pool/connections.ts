/**
 * The connections of a pool: adds, numbers and removes them, and replaces those that end by
 * themselves. A removed connection ends when its work is done.
 */

import { exponential } from '../client/options/backoff.js'
import type { CheckedDisconnect } from '../client/options/check-calls.js'
import type { Backoff, ClientOptions, Endpoint, Stats } from '../client/options/index.js'
import { silent } from '../common/abort.js'
import { longestTimer } from '../common/schema.js'
import { asMqttError } from '../members/failure.js'
import { Member, type MemberClient } from '../members/member.js'
import { Members } from '../members/members.js'
import type { PoolConfig } from './options.js'

/** A client that a pool creates. */
export interface PooledClient extends MemberClient {
  stats(): Stats
}

/** Creates a client. */
export type MakeClient = (
  endpoints: Endpoint | readonly Endpoint[],
  options: ClientOptions,
) => PooledClient

/** Calls back into the pool. */
export interface ConnectionsHost {
  /** A connection is up, was lost or has ended. */
  handleChange(): void
  /**
   * A connection has ended by itself.
   * @param last all others have ended too, so none is replaced
   */
  handleEnded(member: Member, last: boolean): void
}

/** An ended connection that will be replaced. */
interface Ended {
  readonly member: Member<PooledClient>
  readonly n: number
  /** Number of the replacement attempt for this connection; 1 again after a stable one. */
  readonly attempt: number
  /** True once its delay has passed. */
  due: boolean
  readonly cancel: () => void
}

/**
 * Milliseconds after which a connection counts as stable: the delay of its replacement then starts
 * from the first one again. Default of `stableAfter`.
 */
const usualStableAfter = 30_000
/** Delay in milliseconds when the backoff returns none. */
const usualDelay = 30_000

/** Creates, replaces and removes connections. */
export class PoolConnections {
  readonly members = new Members<PooledClient>()
  readonly #make: (n: number) => PooledClient
  readonly #host: ConnectionsHost
  readonly #backoff: Backoff
  readonly #stableAfter: number
  readonly #ended = new Map<Member, Ended>()
  /** The next number. Only a replacement reuses the number of the connection that it replaces. */
  #next = 1
  /** Stop replacing connections: the pool was ended, or all connections have ended. */
  #over = false
  /** The pool was ended: stop reporting connections that end. */
  #stopped = false

  constructor(
    make: MakeClient,
    endpoints: Endpoint | readonly Endpoint[],
    config: PoolConfig,
    host: ConnectionsHost,
  ) {
    this.#make = (n) =>
      make(endpoints, { firstConnect: 'wait', ...config.options, clientId: clientIdOf(config, n) })
    this.#host = host
    const { backoff = exponential(), stableAfter = usualStableAfter } = Object(
      config.options.reconnect,
    ) as {
      backoff?: Backoff
      stableAfter?: number
    }
    this.#backoff = backoff
    this.#stableAfter = stableAfter
  }

  /** Adds a connection. @throws MqttError as `new Client()` */
  add(): Member<PooledClient> {
    const member = this.#put(this.#next, 0)
    this.#next += 1
    return member
  }

  /**
   * Removes `count` connections: first ended ones, then those that are not up. Fulfils when their
   * publishes are acknowledged.
   */
  async remove(count: number, options: CheckedDisconnect): Promise<void> {
    const use = ({ up, over }: Member): number => (up ? 2 : over ? 0 : 1)
    const going = [...this.members.all].reverse().sort((one, other) => use(one) - use(other))
    await Promise.all(
      going.slice(0, count).map((member) => {
        this.#ended.get(member)?.cancel()
        this.#ended.delete(member)
        return this.members.remove(member, options)
      }),
    )
  }

  /**
   * Ends all connections, including those being removed.
   * @throws MqttError as `end` of the members
   */
  end(how: 'disconnect' | 'drain', options: CheckedDisconnect): Promise<void> {
    this.#stopped = true
    this.#stop()
    return this.members.end(how, options)
  }

  #put(n: number, attempt: number): Member<PooledClient> {
    const member = new Member(`pub-${n}`, this.#make(n))
    const { time, client } = member
    this.members.put(member)
    let since = Number.POSITIVE_INFINITY
    client.on('connect', () => {
      since = time.now()
    })
    client.on('state', () => {
      this.#replaceDue()
      this.#host.handleChange()
    })
    void member.ended.then(() =>
      this.#handleEnded(member, n, time.now() - since >= this.#stableAfter ? 1 : attempt + 1),
    )
    return member
  }

  #handleEnded(member: Member<PooledClient>, n: number, attempt: number): void {
    if (this.#stopped || this.members.get(member.name) !== member) return
    // Several may end at once: then each is the last.
    const last = this.#over || this.members.all.every(({ client }) => client.state === 'closed')
    if (last) this.#stop()
    else this.#replaceLater(member, n, attempt)
    this.#host.handleEnded(member, last)
  }

  #replaceLater(member: Member<PooledClient>, n: number, attempt: number): void {
    const { time, error } = member
    let delay = usualDelay
    try {
      const given: unknown = this.#backoff(attempt, error, time.random?.bind(time))
      if (typeof given === 'number' && given >= 0) delay = Math.min(given, longestTimer)
    } catch {
      // The program's backoff threw: the default delay is used.
    }
    const cancel = time.setTimer(() => {
      ended.due = true
      this.#replaceDue()
    }, delay)
    const ended: Ended = { member, n, attempt, due: false, cancel }
    this.#ended.set(member, ended)
  }

  // Stops replacing connections.
  #stop(): void {
    this.#over = true
    for (const { cancel } of this.#ended.values()) cancel()
    this.#ended.clear()
  }

  // Replaces due connections only while another one is up: otherwise a new one would most likely
  // fail too.
  #replaceDue(): void {
    for (const ended of this.#ended.values())
      if (ended.due && this.members.all.some(({ up }) => up)) this.#replace(ended)
  }

  #replace({ member, n, attempt }: Ended): void {
    this.#ended.delete(member)
    try {
      const next = this.#put(n, attempt)
      this.members.listeners.handleRemoved(member)
      void silent(next.connect(undefined))
    } catch (error) {
      // The program's function for client identifiers threw.
      member.error = asMqttError(error)
      this.#replaceLater(member, n, attempt + 1)
    }
  }
}

function clientIdOf({ clientId, options }: PoolConfig, n: number): string {
  if (typeof clientId === 'function') return clientId(n)
  const base = clientId ?? options.clientId ?? ''
  return base === '' ? '' : `${base}-pub-${n}`
}
