/**
 * One simulated device: an MQTT client of its own, which publishes numbered messages and keeps what became of them.
 *
 * It may be stopped and started again; its numbers go on. It never has more than 50 messages queued or unacknowledged: when the broker is away or
 * slower than the wanted rate, it holds back. Nothing here touches a page.
 */
import { Stream } from './ledger.js'
import { encode } from './payload.js'

const mostOpen = 50
/** Milliseconds for what is in flight, when it stops. */
const stopWithin = 5000

/**
 * What a fleet asks of lost connections: to be made good quickly. A device in the field would leave takeover (0x8E) and refusals to the default
 * decisions, which stop; here they pass, and the fleet is to come back by itself.
 */
const passing = [0x86, 0x87, 0x8e]

/** One device. `fleet` says where and what it publishes: see `Fleet`. */
export class Device {
  index
  clientId
  /** State of the client, or `'idle'`. */
  state = 'idle'
  /** One for QoS 0, 1 and 2 each. */
  streams = [new Stream(), new Stream(), new Stream()]
  attempts = 0
  connects = 0
  lastError
  negotiated
  /** Messages that it did not publish in time, because too many were open. */
  heldBack = 0
  /** Time of the next message. */
  due = 0
  /** Stopped by hand: it is not started with the others. */
  isHalted = false
  /** On its way out: only then may another client have its identifier. */
  isStopping = false
  /** Ended by an error: it is started again by hand. */
  isEnded = false
  #client
  // The same, and after `stop()` too.
  #latest
  #fleet

  constructor(fleet, index) {
    this.#fleet = fleet
    this.index = index
    this.clientId = `${fleet.prefix}-${index}`
  }

  get isRunning() {
    return this.#client !== undefined
  }

  get sent() {
    return this.#sum((stream) => stream.sent)
  }

  get acknowledged() {
    return this.#sum((stream) => stream.acknowledged)
  }

  get arrived() {
    return this.#sum((stream) => stream.arrived)
  }

  /** Publishes at QoS 1 and 2 that have not settled. */
  get open() {
    return this.streams[1].open + this.streams[2].open
  }

  start(now) {
    if (this.#client !== undefined || this.isStopping) return
    const { makeClient, broker, random, settings, journal } = this.#fleet
    const client = makeClient(
      { url: broker.url, transport: (_endpoint, options) => broker.dial(this.clientId, options) },
      {
        clientId: this.clientId,
        keepAlive: 3,
        pingTimeout: 2500,
        firstConnect: 'wait',
        // Quick, and never all at once: between half and one and a half of a delay that doubles up to 3 s.
        reconnect: {
          backoff: (attempt) => Math.min(3000, 250 * 2 ** Math.min(attempt, 5)) * (0.5 + random()),
          decide: ({ reasonCode }) => (passing.includes(reasonCode) ? 'retry' : undefined),
        },
      },
    )
    this.#client = client
    this.#latest = client
    this.isEnded = false
    // Spread over the time between two messages, as real ones would be.
    this.due = now + ((this.index * 0.618) % 1) * (1000 / settings.rate)
    client.on('state', ({ state }) => this.#enter(client, state))
    client.on('connect', ({ negotiated }) => {
      this.connects += 1
      this.negotiated = negotiated
    })
    client.on('reconnecting', () => {
      this.attempts += 1
      this.#fleet.changed(this.index)
    })
    client.on('connecterror', ({ error }) => this.#fail(error, 'no connection'))
    client.on('disconnect', ({ cause }) => cause && this.#fail(cause, 'connection lost'))
    client.on('sessionlost', ({ republished, rejected }) => {
      journal.note('session lost by the broker')
      for (const _ of republished) journal.note('message published anew after a lost session')
      for (const _ of rejected) journal.note('message rejected after a lost session: it may have arrived')
    })
    client.closed.then((error) => {
      if (error === undefined || this.#client !== client) return
      this.#client = undefined
      this.isEnded = true
      this.#fail(error, 'device ended')
    })
    client.connect().catch(() => undefined)
    journal.note('device started')
  }

  /** Ends in order, with what is in flight. */
  async stop() {
    const client = this.#client
    if (client === undefined) return
    this.#client = undefined
    this.isStopping = true
    await client.drain({ timeout: stopWithin })
    this.isStopping = false
  }

  /** Publishes what is due. */
  run(now) {
    if (this.#client === undefined) return
    const period = 1000 / this.#fleet.settings.rate
    // After a standstill it goes on at its rate, and makes up for nothing.
    if (this.due < now - 4 * period - 250) this.due = now
    // The rate may have risen.
    this.due = Math.min(this.due, now + period)
    for (; this.due <= now; this.due += period) this.#publish(now)
  }

  #publish(now) {
    const { qos, payload } = this.#fleet.settings
    const stream = this.streams[qos]
    if (qos === 0) this.#post(stream, encode(payload, stream.next(), now))
    else if (this.open >= mostOpen) this.heldBack += 1
    else this.#send(stream, qos, encode(payload, stream.sent + 1, now))
  }

  #post(stream, bytes) {
    if (this.#client.post(this.#topic(0), bytes)) return
    stream.takeBack()
    this.heldBack += 1
  }

  // Not awaited: several messages are under way at a time.
  #send(stream, qos, bytes) {
    const number = stream.next()
    this.#client.publish(this.#topic(qos), bytes, { qos }).then(
      () => stream.acknowledge(number, this.#fleet.clock.now()),
      (error) => {
        stream.fail(number, error.outcome)
        this.lastError = error.code
      },
    )
  }

  // The one before may still be on its way out.
  #enter(client, state) {
    if (client !== this.#latest) return
    this.state = state
    this.#fleet.changed(this.index)
  }

  // The QoS stands in it: a broker may hand the message on at a lower one.
  #topic(qos) {
    return `${this.#fleet.prefix}/${this.index}/${qos}`
  }

  #fail(error, what) {
    const code = error.reasonName === undefined ? error.code : `${error.code}, ${error.reasonName}`
    this.lastError = code
    this.#fleet.journal.note(`${what}: ${code}`)
    this.#fleet.changed(this.index)
  }

  #sum(figure) {
    return this.streams.reduce((sum, stream) => sum + figure(stream), 0)
  }
}
