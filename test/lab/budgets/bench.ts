/** The measured side of an attack: the client, the server's process, and what is and what is not as it should. After a failed check the scenario goes on. */
import { type ChildProcess, fork } from 'node:child_process'
import type { BaseClient } from '../../../src/client/client.js'
import { PacketReader } from '../../../src/client/connection/packet-reader.js'
import { Client } from '../../../src/client/node.js'
import type {
  ClientEvents,
  ClientOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import { pause } from '../../support/pausing.js'
import { eventNames } from '../../unit/client/event-names.js'
import type { Told } from './link.js'
import { Meter } from './meter.js'
import { nameOf, type Scenario } from './scenario.js'

/** How long the test waits for what the server tells. Milliseconds. */
const patience = 25_000

const mostEvents = 1000

/** Everything of one attack, on the measured side. */
export class Bench {
  readonly meter = new Meter()
  /** What was seen to be as it should, and what was not. */
  readonly seen: string[] = []
  readonly wrong: string[] = []
  /** What the server told, oldest first. */
  readonly #told: Told[] = []
  readonly #scenario: Scenario
  #server: ChildProcess | undefined
  readonly #clients: BaseClient[] = []
  readonly #events: { readonly type: keyof ClientEvents; readonly event: unknown }[] = []

  constructor(scenario: Scenario) {
    this.#scenario = scenario
    const { meter } = this
    // What a read needs at its most is there right after it.
    const { chunk } = PacketReader.prototype
    PacketReader.prototype.chunk = function (this: PacketReader, bytes: Uint8Array): void {
      chunk.call(this, bytes)
      meter.sample()
    }
  }

  /** Starts the server's process; gives the URL. */
  async server(): Promise<string> {
    this.#server = fork(process.argv[1] as string, ['--serve', nameOf(this.#scenario)], {
      execArgv: ['--max-old-space-size=2048'],
    })
    this.#server.on('message', (told) => this.#told.push(told as Told))
    const { port } = await this.told('listening')
    return this.#scenario.way === 'ws' ? `ws://127.0.0.1:${port}/mqtt` : `mqtt://127.0.0.1:${port}`
  }

  /** A client of that URL that ends with the attack, and does not reconnect unless its options say so. */
  client(url: string, options: ClientOptions = {}): BaseClient {
    const client = new Client(url, { reconnect: false, stats: true, ...options })
    for (const type of eventNames) client.on(type, (event) => this.#keepEvent(type, event))
    this.#clients.push(client)
    return client
  }

  /** A server, and a client that is connected to it; the measurement begins. */
  async connected(options: ClientOptions = {}): Promise<BaseClient> {
    const client = this.client(await this.server(), options)
    await client.connect()
    await this.meter.start()
    return client
  }

  /** As `connected`, with a subscription to everything. */
  async subscribed(
    options: ClientOptions = {},
    subscribe: Parameters<BaseClient['subscribe']>[1] = {},
  ): Promise<[BaseClient, Subscription]> {
    const client = this.client(await this.server(), options)
    await client.connect()
    const subscription = await client.subscribe('#', subscribe)
    await this.meter.start()
    return [client, subscription]
  }

  /** Events of one type. */
  all<K extends keyof ClientEvents>(type: K): ClientEvents[K][] {
    return this.#events
      .filter((each) => each.type === type)
      .map(({ event }) => event as ClientEvents[K])
  }

  /** The server may go on. */
  go(): void {
    this.#server?.send('go')
  }

  /** The next of what the server tells under this name; of a connection where one is named. */
  async told(what: string, number?: number, deadline = patience): Promise<Told> {
    let found = this.#find(what, number)
    const end = performance.now() + deadline
    for (; found === undefined; found = this.#find(what, number)) {
      if (performance.now() > end) throw new Error(`the server did not tell '${what}'`)
      await pause(2)
    }
    return found
  }

  /** Waits for the end of a client; gives what ended it. */
  async closed(client: BaseClient): Promise<MqttError | undefined> {
    let error: MqttError | undefined
    let ended = false
    client.closed.then((cause) => {
      error = cause
      ended = true
    })
    await this.until(() => ended, 'the end of the client')
    return error
  }

  /** Waits until something is so, looking again and again. */
  async until(is: () => boolean, what: string, deadline = patience): Promise<void> {
    const end = performance.now() + deadline
    while (!is()) {
      if (performance.now() > end) throw new Error(`waited in vain: ${what}`)
      await pause(2)
    }
  }

  /** Notes whether something is as it should be. */
  check(is: boolean, what: string, got?: unknown): void {
    if (is) this.seen.push(what)
    else this.wrong.push(got === undefined ? `not so: ${what}` : `not so: ${what} (${shown(got)})`)
  }

  /** Notes whether two things are equal. */
  same(got: unknown, wanted: unknown, what: string): void {
    this.check(JSON.stringify(got) === JSON.stringify(wanted), what, got)
  }

  /** Ends clients and server. */
  end(): void {
    for (const client of this.#clients) client.destroy()
    this.#server?.kill('SIGKILL')
  }

  // Messages are not kept: they are what is measured.
  #keepEvent(type: keyof ClientEvents, event: unknown): void {
    if (this.#events.length < mostEvents)
      this.#events.push({ type, event: type === 'unclaimed' ? undefined : event })
  }

  #find(what: string, number: number | undefined): Told | undefined {
    const broken = this.#told.find((told) => told.what === 'failed')
    if (broken !== undefined) throw new Error(`the server failed: ${String(broken['error'])}`)
    const index = this.#told.findIndex(
      (told) => told.what === what && (number === undefined || told['number'] === number),
    )
    return index < 0 ? undefined : this.#told.splice(index, 1)[0]
  }
}

function shown(value: unknown): string {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.length > 700 ? `${text.slice(0, 700)}…` : text
}
