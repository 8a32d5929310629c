/**
 * One run of the world of many connections: a pool or a group, its brokers and the networks between, under virtual time, from a schedule to its
 * findings.
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
import { clientWith, type Defect } from '../../support/defective.js'
import { Monitor } from '../monitor.js'
import { Network } from '../network.js'
import { scriptedPlatform } from '../platform.js'
import {
  AnyWorld,
  endPatience,
  packetLine,
  patience,
  type Refused,
  refusing,
  throwing,
} from '../play.js'
import { payloadName } from '../reader.js'
import { Application } from './application.js'
import { History } from './history.js'
import { checkHistory, restless } from './invariants.js'
import { defaultSetup, type Fault, type Op, type Schedule, type Setup } from './schedule.js'

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
class WorldBroker {
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

export class ManyWorld extends AnyWorld<Schedule, History> {
  readonly setup: Setup
  readonly brokers: WorldBroker[] = []
  /** The clients of all members, those that have gone too. */
  readonly links: Link[] = []
  readonly application: Application
  /** Timers of the pool or the group itself. */
  timers = 0
  healed = false

  constructor(schedule: Schedule, defect?: Defect) {
    super(schedule, History, defect)
    this.setup = setupOf(schedule)
    this.application = new Application(this)
  }

  protected check(): void {
    checkHistory(this)
  }

  told(): string[] {
    const published = [...this.history.published.values()].map(({ name, end, ends }) => {
      const parts = [...ends].map(
        ([member, each]) => `${member}: ${each.status} ${each.code ?? ''}`,
      )
      return `${name}: ${end.status} ${end.code ?? ''} ${end.outcome ?? ''} ${parts.join(', ')}`
    })
    return [
      ...published,
      ...this.brokers.map(({ name, memory }) => `${name} took ${memory.accepted.length} messages`),
    ]
  }

  /** The broker of that name, made when it is first needed. */
  broker(name: string): WorldBroker {
    const known = this.brokers.find((broker) => broker.name === name)
    if (known !== undefined) return known
    const made = new WorldBroker(name, this.brokers.length, this)
    this.brokers.push(made)
    return made
  }

  /** Makes a client of a member, whose name its identifier ends with. */
  makeClient(endpoints: Endpoint | readonly Endpoint[], options: ClientOptions): Link['client'] {
    const name = (options.clientId ?? '').slice(2)
    const link = new Link(
      this,
      this.broker(this.setup.subject === 'pool' ? 'b' : name),
      name,
      endpoints,
      options,
    )
    if (this.healed) link.network.heal()
    this.links.push(link)
    return link.client
  }

  protected async phases(): Promise<void> {
    const { application, schedule, clock } = this
    for (const fault of schedule.faults) clock.setTimer(() => this.#strike(fault), fault.at)
    for (const op of schedule.ops) clock.setTimer(() => this.#perform(op), op.at)
    clock.onQuiet = () => {
      application.checkCounters()
      application.checkBroadcasts()
      return false
    }
    await clock.advance(schedule.span)
    await this.#heal()
    if (!application.stopped) application.end(this.setup.end, this.setup.endTimeout)
    await clock.advance(Math.max(this.setup.endTimeout, endPatience))
  }

  async #heal(): Promise<void> {
    this.history.note('HEALED')
    this.healed = true
    for (const { network } of this.links) network.heal()
    this.clock.onQuiet = () =>
      this.clock.now() > this.schedule.span + 300 && restless(this).length === 0
    await this.clock.advance(patience)
    this.clock.onQuiet = undefined
    for (const what of restless(this)) this.report('rest', what)
  }

  #perform(op: Op): void {
    if (this.history.trace !== undefined) this.history.note(`op ${JSON.stringify(op)}`)
    this.application.perform(op)
  }

  #strike(fault: Fault): void {
    if (this.healed) return
    const open = this.links.filter(({ over }) => !over)
    const link = open[fault.place % open.length]
    if (link === undefined) return
    this.history.note(`FAULT ${JSON.stringify(fault)} of ${link.name}`)
    if (!fault.kind.startsWith('restart')) return link.network.strike(fault)
    // All that lead there.
    for (const { network, broker } of open) if (broker === link.broker) network.strike(fault)
    link.broker.restart(fault.kind === 'restart-keep')
  }

  protected override setTimer(callback: () => void, delay: number): () => void {
    this.timers += 1
    let live = true
    const done = (): void => {
      if (live) this.timers -= 1
      live = false
    }
    const cancel = this.clock.setTimer(() => {
      done()
      callback()
    }, delay)
    return () => {
      done()
      cancel()
    }
  }
}

// A schedule that was made smaller may ask for a routing that there is not.
function setupOf({ setup: given }: Schedule): Setup {
  const setup = { ...defaultSetup, ...given }
  const none = setup.subject === 'pool' ? 'broadcast' : 'least-in-flight'
  return setup.routing === none ? { ...setup, routing: 'round-robin' } : setup
}
