/**
 * The one subscriber: it reads everything the devices publish with `for await`, and hands it to the checker and the statistics.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'mqwire'
import { telemetryOf } from './telemetry.js'

/** Milliseconds without a message after which nothing more is expected, and the most that the wait takes. */
const quiet = 1000
const longest = 10_000

/** The subscriber. Make one with `Reader.connect`. */
export class Reader {
  #client
  #subscriptions
  #checker
  #stats

  constructor(client, subscriptions, checker, stats) {
    this.#client = client
    this.#subscriptions = subscriptions
    this.#checker = checker
    this.#stats = stats
  }

  /** Connects and subscribes to what all devices publish below a prefix, in each format. */
  static async connect(url, { clientId, prefix, checker, stats, signal }) {
    // aedes does not heed Receive Maximum; this is the most that it could have under way.
    const client = await connect(url, {
      clientId,
      reconnect: false,
      sessionExpiryInterval: 0,
      receiveMaximum: 65_535,
      signal,
    })
    const channels = Object.values(telemetryOf(prefix).on(client))
    const options = { qos: 2, requireQos: true, buffer: 16_384, signal }
    const subscriptions = await Promise.all(
      channels.map((channel) => channel.subscribe({}, options)),
    )
    return new Reader(client, subscriptions, checker, stats)
  }

  /** Messages at QoS 0 that were dropped because the buffer was full. */
  get dropped() {
    return this.#subscriptions.reduce((sum, { dropped }) => sum + dropped, 0)
  }

  /** Reads until `disconnect()`; rejects when the connection is lost. Asking for the next message acknowledges the last one. */
  async run() {
    await Promise.all(this.#subscriptions.map((subscription) => this.#read(subscription)))
  }

  async #read(subscription) {
    for await (const { params, value, message } of subscription) {
      // Somebody else may publish below our prefix.
      if (this.#checker.record(params.device, message.qos, value?.number))
        this.#stats.record(performance.now() - value.at)
    }
  }

  /** Waits until all that was sent has arrived, or nothing has come for a second, or ten seconds are over. */
  async drain(sent) {
    const end = performance.now() + longest
    let arrived = this.#checker.total
    let since = performance.now()
    while (this.#checker.isMissingAny(sent) && performance.now() < Math.min(end, since + quiet)) {
      await sleep(10)
      if (this.#checker.total === arrived) continue
      arrived = this.#checker.total
      since = performance.now()
    }
  }

  async disconnect() {
    await this.#client.disconnect()
  }
}
