/**
 * The group: clients of several brokers, what goes to which, and what came from which.
 *
 * It makes the clients that it was not given, and ends all of them. What a member is handed stays with it: its client sends it again after a loss.
 */
import type {
  ClientEvents,
  ClientOptions,
  ClientState,
  DisconnectOptions,
  Endpoint,
  Filters,
  ListenerOptions,
  ListenOptions,
  Payload,
  SubscribeOptions,
  Subscriber,
  Unlisten,
} from '../client/api/index.js'
import { assertNotAborted, deferred, rejected, silent, within } from '../client/common/abort.js'
import { asyncDisposeSymbol } from '../client/common/dispose.js'
import { assertHandler, invalid } from '../client/common/schema.js'
import { MqttError } from '../errors.js'
import { membersError } from '../members/failure.js'
import { signalOf } from '../members/gate.js'
import { type MemberEvents, MemberListeners } from '../members/listeners.js'
import { Member, type MemberClient } from '../members/member.js'
import { Router } from '../members/router.js'
import { Broadcasts, ownPayload } from './broadcast.js'
import { MergedHandling } from './merged-handling.js'
import { MergedSubscription } from './merged-subscription.js'
import { type CheckedMember, checkedMember, connectCall, type GroupConfig, groupConfig, memberName, publishingCall, readingCall } from './options.js'
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
  GroupRouting,
  GroupStats,
  GroupSubscribeOptions,
  GroupSubscription,
} from './types.js'

/** Makes a client. */
export type MakeClient = (endpoints: Endpoint | readonly Endpoint[], options: ClientOptions) => MemberClient

/** Makes a group of clients of one kind. @throws MqttError as `createGroup` */
export function groupOf(make: MakeClient, options: GroupOptions): Group {
  return new BrokerGroup(make, groupConfig(options))
}

/** What reads on several members. */
interface Reader {
  readonly all: boolean
  add(member: Member<ReadingClient>): void
  remove(member: Member<ReadingClient>): void
}

type ReadingClient = MemberClient & Subscriber

class BrokerGroup implements Group {
  readonly #make: MakeClient
  readonly #config: GroupConfig
  readonly #members = new Map<string, Member>()
  readonly #listeners = new MemberListeners(() => this.#members.values())
  readonly #broadcasts: Broadcasts
  readonly #routers: Readonly<Record<Exclude<GroupRouting, 'broadcast'>, Router<MemberClient>>>
  readonly #readers = new Set<Reader>()
  readonly #leaving = new Set<Promise<void>>()
  readonly #total = { duplicates: 0 }
  #state: 'idle' | 'open' | 'ended' = 'idle'
  #change = deferred<void>()

  constructor(make: MakeClient, config: GroupConfig) {
    this.#make = make
    this.#config = config
    this.#broadcasts = new Broadcasts(config.patience)
    const members = (): Iterable<Member> => this.#members.values()
    this.#routers = { 'round-robin': new Router(members, 'round-robin', config.onLost), hash: new Router(members, 'hash', config.onLost) }
    for (const [name, given] of config.members) this.#put(name, given)
  }

  get ordered(): boolean {
    const { routing, onLost } = this.#config
    return routing === 'broadcast' || (routing === 'hash' && onLost === 'wait')
  }

  get state(): ClientState {
    const states = [...this.#members.values()].map(({ client }) => client.state)
    const order: readonly ClientState[] = ['connected', 'connecting', 'reconnecting', 'disconnecting', 'idle']
    return this.#state === 'ended' && !states.includes('disconnecting') ? 'closed' : (order.find((state) => states.includes(state)) ?? 'closed')
  }

  get writable(): Promise<void> {
    return silent(this.#writable())
  }

  members(): readonly GroupMember[] {
    return [...this.#members.values()].map(shown)
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
    const members = [...this.#members.values()]
    const one = (member: Member): Promise<void> => member.connect(undefined).catch((error) => void failures.set(member.name, error))
    const all = async (): Promise<void> => {
      if (mode === 'parallel') await Promise.all(members.map(one))
      else for (const member of members) if (!signal?.aborted) await one(member)
    }
    await within(all(), signal)
    if (failures.size === 0 || (require === 'any' && failures.size < members.length)) return
    this.#assertOpen()
    throw membersError('not connected', failures)
  }

  async add(name: string, given: GivenMember): Promise<void> {
    this.#assertOpen()
    const key = memberName(name, 'name')
    if (this.#members.has(key)) invalid('name', `the name of a new member: there is '${key}' already`)
    const member = this.#put(key, checkedMember(given, 'member'))
    if (this.#state === 'open') await member.connect(undefined)
  }

  async remove(name: string, options?: DisconnectOptions): Promise<void> {
    this.#assertOpen()
    const member = this.#find(name, 'name')
    member.leaving = true
    this.#members.delete(name)
    for (const reader of this.#readers) reader.remove(member as Member<ReadingClient>)
    const gone = member.client.drain(options)
    this.#leaving.add(gone)
    this.#handleChange()
    try {
      await gone
    } finally {
      this.#leaving.delete(gone)
      this.#listeners.handleRemoved(member)
    }
  }

  disconnect(options?: DisconnectOptions): Promise<void> {
    return this.#end((client) => client.disconnect(options))
  }

  drain(options?: DisconnectOptions): Promise<void> {
    return this.#end((client) => client.drain(options))
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.disconnect()
  }

  publish(topic: string, payload: Payload, given?: GroupPublishOptions): Promise<GroupReceipt> {
    try {
      this.#assertOpen()
      const { members: names, routing, options } = publishingCall(given, this.#config.routing)
      if (routing === 'broadcast') {
        const members = names === undefined ? [...this.#members.values()] : names.map((name) => this.#find(name, 'members'))
        return this.#broadcasts.publish(members, this.#config.offline, topic, ownPayload(payload), options)
      }
      if (names !== undefined) invalid('members', "left out, unless routing is 'broadcast'")
      return this.#routers[routing].publish<GroupReceipt>(
        topic,
        signalOf(options),
        (member) => member.publish(topic, payload, options).then((value) => ({ members: { [member.name]: { status: 'fulfilled', value } } })),
        () => rejected(new MqttError('ERR_NO_HEALTHY_PUBLISHERS', this.#why())),
      )
    } catch (error) {
      return rejected(error)
    }
  }

  post(topic: string, payload: Payload): boolean {
    if (this.#state === 'ended') return false
    const { routing } = this.#config
    if (routing !== 'broadcast') return this.#routers[routing].choose(topic)?.client.post(topic, payload) ?? false
    let taken = false
    for (const member of this.#members.values()) if (member.up && member.client.post(topic, payload)) taken = true
    return taken
  }

  async subscribe(filters: Filters, options?: GroupSubscribeOptions): Promise<GroupSubscription> {
    return this.subscription(filters, options).ready
  }

  subscription(filters: Filters, options?: GroupSubscribeOptions): GroupSubscription {
    this.#assertOpen()
    const reading = readingCall<SubscribeOptions>(options)
    const members = this.#reading(reading.members)
    const merged = new MergedSubscription(filters, reading, this.#total, () => this.#readers.delete(merged))
    try {
      for (const member of members) merged.add(member)
    } catch (error) {
      merged.detachAll()
      throw error
    }
    this.#readers.add(merged)
    return merged
  }

  async listen(filters: Filters, handler: (message: GroupMessage) => unknown, options?: GroupListenOptions): Promise<GroupHandling> {
    this.#assertOpen()
    assertHandler(handler, 'handler')
    const reading = readingCall<ListenOptions>(options)
    const members = this.#reading(reading.members)
    const merged = new MergedHandling(filters, handler, reading, this.#total, () => this.#readers.delete(merged))
    for (const member of members) merged.add(member)
    this.#readers.add(merged)
    return merged.begin()
  }

  on<K extends keyof ClientEvents>(type: K, listener: (event: MemberEvents[K]) => void, options?: ListenerOptions): Unlisten {
    return this.#listeners.on(type, listener, options)
  }

  stats(): GroupStats {
    const members = [...this.#members.values()]
    return {
      size: members.length,
      up: members.filter(({ up }) => up).length,
      healthy: members.filter(({ healthy }) => healthy).length,
      inFlight: members.reduce((sum, { inFlight }) => sum + inFlight, 0),
      moved: this.#routers['round-robin'].moved + this.#routers.hash.moved,
      duplicates: this.#total.duplicates,
      members: Object.fromEntries(members.map(({ name, client }) => [name, (client as { stats?(): unknown }).stats?.()])),
    }
  }

  #put(name: string, given: CheckedMember): Member {
    const member = new Member(name, given.client ?? this.#made(name, given))
    this.#members.set(name, member)
    this.#listeners.handleAdded(member)
    member.client.on('state', () => this.#handleChange())
    if (subscribes(member)) for (const reader of this.#readers) if (reader.all) reader.add(member)
    this.#handleChange()
    return member
  }

  #made(name: string, given: CheckedMember & { readonly client: undefined }): MemberClient {
    const { shared } = this.#config
    const base = shared.clientId ?? ''
    const clientId = base === '' ? '' : `${base}-${name}`
    return this.#make(given.endpoints, { firstConnect: 'wait', ...shared, clientId, ...given.options })
  }

  #handleChange(): void {
    this.#broadcasts.handleChange()
    this.#change.resolve()
    this.#change = deferred()
  }

  // Those that are named, or all that can subscribe.
  #reading(names: readonly string[] | undefined): Member<ReadingClient>[] {
    if (names === undefined) {
      const all = [...this.#members.values()].filter(subscribes)
      return all.length > 0 ? all : invalid('members', 'at least one member that subscribes')
    }
    return names.map((name) => {
      const member = this.#find(name, 'members')
      return subscribes(member) ? member : invalid('members', `members that subscribe; '${name}' only publishes`)
    })
  }

  #find(name: string, option: string): Member {
    return this.#members.get(name) ?? invalid(option, `names of members: ${[...this.#members.keys()].join(', ') || 'there are none'}`)
  }

  #why(): string {
    const texts = [...this.#members.values()].map(({ name, client, error }) => `${name}: ${error?.message ?? client.state}`)
    return `no member is connected:\n${texts.join('\n')}`
  }

  async #writable(): Promise<void> {
    for (;;) {
      this.#assertOpen()
      const change = this.#change.promise
      const ready = [...this.#members.values()].flatMap(({ up, client }) =>
        up
          ? [
              client.writable.then(
                () => true,
                () => change.then(() => false),
              ),
            ]
          : [],
      )
      if (await Promise.race([...ready, change.then(() => false)])) return
    }
  }

  async #end(end: (client: MemberClient) => Promise<void>): Promise<void> {
    this.#state = 'ended'
    this.#change.resolve()
    await Promise.all([...[...this.#members.values()].map(({ client }) => end(client)), ...this.#leaving])
  }

  #assertOpen(): void {
    if (this.#state === 'ended') throw new MqttError('ERR_CLOSED')
  }
}

function subscribes(member: Member): member is Member<ReadingClient> {
  return 'subscription' in member.client
}

function shown({ name, client, healthy, inFlight, error }: Member): GroupMember {
  return { name, client, state: client.state, healthy, inFlight, error }
}
