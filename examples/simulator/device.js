/**
 * One simulated device: it publishes numbered messages over its line, and keeps what became of them.
 *
 * It may be stopped and started again; its numbers go on. It never has more than 50 messages queued or unacknowledged: when the broker is away or
 * slower than the wanted rate, it holds back. Nothing here touches a page.
 */

import { validateTopicName } from 'mqwire/wire'
import { Stream } from './ledger.js'
import { encode, marks } from './payload.js'

const mostOpen = 50
/** Messages of a scenario in one round. */
const mostInRound = 100
/** Milliseconds after which a message of a scenario is too old to be published. */
const tooOld = 5000
/** Characters of a payload that are remembered. */
const mostShown = 300

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
  /** Of a scenario: what it does; and whether that keeps it off the network now. */
  plan
  isOffline = false
  /** Commands that it took, and that it refused. */
  commands = { taken: 0, refused: 0 }
  /** Topic and beginning of the payload of the latest message. */
  latest
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
  #latestLine
  #fleet

  constructor(fleet, index) {
    this.#fleet = fleet
    this.index = index
    this.plan = fleet.scenario?.devices[index]
    this.clientId = this.plan?.id ?? fleet.clientIdOf(index)
  }

  get title() {
    return this.plan?.id ?? `Device ${this.index + 1}`
  }

  /** What stands for the names in templates of user name and password. */
  get known() {
    return { device: this.index + 1, id: this.clientId }
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
    const line = this.#fleet.lineFor(this)
    // The one before is still on its way out.
    if (line === undefined) return
    this.#line = line
    this.#latestLine = line
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
    this.isOffline = false
    await line.leave(this)
    this.isStopping = false
  }

  /** Publishes what is due. */
  run(now) {
    if (this.plan !== undefined) return this.#follow(now)
    if (this.#line === undefined) return
    const period = 1000 / this.#fleet.settings.rate
    // After a standstill it goes on at its rate, and makes up for nothing.
    if (this.due < now - 4 * period - 250) this.due = now
    // The rate may have risen.
    this.due = Math.min(this.due, now + period)
    for (; this.due <= now; this.due += period) this.#publish(this.#templated(now))
  }

  /** The line's word: its state. The line before may still be on its way out. */
  entered(line, state) {
    if (line !== this.#latestLine) return
    this.state = state
    this.#fleet.changed(this.index)
  }

  /** The line's word: it is connected. */
  connected(negotiated) {
    this.connects += 1
    this.negotiated = negotiated
    if (this.plan === undefined || !this.isRunning) return
    for (const message of this.plan.connected(this.#fleet.scenarioTime)) this.#publish(message)
  }

  /** The line's word: a command of the scenario came. */
  command({ topic, payload, properties: { responseTopic, correlationData } }) {
    const text = new TextDecoder().decode(payload)
    const result = this.plan.handle(topic, text, this.#fleet.scenarioTime)
    if (result === undefined || !this.isRunning) return
    this.commands[result.problem === undefined ? 'taken' : 'refused'] += 1
    for (const message of result.messages) this.#publish(message)
    // Topics of the broker itself are not for answers.
    if (responseTopic?.startsWith('$') !== false || validateTopicName(responseTopic) !== undefined)
      return
    const userProperties = result.problem === undefined ? [] : [['error', 'REFUSED']]
    this.#line.client
      .publish(responseTopic, result.reply, {
        qos: 1,
        properties: { correlationData, userProperties },
      })
      .catch((error) => {
        this.lastError = error.code
      })
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

  // What the scenario has for this moment.
  #follow(now) {
    const at = this.#fleet.scenarioTime
    if (at === 0) return
    for (let left = mostInRound; left > 0; left -= 1) {
      const message = this.plan.poll(at)
      if (message === undefined) break
      // Nothing is made up for: neither a standstill of the page nor the time while it was stopped.
      if (!this.isRunning) continue
      if (message.at < at - tooOld) this.heldBack += 1
      else this.#publish(message, now)
    }
    if (this.plan.losesConnection && this.plan.due > at)
      this.#setOffline(this.isRunning && this.plan.isOffline(at))
  }

  // Without DISCONNECT, as by a cut cable: the broker publishes the will.
  #setOffline(isOffline) {
    if (isOffline === this.isOffline) return
    this.isOffline = isOffline
    this.#fleet.journal.note(
      isOffline
        ? 'scenario: a device loses its network'
        : 'scenario: a device has its network again',
    )
    if (isOffline) this.#fleet.broker.links.cut((owner) => owner === this.clientId)
  }

  // A message as the templates have it.
  #templated(at) {
    const { settings, topicOf, payloadOf, prefix, random, date } = this.#fleet
    const { qos } = settings
    const n = this.streams[qos].sent + 1
    const known = { device: this.index + 1, n, qos, at, date: date(), random, prefix }
    const payload =
      settings.payload === 'template' ? payloadOf(known) : encode(settings.payload, n, at)
    return { topic: topicOf(known), payload, qos }
  }

  #publish(message, now = this.#fleet.clock.now()) {
    const { qos, topic, payload } = message
    const { isMarked } = this.#fleet
    const stream = this.streams[qos]
    const client = this.#line.client
    const isHeldBack =
      this.#fleet.isBehind ||
      (qos > 0 ? this.open >= mostOpen : isMarked && client.state !== 'connected')
    if (isHeldBack) {
      this.heldBack += 1
      return
    }
    const text = typeof payload === 'string' ? payload : `${payload.length} bytes`
    this.latest = { topic, text: text.slice(0, mostShown) }
    this.#fleet.largest = Math.max(this.#fleet.largest, payload.length)
    const number = stream.next()
    if (qos === 0 && !isMarked) {
      if (client.post(topic, payload)) return
      stream.takeBack()
      this.heldBack += 1
      return
    }
    const options = { qos, ...this.#around(message, number, now) }
    client.publish(topic, payload, options).then(
      () => qos > 0 && stream.acknowledge(number, this.#fleet.clock.now()),
      (error) => {
        if (qos > 0) stream.fail(number, error.outcome)
        this.lastError = error.code
        if (error.code === 'ERR_PUBLISH_REFUSED') this.#fleet.failures.add(this, 'message', error)
      },
    )
  }

  // Beside the payload; marked, the number travels in a user property.
  #around({ qos, retain = false, contentType }, number, at) {
    const { isMarked, prefix } = this.#fleet
    if (!isMarked) return {}
    const mark = marks.write({ prefix, index: this.index, qos, number, at })
    return { retain, properties: { userProperties: [mark], contentType } }
  }

  #sum(figure) {
    return this.streams.reduce((sum, stream) => sum + figure(stream), 0)
  }
}
