/**
 * One run of the world of many connections: a pool or a group, its brokers and the networks between, under virtual time, from a schedule to its findings.
 *
 * Three phases: the schedule with what goes wrong; everything heals, and all must come to rest; the end. Worlds run one after another: they take over the
 * timers of the platform.
 */
import type { ClientOptions, Endpoint } from '../../../src/client/api/index.js'
import type { Defect } from '../../support/defective.js'
import { printed } from '../canary.js'
import { WorldClock } from '../clock.js'
import { takeOverTime } from '../durable/platform-time.js'
import { Random } from '../random.js'
import { Application } from './application.js'
import { WorldBroker } from './broker.js'
import { type Finding, History } from './history.js'
import { checkHistory } from './invariants.js'
import { restless } from './invariants-rest.js'
import { Link } from './link.js'
import { defaultSetup, type Fault, type Op, type Schedule, type Setup } from './schedule.js'

/** What came of a run. */
export interface Outcome {
  readonly findings: readonly Finding[]
  readonly moments: readonly string[]
  readonly events: number
}

/** Virtual milliseconds in which a healed world must come to rest. */
const patience = 120_000
const endPatience = 15_000
const startDate = 1_700_000_000_000

let current: ManyWorld | undefined

/** Sends what nobody catches to the world that runs. To be called once for each thread. */
export function catchStrays(): void {
  process.on('unhandledRejection', (reason) => current?.history.report('unhandled', printed(reason).slice(0, 300)))
  process.on('uncaughtException', (error) => current?.history.report('throw', printed(error).slice(0, 300)))
}

/** Everything of one run. */
export class ManyWorld {
  readonly schedule: Schedule
  readonly setup: Setup
  readonly clock = new WorldClock()
  readonly random: Random
  readonly history: History
  readonly brokers: WorldBroker[] = []
  /** The clients of all members, those that have gone too. */
  readonly links: Link[] = []
  readonly application: Application
  /** Timers of the pool or the group itself. */
  timers = 0
  healed = false
  readonly defect: Defect | undefined

  /**
   * @param trace gets a line for each packet, event, operation and fault
   * @param defect what is wrong with the clients, the pool or the group, which has to be found
   */
  constructor(schedule: Schedule, trace?: (line: string) => void, defect?: Defect) {
    this.schedule = schedule
    this.defect = defect
    this.setup = setupOf(schedule)
    this.random = new Random(schedule.seed)
    this.history = new History(() => this.clock.now())
    this.history.trace = trace
    this.application = new Application(this)
  }

  /** Runs the schedule to its end. */
  async run(): Promise<Outcome> {
    current = this
    const giveBack = takeOverTime({ now: () => startDate + this.clock.now(), setTimer: (callback, delay) => this.#setTimer(callback, delay) })
    try {
      await this.#phases()
      checkHistory(this)
    } catch (error) {
      this.history.report('world', `the world itself failed: ${error instanceof Error ? error.stack : String(error)}`)
    } finally {
      giveBack()
    }
    current = undefined
    return { findings: this.history.findings, moments: [], events: this.clock.events }
  }

  /** The broker of that name, made when it is first needed. */
  broker(name: string): WorldBroker {
    const known = this.brokers.find((broker) => broker.name === name)
    if (known !== undefined) return known
    const { clock, setup, history, schedule } = this
    const made = new WorldBroker(name, this.brokers.length, { clock, setup, history, ops: schedule.ops })
    this.brokers.push(made)
    return made
  }

  /** Makes a client of a member, whose name its identifier ends with. */
  makeClient(endpoints: Endpoint | readonly Endpoint[], options: ClientOptions): Link['client'] {
    const name = (options.clientId ?? '').slice(2)
    const { clock, random, setup, history, defect } = this
    const broker = this.broker(setup.subject === 'pool' ? 'b' : name)
    const handing = (link: Link, payload: string): void => this.application.handleHanding(link, payload)
    const link = new Link({ clock, random, setup, history, broker, name, handing, defect }, endpoints, options)
    if (this.healed) link.network.heal()
    this.links.push(link)
    return link.client
  }

  async #phases(): Promise<void> {
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
    this.clock.onQuiet = () => this.clock.now() > this.schedule.span + 300 && restless(this).length === 0
    await this.clock.advance(patience)
    this.clock.onQuiet = undefined
    for (const what of restless(this)) this.history.report('rest', what)
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

  #setTimer(callback: () => void, delay: number): () => void {
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
