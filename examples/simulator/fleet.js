/**
 * A fleet of simulated devices, the consumer that counts what they publish, and the figures of both.
 *
 * Knows no page and no real time: clients, clock and broker are passed in, so that the whole of it also runs under virtual time. One timer serves
 * all devices. What changes is told by index (`changed`), for a view that looks when it has time for it.
 */
import { Histogram } from '../demo/stats.js'
import { Consumer } from './consumer.js'
import { Device } from './device.js'
import { Failures } from './failures.js'
import { Journal } from './journal.js'
import { Line } from './line.js'
import { compile, filledIn, filterOf, standardPayload, standardTopic } from './template.js'

/** Milliseconds between two rounds over the devices. */
const tick = 50
/** Milliseconds for which an acknowledged message may be under way, while the consumer is connected. */
const patience = 10_000
/** Milliseconds between two looks for what is lost. */
const lookEvery = 1000
/** Milliseconds for the last messages to arrive, when the fleet stops. */
const stopWithin = 5000
/** Milliseconds after the last device was started; then a scenario begins without those that have not connected. */
const gatherWithin = 10_000
/** Milliseconds that the consumer may lag, and messages and bytes that may be on their way to it, until devices hold back: a broker drops what it cannot keep. */
const mostLag = 3000
const mostOnTheirWay = { messages: 20_000, bytes: 64 * 1024 * 1024 }
/** Messages that are acknowledged while none arrives, until that is said. */
const silent = 20
/** Faults of one run that are remembered. */
const mostFaults = 200

const nothingArrives = {
  code: 'no message arrives',
  message:
    'The broker acknowledges messages of devices, and none comes to the consumer. May its user read their topics?',
}

/**
 * What can be set, with defaults: devices, messages per second of each, their QoS and payload, and how many devices start in a second; templates, of which
 * that of the topic holds from one start to the next.
 */
export const defaults = {
  devices: 300,
  rate: 1,
  qos: 1,
  payload: 'json',
  ramp: 200,
  topic: standardTopic,
  template: standardPayload,
}

/** See the file's comment. */
export class Fleet {
  /** One for each device that ever ran. */
  devices = []
  settings = { ...defaults }
  /** `'stopped'`, `'running'` or `'stopping'`. */
  state = 'stopped'
  journal
  consumer = new Consumer(this)
  /** Latencies of the whole run, in milliseconds. */
  latency = new Histogram()
  broker
  makeClient
  clock
  random
  prefix
  /** Milliseconds since 1970. */
  date
  /** Templates: user name, password and client identifier of the devices; `consumer` has user name and password of its own, where they differ. */
  credentials = {}
  /** What the devices do, where they are those of a scenario: `{ name, seed, prefix, devices, filters }`; see `scenarioOf`. */
  scenario
  failures = new Failures()
  /** What the figures are of: when it began and ended (milliseconds since 1970), and what was done to it, with the milliseconds until all were back. */
  run = { began: undefined, ended: undefined, faults: [] }
  /** Whether messages carry a mark, by which they are known whatever their topics and payloads are. */
  isMarked = false
  /** What makes the topic and the payload of a message, and the filter (or filters) on which all of them come. */
  topicOf
  payloadOf
  filter
  /** Client id to line. */
  #lines = new Map()
  /** True while the consumer reads slower than the devices publish. */
  isBehind = false
  /** Bytes, or characters, of the largest payload. */
  largest = 0
  // When the last message arrived, and when the newest of those that arrived was sent.
  #arrivedAt = 0
  #reached = 0
  /** Called with the index of a device whose state changed. */
  changed = () => undefined
  /** Called when other devices take the place of all that were there. */
  renewed = () => undefined
  #recent = new Histogram()
  #cancel
  #target = 0
  #rampedAt = 0
  #rampRest = 0
  // Surplus devices on their way out.
  #leaving = new Set()
  #disturbedAt
  #quietUntil = 0
  #lookedAt = 0
  #stopping
  #name
  #runs = 0
  // Times when the latest device was made, and when the scenario began.
  #addedAt = 0
  #scenarioBegan

  /** `makeClient(endpoint, options)` makes a client; `clock` has `now()` and `setTimer(callback, delay)`; `name` tells this run from others. */
  constructor({ makeClient, broker, clock, random = Math.random, date = Date.now, name }) {
    this.makeClient = makeClient
    this.broker = broker
    this.clock = clock
    this.random = random
    this.#name = `simulator/${name}`
    this.prefix = this.#name
    this.date = date
    this.journal = new Journal(date)
  }

  /** Connects the consumer, then starts the devices, so many in a second: those of the scenario, where one is given. */
  async start(settings = {}, scenario = undefined) {
    if (this.state !== 'stopped') return
    this.state = 'running'
    const isOther = scenario !== undefined || this.scenario !== undefined
    this.scenario = scenario
    if (isOther) this.#renew()
    this.failures.clear()
    if (isOther || this.run.began === undefined) this.run = { began: this.date(), faults: [] }
    this.run.ended = undefined
    this.set(settings)
    this.#address()
    this.journal.announce(
      scenario === undefined ? 'fleet started' : `scenario ${scenario.name} started`,
    )
    try {
      await this.consumer.start()
    } catch (error) {
      // Stopped before it began, or refused by the broker.
      const reason = error.reasonName === undefined ? '' : `, ${error.reasonName}`
      this.journal.note(`the consumer could not start: ${error.code ?? error.name}${reason}`)
      if (this.state === 'running') this.failures.add(this.consumer, 'consumer', error)
      await this.stop()
      return
    }
    if (this.state !== 'running') return
    this.#rampedAt = this.clock.now()
    this.#round()
  }

  /** Changes settings, also while running. */
  set(settings) {
    const { topic, ...rest } = settings
    Object.assign(this.settings, rest)
    this.largest = 0
    if (topic !== undefined && this.topicOf === undefined) this.settings.topic = topic
    this.payloadOf = compile(this.settings.template)
    this.isMarked ||= this.settings.payload === 'template'
    if (this.scenario !== undefined) this.settings.devices = this.scenario.devices.length
    this.#target = this.settings.devices
  }

  /** Stops the devices with what is in flight, then the consumer. What was counted stays. */
  stop() {
    if (this.state === 'stopped') return Promise.resolve()
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined
    })
    return this.#stopping
  }

  async #stop() {
    this.state = 'stopping'
    this.#cancel?.()
    this.#cancel = undefined
    await Promise.all([...this.devices.map((device) => device.stop()), ...this.#leaving])
    await this.#settled()
    await this.consumer.stop()
    // Nothing can come any more.
    for (const stream of this.#streams(1, 2)) stream.giveUp(Number.POSITIVE_INFINITY)
    this.state = 'stopped'
    this.run.ended = this.date()
    this.topicOf = undefined
    this.credentials = {}
    const { lost, twice } = this.figures()
    this.journal.announce(`fleet stopped: ${lost} lost at QoS 1 and 2, ${twice} twice at QoS 2`)
  }

  /** The consumer's word: a report arrived. */
  arrived({ device, qos }, said) {
    this.accept({ index: device - 1, qos, number: said?.number, at: said?.at })
  }

  /** The same, for a message that says itself which it is. Somebody else may publish what looks like ours. */
  accept({ index, qos, number, at }) {
    const stream = this.devices[index]?.streams[qos]
    if (stream === undefined || !Number.isSafeInteger(number) || number < 1) return
    if (!stream.arrive(number, qos)) return
    const now = this.clock.now()
    this.#arrivedAt = now
    this.#reached = Math.max(this.#reached, Math.min(at, now))
    const took = now - at
    this.latency.record(took)
    this.#recent.record(took)
  }

  /** Remembers that something was done to the fleet, which lasts so many milliseconds, so that the time until everybody is back is told. */
  disturb(text, lasts = 0) {
    this.journal.announce(text)
    const now = this.clock.now()
    if (this.run.faults.length < mostFaults)
      this.run.faults.push({ text, at: this.date(), since: now, back: undefined })
    this.#disturbedAt ??= now
    this.#quietUntil = Math.max(this.#quietUntil, now + Math.max(lasts, 2 * tick))
  }

  /** Totals. `lost` and `twice` are the ones that must be 0; `missing0` and `repeated1` are what MQTT allows. */
  figures() {
    const total = {
      devices: 0,
      connected: 0,
      sent: 0,
      acknowledged: 0,
      arrived: 0,
      open: 0,
      awaited: 0,
      lost: 0,
      twice: 0,
      unsure: 0,
      refused: 0,
    }
    const allowed = { missing0: 0, repeated1: 0, heldBack: 0, attempts: 0 }
    for (const { streams, state, isRunning, attempts, heldBack } of this.devices) {
      if (isRunning) total.devices += 1
      if (state === 'connected') total.connected += 1
      allowed.attempts += attempts
      allowed.heldBack += heldBack
      allowed.missing0 += streams[0].sent - streams[0].arrived
      allowed.repeated1 += streams[1].repeated
      total.twice += streams[2].repeated
      for (const stream of streams) {
        total.sent += stream.sent
        total.acknowledged += stream.acknowledged
        total.arrived += stream.arrived
        total.awaited += stream.awaited
        total.lost += stream.lost
        total.unsure += stream.unsure
        total.refused += stream.refused
      }
      total.open += streams[1].open + streams[2].open
    }
    return { ...total, ...allowed }
  }

  /** Latencies since the last call, in milliseconds; undefined when nothing arrived. */
  recentLatency() {
    if (this.#recent.count === 0) return undefined
    const latency = { p50: this.#recent.percentile(0.5), p99: this.#recent.percentile(0.99) }
    this.#recent.reset()
    return latency
  }

  /** The client id of a device: where connections are fewer than devices, several have the same. */
  clientIdOf(index) {
    const number = index % this.broker.mostLinks
    const { clientId } = this.credentials
    return clientId === undefined
      ? `${this.prefix}-${number}`
      : filledIn(clientId, { device: number + 1 })
  }

  /** User name and password of a device, or of who has its identifier. */
  credentialsOf(known, { username, password } = this.credentials) {
    const given = Object.entries({ username, password }).filter(([, text]) => text !== undefined)
    return Object.fromEntries(given.map(([name, text]) => [name, filledIn(text, known)]))
  }

  consumerCredentials() {
    const known = { device: 'consumer', id: `${this.prefix}-consumer` }
    return this.credentialsOf(known, this.credentials.consumer)
  }

  /** Milliseconds since the scenario began, which it does when all devices are there. */
  get scenarioTime() {
    return this.#scenarioBegan === undefined ? 0 : this.clock.now() - this.#scenarioBegan
  }

  /** The line of this device; undefined while the one before is on its way out. */
  lineFor(device) {
    const { clientId } = device
    const line = this.#lines.get(clientId)
    if (line !== undefined && !line.isLeaving) return line
    if (line !== undefined && line.client.state !== 'closed') return undefined
    const fresh = new Line(this, device)
    this.#lines.set(clientId, fresh)
    return fresh
  }

  // Where messages go, until the fleet stops.
  #address() {
    if (this.scenario !== undefined) {
      this.filter = this.scenario.filters
      this.isMarked = true
      return
    }
    const { topic } = this.settings
    this.topicOf = compile(topic)
    this.filter = filterOf(topic, this.prefix)
    this.isMarked = topic !== standardTopic || this.settings.payload === 'template'
  }

  #round() {
    const now = this.clock.now()
    this.#ramp(now)
    this.#gather(now)
    this.#measureLag(now)
    for (const device of this.devices) device.run(now)
    this.#lookForLost(now)
    this.#lookForRecovery(now)
    this.#cancel = this.clock.setTimer(() => this.#round(), tick)
  }

  // Another scenario, or none: nothing of the run before is counted any more, should it come late.
  #renew() {
    this.#runs += 1
    this.prefix = `${this.#name}-${this.#runs}`
    this.devices = []
    this.#lines.clear()
    this.latency.reset()
    this.#recent.reset()
    this.#scenarioBegan = undefined
    this.renewed()
  }

  #gather(now) {
    if (this.scenario === undefined || this.#scenarioBegan !== undefined) return
    const { devices } = this
    if (devices.length < this.#target) return
    const isThere = ({ connects, isHalted, isEnded }) => connects > 0 || isHalted || isEnded
    if (now - this.#addedAt < gatherWithin && !devices.every(isThere)) return
    this.#scenarioBegan = now
    this.journal.announce('the scenario begins')
  }

  // Starts devices up to the number that is wanted, or stops those that are too many.
  #ramp(now) {
    this.#rampRest = Math.min(
      this.settings.ramp,
      this.#rampRest + ((now - this.#rampedAt) * this.settings.ramp) / 1000,
    )
    this.#rampedAt = now
    for (let index = 0; index < this.#target && this.#rampRest >= 1; index += 1) {
      const device = this.devices[index] ?? this.#add(index)
      if (device.isRunning || device.isStopping || device.isHalted || device.isEnded) continue
      device.start(now)
      this.#rampRest -= 1
    }
    for (const device of this.devices.slice(this.#target))
      if (device.isRunning) this.#dismiss(device)
  }

  #add(index) {
    const device = new Device(this, index)
    this.devices[index] = device
    this.#addedAt = this.clock.now()
    this.changed(index)
    return device
  }

  #dismiss(device) {
    const leaving = device.stop().finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
    this.journal.note('device stopped')
  }

  /** Stops one device by hand; it stays so until it is started by hand. */
  halt(device) {
    device.isHalted = true
    this.#dismiss(device)
  }

  resume(device) {
    // The next round starts it, if the fleet is large enough for it.
    device.isHalted = false
    device.isEnded = false
  }

  #measureLag(now) {
    const lag = now - this.#arrivedAt < mostLag ? now - this.#reached : 0
    const { messages, bytes } = mostOnTheirWay
    const count = this.#streams(1, 2).reduce((sum, { awaited, open }) => sum + awaited + open, 0)
    this.isBehind = lag > mostLag || count > messages || count * this.largest > bytes
  }

  // What was acknowledged long ago, or before the consumer's connection began, and did not come. A consumer that lags has not lost what it will read.
  #lookForLost(now) {
    const { since } = this.consumer
    if (since === undefined || now - since < patience || now - this.#lookedAt < lookEvery) return
    this.#lookedAt = now
    const reached = now - this.#arrivedAt > patience ? now : this.#reached
    for (const stream of this.#streams(1, 2))
      if (stream.awaited > 0) stream.giveUp(reached - patience)
    const { acknowledged, arrived } = this.figures()
    if (arrived === 0 && acknowledged > silent)
      this.failures.add(this.consumer, 'consumer', nothingArrives)
    else this.failures.delete(this.consumer)
  }

  #lookForRecovery(now) {
    if (this.#disturbedAt === undefined || now < this.#quietUntil) return
    const waiting =
      this.consumer.state !== 'connected' ||
      this.devices.some(
        ({ isRunning, isOffline, state }) => isRunning && !isOffline && state !== 'connected',
      )
    if (waiting) return
    this.journal.announce(
      `all connected, ${((now - this.#disturbedAt) / 1000).toFixed(1)} s after the fault`,
    )
    this.#disturbedAt = undefined
    for (const fault of this.run.faults) fault.back ??= now - fault.since
  }

  // Waits until everything that was acknowledged has arrived.
  async #settled() {
    const began = this.clock.now()
    // As long as messages come, further ones may.
    const isOver = () => this.clock.now() - Math.max(began, this.#arrivedAt) > stopWithin
    while (!isOver() && this.#streams(1, 2).some((stream) => stream.awaited > 0)) {
      await new Promise((resolve) => this.clock.setTimer(resolve, tick))
    }
  }

  #streams(...levels) {
    return this.devices.flatMap(({ streams }) => levels.map((qos) => streams[qos]))
  }
}
