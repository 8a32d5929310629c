/**
 * The connections of a pool: they come, are numbered, are replaced when they have ended by themselves, and go when what they have is done.
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

/** A client, as a pool makes it. */
export interface PooledClient extends MemberClient {
  stats(): Stats
}

/** Makes a client. */
export type MakeClient = (
  endpoints: Endpoint | readonly Endpoint[],
  options: ClientOptions,
) => PooledClient

/** Calls back into the pool. */
export interface ConnectionsHost {
  /** One of them is up, was lost or has gone. */
  handleChange(): void
  /** One has ended by itself. @param last all others have, too: none is replaced */
  handleEnded(member: Member, last: boolean): void
}

/** One that has ended, and is to be replaced. */
interface Ended {
  readonly member: Member<PooledClient>
  readonly n: number
  /** Attempts to have a connection of this number that lasts, this one included. */
  readonly attempt: number
  /** Its delay is over. */
  due: boolean
  readonly cancel: () => void
}

/** Milliseconds that a connection must live for the delays of its replacements to start from the first again. Default of `stableAfter`. */
const usualStableAfter = 30_000
/** Milliseconds, where a backoff gives no delay. */
const usualDelay = 30_000

/** Makes, replaces and takes out connections. */
export class PoolConnections {
  readonly members = new Members<PooledClient>()
  readonly #make: (n: number) => PooledClient
  readonly #host: ConnectionsHost
  readonly #backoff: Backoff
  readonly #stableAfter: number
  readonly #ended = new Map<Member, Ended>()
  /** No number is given twice, but to the replacement of one that has ended. */
  #next = 1
  /** None is replaced any more: the pool was ended, or all have ended. */
  #over = false
  /** The pool was ended: no end is reported any more. */
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

  /** One more. @throws MqttError as `new Client()` */
  add(): Member<PooledClient> {
    const member = this.#put(this.#next, 0)
    this.#next += 1
    return member
  }

  /** Takes so many out, first those that are no use; fulfils when what they have is acknowledged. */
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

  /** Ends all of them, those that leave too. @throws MqttError as `end` of the members */
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
      // The program's own backoff: the usual delay does.
    }
    const cancel = time.setTimer(() => {
      ended.due = true
      this.#replaceDue()
    }, delay)
    const ended: Ended = { member, n, attempt, due: false, cancel }
    this.#ended.set(member, ended)
  }

  #stop(): void {
    this.#over = true
    for (const { cancel } of this.#ended.values()) cancel()
    this.#ended.clear()
  }

  // Where none is up, a new one would not fare better: it waits until another one is.
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
      // The function that gives client identifiers threw.
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
