/**
 * Doubles for tests of the queue: a store in memory whose writes can be made to fail, and a publisher that answers as the test says.
 */

import { onTestFinished } from 'vitest'
import type { PublishOptions, Receipt } from '../../../src/client/options/index.js'
import { deferred } from '../../../src/common/abort.js'
import { MqttError } from '../../../src/errors.js'
import { openQueue, type Queue, type QueueOptions } from '../../../src/queue/index.js'
import type {
  Store,
  StoreEntry,
  StoreOperation,
  StoreRange,
} from '../../../src/store/base/store.js'

export class MapStore implements Store {
  evicts: boolean | undefined
  /** Batches that were asked for. */
  batches = 0
  /** Called before each batch: what it throws is what the batch rejects with. */
  before: (operations: readonly StoreOperation[]) => void = () => undefined
  /** Called when a batch is done, which waits for what it gives, and says what it throws. */
  afterBatch: (operations: readonly StoreOperation[]) => unknown = () => undefined
  /** Called before each reading of a range, which waits for what it gives. */
  reading: (range: StoreRange) => unknown = () => undefined
  readonly content: Map<string, Uint8Array>

  constructor(content: Map<string, Uint8Array> = new Map()) {
    this.content = content
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.content.get(key)?.slice()
  }

  async batch(operations: readonly StoreOperation[]): Promise<void> {
    this.batches += 1
    await undefined
    this.before(operations)
    for (const operation of operations) {
      if (operation.type === 'put') this.content.set(operation.key, operation.value.slice())
      else this.content.delete(operation.key)
    }
    const wait = this.afterBatch(operations)
    if (wait) await wait
  }

  async *entries(range: StoreRange = {}): AsyncIterableIterator<StoreEntry> {
    const { gt, gte, lt, lte, reverse, limit = Number.POSITIVE_INFINITY } = range
    const wait = this.reading(range)
    if (wait) await wait
    const wanted = (key: string): boolean =>
      !((gt && key <= gt) || (gte && key < gte) || (lt && key >= lt) || (lte && key > lte))
    const keys = [...this.content.keys()].filter(wanted).sort()
    if (reverse) keys.reverse()
    for (const key of keys.slice(0, limit)) {
      const value = this.content.get(key)
      if (value !== undefined) yield [key, value.slice()]
    }
  }

  async close(): Promise<void> {}

  /** Keys of the entries, in order. */
  get entryKeys(): string[] {
    return [...this.content.keys()].filter((key) => key.includes('/e/')).sort()
  }

  copy(): MapStore {
    return new MapStore(new Map([...this.content].map(([key, value]) => [key, value.slice()])))
  }
}

const receipt: Receipt = {
  reasonCode: 0,
  reasonName: 'Success',
  reasonString: undefined,
  userProperties: [],
  packetId: 1,
}

/** A publish that has no answer yet. */
export interface Pending {
  readonly topic: string
  readonly text: string
  readonly options: PublishOptions
  accept(): void
  refuse(error: unknown): void
}

export class FakePublisher {
  /** Every publish, in order. */
  readonly calls: Pending[] = []
  /** Answers each at once, unless undefined. */
  answer: ((call: Pending) => void) | undefined
  #online = deferred<void>()

  readonly ordered: boolean

  constructor(ordered = true, online = true) {
    this.ordered = ordered
    if (online) this.#online.resolve()
  }

  get writable(): Promise<void> {
    return this.#online.promise
  }

  set online(online: boolean) {
    if (online) this.#online.resolve()
    else this.#online = deferred()
  }

  publish(topic: string, payload: unknown, options: PublishOptions = {}): Promise<Receipt> {
    const { promise, resolve, reject } = deferred<Receipt>()
    const call: Pending = {
      topic,
      text: new TextDecoder().decode(payload as Uint8Array),
      options,
      accept: () => resolve(receipt),
      refuse: reject,
    }
    this.calls.push(call)
    this.answer?.(call)
    return promise
  }

  get texts(): string[] {
    return this.calls.map(({ text }) => text)
  }
}

/** A publisher without a connection. */
export const offline = (): FakePublisher => new FakePublisher(true, false)

export function accepting(): FakePublisher {
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.accept()
  return publisher
}

export const fail = (): never => {
  throw new Error('EIO')
}

export const isAddition = (operations: readonly StoreOperation[]): boolean =>
  operations.some(({ type, key }) => type === 'put' && key.includes('/e/'))

export function refusedWith(reasonCode: number): MqttError {
  return new MqttError('ERR_PUBLISH_REFUSED', undefined, {
    reasonCode,
    outcome: 'refused',
    fault: 'remote',
  })
}

export async function settled(turns = 60): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve()
}

export async function opened<S extends MapStore = MapStore>(
  options: Partial<QueueOptions> & { store?: S; publisher?: FakePublisher } = {},
) {
  const { store = new MapStore() as S, publisher = new FakePublisher(), ...rest } = options
  const queue: Queue = await openQueue(publisher, { store, ...rest })
  onTestFinished(() => queue.close({ timeout: 0 }))
  return { store, publisher, queue }
}
