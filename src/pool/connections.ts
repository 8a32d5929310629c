/**
 * The connections of a pool: they come, are numbered, and go when what they have is done.
 */
import type { ClientOptions, Endpoint, Stats } from '../client/api/index.js'
import type { CheckedDisconnect } from '../client/parsing/requests.js'
import { MemberListeners } from '../members/listeners.js'
import { endAll, Member, type MemberClient } from '../members/member.js'
import { type Time, timeOf } from '../members/time.js'
import type { PoolConfig } from './options.js'

/** A client, as a pool makes it. */
export interface PooledClient extends MemberClient {
  stats(): Stats
}

/** Makes a client. */
export type MakeClient = (endpoints: Endpoint | readonly Endpoint[], options: ClientOptions) => PooledClient

/** Connections by name. */
export class PoolConnections {
  readonly listeners = new MemberListeners(() => this.all)
  readonly #members = new Map<string, Member<PooledClient>>()
  readonly #make: (n: number) => PooledClient
  /** Called when one of them is up, was lost or has gone. */
  readonly #changed: () => void
  /** Those that leave. */
  readonly #leaving = new Set<Member>()
  /** No number is given twice. */
  #next = 1

  constructor(make: MakeClient, endpoints: Endpoint | readonly Endpoint[], config: PoolConfig, changed: () => void) {
    this.#make = (n) => make(endpoints, { firstConnect: 'wait', ...config.options, clientId: clientIdOf(config, n) })
    this.#changed = changed
  }

  get all(): readonly Member<PooledClient>[] {
    return [...this.#members.values()]
  }

  /** The time of the pool: that of its first connection. */
  get time(): Time {
    return timeOf(this.all[0]?.client)
  }

  get size(): number {
    return this.#members.size
  }

  /** One more. @throws MqttError as `new Client()` */
  add(): Member<PooledClient> {
    const n = this.#next
    const member = new Member(`pub-${n}`, this.#make(n))
    this.#next += 1
    this.#members.set(member.name, member)
    this.listeners.handleAdded(member)
    member.client.on('state', this.#changed)
    return member
  }

  /** Takes one out; fulfils when what it has is acknowledged. */
  async remove(member: Member<PooledClient>, options: CheckedDisconnect): Promise<void> {
    this.#members.delete(member.name)
    this.#leaving.add(member)
    try {
      await member.leave(options)
    } finally {
      this.#leaving.delete(member)
      this.listeners.handleRemoved(member)
    }
  }

  /** Ends all of them, those that leave too. @throws MqttError as `endAll` */
  end(how: 'disconnect' | 'drain', options: CheckedDisconnect): Promise<void> {
    return endAll([...this.all, ...this.#leaving], how, options)
  }
}

function clientIdOf({ clientId, options }: PoolConfig, n: number): string {
  if (typeof clientId === 'function') return clientId(n)
  const base = clientId ?? options.clientId ?? ''
  return base === '' ? '' : `${base}-pub-${n}`
}
