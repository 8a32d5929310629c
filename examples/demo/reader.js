/**
 * The one subscriber: it reads everything the devices publish with `for await`, and hands it to the checker and the statistics.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'mqwire'
import { decode } from './telemetry.js'

/** Milliseconds without a message after which nothing more is expected, and the most that the wait takes. */
const quiet = 1000
const longest = 10_000

/** The subscriber. Make one with `Reader.connect`. */
export class Reader {
  #client
  #subscription
  #checker
  #stats

  constructor(client, subscription, checker, stats) {
    this.#client = client
    this.#subscription = subscription
    this.#checker = checker
    this.#stats = stats
  }

  /** Connects and subscribes to everything below a prefix. */
  static async connect(url, { clientId, prefix, checker, stats, signal }) {
    // aedes does not heed Receive Maximum; this is the most that it could have under way.
    const client = await connect(url, { clientId, reconnect: false, sessionExpiryInterval: 0, receiveMaximum: 65_535, signal })
    const subscription = await client.subscribe(`${prefix}/#`, { qos: 2, requireQos: true, buffer: 16_384, signal })
    return new Reader(client, subscription, checker, stats)
  }

  /** Messages at QoS 0 that were dropped because the buffer was full. */
  get dropped() {
    return this.#subscription.dropped
  }

  /** Reads until `disconnect()`; rejects when the connection is lost. Asking for the next message acknowledges the last one. */
  async run() {
    for await (const message of this.#subscription) {
      const [device, format] = message.topic.split('/').slice(-2)
      const telemetry = decode(format, message)
      // Somebody else may publish below our prefix.
      if (telemetry === undefined || !this.#checker.record(Number(device), message.qos, telemetry.number)) continue
      this.#stats.record(performance.now() - telemetry.at)
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
