/**
 * The demo: simulated devices publish telemetry, one subscriber reads it with `for await`, and every message is checked for loss and repetition.
 * The dashboard of `examples/dashboard` is served for those who want to look.
 *
 * Run it with `npm start`. It brings its own broker, or uses the one that MQTT_URL names. It ends with Ctrl-C or after `--duration` seconds;
 * the exit code is 0 when everything arrived, 1 when not, 2 when the arguments are wrong. This file has the flow; start reading at `main`.
 */
import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { readArguments, UsageError, usage } from './arguments.js'
import { foreignBroker, startBroker } from './broker.js'
import { Checker, failures } from './checker.js'
import { Device } from './device.js'
import { makeFaults } from './faults.js'
import { servePage } from './page.js'
import { Reader } from './reader.js'
import { introduction, LiveLine, summary } from './report.js'
import { Stats } from './stats.js'
import { formats, makeSensor, telemetryOf } from './telemetry.js'

const qosLevels = [0, 1, 2]
/** Milliseconds that the devices may take to stop: a little more than their acknowledgements may. */
const stopWithin = 6000

const print = (text) => process.stdout.write(`${text}\n`)

/** One run: a reader and devices at a broker, and what they counted. */
class Run {
  checker
  stats = new Stats()
  reader
  devices = []
  overWebSocket = 0
  #id = randomBytes(3).toString('hex')
  #options
  #broker

  constructor(options, broker) {
    this.#options = options
    this.#broker = broker
    this.checker = new Checker(options.devices)
  }

  /** Every run has topics of its own, so that a shared broker mixes nothing up. */
  get prefix() {
    return `mqwire-demo/${this.#id}`
  }

  /** Messages that each device sent at QoS 0, 1 and 2. */
  get sent() {
    return this.devices.map((device) => device.sent)
  }

  async connect(faults, signal) {
    const { checker, stats, prefix } = this
    this.reader = await Reader.connect(this.#broker.urls[0], {
      clientId: `demo-${this.#id}-reader`,
      prefix,
      checker,
      stats,
      signal,
    })
    const indexes = Array.from({ length: this.#options.devices }, (_, index) => index)
    // Each comes to its end, so that none is forgotten when one fails.
    const outcomes = await Promise.allSettled(
      indexes.map((index) => this.#connectDevice(index, faults, signal)),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  async #connectDevice(index, faults, signal) {
    const { devices, rate } = this.#options
    const { urls, foreign } = this.#broker
    const [first, webSocket = first] = urls
    const format = formats[index % formats.length]
    // Every third device of the embedded broker comes over WebSocket.
    const url = index % 3 === 2 ? webSocket : first
    if (url !== first) this.overWebSocket += 1
    this.devices[index] = await Device.connect(url, {
      clientId: `demo-${this.#id}-${index}`,
      channel: telemetryOf(this.prefix)[format],
      device: index,
      sensor: makeSensor(index),
      rate,
      // Spread over the time between two messages, as real ones would be.
      delay: ((index / devices) * 1000) / rate,
      faults: foreign ? faults : undefined,
      signal,
    })
  }

  /** Publishes and reads until the signal aborts, and shows it. Gives the seconds that it took; rejects when a connection is lost. */
  async work(signal) {
    const start = performance.now()
    const line = new LiveLine(process.stdout)
    const halt = new AbortController()
    const silence = AbortSignal.any([signal, halt.signal])
    const timer = setInterval(() => line.show(this.#figures(performance.now() - start)), 1000)
    this.stats.recent()
    const reading = named('reader', this.reader.run()).then(() =>
      Promise.reject(new Error('the subscription ended')),
    )
    const publishing = this.devices.map((device, index) =>
      named(`device ${index}`, device.run(silence)),
    )
    try {
      await Promise.race([Promise.all(publishing), reading, overdue(silence)])
      const seconds = (performance.now() - start) / 1000
      clearInterval(timer)
      line.end()
      print('Stopping: the devices are silent, the reader takes what is under way.')
      await Promise.race([this.reader.drain(this.sent), reading])
      return seconds
    } finally {
      clearInterval(timer)
      line.end()
      halt.abort()
    }
  }

  async disconnect() {
    await Promise.all([...this.devices, this.reader].map((client) => client?.disconnect()))
  }

  #figures(elapsed) {
    const all = (figure) => qosLevels.reduce((sum, qos) => sum + figure(qos), 0)
    return {
      ...this.stats.recent(),
      seconds: Math.round(elapsed / 1000),
      received: qosLevels.map((qos) => this.checker.received(qos)),
      missing: all((qos) => this.checker.gaps(qos)),
      twice: all((qos) => this.checker.repeated(qos)),
    }
  }

  /** What came out of it, for each QoS. */
  get rows() {
    const { checker, sent } = this
    return qosLevels.map((qos) => ({
      sent: sent.reduce((sum, counts) => sum + counts[qos], 0),
      received: checker.received(qos),
      missing: checker.missing(qos, sent),
      twice: checker.repeated(qos),
    }))
  }
}

/** The same promise, saying whose failure it is. */
function named(name, promise) {
  return promise.catch((cause) => Promise.reject(new Error(name, { cause })))
}

/** Rejects when the devices take too long to stop, as they do when the broker has stopped reading. */
async function overdue(signal) {
  if (!signal.aborted)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  await sleep(stopWithin, undefined, { ref: false })
  throw new Error('the devices could not stop in time: the broker takes nothing')
}

/** A signal that aborts at the first Ctrl-C; the second one ends the process at once. */
function onInterrupt() {
  const interrupt = new AbortController()
  // Every device listens to it, while it connects.
  setMaxListeners(0, interrupt.signal)
  const handle = () => {
    if (interrupt.signal.aborted) process.exit(130)
    interrupt.abort()
  }
  process.on('SIGINT', handle).on('SIGTERM', handle)
  return interrupt.signal
}

/** Prints the outcome; true when the check was passed. */
function conclude(run, { options, broker, seconds }) {
  const { rows } = run
  const { dropped } = run.reader
  const found = failures({
    missing: rows.map((row) => row.missing),
    repeated: rows.map((row) => row.twice),
    foreign: broker.foreign,
    dropped,
  })
  print(
    summary({
      rows,
      found,
      seconds,
      devices: options.devices,
      rate: options.rate,
      latency: run.stats.latency,
      dropped,
    }),
  )
  return found.length === 0
}

async function main() {
  const options = readArguments(process.argv.slice(2), process.env)
  if (options.help) return print(usage)
  const interrupt = onInterrupt()
  const faults = makeFaults(options)
  const broker = options.url === undefined ? await startBroker(faults) : foreignBroker(options.url)
  const run = new Run(options, broker)
  const page = await servePage(options, broker)
  try {
    await run.connect(faults, interrupt)
    const { prefix, overWebSocket } = run
    print(introduction({ ...options, broker, prefix, overWebSocket, page: page.lines }))
    const { seconds: limit } = options
    const time = limit === undefined ? [] : [AbortSignal.timeout(limit * 1000)]
    const seconds = await run.work(AbortSignal.any([interrupt, ...time]))
    await run.disconnect()
    process.exitCode = conclude(run, { options, broker, seconds }) ? 0 : 1
  } catch (error) {
    if (!interrupt.aborted || error.name !== 'AbortError') throw error
    print('Stopped before everything was connected.')
  } finally {
    await run.disconnect().catch(() => {})
    await page.stop()
    await broker.stop()
  }
}

/** An error and what caused it, in one line. */
function explain(error) {
  const messages = []
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (!messages.includes(cause.message)) messages.push(cause.message)
  return messages.join(': ')
}

main().catch((error) => {
  if (error instanceof UsageError) console.error(error.message)
  else if (error.code === 'ERR_INVALID_BROKER_URL')
    console.error(`MQTT_URL: ${explain(error)}; --help shows what there is.`)
  else console.error(`The demo broke off: ${explain(error)}`)
  process.exit(error instanceof UsageError || error.code === 'ERR_INVALID_BROKER_URL' ? 2 : 1)
})
