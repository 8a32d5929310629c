/**
 * One client of the pool or the group, with its way to its broker: a network of its own that can fail, a monitor that knows the rules of the wire, and a
 * platform whose timers are counted.
 */
import type { ClientOptions, Endpoint, Payload, PublishOptions, Receipt } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { clientWith, type Defect } from '../../support/defective.js'
import { printed } from '../canary.js'
import type { WorldClock } from '../clock.js'
import { Monitor } from '../monitor.js'
import { Network } from '../network.js'
import { scriptedPlatform } from '../platform.js'
import type { Random } from '../random.js'
import { payloadName, type Seen } from '../reader.js'
import type { WorldBroker } from './broker.js'
import type { History } from './history.js'
import type { Setup } from './schedule.js'

/** What is around a link. */
export interface LinkMeans {
  readonly clock: WorldClock
  readonly random: Random
  readonly setup: Setup
  readonly history: History
  readonly broker: WorldBroker
  /** Name of the member. */
  readonly name: string
  /** Told before the client gets a publish. */
  readonly handing: (link: Link, name: string) => void
  readonly defect: Defect | undefined
}

/** A client that says what it is handed. */
class TappedClient extends BaseClient {
  handing: ((payload: Payload, publish: () => Promise<Receipt>) => Promise<Receipt>) | undefined

  override publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt> {
    const publish = (): Promise<Receipt> => super.publish(topic, payload, options)
    return this.handing === undefined ? publish() : this.handing(payload, publish)
  }
}

/** A client and its way. */
export class Link {
  readonly name: string
  readonly clientId: string
  readonly broker: WorldBroker
  readonly network: Network
  readonly monitor: Monitor
  readonly client: BaseClient
  /** Timers of the client that have not run. */
  readonly timers: () => number

  constructor(means: LinkMeans, endpoints: Endpoint | readonly Endpoint[], options: ClientOptions) {
    const { clock, random, setup, history, broker, name } = means
    this.name = name
    this.clientId = options.clientId ?? ''
    this.broker = broker
    let expired = false
    this.monitor = new Monitor({
      version: 5,
      cleanStart: setup.cleanStart,
      clientId: this.clientId,
      now: () => clock.now(),
      punctual: () => true,
      expired: () => expired,
    })
    this.network = new Network({
      clock,
      random,
      setup: { pipe: setup.pipe, habit: setup.habit, version: 5, keepAlive: setup.keepAlive, clientId: this.clientId },
      monitor: this.monitor,
      broker: { accept: (transport) => broker.memory.accept(transport), restart: () => undefined },
      report: (rule, detail) => history.report(rule, `${name}: ${detail}`),
    })
    if (history.trace !== undefined) this.monitor.onPacket = ({ way, seen }) => history.note(packetLine(name, way, seen))
    const thrown = (where: string, error: unknown): void => history.report('throw', `${where} threw ${printed(error).slice(0, 300)}`)
    const { platform, timers } = scriptedPlatform(
      clock,
      random,
      this.network.dialler(() => true),
      thrown,
      () => true,
    )
    const client = clientWith(means.defect, platform, endpoints, options, TappedClient)
    client.on('sessionlost', () => {
      expired = true
    })
    client.on('connect', () => {
      expired = false
    })
    client.on('state', ({ state }) => history.note(`  ${name} is ${state}`))
    client.handing = (payload, publish) => {
      const named = typeof payload === 'string' ? payload : payloadName(payload as Uint8Array)
      means.handing(this, named)
      const handed = history.hand(named, name)
      history.note(`  ${named} is handed to ${name}`)
      const promise = publish()
      history.follow(handed.end, promise)
      return promise
    }
    this.client = client
    this.timers = timers
  }

  /** Nothing more can come of it. */
  get over(): boolean {
    return this.client.state === 'closed'
  }
}

function packetLine(name: string, way: 'up' | 'down', { kind, id, payload, qos, dup, reason, sessionPresent }: Seen): string {
  const publish = kind === 'publish' ? ` q${qos}${dup ? ' dup' : ''}` : ''
  return `${way === 'up' ? '->' : '<-'} ${name} ${kind} ${id || ''} ${payload}${publish}${reason ? ` reason ${reason}` : ''}${sessionPresent ? ' present' : ''}`
}
