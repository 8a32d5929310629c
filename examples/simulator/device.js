/**
 * One simulated device: it publishes numbered messages over its line, and keeps what became of them.
 *
 * It may be stopped and started again; its numbers go on. It never has more than 50 messages queued or unacknowledged: when the broker is away or
 * slower than the wanted rate, it holds back. Nothing here touches a page.
 */
import { Stream } from './ledger.js'
import { encode, marks } from './payload.js'

const mostOpen = 50

/** One device. `fleet` says where and what it publishes: see `Fleet`. */
export class Device {
  index
  /** Of its line, which it may share with others. */
  clientId
  /** State of the line, or `'idle'`. */
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
  #line
  // The same, and after `stop()` too.
  #latest
  #fleet

  constructor(fleet, index) {
    this.#fleet = fleet
    this.index = index
    this.clientId = fleet.clientIdOf(index)
  }

  get isRunning() {
    return this.#line !== undefined
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

  /** How many other devices use the same line. */
  get sharing() {
    return Math.max(0, (this.#line?.devices.size ?? 1) - 1)
  }

  start(now) {
    if (this.#line !== undefined || this.isStopping) return
    const line = this.#fleet.lineFor(this.clientId)
    // The one before is still on its way out.
    if (line === undefined) return
    this.#line = line
    this.#latest = line
    this.isEnded = false
    // Spread over the time between two messages, as real ones would be.
    this.due = now + ((this.index * 0.618) % 1) * (1000 / this.#fleet.settings.rate)
    line.join(this)
    this.#fleet.journal.note('device started')
  }

  /** Ends in order, with what is in flight. */
  async stop() {
    const line = this.#line
    if (line === undefined) return
    this.#line = undefined
    this.isStopping = true
    await line.leave(this)
    this.isStopping = false
  }

  /** Publishes what is due. */
  run(now) {
    if (this.#line === undefined) return
    const period = 1000 / this.#fleet.settings.rate
    // After a standstill it goes on at its rate, and makes up for nothing.
    if (this.due < now - 4 * period - 250) this.due = now
    // The rate may have risen.
    this.due = Math.min(this.due, now + period)
    for (; this.due <= now; this.due += period) this.#publish(now)
  }

  /** The line's word: its state. The line before may still be on its way out. */
  entered(line, state) {
    if (line !== this.#latest) return
    this.state = state
    this.#fleet.changed(this.index)
  }

  /** The line's word: it is connected. */
  connected(negotiated) {
    this.connects += 1
    this.negotiated = negotiated
  }

  /** The line's word: it tries again. */
  tries() {
    this.attempts += 1
    this.#fleet.changed(this.index)
  }

  /** The line's word: something failed. */
  failed(code) {
    this.lastError = code
    this.#fleet.changed(this.index)
  }

  /** The line's word: it is over, and was not stopped. */
  ended(line) {
    if (line !== this.#line) return
    this.#line = undefined
    this.isEnded = true
  }

  #publish(now) {
    const { qos } = this.#fleet.settings
    const stream = this.streams[qos]
    if (qos > 0 && this.open >= mostOpen) this.heldBack += 1
    else if (qos === 0 && this.#fleet.isMarked) this.#sendUnacknowledged(stream, now)
    else if (qos === 0) this.#post(stream, this.#makeMessage(0, stream.next(), now))
    else this.#send(stream, this.#makeMessage(qos, stream.sent + 1, now), qos)
  }

  // What a message is; with templates, its number travels in a user property.
  #makeMessage(qos, n, at) {
    const { settings, topicOf, payloadOf, isMarked, prefix, random, date } = this.#fleet
    const known = { device: this.index + 1, n, qos, at, date: date(), random, prefix }
    const payload =
      settings.payload === 'template' ? payloadOf(known) : encode(settings.payload, n, at)
    const properties = isMarked
      ? { userProperties: [marks.write({ prefix, index: this.index, qos, number: n, at })] }
      : {}
    return { topic: topicOf(known), payload, properties }
  }

  #post(stream, { topic, payload }) {
    if (this.#line.client.post(topic, payload)) return
    stream.takeBack()
    this.heldBack += 1
  }

  #sendUnacknowledged(stream, now) {
    if (this.state !== 'connected') {
      this.heldBack += 1
      return
    }
    const { topic, payload, properties } = this.#makeMessage(0, stream.next(), now)
    this.#line.client.publish(topic, payload, { qos: 0, properties }).catch((error) => {
      this.lastError = error.code
    })
  }

  // Not awaited: several messages are under way at a time.
  #send(stream, { topic, payload, properties }, qos) {
    const number = stream.next()
    this.#line.client.publish(topic, payload, { qos, properties }).then(
      () => stream.acknowledge(number, this.#fleet.clock.now()),
      (error) => {
        stream.fail(number, error.outcome)
        this.lastError = error.code
      },
    )
  }

  #sum(figure) {
    return this.streams.reduce((sum, stream) => sum + figure(stream), 0)
  }
}
