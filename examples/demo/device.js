/**
 * A simulated device: a client of its own that publishes what its sensor says at QoS 0, 1 and 2 in turn, so many times a second.
 *
 * It never has more than a quarter of a second unacknowledged (16 to 64 messages), so that a slow broker answers in time, and never more unsent than the
 * socket takes: when the broker is slower than the wanted rate, the device slows down and forgets what it could not send in time. What it did publish,
 * it counts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'mqwire'

/** Messages without an acknowledgement, at a low rate and at a high one. */
const fewest = 16
const most = 64
/** Milliseconds between two looks at the clock. */
const tick = 10

/** One device. Make one with `Device.connect`. */
export class Device {
  /** Messages that it published, at QoS 0, 1 and 2; the numbers that they carry are 1 to this. */
  sent = [0, 0, 0]
  #client
  #channel
  #options
  #inFlight = 0
  #maximumInFlight
  #acknowledged = () => {}
  #failure

  constructor(client, options) {
    this.#client = client
    this.#channel = options.channel.on(client)
    this.#options = options
    this.#maximumInFlight = Math.min(most, Math.max(fewest, options.rate / 4))
  }

  /**
   * Connects a device. `channel` says where and how it publishes what `sensor(at)` gives, `device` is its number, `rate` how often (messages per second),
   * `delay` (milliseconds) when it starts. `faults` decides for each message whether it is counted without being sent (`lose`) or sent twice (`repeat`).
   */
  static async connect(url, { clientId, signal, ...options }) {
    // The demo counts messages of one connection: a lost one ends it.
    const client = await connect(url, {
      clientId,
      reconnect: false,
      sessionExpiryInterval: 0,
      outbound: { ackTimeout: 5000 },
      signal,
    })
    return new Device(client, options)
  }

  /** Publishes until the signal aborts, then waits for the acknowledgements. Rejects when a publish failed. */
  async run(signal) {
    const { rate, delay } = this.#options
    const start = performance.now() + delay
    let done = 0
    while (!signal.aborted && this.#failure === undefined) {
      const due = Math.floor(((performance.now() - start) * rate) / 1000)
      // After a standstill it goes on at its rate, and makes up for a few ticks only.
      done = Math.max(done, due - Math.ceil((rate * tick * 5) / 1000))
      for (; done < due && !signal.aborted && this.#failure === undefined; done += 1)
        await this.#publish(done % 3)
      await sleep(tick)
    }
    while (this.#inFlight > 0) await this.#nextAcknowledgement()
    if (this.#failure !== undefined) throw this.#failure
  }

  async disconnect() {
    await this.#client.disconnect()
  }

  async #publish(qos) {
    await this.#client.writable
    while (this.#inFlight >= this.#maximumInFlight) await this.#nextAcknowledgement()
    const { sensor, faults } = this.#options
    this.sent[qos] += 1
    const number = this.sent[qos]
    const at = performance.now()
    const telemetry = { ...sensor(at), number, at }
    if (faults?.lose(qos)) return
    this.#send(telemetry, qos)
    if (faults?.repeat(qos)) this.#send(telemetry, qos)
  }

  // Not awaited, so that several messages are under way at a time.
  #send(telemetry, qos) {
    this.#inFlight += 1
    this.#channel
      .publish({ device: this.#options.device }, telemetry, { qos })
      .catch((error) => {
        this.#failure ??= error
      })
      .finally(() => {
        this.#inFlight -= 1
        this.#acknowledged()
      })
  }

  #nextAcknowledgement() {
    return new Promise((resolve) => {
      this.#acknowledged = resolve
    })
  }
}
