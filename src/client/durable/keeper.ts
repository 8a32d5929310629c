/**
 * Keeps the session of one client in a store (section 4.1), and restores what an earlier process left in it.
 *
 * A publish and its identifier are safe before it is sent, its release before PUBREL, an incoming identifier before the message is handed out or PUBREC
 * says that it was taken. Loaded only where there is a `store`. It must never delete what the end of the client leaves in flight.
 */
import { MqttError } from '../../errors.js'
import { storeError } from '../../store/backed-store.js'
import { isOfLaterVersion, quarantine } from '../../store/record.js'
import type { Store, StoreOperation } from '../../store/store.js'
import type { Receipt, Recovered } from '../api/index.js'
import type { StoreConfig } from '../parsing/options.js'
import type { CheckedPublish } from '../parsing/requests.js'
import type { PublishKeeper } from '../publishing/ports.js'
import { QueuedPublish, republishes } from '../publishing/queued-publish.js'
import { AWAIT_PUBACK, AWAIT_PUBCOMP, AWAIT_PUBREC, held } from '../session/numbers.js'
import type { PersistOperation, PersistPort } from '../session/persistence.js'
import { Inbox } from './inbox.js'
import { Journal } from './journal.js'
import type { DurableHost } from './ports.js'
import {
  decodeInbound,
  decodePublish,
  decodeSession,
  encodePublish,
  encodeSession,
  noPayload,
  type PublishRecord,
  type PublishStage,
  putting,
  SessionKeys,
  type SessionRecord,
} from './records.js'

/** What waits for the store, as far as it is marked so. */
const notStored = -1

/** Sessions of each store that clients of this process have open, by their prefix. */
const opened = new WeakMap<Store, Set<string>>()

/**
 * Reads the session of a client, and keeps it from now on. Nothing may be sent before this has fulfilled.
 * @throws MqttError ERR_STORE, ERR_STORE_LOCKED where a client of this process has it open
 */
export async function openKeeper(host: DurableHost, config: StoreConfig): Promise<SessionKeeper> {
  const keys = new SessionKeys(host.options.clientId)
  const { store } = config
  const open = opened.get(store) ?? new Set()
  opened.set(store, open)
  if (open.has(keys.prefix))
    throw new MqttError('ERR_STORE_LOCKED', 'store locked: another client of this process has this session', { option: 'store' })
  open.add(keys.prefix)
  try {
    return await restored(host, config, keys, () => open.delete(keys.prefix))
  } catch (error) {
    open.delete(keys.prefix)
    throw storeError(error)
  }
}

async function restored(host: DurableHost, { store, inbound }: StoreConfig, keys: SessionKeys, release: () => void): Promise<SessionKeeper> {
  const putAside = async (key: string, value: Uint8Array): Promise<undefined> => {
    if (isOfLaterVersion(value)) throw new MqttError('ERR_STORE', 'the session was written by a later version of this package')
    await quarantine(store, key, value, 'damaged')
    host.events.emit('storecorrupt', { key })
  }
  const value = await store.get(keys.session)
  const known = value && (decodeSession(value) ?? (await putAside(keys.session, value)))
  const keeper = new SessionKeeper(host, store, keys, known, inbound, release)
  for await (const [key, record] of store.entries({ gte: keys.prefix, lt: keys.end })) {
    const { kind, number } = keys.read(key)
    if (kind === 'm' || keeper.restore(kind, number, record)) continue
    await putAside(key, record)
  }
  keeper.attach()
  return keeper
}

/** The session of one client. */
export class SessionKeeper implements PublishKeeper, PersistPort {
  readonly durable = true
  readonly store: Store
  readonly #host: DurableHost
  readonly #keys: SessionKeys
  readonly #journal: Journal
  readonly #inbox: Inbox
  /** Undefined where incoming messages are not kept. */
  readonly #inbound: Inbox | undefined
  readonly #release: () => void
  /** The number of each publish in flight: its place among all. */
  readonly #numbers = new Map<QueuedPublish, number>()
  #last = 0
  #session: SessionRecord
  #recovered: Recovered | undefined
  /** Rises when the session is lost: what was asked for before is answered to nobody. */
  #sessions = 0
  #stopped = false

  constructor(host: DurableHost, store: Store, keys: SessionKeys, known: SessionRecord | undefined, inbound: boolean, release: () => void) {
    const { platform, session, events } = host
    this.#host = host
    this.store = store
    this.#keys = keys
    this.#release = release
    this.#journal = new Journal(store, platform, {
      handleBatch: () => host.links.pump(),
      handleError: (error) => {
        host.log('error', `store: ${error.message}`)
        events.emit('error', { error })
      },
    })
    // A clock that was set back, or a record that was lost, must not bring back a number that was used.
    this.#session = { clientId: known?.clientId ?? '', epoch: Math.max((known?.epoch ?? 0) + 1, Math.floor(platform.date())) }
    this.#inbox = new Inbox(host, this.#journal, keys, this.#session.epoch)
    this.#inbound = inbound ? this.#inbox : undefined
    session.known = known !== undefined
    host.clientId ||= this.#session.clientId
  }

  /** Takes a record of an earlier process; false when it is damaged. */
  restore(kind: string, number: number, value: Uint8Array): boolean {
    if (kind === 'o') return this.#restorePublish(number, decodePublish(value))
    const record = kind === 'i' ? decodeInbound(value) : undefined
    if (record === undefined || !(number >= 1 && number <= 65_535)) return false
    this.#inbox.restore(number, record)
    return true
  }

  /** Everything is read: from now on it is kept. */
  attach(): void {
    const { session } = this.#host
    this.#recovered = { outbound: this.#numbers.size, inbound: this.#inbox.size }
    session.persistence = this
    if (this.#inbound !== undefined) this.#host.inbox = this.#inbound
  }

  takeRecovered(): Recovered | undefined {
    const recovered = this.#recovered
    this.#recovered = undefined
    return recovered
  }

  handleConnected(): void {
    const { clientId } = this.#host
    const { epoch } = this.#session
    if (clientId === this.#session.clientId && this.#recovered === undefined) return
    this.#session = { clientId, epoch }
    this.#insist([putting(this.#keys.session, encodeSession(this.#session))])
  }

  keep(item: QueuedPublish): void {
    const { packetId, options } = item
    const { unacknowledged } = this.#host.publishQueue
    const isNew = !this.#numbers.has(item)
    const number = this.#numbers.get(item) ?? ++this.#last
    const key = this.#keys.publish(number)
    const record = putting(key, this.#encode(item, 'sent', item.payload))
    const moved = isNew ? (options.handover?.take() ?? []) : []
    this.#numbers.set(item, number)
    item.length = notStored
    // It may be in flight anew by then, in another session.
    const isCurrent = (): boolean => item.packetId === packetId && unacknowledged.get(packetId) === item
    const failed = (error: MqttError): void => {
      if (isNew) this.#numbers.delete(item)
      // What failed may be there all the same.
      if (isNew) this.#insist([{ type: 'delete', key }])
      if (isCurrent()) unacknowledged.handleUnkept(item, error)
    }
    this.#journal.write([record, ...moved], () => isCurrent() && unacknowledged.handleKept(item), failed)
  }

  forget(item: QueuedPublish, error: unknown): void {
    const number = this.#numbers.get(item)
    if (number === undefined || this.#stopped) return
    this.#numbers.delete(item)
    const back = error === undefined ? [] : (item.options.handover?.giveBack(error) ?? [])
    this.#insist([{ type: 'delete', key: this.#keys.publish(number) }, ...back])
  }

  request(operation: PersistOperation, id: number, granted: () => void): void {
    const session = this.#sessions
    this.#journal.write(this.#changesOf(operation, id), () => session === this.#sessions && granted())
  }

  reset(): void {
    this.#sessions += 1
    this.#insist(this.#inbox.clearing())
  }

  idle(): Promise<void> {
    return this.#journal.idle()
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#journal.stop()
    this.#release()
  }

  #changesOf(operation: PersistOperation, id: number): StoreOperation[] {
    if (operation === 'put-inbound') return this.#inbound?.receiving(id) ?? []
    if (operation === 'delete-inbound') return this.#inbox.forgetting(id)
    const item = this.#host.publishQueue.unacknowledged.get(id)
    const number = item && this.#numbers.get(item)
    if (item === undefined || number === undefined) return []
    // What is published anew when the session is lost is needed until then.
    const payload = republishes(item, this.#host) ? item.payload : noPayload
    return [putting(this.#keys.publish(number), this.#encode(item, 'released', payload))]
  }

  #insist(operations: readonly StoreOperation[]): void {
    if (operations.length > 0) this.#journal.write(operations, () => undefined)
  }

  #encode({ topic, packetId, options, wire, version, since }: QueuedPublish, stage: PublishStage, payload: Uint8Array): Uint8Array {
    const { platform } = this.#host
    const { qos, retain, properties } = wire ?? options
    const packet = { topic, qos, retain, properties, packetId }
    const taken = platform.date() - (since > 0 ? platform.now() - since : 0)
    return encodePublish({ stage, version, onSessionLost: options.onSessionLost, taken, packet, payload })
  }

  #restorePublish(number: number, record: PublishRecord | undefined): boolean {
    const { publishQueue, session, platform } = this.#host
    if (record === undefined || !Number.isSafeInteger(number)) return false
    const { packetId, topic, qos, retain, properties } = record.packet
    if (publishQueue.unacknowledged.get(packetId) !== undefined) return false
    const options = { qos, retain, properties, onSessionLost: record.onSessionLost } as CheckedPublish
    const waited = Math.max(0, platform.date() - record.taken)
    const item = new QueuedPublish(topic, record.payload, options, properties?.messageExpiryInterval === undefined ? 0 : platform.now() - waited)
    const released = record.stage === 'released'
    item.packetId = packetId
    item.version = record.version
    item.length = record.length
    item.wire = released && !republishes(item, this.#host) ? undefined : options
    this.#last = Math.max(this.#last, number)
    this.#numbers.set(item, number)
    session.sendWindow.set(packetId, held | (released ? AWAIT_PUBCOMP : qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK))
    publishQueue.unacknowledged.restore(item, released)
    this.#tell(item)
    return true
  }

  // Nobody awaits it any more.
  #tell({ topic, options, packetId, promise }: QueuedPublish): void {
    const { events } = this.#host
    const tell = (receipt: Receipt | undefined, error: MqttError | undefined): void =>
      events.emit('recovered', { topic, qos: options.qos, packetId, receipt, error })
    promise.then(
      (receipt) => tell(receipt, undefined),
      (error) => tell(undefined, error),
    )
  }
}
