/**
 * One run of the world of many connections: a pool or a group, its brokers and the networks between, under virtual time, from a schedule to its
 * findings.
 */
import type { ClientOptions, Endpoint } from '../../../src/client/options/index.js'
import type { Defect } from '../../support/defective.js'
import { AnyWorld, endPatience, patience } from '../play.js'
import { Application } from './application.js'
import { History } from './history.js'
import { checkHistory, restless } from './invariants.js'
import { Link, WorldBroker } from './link.js'
import { defaultSetup, type Fault, type Op, type Schedule, type Setup } from './schedule.js'

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
