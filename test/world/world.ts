/** One run: client, pipe, broker and application in one process under virtual time, from a schedule to its findings. */
import type { BaseClient } from '../../src/client/client.js'
import type { ClientEvents } from '../../src/client/options/index.js'
import { clientWith, type Defect } from '../support/defective.js'
import { Application } from './application.js'
import { type ModelBroker, makeBroker } from './broker.js'
import { clientOptions, endpoints } from './client-options.js'
import { isHarsh, mannersOf } from './habits.js'
import { type Call, History, type Subscribed } from './history.js'
import { checkHistory, missing } from './invariants.js'
import { detaches, isFickle, isUnheard } from './invariants-tools.js'
import { checkHeld } from './invariants-wide.js'
import { Monitor } from './monitor.js'
import { Network } from './network.js'
import { canary, printed, tells } from './payloads.js'
import { type ScriptedPlatform, scriptedPlatform } from './platform.js'
import { AnyWorld, endPatience, packetLine, patience, shownEvent, throwing } from './play.js'
import {
  defaultSetup,
  type Fault,
  type Op,
  operationsOf,
  type Schedule,
  type Setup,
} from './schedule.js'

/** Together more than keep-alive needs to find a link that died unseen. */
const probePatience = 26_300
const probes = 4
/** Milliseconds without any event after which nothing is under way. */
const longSilence = 400
/** For which a filter waits for a moment without messages, once a connection ended at it; and one more, for the last of its own turn. */
const longTrial = 1001
/** Calls of listeners within one millisecond: more are a storm. */
const mostCalls = 5000

const links = ['connect', 'connecterror', 'disconnect', 'serverdisconnect', 'reconnecting'] as const
const news = ['sessionlost', 'drop', 'stalled', 'late', 'unclaimed', 'error'] as const
const eventTypes = ['state', 'dial', ...links, ...news] as const

/** True for worlds that look for secrets in every event. */
export const isCareful = ({ seed }: Pick<Schedule, 'seed'>): boolean => seed % 8 === 0

export class World extends AnyWorld<Schedule, History> {
  readonly setup: Setup
  monitor: Monitor
  readonly broker: ModelBroker
  readonly network: Network
  application: Application
  #platform: ScriptedPlatform
  #stopped = false
  readonly #careful: boolean
  readonly sizes: ReadonlyMap<string, number>

  constructor(schedule: Schedule, defect?: Defect) {
    super(schedule, History, defect)
    this.setup = { ...defaultSetup, ...schedule.setup }
    // Half of the runs, by what leaves their schedules as they are.
    this.broker = makeBroker(
      this.setup,
      this.clock,
      () => this.network.pipe?.reset(),
      schedule.seed % 2 === 0,
    )
    this.sizes = sizesOf(schedule)
    this.monitor = new Monitor({
      ...this.setup,
      now: () => this.clock.now(),
      punctual: () => this.clock.jumps === 0,
      expired: () => this.#hasExpired(),
      gaveUp: (payload, size) =>
        size > this.setup.maxQueuedBytes &&
        this.history.published.some(
          (one) => one.payload === payload && one.call.error !== undefined,
        ),
    })
    this.network = new Network({
      clock: this.clock,
      random: this.random,
      setup: this.setup,
      monitor: this.monitor,
      broker: this.broker,
      report: (rule, detail) => this.report(rule, detail),
    })
    this.#careful = isCareful(schedule)
    this.monitor.inbound.onAcknowledged = (ack) =>
      this.history.acks.push({
        ...ack,
        seq: this.history.next(),
        connection: this.monitor.connections,
      })
    const { application, platform } = this.#start()
    this.application = application
    this.#platform = platform
  }

  protected check(): void {
    checkHistory(this)
  }

  told(): string[] {
    const outcome = ({ settled, error }: Call): string =>
      settled === 0 ? 'pending' : error === undefined ? 'fulfilled' : String(error)
    return this.history.calls.map((call) => `call ${call.what} of ${call.at} ms: ${outcome(call)}`)
  }

  now(): number {
    return this.clock.now()
  }

  get closed(): boolean {
    return this.application.client.state === 'closed'
  }

  protected async phases(): Promise<void> {
    if (this.history.trace !== undefined)
      this.monitor.onPacket = ({ way, connection, seen }) =>
        this.history.note(packetLine(way, seen, connection))
    this.#plan()
    if (!this.setup.idle) this.history.track('connect', this.application.client.connect())
    await this.clock.advance(this.schedule.span)
    await this.#heal()
    await this.#probe()
    await this.#end()
  }

  #hasExpired(): boolean {
    const last = this.history.events.findLast(
      ({ type }) => type === 'sessionlost' || type === 'connect',
    )
    return last?.type === 'sessionlost'
  }

  #plan(): void {
    const byStep = new Map<number, Fault[]>()
    for (const fault of this.schedule.faults) {
      if (fault.step !== undefined)
        byStep.set(fault.step, [...(byStep.get(fault.step) ?? []), fault])
      else if (fault.link === undefined)
        this.clock.setTimer(() => this.#strike(fault), fault.at ?? 0)
    }
    this.network.onOpen = (number) => {
      for (const fault of this.schedule.faults)
        if (fault.link === number) this.clock.setTimer(() => this.#strike(fault), fault.after ?? 0)
    }
    this.clock.onGap = (from, to) => this.#checkLive(from, to)
    this.clock.onStep = (step, name) => {
      this.moments.push(name)
      for (const fault of byStep.get(step) ?? []) this.#strike(fault)
      this.#checkBounds()
    }
    for (const op of this.schedule.ops) this.clock.setTimer(() => this.#perform(op), op.at, 'op')
  }

  #strike(fault: Fault): void {
    this.history.note(`FAULT ${JSON.stringify(fault)}`)
    this.network.strike(fault)
    if (fault.kind === 'jump') this.#platform.wake()
  }

  #perform(op: Op): void {
    if (op.do === 'destroy' || op.do === 'disconnect' || op.do === 'drain') this.#stopped = true
    this.history.note(`op ${JSON.stringify(op)}`)
    if (op.do === 'restart-process' && this.#stopped) return
    this.application.perform(op)
  }

  // Phases

  async #heal(): Promise<void> {
    this.clock.onStep = () => this.#checkBounds()
    this.network.heal()
    if (this.#stopped) return this.clock.advance(endPatience)
    this.clock.onQuiet = () => this.closed || this.#unconnected || this.#atRest()
    // It has to find out first which message or filter it is, or comes on with each connection a little.
    await this.clock.advance(isHarsh(this.setup.habit) ? patience * 8 : patience)
    this.clock.onQuiet = undefined
    // A client that was fatally refused is closed, and right so; what is not closed must be up again.
    if (this.closed || this.#unconnected) return
    const { state } = this.application.client
    if (state !== 'connected')
      this.report('I7', `the client is ${state} although the world has healed`)
    for (const call of this.#pending())
      this.report('I7', `${call.what} of ${call.at} ms is pending although the world has healed`)
    for (const payload of missing(this))
      this.report('I1', `${payload} was never delivered although its session lived on`)
    // What was made anew is on its way.
    await this.clock.advance(5000)
    if (this.application.client.state === 'connected') checkHeld(this)
  }

  get #unconnected(): boolean {
    return (
      this.setup.idle &&
      this.history.calls.every(
        ({ what, abortedBefore }) => what !== 'connect' || abortedBefore === true,
      )
    )
  }

  /** Connected, everything settled, and every message that is on its way has arrived. */
  #atRest(): boolean {
    const { client } = this.application
    if (
      client.state !== 'connected' ||
      client.outbound.size > 0 ||
      this.clock.now() <= this.schedule.span + 3000
    )
      return false
    return this.#pending().length === 0 && missing(this).length === 0
  }

  #pending(): { what: string; at: number }[] {
    return this.history.calls.filter(
      (call) => call.settled === 0 && call.process === this.history.process,
    )
  }

  async #probe(): Promise<void> {
    if (this.closed || this.#stopped || detaches(this) || isUnheard(this) || isFickle(this.setup))
      return
    // A poisoned message goes on ending connections for a while; a broker that dies young is away when most of them come.
    if (
      mannersOf(this.setup.habit).some((manner) => manner === 'poisoned' || manner === 'dies-young')
    )
      return
    this.clock.onQuiet = () => this.#deaf().length === 0
    // The link may have died unseen, and a session with it: what is lost then is sent again.
    for (let round = 1; round <= probes && this.#deaf().length > 0; round++) {
      for (const { s, filter, qos } of this.#deaf())
        this.broker.feed(topicFor(filter), `probe${s}-${round}`, qos as 0 | 1 | 2, false, 0)
      await this.clock.advance(probePatience)
    }
    this.clock.onQuiet = undefined
    if (this.closed) return
    for (const { s } of this.#deaf())
      this.report('I7', `subscription ${s} lives and gets nothing any more`)
  }

  /** Subscriptions that live and have not got a probe. */
  #deaf(): Subscribed[] {
    const { history } = this
    const heard = new Set(
      history.delivered.flatMap(({ s, process, payload }) =>
        process === history.process && payload.startsWith('probe') ? [s] : [],
      ),
    )
    return history.subscribed.filter(
      (record) =>
        record.live &&
        record.style !== 'idle' &&
        record.process === history.process &&
        !heard.has(record.s),
    )
  }

  async #end(): Promise<void> {
    if (!this.#stopped)
      this.application.perform({
        do: this.random.chance(0.3) ? 'drain' : 'disconnect',
        timeout: this.random.chance(0.3) ? 0 : 2000,
      })
    await this.clock.advance(endPatience)
    const { client } = this.application
    if (client.state !== 'closed')
      this.report('I5', `the client is ${client.state} long after its end`)
    for (const call of this.#pending())
      this.report('I5', `${call.what} of ${call.at} ms is pending after close`)
    if (this.#platform.timers() > 0)
      this.report('leak', `${this.#platform.timers()} timers are left after close`)
  }

  // Processes

  #start(): { application: Application; platform: ScriptedPlatform } {
    const { history, clock, network } = this
    const alive = (): boolean => application.alive
    const platform = scriptedPlatform(
      clock,
      this.random,
      network.dialler(alive),
      throwing(history),
      alive,
    )
    const options = clientOptions(this.setup, {
      log: (line) => this.#logged(line),
      random: this.random,
      troubled: () => !network.healed,
      date: platform.platform.date,
    })
    const client = clientWith(
      this.defect,
      platform.platform,
      endpoints(this.setup.endpoints),
      options,
    )
    const application: Application = new Application(client, this)
    this.#listen(client, application)
    return { application, platform }
  }

  restart(): void {
    const old = this.application
    old.alive = false
    this.network.kill()
    this.monitor.restart()
    for (const record of this.history.subscribed) record.live = false
    this.history.process += 1
    const { application, platform } = this.#start()
    this.application = application
    this.#platform = platform
    this.history.track('connect', application.client.connect())
  }

  #listen(client: BaseClient, application: Application): void {
    const { history } = this
    const process = history.process
    void client.closed.then((error) => history.closed.set(process, error))
    for (const type of eventTypes) {
      const listener = (event: unknown): void => {
        if (!application.alive) return
        if (history.trace !== undefined) history.note(`  event ${type} ${shownEvent(event)}`)
        history.events.push({ type, event, at: this.clock.now(), seq: history.next(), process })
        if (this.#careful) this.#search(`event ${type}`, event)
      }
      try {
        client.on(type as keyof ClientEvents, listener)
      } catch {
        // An event that this version does not know.
      }
    }
    if (this.setup.meddling) this.#meddle(client)
    if (this.setup.watch) client.on('packet', (event) => this.#search('event packet', event))
  }

  // Listeners that call back into the client, as reporting ones do.
  #meddle(client: BaseClient): void {
    let calls = 0
    let since = 0
    const report = (topic: string) => (): void => {
      calls = this.clock.now() === since ? calls + 1 : 1
      since = this.clock.now()
      if (calls > mostCalls)
        return this.report(
          'storm',
          `events told more than ${mostCalls} times within one millisecond`,
        )
      client.publish(topic, 'report').catch(() => undefined)
      // A storm of them would spend more time here than in all else.
      if (calls % 16 === 1) client.stats()
    }
    client.on('drop', report('out/drops'))
    client.on('drop', report('out/losses'))
    for (const type of ['connect', 'disconnect', 'sessionlost', 'state', 'stalled'] as const)
      client.on(type, report('out/events'))
  }

  #logged(line: string): void {
    if (line.includes(canary)) this.report('canary', 'a log line tells a secret')
  }

  #search(where: string, value: unknown): void {
    if (tells(printed(value))) this.report('canary', `${where} tells a secret`)
  }

  get passable(): boolean {
    return this.network.pipe?.healthy === true
  }

  /** True when nothing is on its way, nobody works, and nothing is wrong with the link. */
  get #quiet(): boolean {
    const { pipe, lossy } = this.network
    const { client, working } = this.application
    const { habit } = this.setup
    if (
      pipe === undefined ||
      lossy ||
      working > 0 ||
      client.state !== 'connected' ||
      isHarsh(habit)
    )
      return false
    return pipe.healthy && pipe.up.idle && pipe.down.idle
  }

  // Nothing happens for long enough that no answer can be under way: then nothing may wait for one.
  #checkLive(from: number, to: number): void {
    const { history, setup } = this
    if (to - from < longSilence + setup.pipe.latency * 2 || !this.#quiet || this.#strikes > 1)
      return
    for (const { what, at } of this.#pending()) {
      if (/^(un)?subscribe|^listen/.test(what) && this.#strikes > 0 && to - from < longTrial)
        continue
      if (/^(publish|writable|flush|post-all|unsubscribe|subscribe|listen)/.test(what))
        history.report(
          'live',
          `${what} of ${at} ms waits, and nothing happens until ${Math.round(to)} ms`,
        )
    }
    for (const { record } of this.application.subscriptions.values()) {
      const { s, drops, buffer, left } = record
      if (drops && left === 0 && record.granted > 0 && record.size() > buffer)
        history.report('I8', `subscription ${s} holds ${record.size()}, its buffer has ${buffer}`)
    }
    const { size } = this.application.client.outbound
    if (size > 0)
      history.report(
        'live',
        `${size} publishes wait, and nothing happens until ${Math.round(to)} ms`,
      )
  }

  // Connections that were lost: what was in flight with them may be held back on purpose.
  get #strikes(): number {
    return this.history.events.filter(({ type }) => type === 'disconnect').length
  }

  // I8
  #checkBounds(): void {
    const { maxQueuedMessages, overflow, brokerReceiveMaximum, version } = this.setup
    const { client } = this.application
    // What was in flight when the session was lost comes back on top.
    const inFlight = version === 5 ? brokerReceiveMaximum : 65_535
    const most = maxQueuedMessages * (overflow === 'wait' ? 2 : 1) + inFlight
    if (client.outbound.size > most)
      this.report('I8', `${client.outbound.size} publishes wait, ${most} may`)
    for (const { record } of this.application.subscriptions.values()) {
      if (record.size() > 1024 + this.setup.receiveMaximum)
        this.report('I8', `subscription ${record.s} holds ${record.size()} messages`)
    }
  }
}

// What the world's own messages are long.
function sizesOf({ ops }: Schedule): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const op of operationsOf(ops)) {
    if (op.do === 'feed') sizes.set(`f${op.n}`, op.size ?? 0)
    else if (op.do === 'publish' || op.do === 'abortable' || op.do === 'post')
      sizes.set(`p${op.n}`, op.size ?? 0)
    else if (op.do === 'post-all')
      for (let index = 0; index < op.count; index++) sizes.set(`p${op.n + index}`, op.size ?? 0)
  }
  return sizes
}

export function topicFor(filter: string): string {
  const plain = filter.startsWith('$share/') ? filter.split('/').slice(2).join('/') : filter
  return plain.replaceAll('+', 'probe').replaceAll('#', 'probe')
}
