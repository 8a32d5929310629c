/**
 * What the features are run on: one broker over one transport, what it is known not to have, and the clients of one test.
 *
 * A broker's shortcomings are data with a reason, and each has a test of its own in place of the feature's.
 */
import { afterAll, beforeAll, describe, it } from 'vitest'
import { Client, type ClientOptions, type EndpointOptions, type Filters, type SubscribeOptions, type Subscription } from '../../src/client/node.js'
import type { TlsOptions } from '../../src/transport/transport.js'
import type { Broker, TransportName } from './brokers.js'
import { within } from './waiting.js'

/** One broker over one transport. */
export interface Target {
  readonly broker: 'aedes' | 'mosquitto'
  readonly transport: TransportName
  readonly start: () => Promise<Broker>
  readonly tls?: TlsOptions
  /** What every client on this broker is given, with the reason in the data. */
  readonly clientOptions?: ClientOptions
  /** By the name of the feature. */
  readonly lacks: Readonly<Record<string, Lack>>
}

/** A feature that a broker does not have. */
export interface Lack {
  readonly reason: string
  /** Shows the lack, and fails when the broker has the feature after all; or shows what there is instead, where it only falls short. */
  readonly shows: (world: World) => Promise<void>
}

/** One thing that client and broker must do together. */
export interface Feature {
  readonly name: string
  /** Acceptance ids and pains, and what is shown. */
  readonly title: string
  /** Ends the broker: gets one of its own. */
  readonly ownBroker?: boolean
  run(world: World): Promise<void>
}

let worlds = 0

/** The clients, topics and identifiers of one test. */
export class World {
  readonly target: Target
  readonly broker: Broker
  readonly #number = ++worlds
  readonly #clients: Client[] = []

  constructor(target: Target, broker: Broker) {
    this.target = target
    this.broker = broker
  }

  get endpoint(): EndpointOptions {
    const url = this.broker.urls[this.target.transport]
    if (url === undefined) throw new Error(`${this.target.broker} does not listen on ${this.target.transport}`)
    return this.target.tls === undefined ? { url } : { url, tls: this.target.tls }
  }

  /** A topic or filter of this test only. */
  topic(name: string): string {
    return `world-${this.#number}/${name}`
  }

  /** A client identifier of this test only. */
  id(name: string): string {
    return `world-${this.#number}-${name}`
  }

  /** A client that does not connect yet. */
  client(options: ClientOptions = {}): Client {
    const client = new Client(this.endpoint, { reconnect: false, ...this.target.clientOptions, ...options })
    this.#clients.push(client)
    return client
  }

  /** A connected client. */
  async connect(options: ClientOptions = {}): Promise<Client> {
    const client = this.client(options)
    await within(client.connect(), 'connecting')
    return client
  }

  /** Two connected clients, the second with a subscription. */
  async pair(filters: Filters, options?: SubscribeOptions): Promise<[Client, Subscription, Client]> {
    const [sender, receiver] = [await this.connect(), await this.connect()]
    return [sender, await within(receiver.subscribe(filters, options), 'subscribing'), receiver]
  }

  /** Ends every client, whatever state the test left it in. */
  end(): void {
    for (const client of this.#clients) client.destroy()
  }
}

/** Runs one feature or lack with clients that end with it. */
export async function inWorld(target: Target, broker: Broker, run: (world: World) => Promise<void>): Promise<void> {
  const world = new World(target, broker)
  try {
    await run(world)
  } finally {
    world.end()
  }
}

/** Defines the tests of all features on one target. Several run at a time: most of their time is spent waiting for the broker. */
export function suite(target: Target, features: readonly Feature[]): void {
  const known = features.map(({ name }) => name)
  for (const name of Object.keys(target.lacks)) if (!known.includes(name)) throw new Error(`no feature is called '${name}'`)
  describe(`${target.broker} over ${target.transport}`, { concurrent: true }, () => {
    let broker: Broker | undefined
    beforeAll(async () => {
      broker = await target.start()
    })
    afterAll(async () => {
      await broker?.stop()
    })
    const shared = (): Broker => {
      if (broker === undefined) throw new Error('the broker did not start')
      return broker
    }
    for (const feature of features) define(target, feature, shared)
  })
}

function define(target: Target, feature: Feature, shared: () => Broker): void {
  const lack = target.lacks[feature.name]
  const title = lack === undefined ? feature.title : `${feature.title} (not here: ${lack.reason})`
  it(title, async () => {
    if (feature.ownBroker !== true) return inWorld(target, shared(), lack?.shows ?? feature.run)
    const broker = await target.start()
    try {
      await inWorld(target, broker, lack?.shows ?? feature.run)
    } finally {
      await broker.stop()
    }
  })
}
