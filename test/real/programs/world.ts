/**
 * What an ordinary program is given: names of its own, devices, the books, and a hand on the broker and the link, which live in the process that
 * started this one.
 *
 * Everything it waits for has a deadline that says what was waited for.
 */
import {
  Client,
  type ClientOptions,
  type Message,
  type MqttError,
  type PublishOptions,
} from '../../../src/client/node.js'
import { pause as sleep } from '../../support/pausing.js'
import type { Setup } from '../setups.js'
import { within } from '../waiting.js'
import { conclude, type Figures, Tally } from './figures.js'

/** How a device connects. What is left out is left to the defaults of the package. */
export interface DeviceOptions extends Omit<ClientOptions, 'protocolVersion'> {
  /** The session outlives the connection and the process: Clean Start 0, an hour. */
  readonly durable?: boolean
  readonly version?: 4 | 5
}

export interface ConsumeOptions {
  readonly qos: 0 | 1 | 2
  /** Handlers at a time. Default 1. */
  readonly concurrency?: number
  /** Default `listen`; else a `for await` loop, or manual acknowledgements. */
  readonly style?: 'listen' | 'loop' | 'manual'
}

type Handle = (message: Message) => unknown

/** Errors with which the other side, or the network, ends a connection. */
const byPeer: ReadonlySet<string> = new Set([
  'ERR_CONNECTION_LOST',
  'ERR_SERVER_DISCONNECT',
  'ERR_SESSION_TAKEN_OVER',
])

function described({ code, reasonCode, message }: MqttError): string {
  return `${code}${reasonCode === undefined ? '' : ` 0x${reasonCode.toString(16)}`} (${message.slice(0, 120)})`
}

function clientOptions(options: DeviceOptions): ClientOptions {
  const { durable, version, receiveMaximum, ...rest } = options
  return {
    ...rest,
    ...(durable === true && { cleanStart: false }),
    ...(durable === true && version !== 4 && { sessionExpiryInterval: 3600 }),
    ...(version !== undefined && { protocolVersion: version }),
    ...(receiveMaximum !== undefined && version !== 4 && { receiveMaximum }),
  }
}

export class Device {
  readonly #client: Client
  /** What ended the client for good, if anything did. */
  end: string | undefined
  #killed = false
  readonly #tally: Tally

  private constructor(url: string, options: DeviceOptions, tally: Tally) {
    this.#tally = tally
    const client = new Client(url, clientOptions(options))
    this.#client = client
    client.on('connect', () => {
      tally.connections += 1
    })
    client.on('disconnect', ({ cause }) => this.#handleDisconnect(cause))
    client.on('error', ({ error }) => tally.fail(`error event: ${described(error)}`))
    client.on('drop', ({ direction, count, error }) => {
      const why = error === undefined ? '' : described(error)
      if (!this.#killed) tally.fail(`drop event: ${direction} ${count} ${why}`)
    })
    client.on('unclaimed', ({ message }) => tally.fail(`unclaimed: ${message.topic}`))
    client.closed.then((error) => {
      this.end = error === undefined ? 'closed' : error.code
    })
  }

  static async connect(url: string, options: DeviceOptions, tally: Tally): Promise<Device> {
    const device = new Device(url, options, tally)
    await device.#client.connect()
    return device
  }

  publish(topic: string, payload: string | Uint8Array, options?: PublishOptions): Promise<unknown> {
    return this.#client.publish(topic, payload, options)
  }

  /** A message is acknowledged when its handler is done. Gives what ends it on the broker. */
  async consume(
    filters: string | readonly string[],
    options: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const { qos, concurrency = 1, style = 'listen' } = options
    if (style !== 'listen') return this.#read(filters, options, handle)
    const handling = await this.#client.listen(filters, handle, { qos, concurrency })
    return () => handling.unsubscribe()
  }

  respond(
    filter: string,
    { qos, concurrency = 1 }: ConsumeOptions,
    answer: (text: string) => string | Promise<string>,
  ): Promise<unknown> {
    return this.#client.respond(filter, (message) => answer(message.text()), { qos, concurrency })
  }

  async request(topic: string, payload: string, qos: 0 | 1): Promise<string> {
    return (await this.#client.request(topic, payload, qos === 0 ? {} : { qos })).text()
  }

  disconnect(): Promise<unknown> {
    return this.#client.disconnect()
  }

  /** The process is gone: no goodbye, nothing remembered. */
  kill(): void {
    this.#killed = true
    this.#client.destroy()
  }

  async #read(
    filters: string | readonly string[],
    { qos, style }: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const ack = style === 'manual' ? 'manual' : 'auto'
    const subscription = await this.#client.subscribe(filters, { qos, ack })
    const reading = (async () => {
      for await (const message of subscription) {
        await handle(message)
        if (style === 'manual') message.ack()
      }
    })()
    reading.catch((error: unknown) => {
      if (!this.#killed) this.#tally.fail(`the loop ended: ${String(error)}`)
    })
    return () => subscription.unsubscribe()
  }

  #handleDisconnect(cause: MqttError | undefined): void {
    if (cause === undefined || this.#killed) return
    if (byPeer.has(cause.code)) this.#tally.endedByPeerBecause(described(cause))
    else this.#tally.endedByUsBecause(described(cause))
  }
}

export type Order =
  | 'kill'
  | 'shut down'
  | 'live'
  | 'cut links'
  | 'stall'
  | 'go on'
  | 'shape'
  | 'doom'
  | 'doomed'

export { sleep, within }

export interface Assignment {
  readonly program: string
  readonly broker: string
  /** Where the program connects: through the tap, where there is one. */
  readonly url: string
  /** The broker itself, whatever is done to the link. */
  readonly directUrl: string
  /** Receive Maximum that receivers announce; undefined leaves the default. */
  readonly window?: number
  /** More or less work: 1 is the program as it is meant. */
  readonly scale: number
}

export interface Program {
  readonly name: string
  /** What it shows, in one line. */
  readonly title: string
  /** How the broker is set up. Default `'own'`: as it comes. */
  readonly setup?: Setup | 'own'
  /** Seconds within which it has to be done. Default 90. */
  readonly patience?: number
  /** True where the receivers' window makes a difference. */
  readonly windowed?: boolean
  /** True where the link is treated as one that carries nothing but MQTT: only over TCP. */
  readonly bare?: boolean
  run(world: World): Promise<void>
}

export class World {
  readonly assignment: Assignment
  readonly tally = new Tally()
  readonly order: (order: Order, argument?: unknown) => Promise<unknown>
  readonly #devices: Device[] = []
  readonly #unique = Math.random().toString(36).slice(2, 10)

  constructor(assignment: Assignment, order: World['order']) {
    this.assignment = assignment
    this.order = order
  }

  many(count: number): number {
    return Math.max(1, Math.round(count * this.assignment.scale))
  }

  /** A topic or filter of this program only. */
  topic(name: string): string {
    return `p${this.#unique}/${name}`
  }

  id(name: string): string {
    return `p${this.#unique}-${name}`
  }

  async connect(options: DeviceOptions = {}): Promise<Device> {
    const { url, window } = this.assignment
    const own = { ...(window !== undefined && { receiveMaximum: window }), ...options }
    const connecting = Device.connect(url, own, this.tally)
    const device = await within(connecting, 'connecting', 30_000)
    this.#devices.push(device)
    return device
  }

  connectAll(
    count: number,
    options: (index: number) => DeviceOptions = () => ({}),
  ): Promise<Device[]> {
    return Promise.all(Array.from({ length: count }, (_, index) => this.connect(options(index))))
  }

  /** Publishes a message that `receivers` have to get, and counts it as sent when the broker has it. It goes by its text, or by a name. */
  async send(
    device: Device,
    topic: string,
    message: string,
    qos: 0 | 1 | 2,
    receivers: readonly string[] = [''],
    name = message,
  ): Promise<void> {
    for (const receiver of receivers) this.tally.expect(name, receiver)
    try {
      await device.publish(topic, message, { qos })
      this.tally.sent += 1
    } catch (error) {
      this.tally.fail(`publish: ${String(error)}`)
    }
  }

  /** A handler that counts the message for a receiver, after so many milliseconds of work. */
  count(receiver = '', work = 0): (message: { text(): string }) => unknown {
    if (work === 0) return (message) => this.tally.arrived(message.text(), receiver)
    return async (message) => {
      await sleep(work)
      this.tally.arrived(message.text(), receiver)
    }
  }

  /** Waits until everything arrived, or nothing has for so long. What is missing then shows in the figures. */
  async allArrived(milliseconds = 12_000): Promise<void> {
    let [delivered, since] = [-1, performance.now()]
    while (this.tally.lost > 0 && performance.now() - since < milliseconds) {
      if (this.tally.delivered !== delivered)
        [delivered, since] = [this.tally.delivered, performance.now()]
      await sleep(25)
    }
    // What comes twice comes soon.
    await sleep(200)
  }

  /** True when it came to be in time. */
  async until(probe: () => boolean, milliseconds: number): Promise<boolean> {
    const end = performance.now() + milliseconds
    while (!probe()) {
      if (performance.now() > end) return false
      await sleep(20)
    }
    return true
  }

  async leave(): Promise<void> {
    await within(
      Promise.all(this.#devices.map((device) => device.disconnect().catch(() => undefined))),
      'leaving',
      20_000,
    ).catch((error: unknown) => this.tally.fail(String(error)))
  }

  end(): void {
    for (const device of this.#devices) device.kill()
  }
}

/** Runs a program to its end. Never throws. */
export async function runProgram(program: Program, world: World): Promise<Figures> {
  const began = performance.now()
  const { tally } = world
  process.on('unhandledRejection', (reason) => tally.fail(`unhandled rejection: ${String(reason)}`))
  process.on('uncaughtException', (error) => tally.fail(`uncaught exception: ${String(error)}`))
  try {
    await within(program.run(world), 'the whole program', (program.patience ?? 90) * 1000)
    await world.leave()
  } catch (error) {
    tally.fail(String(error))
  }
  const figures = conclude(tally, began)
  world.end()
  return figures
}
