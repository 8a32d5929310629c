/**
 * The built-in consumer: one client that reads everything the devices publish, so that what is lost or comes twice is noticed.
 *
 * Its own link is not touched by the faults of links: it is the measure. A broker that goes down takes it along, as it does everybody.
 */
import { marks, reportOf } from './payload.js'

/** The owner of its link. */
export const consumerId = 'consumer'

/** See the file's comment. */
export class Consumer {
  state = 'idle'
  /** Time since which it is connected; undefined while it is not. */
  since
  lastError
  #client
  #reading
  #fleet

  constructor(fleet) {
    this.#fleet = fleet
  }

  /** Connects and subscribes; fulfils when the broker granted that. */
  async start() {
    const { makeClient, broker, prefix, clock, journal, failures, filter } = this.#fleet
    this.#client = makeClient(
      { url: broker.url, transport: (_endpoint, options) => broker.dial(consumerId, options) },
      {
        ...this.#fleet.consumerCredentials(),
        clientId: `${prefix}-consumer`,
        firstConnect: 'wait',
        receiveMaximum: 65_535,
        reconnect: { backoff: () => 250 },
        memoryBudget: 256 * 1024 * 1024,
      },
    )
    this.#client.on('state', ({ state }) => {
      this.state = state
      this.since = state === 'connected' ? clock.now() : undefined
      if (state === 'connected') failures.delete(this)
    })
    this.#client.on(
      'disconnect',
      ({ error }) => error && journal.note(`the consumer lost its connection: ${error.code}`),
    )
    this.#client.on('connecterror', ({ error }) => {
      this.lastError = error
      // The broker in the page is away only where a fault takes it.
      if (!broker.isInMemory) failures.add(this, 'consumer', error)
      journal.note(`the consumer has no connection: ${error.code}`)
    })
    // What is retained was counted when it was published.
    const options = { qos: 2, retainHandling: 2, buffer: 65_536, bufferBytes: 64 * 1024 * 1024 }
    const reports = reportOf(prefix)
    const isUsual = filter === reports.topic.filter()
    // What is no report may have a mark.
    const subscription = isUsual
      ? reports.on(this.#client).subscription({}, { ...options, onInvalid: 'deliver' })
      : this.#client.subscription(filter, options)
    this.#client.connect().catch(() => undefined)
    await subscription.ready
    this.#reading = this.#read(
      subscription,
      isUsual ? (received) => this.#takeReport(received) : (message) => this.#takeMarked(message),
    )
    this.#reading.catch((error) =>
      journal.note(`the consumer stopped: ${error.code ?? error.name}`),
    )
  }

  async stop() {
    const client = this.#client
    this.#client = undefined
    await client?.disconnect()
    await this.#reading?.catch(() => undefined)
  }

  async #read(subscription, take) {
    for await (const batch of subscription.batches(1000)) for (const each of batch) take(each)
  }

  // Without a mark the topic says whose message it is, and the payload which.
  #takeReport({ params, value, message }) {
    if (!this.#takeMarked(message) && params !== undefined) this.#fleet.arrived(params, value)
  }

  // A mark says all. False where there is none.
  #takeMarked(message) {
    const { isMarked, prefix } = this.#fleet
    const mark = isMarked ? marks.read(message, prefix) : undefined
    if (mark === undefined) return false
    this.#fleet.accept(mark)
    return true
  }
}
