/**
 * The group: clients of several brokers behind one interface.
 *
 * It creates clients for members given as endpoints, and ends all clients, including given ones. A
 * publish passed to a member stays there: its client resends it after a lost connection.
 */

import { access, type ClientAccess } from '../client/access.js'
import { type CheckedDisconnect, disconnectOptions } from '../client/options/check-calls.js'
import type {
  ClientEvents,
  ClientOptions,
  ClientState,
  DisconnectOptions,
  Endpoint,
  Filters,
  Hooks,
  ListenerOptions,
  Payload,
  Unlisten,
} from '../client/options/index.js'
import { assertNotAborted, silent, within } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { plainName } from '../common/plain-name.js'
import { assertLast, invalid } from '../common/schema.js'
import { MqttError } from '../errors.js'
import { membersError } from '../members/failure.js'
import type { MemberEvents } from '../members/listeners.js'
import { Member, type MemberClient } from '../members/member.js'
import { Members, Readiness, settledInTime } from '../members/members.js'
import {
  type CheckedMember,
  checkedMember,
  connectCall,
  type GroupConfig,
  groupConfig,
} from './options.js'
import { GroupPublishing } from './publishing.js'
import { GroupReading } from './reading.js'
import type {
  GivenMember,
  Group,
  GroupConnectOptions,
  GroupHandling,
  GroupListenOptions,
  GroupMember,
  GroupMessage,
  GroupOptions,
  GroupPublishOptions,
  GroupReceipt,
  GroupStats,
  GroupSubscribeOptions,
  GroupSubscription,
} from './types.js'

/** Creates a client. */
export type MakeClient = (
  endpoints: Endpoint | readonly Endpoint[],
  options: ClientOptions,
) => MemberClient

/** Creates a group whose clients `make` creates. @throws MqttError as `createGroup` */
export function groupOf(make: MakeClient, options: GroupOptions): Group {
  return new BrokerGroup(make, groupConfig(options))
}

type GroupState = 'idle' | 'open' | 'draining' | 'ended'

class BrokerGroup implements Group {
  readonly #make: MakeClient
  readonly #config: GroupConfig
  readonly #members = new Members()
  readonly #publishing: GroupPublishing
  readonly #readiness = new Readiness()
  readonly #reading = new GroupReading(this.#members, this.#readiness)
  #state: GroupState = 'idle'

  constructor(make: MakeClient, config: GroupConfig) {
    this.#make = make
    this.#config = config
    this.#publishing = new GroupPublishing(this.#members, config)
    for (const [name, given] of config.members) this.#put(name, given)
  }

  get ordered(): boolean {
    return this.#publishing.ordered
  }

  get state(): ClientState {
    return this.#members.state(this.#state === 'ended')
  }

  get writable(): Promise<void> {
    // The caller is about to publish, so the members connect, as in a pool. After a failed attempt,
    // members keep trying.
    if (this.#state === 'idle') void silent(this.connect())
    return silent(
      this.#readiness.wait(() => {
        this.#assertOpen()
        const members = this.#members.all
        // Without members it waits until one is added, as subscriptions do.
        if (members.length > 0 && members.every(({ over }) => over)) throw this.#members.ended
        return members.filter(({ up }) => up).map(({ client }) => client.writable)
      }),
    )
  }

  members(): readonly GroupMember[] {
    return this.#members.all.map(shown)
  }

  member(name: string): GroupMember | undefined {
    const member = this.#members.get(name)
    return member && shown(member)
  }

  async connect(options?: GroupConnectOptions): Promise<void> {
    this.#assertOpen()
    const { mode, require, signal } = connectCall(options)
    assertNotAborted(signal)
    this.#state = 'open'
    const failures = new Map<string, unknown>()
    const members = this.#members.all
    const one = (member: Member): Promise<void> =>
      member.connect(undefined).catch((error) => void failures.set(member.name, error))
    const all = async (): Promise<void> => {
      if (mode === 'parallel') await Promise.all(members.map(one))
      else for (const member of members) if (!signal?.aborted) await one(member)
    }
    await within(all(), signal)
    if (failures.size === 0 || (require === 'any' && failures.size < members.length)) return
    this.#assertOpen()
    throw membersError('ERR_CONNECT_FAILED', 'not connected', failures)
  }

  async add(name: string, given: GivenMember): Promise<void> {
    this.#assertOpen()
    const key = plainName(name, 'name')
    if (this.#members.get(key) !== undefined)
      invalid('name', `the name of a new member: there is '${key}' already`)
    const checked = checkedMember(given, 'member')
    if (checked.client?.state === 'closed' || checked.client?.state === 'disconnecting')
      throw new MqttError('ERR_CLOSED', 'the client has ended')
    const member = this.#put(key, checked)
    if (this.#state === 'open') await member.connect(undefined)
  }

  async remove(name: string, options?: DisconnectOptions): Promise<void> {
    this.#assertOpen()
    const member = this.#members.find(name, 'name')
    const gone = this.#members.remove(member, disconnectOptions(options))
    this.#reading.handleRemoved(member, 'leaving')
    this.#handleChange()
    try {
      await gone
    } finally {
      this.#reading.handleRemoved(member, 'gone')
    }
  }

  async disconnect(options?: DisconnectOptions): Promise<void> {
    await this.#end('disconnect', disconnectOptions(options))
  }

  async drain(given?: DisconnectOptions): Promise<void> {
    const options = disconnectOptions(given)
    // Publishes waiting for a leaving member must be passed to other members first.
    const { settling } = this.#publishing
    if (settling === undefined || this.#state === 'ended') return this.#end('drain', options)
    this.#state = 'draining'
    this.#readiness.handleChange()
    await this.#end('drain', await settledInTime(settling, options, this.#members.time))
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.disconnect()
  }

  publish(
    topic: string,
    payload: Payload,
    options?: GroupPublishOptions,
    more?: unknown,
  ): Promise<GroupReceipt> {
    try {
      assertLast(more)
      this.#assertOpen()
      return this.#publishing.publish(topic, payload, options)
    } catch (error) {
      return this.#members.access.refuse(topic, error)
    }
  }

  post(topic: string, payload: Payload, more?: unknown): boolean {
    assertLast(more, 'no callback: it returns true or false', 'no options: publish() does')
    return !stops(this.#state) && this.#publishing.post(topic, payload)
  }

  async subscribe(filters: Filters, options?: GroupSubscribeOptions): Promise<GroupSubscription> {
    return this.subscription(filters, options).ready
  }

  subscription(filters: Filters, options?: GroupSubscribeOptions): GroupSubscription {
    this.#assertOpen()
    return this.#reading.subscription(filters, options)
  }

  async listen(
    filters: Filters,
    handler: (message: GroupMessage) => unknown,
    options?: GroupListenOptions,
  ): Promise<GroupHandling> {
    this.#assertOpen()
    return this.#reading.listen(filters, handler, options)
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

  [access](): ClientAccess {
    return this.#members.access
  }

  stats(): GroupStats {
    const members = this.#members.all
    return {
      ...this.#members.counts(),
      healthy: members.filter(({ healthy }) => healthy).length,
      moved: this.#publishing.moved,
      duplicates: this.#reading.total.duplicates,
      members: Object.fromEntries(
        members.map(({ name, client }) => [name, (client as { stats?(): unknown }).stats?.()]),
      ),
    }
  }

  #put(name: string, given: CheckedMember): Member {
    const member = new Member(name, given.client ?? made(this.#make, this.#config, name, given))
    this.#reading.handleAdded(member)
    this.#members.put(member)
    member.client.on('state', () => this.#handleChange())
    void member.ended.then(() => this.#handleEnded(member))
    this.#handleChange()
    return member
  }

  // The member stays, so that `members()` shows its error; it gets no more publishes.
  #handleEnded(member: Member): void {
    if (this.#state === 'ended' || member.leaving) return
    this.#handleChange()
    this.#members.listeners.handleEnded(
      member,
      `member ${member.name} of the group has ended, and is left out`,
      false,
    )
  }

  #handleChange(): void {
    this.#publishing.handleChange()
    this.#readiness.handleChange()
  }

  async #end(how: 'disconnect' | 'drain', options: CheckedDisconnect): Promise<void> {
    this.#state = 'ended'
    this.#readiness.handleChange()
    try {
      await this.#members.end(how, options)
    } finally {
      this.#reading.handleEnd()
    }
  }

  #assertOpen(): void {
    if (stops(this.#state))
      throw new MqttError(
        'ERR_CLOSED',
        'the group was ended by disconnect() or drain(); to start again, make a new one',
      )
  }
}

/** True when the group accepts no more publishes. */
function stops(state: GroupState): boolean {
  return state === 'draining' || state === 'ended'
}

function shown({ name, client, healthy, inFlight, error }: Member): GroupMember {
  return { name, client, state: client.state, healthy, inFlight, error }
}

function made(
  make: MakeClient,
  { shared }: GroupConfig,
  name: string,
  given: CheckedMember & { readonly client: undefined },
): MemberClient {
  const base = shared.clientId ?? ''
  const clientId = base === '' ? '' : `${base}-${name}`
  return make(given.endpoints, { firstConnect: 'wait', ...shared, clientId, ...given.options })
}
