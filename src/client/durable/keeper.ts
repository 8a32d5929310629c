/**
 * Keeps the session of one client in a store (section 4.1), and restores what an earlier process
 * left.
 *
 * A publish and its identifier are stored before it is sent; its release before PUBREL; an incoming
 * identifier before the message is handed out, and before PUBREC accepts it. Loaded only with the
 * `store` option. What is in flight at the end of the client is never deleted.
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

/** A client that has a session open. */
interface Holder {
  readonly host: DurableHost
  /** Resolves when the session was read, or reading failed. */
  readonly read: Promise<void>
}

/** Open sessions in this process, by store and key prefix. */
const opened = new WeakMap<Store, Map<string, Holder>>()
/** Writes of ended clients that are still pending, by store and key prefix. */
const leaving = new WeakMap<Store, Map<string, Promise<void>>>()

/**
 * Reads the session of a client, keeps it from then on, and starts connecting. A session that
 * cannot be read ends the client. Never rejects.
 */
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

/**
 * @throws MqttError ERR_STORE; ERR_STORE_LOCKED when another client of this process has the session
 * open
 */
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
    // That client ended while reading; it releases the session afterwards.
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

/** The checked `store` option. */
interface StoreConfig {
  readonly store: Store
  /** Incoming messages are stored, too. */
  readonly inbound: boolean
}

function storeConfig(given: DurableHost['options']['store']): StoreConfig {
  // Distinguishes a store from options: a store may itself have a member `store`.
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

/** Milliseconds between two `error` events of a failing store. */
const reportInterval = 1000
/** Reserved bytes in the record of a session, released when the store is full. */
const spareLength = 2048

/** The stored session of one client. */
export class SessionKeeper implements Keeper, PersistPort, Spare {
  readonly durable = true
  readonly recognises: boolean
  readonly store: Store
  readonly #host: DurableHost
  readonly #keys: SessionKeys
  readonly #journal: Journal
  readonly #inbox: Inbox
  /** Undefined when incoming messages are not stored. */
  readonly #inbound: Inbox | undefined
  readonly #release: () => void
  readonly #publishes: KeptPublishes
  #session: SessionRecord
  #recovered: Recovered | undefined
  /** The reserved bytes are in the session's record. */
  isThere = true
  /** The session has a record. */
  #isKnown: boolean
  /**
   * The server reported the session as lost, or may have done so to an earlier process, and that
   * was not acted on yet.
   */
  #inDoubt = false
  /** Number of losses of the session that are not stored yet. */
  #losing = 0
  /** Number of the session: requests of an earlier one get no answer. */
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
        // Every waiting publish may cause this error, so events are limited.
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
    // A number that is never reused, even after the clock was set back or the record was lost.
    const epoch = Math.max((known?.epoch ?? 0) + 1, Math.floor(platform.date()))
    this.#session = { clientId: known?.clientId ?? '', epoch, asking: known?.asking === true }
    this.#isKnown = known !== undefined
    this.#inbox = new Inbox(host, this.#journal, keys, this.#session.epoch)
    this.#inbound = inbound ? this.#inbox : undefined
    this.recognises = inbound
    session.known = known !== undefined
    host.clientId ||= this.#session.clientId
  }

  /** Restores a record of an earlier process; false when it is damaged. */
  restore(kind: string, number: number, value: Uint8Array): boolean {
    if (kind === 'o') return this.#publishes.restore(number, value)
    const record = kind === 'i' ? decodeInbound(value) : undefined
    if (record === undefined || !(number >= 1 && number <= 65_535)) return false
    this.#inbox.restore(number, record)
    return true
  }

  /**
   * After all records were read: resumes what is in flight and deletes obsolete records. Returns
   * keys of records with a damaged payload.
   */
  async tidy(): Promise<readonly string[]> {
    const damaged = await this.#publishes.goOn(this.store)
    await this.#publishes.tidy(this.store)
    return damaged
  }

  /** After everything was read: starts keeping the session. */
  attach(): void {
    const { session } = this.#host
    this.#recovered = { outbound: this.#publishes.size, inbound: this.#inbox.size }
    session.persistence = this
    this.#host.publishing.keeper = this
    this.#inDoubt = this.#session.asking && this.#publishes.exchanges
    // Attached as an extra: the connection only knows that it has to wait.
    const extra: Extra = {
      open: (handshake) => this.#ask(handshake),
      verify: ({ reasonCode, sessionPresent }) =>
        reasonCode > 0 ? undefined : sessionPresent ? this.#answer() : this.#handleAbsent(),
    }
    this.#host.extras = [...this.#host.extras, extra]
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

  // The server may have started a new session at an earlier CONNECT. QoS 2 messages in flight are
  // not resent, because they would arrive twice [MQTT-4.4.0-1].
  #settleDoubt(): void {
    if (!this.#inDoubt) return
    this.#inDoubt = false
    this.#host.log('warn', 'the session may be a new one: QoS 2 is not sent again')
    this.#publishes.doubt()
    void this.#answer()
  }

  // CONNECT is about to be sent. If the process dies after CONNACK, the loss of the session would
  // be unknown, so the record first says that it is in question.
  #ask(handshake: Promise<void>): Promise<void> | undefined {
    const needed = this.#isKnown && (this.#publishes.exchanges || this.#losing > 0)
    // A failed attempt says nothing about the session.
    handshake.catch(() => this.#answer())
    if (!needed || this.#session.asking) return undefined
    this.#session = { ...this.#session, asking: true }
    // If there is no space for the mark, the connection goes on without it, so that the store can
    // drain.
    return new Promise((resolve) => {
      const small = (): void => this.#journal.write([this.take()], resolve, () => resolve(), '')
      this.#journal.write([this.#record()], resolve, small, '')
    })
  }

  // Stores that the server has answered. Resolves when it is written or failed; undefined when
  // there is nothing to write.
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
    // The connection may end before the CONNACK is accepted.
    this.#inDoubt ||= this.#publishes.exchanges
    return this.#inbox.clear()
  }

  // The session is lost, or treated as lost. What that means for publishes is written in this turn;
  // an empty change behind it ends `#losing`.
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

  // If there is no space for the reserved bytes, the record is written without them.
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
    // The client ends: stored records are for the next process.
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

  // The next client that opens the session waits for pending writes.
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
