/**
 * Every broker that features and programs are run on: how it is had, and started in each setup.
 *
 * Those of `slow` need Java, and mochi Go; aedes and the broker of `mqwire/testing` live in the process that starts them.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { ClientOptions } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/index.js'
import { listenTcp } from '../../src/transport/tcp.js'
import type { Listener } from '../../src/transport/transport.js'
import { listenWebSocket } from '../../src/transport/websocket-node.js'
import { artemisVersion, startArtemis } from '../lab/brokers/artemis.js'
import { buildGo, buildMaven } from '../lab/brokers/building.js'
import { hivemqVersion, startHivemq } from '../lab/brokers/hivemq.js'
import { mochiVersion, startMochi } from '../lab/brokers/mochi.js'
import { identities } from '../support/certificates.js'
import { aedesSetups } from './aedes.js'
import {
  account,
  type Broker,
  missingForMosquitto,
  mosquittoSetups,
  mosquittoVersion,
  type Setup,
  startAedes,
  startMosquitto,
} from './brokers.js'

export type SiteName = 'mosquitto' | 'mochi' | 'aedes' | 'MemoryBroker' | 'HiveMQ CE' | 'Artemis'

export interface Site {
  readonly name: SiteName
  readonly version: string
  /** True where starting one takes so long that programs share it. */
  readonly slow?: boolean
  /** What clients of the features need on this broker. */
  readonly clientOptions?: ClientOptions
  /** `'own'`: as it comes; else with room for what is left waiting. */
  start(setup: Setup | 'own'): Promise<Broker>
}

export interface Missing {
  readonly name: SiteName
  readonly missing: string
}

type Kind = Omit<Site, 'name'> | { readonly missing: string }

function installedVersion(...folders: string[]): string {
  const file = path.resolve(...folders, 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

const kinds: Readonly<Record<SiteName, () => Promise<Kind>>> = {
  async mosquitto() {
    const missing = missingForMosquitto()
    if (missing !== undefined) return { missing: `${missing} not found` }
    const own = { lines: ['max_queued_messages 1000'] }
    return {
      version: mosquittoVersion(),
      start: (setup) =>
        startMosquitto({ ...(setup === 'own' ? own : mosquittoSetups[setup]), tls: identities() }),
    }
  },

  async mochi() {
    const { folder, missing } = await buildGo('mochi')
    if (folder === undefined) return { missing }
    return {
      version: mochiVersion(),
      // See its lacks of topic aliases from the broker, and of an inbound window.
      clientOptions: { topicAliasMaximum: 0, receiveMaximum: 65_535 },
      start: (setup) => startMochi(folder, featureSetup(setup), identities().server),
    }
  },

  aedes: async () => ({
    version: installedVersion('node_modules', 'aedes'),
    // See its lacks of an inbound window.
    clientOptions: { receiveMaximum: 65_535 },
    start: (setup) => startAedes(aedesSetups[featureSetup(setup)], { server: identities().server }),
  }),

  MemoryBroker: async () => ({
    version: installedVersion(),
    async start(setup) {
      const broker = new ListeningMemoryBroker(setup)
      await broker.live()
      return broker
    },
  }),

  async 'HiveMQ CE'() {
    const built = await buildMaven('hivemq')
    if (built.missing !== undefined) return built
    const { folder } = built
    return {
      version: hivemqVersion(),
      slow: true,
      start: (setup) => startHivemq(folder, featureSetup(setup), identities().server),
    }
  },

  async Artemis() {
    const built = await buildMaven('artemis')
    if (built.missing !== undefined) return built
    const { folder } = built
    return {
      version: artemisVersion(),
      slow: true,
      start: (setup) => startArtemis(folder, featureSetup(setup), identities().server),
    }
  },
}

function featureSetup(setup: Setup | 'own'): Setup {
  return setup === 'own' ? 'plain' : setup
}

const room = {
  maxQueuedMessages: 100_000,
  maxQueuedBytes: 1_000_000_000,
  maxRetainedBytes: 1_000_000_000,
  maximumPacketSize: 100_000_000,
  maxLogBytes: 1_000_000,
}

/** The broker of `mqwire/testing` on sockets; it goes down by closing them, and remembers. */
class ListeningMemoryBroker implements Broker {
  urls: Broker['urls'] = {}
  readonly log = ''
  readonly #broker: MemoryBroker
  #listeners: Listener[] = []
  readonly #ports = { tcp: 0, ws: 0, tls: 0 }

  constructor(setup: Setup | 'own') {
    this.#broker = new MemoryBroker({
      ...(setup === 'guarded' && {
        authenticate: ({ username, password }) =>
          username === account.username && new TextDecoder().decode(password) === account.password,
      }),
      ...(setup !== 'own' && room),
    })
  }

  async live(): Promise<void> {
    const { accept } = this.#broker
    const tcp = await listenTcp({ port: this.#ports.tcp }, accept)
    const ws = await listenWebSocket(
      { port: this.#ports.ws, maximumPacketSize: 100_000_000 },
      accept,
    )
    const tls = await listenTcp({ port: this.#ports.tls, tls: identities().server }, accept)
    this.#listeners = [tcp, ws, tls]
    Object.assign(this.#ports, {
      tcp: Number(new URL(tcp.url).port),
      ws: Number(new URL(ws.url).port),
      tls: Number(new URL(tls.url).port),
    })
    this.urls = { TCP: tcp.url, WebSocket: ws.url, TLS: `mqtts://localhost:${this.#ports.tls}` }
  }

  freeze(): void {
    throw new Error('not for this broker')
  }

  async kill(): Promise<void> {
    await Promise.all(this.#listeners.splice(0).map((listener) => listener.close()))
  }

  shutDown(): Promise<void> {
    return this.kill()
  }

  async stop(): Promise<void> {
    await this.kill()
    this.#broker.close()
  }
}

export const commonSites: readonly SiteName[] = ['mosquitto', 'mochi', 'aedes', 'MemoryBroker']
export const siteNames = Object.keys(kinds) as SiteName[]

/** A kind of broker, built where it has to be. */
export async function site(name: SiteName): Promise<Site | Missing> {
  return { name, ...(await kinds[name]()) }
}
