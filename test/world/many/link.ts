/**
 * One client of the pool or the group, with its way to its broker: a network of its own that can fail, a monitor that knows the rules of the wire, and a
 * platform whose timers are counted.
 */

import { BaseClient } from '../../../src/client/client.js'
import type {
  ClientOptions,
  Endpoint,
  Payload,
  PublishOptions,
  Receipt,
} from '../../../src/client/options/index.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import { clientWith } from '../../support/defective.js'
import { Monitor } from '../monitor.js'
import { Network } from '../network.js'
import { scriptedPlatform } from '../platform.js'
import { packetLine, type Refused, refusing, throwing } from '../play.js'
import { payloadName } from '../reader.js'
import type { ManyWorld } from './world.js'

/** A client that says what it is handed. */
class TappedClient extends BaseClient {
  handing: ((payload: Payload, publish: () => Promise<Receipt>) => Promise<Receipt>) | undefined

  override publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt> {
    const publish = (): Promise<Receipt> => super.publish(topic, payload, options)
    return this.handing === undefined ? publish() : this.handing(payload, publish)
  }
}

export class Link {
  readonly name: string
  readonly clientId: string
  readonly broker: WorldBroker
  readonly network: Network
  readonly monitor: Monitor
  readonly client: BaseClient
  /** Timers of the client that have not run. */
  readonly timers: () => number

  /** @param name of the member */
  constructor(
    world: ManyWorld,
    broker: WorldBroker,
    name: string,
    endpoints: Endpoint | readonly Endpoint[],
    options: ClientOptions,
  ) {
    const { clock, random, setup, history, defect } = world
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
      setup: {
        pipe: setup.pipe,
        habit: setup.habit,
        version: 5,
        keepAlive: setup.keepAlive,
        clientId: this.clientId,
      },
      monitor: this.monitor,
      broker: { accept: (transport) => broker.memory.accept(transport), restart: () => undefined },
      report: (rule, detail) => history.report(rule, `${name}: ${detail}`),
    })
    this.monitor.onPacket = ({ way, seen }) => {
      if (history.trace !== undefined) history.note(packetLine(way, seen, name))
    }
    const lives = (): boolean => true
    const dial = this.network.dialler(lives)
    const { platform, timers } = scriptedPlatform(clock, random, dial, throwing(history), lives)
    const client = clientWith(defect, platform, endpoints, options, TappedClient)
    for (const type of ['sessionlost', 'connect'] as const)
      client.on(type, () => {
        expired = type === 'sessionlost'
      })
    client.on('state', ({ state }) => history.note(`  ${name} is ${state}`))
    client.handing = (payload, publish) => {
      const named = typeof payload === 'string' ? payload : payloadName(payload as Uint8Array)
      world.application.handleHanding(this, named)
      const handed = history.hand(named, name)
      history.note(`  ${named} is handed to ${name}`)
      const promise = publish()
      history.follow(handed.end, promise)
      return promise
    }
    this.client = client
    this.timers = timers
  }

  get over(): boolean {
    return this.client.state === 'closed'
  }
}

/** A broker, and what the world keeps of it. */
export class WorldBroker {
  readonly name: string
  readonly memory: MemoryBroker
  losses = 0

  /** @param number from 0 */
  constructor(name: string, number: number, { clock, setup, history, schedule }: ManyWorld) {
    this.name = name
    const refused = new Map<string, Refused>()
    for (const op of schedule.ops)
      if (op.do === 'publish' && op.refused !== undefined && (op.refused.at ?? number) === number)
        refused.set(`p${op.n}`, op.refused)
    this.memory = new MemoryBroker({
      clock,
      receiveMaximum: setup.brokerReceiveMaximum,
      authorizePublish: refusing(refused),
    })
    this.memory.on('hookerror', ({ error }) =>
      history.report('world', `a hook of the broker threw ${error}`),
    )
    this.memory.on('publish', ({ message: { from: clientId, payload: bytes, topic, qos } }) => {
      // What the world feeds comes from nobody.
      if (clientId === undefined) return
      const taken = {
        seq: history.next(),
        at: clock.now(),
        broker: name,
        clientId,
        name: payloadName(bytes),
        topic,
        qos,
        bytes,
      }
      history.note(`  ${name} takes ${taken.name} from ${clientId}`)
      history.taken.push(taken)
    })
  }

  restart(keepSessions: boolean): void {
    if (!keepSessions) this.losses += 1
    this.memory.restart({ keepSessions })
  }
}
