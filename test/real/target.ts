/**
 * Runs every feature on one broker, over each transport that it has.
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
import { identities } from '../support/certificates.js'
import { type Broker, type Setup, type TransportName, transports } from './brokers.js'
import { features } from './features.js'
import type { BrokerName, Cell } from './matrix.js'
import { type Site, site } from './sites.js'
import { within } from './waiting.js'

declare module 'vitest' {
  interface TaskMeta {
    /** The cell of the matrix that the test fills. */
    interop?: Cell
  }
}

interface Target extends Pick<Site, 'version' | 'start'> {
  readonly broker: BrokerName
  readonly transport: TransportName
  readonly tls: TlsOptions
  /** What every client on this broker is given. */
  readonly clientOptions: ClientOptions
  readonly lacks: Lacks
}

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
  /** Statement identifiers, and what is shown. */
  readonly title: string
  /** Ends the broker, or may cost it something: gets one of its own. */
  readonly ownBroker?: boolean
  /** How the broker is set up. Default `'plain'`. */
  readonly setup?: Setup
  /** Where it is run: over every transport, over those that most features are run on (default), or over TCP only because the transport makes no difference. */
  readonly reach?: 'everywhere' | 'most' | 'TCP'
  /** Milliseconds that it may take, where that is more than the default. */
  readonly timeout?: number
  run(world: World): Promise<void>
}

let worlds = 0

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
    return /^(?:mqtts|wss):/.test(url) ? { url, tls } : { url }
  }

  /** A topic or filter of this test only. */
  topic(name: string): string {
    return `world-${this.#number}/${name}`
  }

  /** A client identifier of this test only. */
  id(name: string): string {
    return `world-${this.#number}-${name}`
  }

  /** A client that does not connect yet; `endpoint` where something lies between it and the broker. */
  client(options: ClientOptions = {}, endpoint: EndpointOptions = this.endpoint): Client {
    const client = new Client(endpoint, {
      reconnect: false,
      ...(options.protocolVersion === 4 ? {} : this.target.clientOptions),
      ...options,
    })
    this.#clients.push(client)
    return client
  }

  async connect(options: ClientOptions = {}): Promise<Client> {
    const client = this.client(options)
    await within(client.connect(), 'connecting')
    return client
  }

  async pair(
    filters: Filters,
    options?: SubscribeOptions,
  ): Promise<[Client, Subscription, Client]> {
    const [sender, receiver] = [await this.connect(), await this.connect()]
    return [sender, await within(receiver.subscribe(filters, options), 'subscribing'), receiver]
  }

  end(): void {
    for (const client of this.#clients) client.destroy()
  }
}

/** Defines the tests of features on one target. Several run at a time: most of their time is spent waiting for the broker. */
function suite(target: Target, run: readonly Feature[]): void {
  const { broker, transport } = target
  describe(`${broker} over ${transport}`, { concurrent: true }, () => {
    /** Brokers that several tests share, each started when it is first asked for. */
    const shared = new Map<Setup, Promise<Broker>>()
    const start = (setup: Setup): Promise<Broker> => {
      const running = shared.get(setup) ?? target.start(setup)
      shared.set(setup, running)
      return running
    }
    beforeAll(() => start('plain'))
    afterAll(async () => {
      const ended = await Promise.allSettled(shared.values())
      await Promise.all(ended.map((each) => each.status === 'fulfilled' && each.value.stop()))
    })
    for (const feature of run) define(target, feature, start)
  })
}

function define(target: Target, feature: Feature, share: (setup: Setup) => Promise<Broker>): void {
  const { broker, version, transport, lacks } = target
  const { name, setup = 'plain', ownBroker = false, timeout } = feature
  const lack = lacks[name]
  const title = lack === undefined ? feature.title : `${feature.title} (not here: ${lack.reason})`
  it(title, timeout === undefined ? {} : { timeout }, async ({ task }) => {
    const cell = { broker, version, transport, feature: name }
    task.meta.interop =
      lack === undefined
        ? { ...cell, verdict: 'works' }
        : { ...cell, verdict: lack.absent ? 'absent' : 'deviates', reason: lack.reason }
    const running = await (ownBroker ? target.start(setup) : share(setup))
    const world = new World(target, running)
    try {
      await (lack?.shows ?? feature.run)(world)
    } finally {
      world.end()
      if (ownBroker) await running.stop()
    }
  })
}

/** The features that are run: all of them, those that may depend on the transport, or the essential ones. */
const reaches: Readonly<Record<TransportName, readonly string[]>> = {
  TCP: ['everywhere', 'most', 'TCP'],
  WebSocket: ['everywhere', 'most'],
  TLS: ['everywhere'],
  'Secure WebSocket': ['everywhere'],
  'Unix socket': ['everywhere'],
}

/**
 * `lacksOf` has what the broker does not do as the standard says, by the name of the feature. A broker that cannot be had is skipped, or fails where it
 * must be had.
 */
export async function runOn(
  broker: BrokerName,
  lacksOf: (transport: TransportName) => Lacks,
  {
    over = transports,
    required = false,
  }: { over?: readonly TransportName[]; required?: boolean } = {},
): Promise<void> {
  const found = await site(broker)
  if ('missing' in found) return withoutBroker(broker, found.missing, required)
  const { version, start, clientOptions = {} } = found
  const tls = { ca: identities().authority.cert }
  for (const transport of over) {
    const lacks = lacksOf(transport)
    const unknown = Object.keys(lacks).filter(
      (name) => !features.some((each) => each.name === name),
    )
    if (unknown.length > 0) throw new Error(`no feature is called '${unknown.join()}'`)
    const own = `over ${transport}`
    const run = features.filter(({ name, reach = 'most' }) =>
      name.startsWith('over ') || lacks[own] !== undefined
        ? name === own
        : reaches[transport].includes(reach),
    )
    suite({ broker, version, transport, start, tls, clientOptions, lacks }, run)
  }
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
