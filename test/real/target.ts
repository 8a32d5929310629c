/**
 * What the features are run on: one broker over one transport, what it is known to do otherwise, and the clients of one test.
 *
 * A broker's shortcomings are data with a reason, and each has a test of its own in place of the feature's. Every test says in its metadata which
 * cell of the matrix it is: `matrix.ts` makes the table from a report.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  Client,
  type ClientOptions,
  type EndpointOptions,
  type Filters,
  type SubscribeOptions,
  type Subscription,
} from '../../src/client/node.js'
import type { TlsOptions } from '../../src/transport/transport.js'
import type { Broker, Setup, TransportName } from './brokers.js'
import type { BrokerName, Cell } from './matrix.js'
import { within } from './waiting.js'

declare module 'vitest' {
  interface TaskMeta {
    /** The cell of the matrix that the test fills. */
    interop?: Cell
  }
}

/** One broker over one transport. */
export interface Target {
  readonly broker: BrokerName
  readonly version: string
  readonly transport: TransportName
  readonly start: (setup: Setup) => Promise<Broker>
  /** For the transports that are encrypted. */
  readonly tls?: TlsOptions
  /** What every client on this broker is given, with the reason in the data. */
  readonly clientOptions?: ClientOptions
  readonly lacks: Lacks
}

/** By the name of the feature. */
export type Lacks = Readonly<Record<string, Lack>>

/** A feature that a broker does not have, or not as the standard says. */
export interface Lack {
  readonly reason: string
  /** True when the broker says, or need not say, that it does not offer it; else it deviates. */
  readonly absent?: true
  /** Shows the lack, and fails when the broker has the feature after all; or shows what there is instead, where it only falls short. */
  readonly shows: (world: World) => Promise<void>
}

/** One thing that client and broker must do together. */
export interface Feature {
  readonly name: string
  /** Acceptance ids and pains, and what is shown. */
  readonly title: string
  /** Ends the broker, or may cost it something: gets one of its own. */
  readonly ownBroker?: boolean
  /** How the broker is set up. Default `'plain'`. */
  readonly setup?: Setup
  /** Where it is run: over every transport, over those that most features are run on (default), or over TCP only because the transport makes no difference. */
  readonly reach?: 'everywhere' | 'most' | 'TCP'
  /** Run with nothing beside it, because it leaves little of the machine. */
  readonly alone?: boolean
  /** Milliseconds that it may take, where that is more than the default. */
  readonly timeout?: number
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
    if (url === undefined)
      throw new Error(`${this.target.broker} does not listen on ${this.target.transport}`)
    const { tls } = this.target
    return tls !== undefined && /^(?:mqtts|wss):/.test(url) ? { url, tls } : { url }
  }

  /** A topic or filter of this test only. */
  topic(name: string): string {
    return `world-${this.#number}/${name}`
  }

  /** A client identifier of this test only. */
  id(name: string): string {
    return `world-${this.#number}-${name}`
  }

  /** A client that does not connect yet; to another endpoint than the broker's where there is something in between. */
  client(options: ClientOptions = {}, endpoint: EndpointOptions = this.endpoint): Client {
    const client = new Client(endpoint, {
      reconnect: false,
      ...(options.protocolVersion === 4 ? {} : this.target.clientOptions),
      ...options,
    })
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
  async pair(
    filters: Filters,
    options?: SubscribeOptions,
  ): Promise<[Client, Subscription, Client]> {
    const [sender, receiver] = [await this.connect(), await this.connect()]
    return [sender, await within(receiver.subscribe(filters, options), 'subscribing'), receiver]
  }

  /** Ends every client, whatever state the test left it in. */
  end(): void {
    for (const client of this.#clients) client.destroy()
  }
}

/** Runs one feature or lack with clients that end with it. */
export async function inWorld(
  target: Target,
  broker: Broker,
  run: (world: World) => Promise<void>,
): Promise<void> {
  const world = new World(target, broker)
  try {
    await run(world)
  } finally {
    world.end()
  }
}

/** Brokers of one target that several tests share, one for each setup; each is started when it is first asked for. */
class Shared {
  readonly #target: Target
  readonly #brokers = new Map<Setup, Promise<Broker>>()

  constructor(target: Target) {
    this.#target = target
  }

  get(setup: Setup): Promise<Broker> {
    const running = this.#brokers.get(setup) ?? this.#target.start(setup)
    this.#brokers.set(setup, running)
    return running
  }

  async stop(): Promise<void> {
    const ended = await Promise.allSettled(this.#brokers.values())
    await Promise.all(
      ended.map((each) => (each.status === 'fulfilled' ? each.value.stop() : undefined)),
    )
  }
}

/** Defines the tests of features on one target. Several run at a time: most of their time is spent waiting for the broker. */
export function suite(target: Target, features: readonly Feature[]): void {
  block(
    target,
    false,
    features.filter(({ alone = false }) => alone),
  )
  block(
    target,
    true,
    features.filter(({ alone = false }) => !alone),
  )
}

function block(target: Target, concurrent: boolean, features: readonly Feature[]): void {
  if (features.length === 0) return
  describe(`${target.broker} over ${target.transport}${concurrent ? '' : ', one at a time'}`, {
    concurrent,
  }, () => {
    const shared = new Shared(target)
    beforeAll(() => shared.get('plain'))
    afterAll(() => shared.stop())
    for (const feature of features) define(target, feature, shared)
  })
}

function cellOf(
  { broker, version, transport }: Target,
  { name }: Feature,
  lack: Lack | undefined,
): Cell {
  const cell = { broker, version, transport, feature: name }
  if (lack === undefined) return { ...cell, verdict: 'works' }
  return { ...cell, verdict: lack.absent === true ? 'absent' : 'deviates', reason: lack.reason }
}

function define(target: Target, feature: Feature, shared: Shared): void {
  const lack = target.lacks[feature.name]
  const title = lack === undefined ? feature.title : `${feature.title} (not here: ${lack.reason})`
  const { setup = 'plain', timeout } = feature
  const run = async (): Promise<void> => {
    if (feature.ownBroker !== true)
      return inWorld(target, await shared.get(setup), lack?.shows ?? feature.run)
    const broker = await target.start(setup)
    try {
      await inWorld(target, broker, lack?.shows ?? feature.run)
    } finally {
      await broker.stop()
    }
  }
  const options = timeout === undefined ? {} : { timeout }
  it(title, options, async ({ task }) => {
    task.meta.interop = cellOf(target, feature, lack)
    await run()
  })
}

/** Defines what stands for the suite of a broker that cannot be had here: a test that is skipped, with the reason printed. Where it must be had it fails. */
export function withoutBroker(
  broker: BrokerName | 'Artemis' | 'MemoryBroker',
  reason: string,
  required = false,
): void {
  console.warn(`The features are not run on ${broker}: ${reason}`)
  it(`${broker}: ${reason}`, ({ skip }) => {
    expect(required, reason).toBe(false)
    skip(reason)
  })
}
