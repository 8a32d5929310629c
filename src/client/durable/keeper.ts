/**
 * Keeps the session of one client in a store (section 4.1), and restores what an earlier process left in it.
 *
 * A publish and its identifier are safe before it is sent, its release before PUBREL, an incoming identifier before the message is handed out or PUBREC
 * says that it was taken. Loaded only where there is a `store`. It must never delete what the end of the client leaves in flight.
 */

import { deferred } from '../../common/abort.js'
import { withOutcome } from '../../common/outcome.js'
import { boolean, invalid, unknown } from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import { storeError } from '../../store/base/backed-store.js'
import { isOfLaterVersion, setAside } from '../../store/base/record.js'
import type { Store, StoreOperation } from '../../store/base/store.js'
import { innermost } from '../access.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Extra } from '../context.js'
import type { Receipt, Recovered } from '../options/index.js'
import type { Keeper } from '../publish/keeper.js'
import type { QueuedPublish } from '../publish/queued-publish.js'
import type { PersistOperation, PersistPort } from '../session/actions.js'
import { Inbox } from './inbox.js'
import { Journal } from './journal.js'
import { KeptPublishes, type Spare } from './kept-publishes.js'
import type { DurableHost } from './ports.js'
import {
  decodeInbound,
  decodeSession,
  encodeSession,
  putting,
  SessionKeys,
  type SessionRecord,
} from './records.js'

/** Who has a session open. */
interface Holder {
  readonly host: DurableHost
  /** Fulfils when the session was read, or could not be. */
  readonly read: Promise<void>
}

/** Sessions of each store that clients of this process have open, by their prefix. */
const opened = new WeakMap<Store, Map<string, Holder>>()
/** By their prefix, what clients that are over have asked for and the store has not done. */
const leaving = new WeakMap<Store, Map<string, Promise<void>>>()

/** Reads the session of a client, keeps it from now on, and begins to dial; a session that cannot be read ends the client. Never rejects. */
export async function openKeeper(host: DurableHost): Promise<void> {
  try {
    const keeper = await opening(host, storeConfig(host.options.store))
    if (host.states.ended) return keeper.stop()
    keeper.attach()
    host.reconnector.begin()
  } catch (error) {
    host.finish(storeError(error))
  }
}

/** @throws MqttError ERR_STORE, ERR_STORE_LOCKED where a client of this process has it open */
async function opening(host: DurableHost, config: StoreConfig): Promise<SessionKeeper> {
  const keys = new SessionKeys(host.options.clientId)
  const open = opened.get(config.store) ?? new Map<string, Holder>()
  opened.set(config.store, open)
  for (let other = open.get(keys.prefix); other !== undefined; other = open.get(keys.prefix)) {
    if (!other.host.states.ended)
      throw new MqttError(
        'ERR_STORE_LOCKED',
        'store locked: another client of this process has this session',
        { option: 'store' },
      )
    // It has ended while it read the session, and lets go of it after that.
    await other.read
  }
  const { promise: read, resolve } = deferred<void>()
  open.set(keys.prefix, { host, read })
  try {
    await leaving.get(config.store)?.get(keys.prefix)
    return await restored(host, config, keys, () => open.delete(keys.prefix))
  } catch (error) {
    open.delete(keys.prefix)
    throw error
  } finally {
    resolve()
  }
}

/** Where the session is kept, and what of it. */
interface StoreConfig {
  readonly store: Store
  /** Incoming messages are kept, too. */
  readonly inbound: boolean
}

function storeConfig(given: DurableHost['options']['store']): StoreConfig {
  // A store may have a member `store`.
  const { store, inbound, ...others } =
    'batch' in (given as object) ? { store: given as Store, inbound: true } : (given as StoreConfig)
  for (const name of Object.keys(others))
    unknown(`store.${name}`, 'option', name, ['store', 'inbound'], 'store.')
  for (const name of ['get', 'batch', 'entries'] as const)
    if (typeof store[name] !== 'function') invalid('store', `a store, with ${name}()`)
  return { store: innermost(store), inbound: boolean(inbound ?? true, 'store.inbound') }
}

async function restored(
  host: DurableHost,
  { store, inbound }: StoreConfig,
  keys: SessionKeys,
  release: () => void,
): Promise<SessionKeeper> {
  const putAside = async (key: string, value: Uint8Array): Promise<undefined> => {
    if (isOfLaterVersion(value))
      throw new MqttError('ERR_STORE', 'the session was written by a later version of this package')
    await setAside(store, key, value, () => host.events.emit('storecorrupt', { key }))
  }
  const value = await store.get(keys.session)
  const known = value && (decodeSession(value) ?? (await putAside(keys.session, value)))
  const keeper = new SessionKeeper(host, store, keys, known, inbound, release)
  for await (const [key, record] of store.entries({ gte: keys.prefix, lt: keys.end })) {
    const { kind, number } = keys.read(key)
    if (kind === 'm' || keeper.restore(kind, number, record)) continue
    await putAside(key, record)
  }
  for (const key of await keeper.tidy()) await putAside(key, (await store.get(key)) as Uint8Array)
  return keeper
}

/** Milliseconds between two events of a store that fails. */
const reportInterval = 1000
/** Bytes that the record of a session is longer than it has to be. */
const spareLength = 2048

/** The session of one client. */
export class SessionKeeper implements Keeper, PersistPort, Spare {
  readonly durable = true
  readonly recognises: boolean
  readonly store: Store
  readonly #host: DurableHost
  readonly #keys: SessionKeys
  readonly #journal: Journal
  readonly #inbox: Inbox
  /** Undefined where incoming messages are not kept. */
  readonly #inbound: Inbox | undefined
  readonly #release: () => void
  readonly #publishes: KeptPublishes
  #session: SessionRecord
  #recovered: Recovered | undefined
  /** The record of the session has spare room. */
  isThere = true
  /** There is a record of the session. */
  #isKnown: boolean
  /** The server said that the session is lost, or may have said so to an earlier process, and that has not been acted on. */
  #inDoubt = false
  /** Losses of the session that the store does not know yet. */
  #losing = 0
  /** Rises when the session is lost: requests made before get no answer. */
  #sessions = 0
  #stopped = false
  #reportedAt = Number.NEGATIVE_INFINITY

  constructor(
    host: DurableHost,
    store: Store,
    keys: SessionKeys,
    known: SessionRecord | undefined,
    inbound: boolean,
    release: () => void,
  ) {
    const { platform, session, events } = host
    this.#host = host
    this.store = store
    this.#keys = keys
    this.#release = release
    this.#journal = new Journal(store, platform, {
      handleBatch: () => host.connections.pump(),
      handleError: (error) => {
        this.#inbox.handleFailing()
        // Each publish that waits may have failed.
        if (platform.now() - this.#reportedAt < reportInterval) return
        this.#reportedAt = platform.now()
        host.log('error', `store: ${error.message}`)
        events.emit('error', { error })
      },
      handleClosed: (error) => {
        this.#inbox.handleClosed()
        this.#publishes.handleClosed(withOutcome(error, 'unknown'))
      },
    })
    this.#publishes = new KeptPublishes(host, this.#journal, keys, this)
    // A clock that was set back, or a record that was lost, must not bring back a number that was used.
    const epoch = Math.max((known?.epoch ?? 0) + 1, Math.floor(platform.date()))
    this.#session = { clientId: known?.clientId ?? '', epoch, asking: known?.asking === true }
    this.#isKnown = known !== undefined
    this.#inbox = new Inbox(host, this.#journal, keys, this.#session.epoch)
    this.#inbound = inbound ? this.#inbox : undefined
    this.recognises = inbound
    session.known = known !== undefined
    host.clientId ||= this.#session.clientId
  }

  /** Takes a record of an earlier process; false when it is damaged. */
  restore(kind: string, number: number, value: Uint8Array): boolean {
    if (kind === 'o') return this.#publishes.restore(number, value)
    const record = kind === 'i' ? decodeInbound(value) : undefined
    if (record === undefined || !(number >= 1 && number <= 65_535)) return false
    this.#inbox.restore(number, record)
    return true
  }

  /** Everything is read: what is in flight goes on, and records without a purpose are deleted. Gives the keys of records whose payload was damaged. */
  async tidy(): Promise<readonly string[]> {
    const damaged = await this.#publishes.goOn(this.store)
    await this.#publishes.tidy(this.store)
    return damaged
  }

  /** Everything is read: from now on it is kept. */
  attach(): void {
    const { session } = this.#host
    this.#recovered = { outbound: this.#publishes.size, inbound: this.#inbox.size }
    session.persistence = this
    this.#host.publishQueue.keeper = this
    this.#inDoubt = this.#session.asking && this.#publishes.exchanges
    // It knows no more than that there is something to wait for.
    const extras = this.#host.extras as Extra[]
    extras.push({
      open: (handshake) => this.#ask(handshake),
      verify: ({ reasonCode, sessionPresent }) =>
        reasonCode > 0 ? undefined : sessionPresent ? this.#answer() : this.#handleAbsent(),
    })
    if (this.#inbound !== undefined) this.#host.connections.inbox = this.#inbound
  }

  handleConnected(): Recovered | undefined {
    const { clientId } = this.#host
    const recovered = this.#recovered
    this.#recovered = undefined
    this.#inbox.handleConnected()
    this.#settleDoubt()
    if (clientId !== this.#session.clientId || recovered !== undefined) {
      this.#session = { ...this.#session, clientId }
      this.#isKnown = true
      this.#writeSession()
    }
    return recovered
  }

  // The server may have begun a new session at an earlier CONNECT: what is in flight at QoS 2 would arrive twice [MQTT-4.4.0-1].
  #settleDoubt(): void {
    if (!this.#inDoubt) return
    this.#inDoubt = false
    this.#host.log('warn', 'the session may be a new one: QoS 2 is not sent again')
    this.#publishes.doubt()
    void this.#answer()
  }

  // CONNECT is about to leave. A process that dies after CONNACK cannot say any more that the session was lost: the record says first that it may be.
  #ask(handshake: Promise<void>): Promise<void> | undefined {
    const needed = this.#isKnown && (this.#publishes.exchanges || this.#losing > 0)
    // An attempt that came to nothing says nothing about the session.
    handshake.catch(() => this.#answer())
    if (!needed || this.#session.asking) return undefined
    this.#session = { ...this.#session, asking: true }
    // Without room for it the connection has to do without, so that the store drains.
    return new Promise((resolve) => {
      const small = (): void => this.#journal.write([this.take()], resolve, () => resolve(), '')
      this.#journal.write([this.#record()], resolve, small, '')
    })
  }

  // What the server said is known to the next reader of the store. Fulfils when it is, or cannot be; undefined where there is nothing to write.
  #answer(): Promise<void> | undefined {
    if (!this.#session.asking || this.#inDoubt || this.#losing > 0 || this.#publishes.doubtful)
      return undefined
    this.#session = { ...this.#session, asking: false }
    const isCurrent = (): boolean => !this.#session.asking
    return new Promise((resolve) => {
      const failed = (): void => {
        this.#journal.write([this.take()], resolve, undefined, '', isCurrent)
        resolve()
      }
      this.#journal.write([this.#record()], resolve, failed, '')
    })
  }

  #handleAbsent(): Promise<void> | undefined {
    // The connection may end before that counts.
    this.#inDoubt ||= this.#publishes.exchanges
    return this.#inbox.clear()
  }

  // The session is lost, or treated so. What that means for publishes is written in this turn.
  #lose(): void {
    if (!this.#session.asking && !this.#publishes.exchanges) return
    this.#losing += 1
    const known = (): void => {
      this.#losing -= 1
      void this.#answer()
    }
    this.#host.platform.microtask(() => this.#journal.write([], known))
  }

  #record(): StoreOperation {
    return putting(this.#keys.session, encodeSession(this.#session, this.isThere ? spareLength : 0))
  }

  // Where the spare room cannot be had, it goes without.
  #writeSession(): void {
    this.isThere = true
    const insist = (): void => this.#journal.insist([this.take()])
    this.#journal.write([this.#record()], () => undefined, insist, '')
  }

  take(): StoreOperation {
    this.isThere = false
    return putting(this.#keys.session, encodeSession(this.#session))
  }

  putBack(): void {
    if (!this.isThere) this.#writeSession()
  }

  keep(item: QueuedPublish, output: PacketWriter): void {
    this.#publishes.keep(item, output)
  }

  forget(...end: Parameters<Keeper['forget']>): void {
    this.#publishes.forget(...end)
    const [item] = end
    if (item.doubt !== undefined && !this.#publishes.doubtful) this.#lose()
  }

  suspect(item: QueuedPublish): Promise<void> | undefined {
    return this.#publishes.suspect(item)
  }

  isKept(key: string): boolean {
    return this.#publishes.entries.isKept(key)
  }

  forgetEntry(key: string): void {
    this.#publishes.entries.forgetEntry(key)
  }

  publishEntry(...call: Parameters<Keeper['publishEntry']>): Promise<Receipt> {
    return this.#publishes.entries.publishEntry(...call)
  }

  request(operation: PersistOperation, id: number, granted: () => void): void {
    const session = this.#sessions
    this.#journal.write(
      this.#changesOf(operation, id),
      () => session === this.#sessions && granted(),
    )
  }

  confirm(): void {
    this.#inbox.confirm()
  }

  reset(): void {
    // The end of the client: what is stored is for the next process.
    if (this.#host.states.ended) return
    this.#sessions += 1
    this.#inDoubt = false
    this.#lose()
    void this.#inbox.clear()
  }

  idle(): Promise<void> {
    return this.#journal.idle()
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    void this.#answer()
    this.#journal.stop()
    this.#publishes.entries.stop()
    this.#leave()
    this.#release()
  }

  // The next opening must not read what is about to change.
  #leave(): void {
    const { prefix } = this.#keys
    const all = leaving.get(this.store) ?? new Map<string, Promise<void>>()
    leaving.set(this.store, all)
    const idle = this.#journal
      .idle()
      .then(() => void (all.get(prefix) === idle && all.delete(prefix)))
    all.set(prefix, idle)
  }

  #changesOf(operation: PersistOperation, id: number): StoreOperation[] {
    if (operation === 'put-inbound') return this.#inbound?.receiving(id) ?? []
    if (operation === 'delete-inbound') return this.#inbox.completing(id)
    return this.#publishes.releasing(id)
  }
}
