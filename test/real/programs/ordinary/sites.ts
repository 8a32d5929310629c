/**
 * The brokers on which the ordinary programs are run, each as it comes, or with room for what a program leaves waiting.
 *
 * mosquitto and mochi are processes of their own; aedes and the broker of `mqwire/testing` live in this one, which is not that of the clients.
 */

import { MemoryBroker } from '../../../../src/testing/index.js'
import { listenTcp } from '../../../../src/transport/tcp.js'
import type { Listener } from '../../../../src/transport/transport.js'
import { listenWebSocket } from '../../../../src/transport/websocket-node.js'
import { artemisVersion, startArtemis } from '../../../lab/brokers/artemis.js'
import { buildGo, buildMaven } from '../../../lab/brokers/building.js'
import { hivemqVersion, startHivemq } from '../../../lab/brokers/hivemq.js'
import { mochiVersion, startMochi } from '../../../lab/brokers/mochi.js'
import { aedesSetups } from '../../aedes.js'
import {
  account,
  type Broker,
  missingForMosquitto,
  mosquittoVersion,
  startAedes,
  startMosquitto,
} from '../../brokers.js'
import { identities } from '../../identities.js'
import { installedVersion } from './versions.js'

export type SiteName = 'mosquitto' | 'mochi' | 'aedes' | 'MemoryBroker' | 'HiveMQ CE' | 'Artemis'
export type SiteSetup = 'own' | 'roomy' | 'guarded' | 'durable'

/** A kind of broker. */
export interface Site {
  readonly name: SiteName
  readonly version: string
  /** True where starting one takes so long that cells share it. */
  readonly slow?: boolean
  start(setup: SiteSetup): Promise<Broker>
}

/** Why a broker cannot be had here. */
export interface Missing {
  readonly name: SiteName
  readonly missing: string
}

const featureSetup = {
  own: 'plain',
  roomy: 'plain',
  guarded: 'guarded',
  durable: 'durable',
} as const

const mosquitto = async (): Promise<Site | Missing> => {
  const missing = missingForMosquitto()
  if (missing !== undefined) return { name: 'mosquitto', missing: `${missing} not found` }
  return {
    name: 'mosquitto',
    version: mosquittoVersion(),
    start(setup) {
      // The settings of the feature tests lift the limit of 1,000 queued messages: here it is put back where nothing says otherwise.
      if (setup === 'own') return startMosquitto({ lines: ['max_queued_messages 1000'] })
      if (setup === 'durable') return startMosquitto({ memory: 'all of it' })
      if (setup === 'guarded')
        return startMosquitto({
          passwords: { [account.username]: account.password },
          tls: identities(),
        })
      return startMosquitto()
    },
  }
}

const mochi = async (): Promise<Site | Missing> => {
  const built = await buildGo('mochi')
  if (built.missing !== undefined) return { name: 'mochi', missing: built.missing }
  const { folder } = built
  return {
    name: 'mochi',
    version: mochiVersion(),
    start: (setup) =>
      startMochi({ plain: folder, scram: '' }, featureSetup[setup], identities().server),
  }
}

const aedes = async (): Promise<Site> => ({
  name: 'aedes',
  version: installedVersion('aedes'),
  start: (setup) => startAedes(aedesSetups[featureSetup[setup]], { server: identities().server }),
})

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

  constructor(setup: SiteSetup) {
    this.#broker = new MemoryBroker({
      ...(setup === 'guarded' && {
        authenticate: ({ username, password }) =>
          username === account.username && new TextDecoder().decode(password) === account.password,
      }),
      ...((setup === 'roomy' || setup === 'durable') && room),
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

const memory = async (): Promise<Site> => ({
  name: 'MemoryBroker',
  version: installedVersion('mqwire'),
  async start(setup) {
    const broker = new ListeningMemoryBroker(setup)
    await broker.live()
    return broker
  },
})

const hivemq = async (): Promise<Site | Missing> => {
  const built = await buildMaven('hivemq')
  if (built.missing !== undefined) return { name: 'HiveMQ CE', missing: built.missing }
  const { folder } = built
  return {
    name: 'HiveMQ CE',
    version: hivemqVersion(),
    slow: true,
    start: (setup) => startHivemq(folder, featureSetup[setup], identities().server),
  }
}

const artemis = async (): Promise<Site | Missing> => {
  const built = await buildMaven('artemis')
  if (built.missing !== undefined) return { name: 'Artemis', missing: built.missing }
  const { folder } = built
  return {
    name: 'Artemis',
    version: artemisVersion(),
    slow: true,
    start: (setup) => startArtemis(folder, featureSetup[setup], identities().server),
  }
}

const all: Readonly<Record<SiteName, () => Promise<Site | Missing>>> = {
  mosquitto,
  mochi,
  aedes,
  MemoryBroker: memory,
  'HiveMQ CE': hivemq,
  Artemis: artemis,
}

/** Those that are quick to be had: what CI runs. */
export const commonSites: readonly SiteName[] = ['mosquitto', 'mochi', 'aedes', 'MemoryBroker']
export const siteNames = Object.keys(all) as SiteName[]

/** A kind of broker, built where it has to be. */
export function site(name: SiteName): Promise<Site | Missing> {
  return all[name]()
}
