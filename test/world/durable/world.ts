/** One run of the durable world: a device whose process dies and comes back, its disk, a broker and the network between, under virtual time. */
import { decodePublish, type PublishRecord } from '../../../src/client/durable/records.js'
import { storeError } from '../../../src/store/base/backed-store.js'
import type { StoreOperation } from '../../../src/store/base/store.js'
import type { MemoryBroker } from '../../../src/testing/broker/index.js'
import type { Defect } from '../../support/defective.js'
import {
  type Fault as DiskFault,
  SimulatedDisk,
  simulatedStore,
} from '../../unit/store/simulated-disk.js'
import { forgottenTopic, isHarsh, mannersOf } from '../habits.js'
import { Network } from '../network.js'
import { payloadOf } from '../payloads.js'
import { scriptedPlatform } from '../platform.js'
import { AnyWorld, endPatience, packetLine, patience, throwing } from '../play.js'
import { payloadName, type Seen } from '../reader.js'
import type { Fault as NetworkFault } from '../schedule.js'
import { type LowIdentifiers, makeBroker } from './broker.js'
import { Device } from './device.js'
import { checkHistory, type Fed, History, owed } from './history.js'
import {
  type Crash,
  defaultSetup,
  type Fault,
  type Op,
  type Schedule,
  type Setup,
  storeRefuses,
} from './schedule.js'
import { DiskView, type Names, WireRules } from './wire-rules.js'

/** Virtual milliseconds in which the world comes to rest where the broker goes on ending connections, each of which waits for the next. */
const longPatience = 1_200_000
/** Operations of one batch: more would be a journal that grows while the store fails. */
const mostOperations = 200
/** A process of the device: what it has dies with it. */
export interface Process {
  readonly disk: SimulatedDisk
  readonly view: DiskView
  readonly store: ReturnType<typeof simulatedStore>
  alive: boolean
  /** Records of publishes that the store refused and has not taken since, by packet identifier. */
  readonly refused: Map<number, PublishRecord>
}

export class DurableWorld extends AnyWorld<Schedule, History> {
  readonly setup: Setup
  readonly broker: MemoryBroker
  device: Device | undefined
  losses = 0
  readonly #network: Network
  readonly #names: Names = new Map()
  readonly #identifiers: LowIdentifiers
  readonly #crashes = new Map<number, Crash>()
  #process: Process
  #clients = 0
  #timers: () => number = () => 0
  #healed = false
  /** Until when the disk fails, or is slow. */
  #failing: Extract<Fault, { kind: 'store-fails' }> | undefined
  #step = 0
  /** What the store takes is deletions. */
  #full = false

  constructor(schedule: Schedule, defect?: Defect) {
    super(schedule, History, defect)
    this.setup = { ...defaultSetup, ...schedule.setup }
    const { broker, identifiers } = makeBroker(
      this.clock,
      this.setup,
      schedule.ops,
      this.history,
      () => this.#network.pipe?.reset(),
    )
    this.broker = broker
    this.#identifiers = identifiers
    this.#network = this.#makeNetwork()
    this.#process = this.#makeProcess(new SimulatedDisk())
  }

  protected check(): void {
    checkHistory(this)
  }

  told(): string[] {
    const { outgoing, fed } = this.history
    return [
      ...[...outgoing.values()].map(
        ({ name, state, error, told }) =>
          `${name}: ${state} ${error === undefined ? '' : `${error}, ${error.outcome}`} ${told ?? ''}`,
      ),
      ...[...fed.values()].map(
        ({ name, handled, ids }) =>
          `${name}: handled ${handled} times, as ${[...ids].join(' and ')}`,
      ),
      `the broker took: ${this.accepted.join(' ')}`,
    ]
  }

  /** Names of the messages of the device that the broker took over, in order. */
  get accepted(): readonly string[] {
    return this.broker.accepted
      .filter(({ clientId, topic }) => clientId === 'device' && topic !== forgottenTopic)
      .map(({ payload }) => payloadName(payload))
  }

  // Phases

  protected async phases(): Promise<void> {
    this.#plan()
    this.clock.onQuiet = () => this.#handleMoment('timer')
    this.#start(false)
    await this.clock.advance(this.schedule.span)
    await this.#heal()
    await this.#end()
  }

  #plan(): void {
    for (const fault of this.schedule.faults) {
      if (fault.kind === 'crash' && fault.moment !== undefined)
        this.#crashes.set(fault.moment, fault)
      else this.clock.setTimer(() => this.#strike(fault), fault.at ?? 0)
    }
    for (const op of this.schedule.ops) this.clock.setTimer(() => this.#perform(op), op.at)
  }

  async #heal(): Promise<void> {
    this.history.note('HEALED')
    this.#healed = true
    this.#failing = undefined
    this.#step = 0
    this.#full = false
    this.#network.heal()
    this.clock.onQuiet = () => this.#atRest()
    await this.clock.advance(isHarsh(this.setup.habit) ? longPatience : patience)
    this.clock.onQuiet = undefined
    const { device } = this
    if (device === undefined)
      return this.report('rest', 'no process runs although everything has healed')
    for (const what of this.#restless()) this.report('rest', what)
    device.checkRecovered(true)
    // Until the server is known to have read every acknowledgement: a link that is dead has to be found out first.
    this.clock.onQuiet = () => this.#left.length === 0
    await this.clock.advance(this.setup.keepAlive * 6000 + endPatience)
    this.clock.onQuiet = undefined
    if (this.#left.length > 0) this.report('left', `in the store: ${this.#left.join(', ')}`)
  }

  async #end(): Promise<void> {
    const { device } = this
    if (device === undefined) return
    let ended = false
    void device.stop('disconnect').then(() => {
      ended = true
    })
    await this.clock.advance(endPatience)
    if (!ended) this.report('end', 'disconnect() and close() of the queue do not end')
    for (const what of device.pending) this.report('pending', `${what} is pending after the end`)
    if (this.#timers() > 0) this.report('leak', `${this.#timers()} timers are left after the end`)
  }

  #atRest(): boolean {
    return this.clock.now() > this.schedule.span + 300 && this.#restless().length === 0
  }

  #restless(): string[] {
    const { device, history } = this
    if (device === undefined) return ['no process runs']
    const session = this.broker.sessions.get('device')
    const { state, outbound } = device.client
    const { queue, pending, restored, recovered, connected } = device
    return [
      ...(state === 'connected' ? [] : [`the client is ${state}`]),
      ...(outbound.size > 0 ? [`${outbound.size} publishes wait`] : []),
      ...(this.setup.queue === 'shared' && queue === undefined ? ['the queue is not open'] : []),
      ...((queue?.size ?? 0) > 0 ? [`${queue?.size} entries are queued`] : []),
      ...[...pending].map((what) => `${what} is pending`),
      ...(recovered.length < (connected?.recovered?.outbound ?? restored.length)
        ? ['recovered publishes are under way']
        : []),
      ...((session?.inflight ?? 0) + (session?.queued ?? 0) > 0
        ? ['the broker has messages for the device']
        : []),
      ...[...history.fed.values()]
        .filter((fed) => owed(this, fed))
        .map(({ name }) => `${name} was never handled`),
    ]
  }

  get #left(): string[] {
    // Whoever dies before he has written down that a session is lost, never hears of it.
    // Nor does it hear more on a connection that ends before a ping.
    const inbound =
      this.setup.keepAlive > 0 &&
      this.losses === 0 &&
      !mannersOf(this.setup.habit).includes('dies-young')
    return [...this.#process.view.entries.keys()].filter(
      (key) =>
        key !== 'c/device/m' &&
        key !== 'q/q/m' &&
        !key.startsWith('q/q/d/') &&
        (inbound || !key.startsWith('c/device/i/')),
    )
  }

  // What happens

  #perform(op: Op): void {
    const { device, history } = this
    if (history.trace !== undefined) history.note(`op ${JSON.stringify(op)}`)
    if (op.do === 'feed') return this.#feed(op)
    if (device === undefined || !this.#process.alive) return
    if (op.do === 'publish' || op.do === 'enqueue') return void device.publish(op)
    if (op.do === 'reconnect')
      return void device.client.reconnect({ force: true }).catch(() => undefined)
    if (op.do === 'replace' && !device.stopping) void this.#replace(device, op)
  }

  #feed(op: Extract<Op, { do: 'feed' }>): void {
    const name = `f${op.n}`
    if (this.history.fed.has(name)) return
    const wanted = op.qos > 0 && (this.broker.sessions.get('device')?.subscriptions.length ?? 0) > 0
    const fed: Fed = {
      op,
      name,
      losses: wanted ? this.losses : undefined,
      ids: new Set(),
      handed: 0,
      handled: 0,
    }
    this.history.fed.set(name, fed)
    this.broker.publish({ topic: op.topic, payload: payloadOf(name, op.size), qos: op.qos })
  }

  async #replace(device: Device, { how, delay }: Extract<Op, { do: 'replace' }>): Promise<void> {
    const process = this.#process
    await device.stop(how)
    if (!process.alive) return
    device.checkRecovered(false)
    this.device = undefined
    if (delay > 0) await this.sleep(process, delay)
    if (process.alive) this.#start(true)
  }

  #strike(fault: Fault): void {
    if (this.#healed) return
    this.history.note(`FAULT ${JSON.stringify(fault)}`)
    if (fault.kind === 'crash') return this.#crash(fault, true)
    if (fault.kind === 'store-fails') this.#failing = fault
    if (fault.kind === 'store-slow') this.#step = fault.step
    if (fault.kind === 'store-full') this.#full = true
    if (fault.kind.startsWith('store'))
      return void this.clock.setTimer(() => this.#mendStore(fault), fault.k ?? 0)
    if (fault.kind === 'restart-lose') {
      this.losses += 1
      this.#identifiers.clear()
    }
    // A CONNECT that is late would take the session from whoever came after it.
    if (fault.kind.startsWith('stall') && this.device?.client.state !== 'connected') return
    this.#network.strike(fault as NetworkFault)
  }

  #mendStore(fault: Fault): void {
    if (this.#failing === fault) this.#failing = undefined
    if (fault.kind === 'store-slow') this.#step = 0
    if (fault.kind === 'store-full') this.#full = false
  }

  // True to stop the clock.
  #handleMoment(name: string): boolean {
    if (this.#healed) return false
    const crash = this.#crashes.get(this.moments.length)
    this.moments.push(name)
    if (crash !== undefined && this.#process.alive) {
      this.history.note(`FAULT ${JSON.stringify(crash)} (${name})`)
      this.#crash(crash, !name.startsWith('disk'))
    }
    return false
  }

  // At a step of the disk the rest of the step still happens.
  #crash({ delay, kept = 0, arrives = false }: Crash, atOnce: boolean): void {
    const process = this.#process
    if (!process.alive) return
    process.alive = false
    this.device?.checkRecovered(false)
    this.device = undefined
    // On a link that is silent it would arrive when others have come.
    this.#network.kill(arrives && this.#network.pipe?.healthy === true)
    const after = (): SimulatedDisk => {
      const rest = process.disk.written.length - process.disk.synced
      return process.disk.afterCrash(
        this.setup.durability === 'os' ? rest : Math.round(rest * kept),
      )
    }
    const found = atOnce ? after() : undefined
    if (atOnce) process.disk.dead = true
    // A device comes back.
    this.clock.setTimer(() => {
      this.#process = this.#makeProcess(found ?? after())
      this.#start(false)
    }, delay)
  }

  // Processes

  #makeProcess(disk: SimulatedDisk): Process {
    const { durability } = this.setup
    const process: Process = {
      disk,
      view: new DiskView(disk, durability === 'os', 'device', this.#names),
      store: simulatedStore(disk, durability),
      alive: true,
      refused: new Map(),
    }
    const { store, refused } = process
    const { batch } = store
    store.batch = async (operations) => {
      if (operations.length > mostOperations)
        this.report('memory', `a batch of ${operations.length} operations`)
      const records = recordsOf(operations)
      // Before anybody hears of it.
      for (const record of records) refused.delete(record.packet.packetId)
      try {
        if (this.#full && operations.some(({ type }) => type === 'put')) {
          this.history.note('  store: full')
          throw storeError(Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }))
        }
        await batch.call(store, operations)
      } catch (error) {
        for (const record of records) refused.set(record.packet.packetId, record)
        throw error
      }
    }
    disk.fault = (_step, length) => this.#diskFault(process, length)
    const [least, most] = this.setup.disk
    disk.pause = () => {
      const time = Math.max(
        this.#step,
        most === 0 ? 0 : least + this.random.float() * (most - least),
      )
      return time === 0 ? Promise.resolve() : this.sleep(process, time)
    }
    return process
  }

  #diskFault(process: Process, length: number): DiskFault | undefined {
    if (!process.alive) return { code: 'crash', bytes: 0 }
    const crash = this.#healed ? undefined : this.#crashes.get(this.moments.length)
    this.#handleMoment(length > 0 ? `disk ${length}` : 'disk')
    if (crash !== undefined)
      return { code: 'crash', bytes: Math.round(length * (crash.through ?? 0)) }
    const failing = this.#failing
    if (failing === undefined || !this.random.chance(failing.p)) return undefined
    this.history.note(`  disk: ${failing.code}`)
    return { code: failing.code, bytes: this.random.below(length + 1) }
  }

  #start(dirty: boolean): void {
    const process = this.#process
    const { history } = this
    const alive = (): boolean => process.alive
    const dial = this.#network.dialler(alive)
    const platform = scriptedPlatform(this.clock, this.random, dial, throwing(history), alive)
    this.#clients += 1
    history.note(`START client ${this.#clients}`)
    this.device = new Device(this, process, platform.platform, this.#clients, dirty)
    this.#timers = platform.timers
    this.device.begin()
  }

  /** Fulfils only while the process lives. */
  sleep(process: Process, delay: number): Promise<void> {
    return new Promise(
      (resolve) => void this.clock.setTimer(() => process.alive && resolve(), delay),
    )
  }

  // Of the process that runs now.
  protected override setTimer(callback: () => void, delay: number): () => void {
    const process = this.#process
    return this.clock.setTimer(() => {
      if (process.alive) callback()
    }, delay)
  }

  // Around it

  #makeNetwork(): Network {
    const { history, setup, clock, random } = this
    const world = this
    const monitor = new WireRules({
      history,
      version: setup.version,
      inbound: setup.inbound,
      strict: setup.onSessionLost !== 'republish' && !storeRefuses(this.schedule),
      get view() {
        return world.#process.view
      },
      refused: (id) => this.#process.refused.get(id),
      alive: () => {
        const process = this.#process
        return () => process.alive
      },
      handlePacket: (way, seen) => this.#handlePacket(way, seen),
    })
    const { pipe, habit, version, keepAlive } = setup
    return new Network({
      clock,
      random,
      setup: { pipe, habit, version, keepAlive, clientId: 'device' },
      monitor,
      broker: {
        accept: (transport) => this.broker.accept(transport),
        restart: (keepSessions) => this.broker.restart({ keepSessions }),
      },
      report: (rule, detail) => history.report(rule, detail),
    })
  }

  #handlePacket(way: 'up' | 'down', seen: Seen): void {
    if (this.history.trace !== undefined) this.history.note(packetLine(way, seen))
    this.#handleMoment(`${way} ${seen.kind}`)
  }
}

function recordsOf(operations: readonly StoreOperation[]): PublishRecord[] {
  return operations.flatMap((each) =>
    each.type === 'put' && each.key.startsWith('c/device/o/')
      ? (decodePublish(each.value) ?? [])
      : [],
  )
}
