/**
 * One simulated device: which messages are due, and what they are.
 *
 * Pure: the time is an argument, random numbers come from a seed. The same seed, times and commands
 * give the same messages.
 */
import type { QoS } from 'mqwire'
import {
  type CommandPlan,
  type Description,
  type DeviceKind,
  type FaultPlan,
  type MessagePlan,
  mostDevices,
  plain,
  type TopicPlan,
} from './description.js'
import { type Generator, type Moment, type Owner, type Random, seeded } from './generators.js'
import { DescriptionError, type Json, type Scalar, shown } from './reading.js'

/** A message of a device. */
export interface DeviceMessage {
  /** Milliseconds since the simulation began. */
  readonly at: number
  readonly topic: string
  readonly payload: string | Uint8Array
  readonly qos: QoS
  readonly retain: boolean
  readonly contentType: string | undefined
}

/** What came of a command. */
export interface CommandResult {
  /** The payload for the Response Topic. */
  readonly reply: string
  /** Why the command was refused. */
  readonly problem: string | undefined
  /** Messages of the new state. */
  readonly messages: readonly DeviceMessage[]
}

/** What all devices of a simulation share. */
export interface Setting {
  readonly seed: number
  /** Milliseconds since 1970 at which the simulation begins. */
  readonly began: number
  /** Put before each topic and each client identifier. */
  readonly prefix: string
}

type MakeMessage = (moment: Moment) => DeviceMessage

interface TopicRun {
  readonly plan: TopicPlan
  readonly make: MakeMessage
  readonly first: number
  count: number
  next: number
}

/** Most characters of a state that a command sets. */
const longestState = 1000

/** The times of one fault. They are asked for in order. */
class FaultTimes {
  readonly plan: FaultPlan
  readonly #random: Random
  #start = 0
  #end = 0

  constructor(plan: FaultPlan, random: Random) {
    this.plan = plan
    this.#random = random
  }

  isActive(at: number): boolean {
    while (at >= this.#end) {
      this.#start = this.#end + this.plan.every * (0.5 + this.#random())
      this.#end = this.#start + this.plan.for
    }
    return at >= this.#start
  }
}

/** A device. */
export class SimulatedDevice {
  /** The client identifier. */
  readonly id: string
  readonly will: DeviceMessage | undefined
  /** By topic, what a message to it does, and its answer. */
  readonly commands: ReadonlyMap<string, { plan: CommandPlan; reply: Generator | undefined }>
  /** True for a device that a fault can take off the network. */
  readonly losesConnection: boolean
  readonly #kind: DeviceKind
  readonly #setting: Setting
  readonly #state: Map<string, Scalar>
  readonly #topics: readonly TopicRun[]
  readonly #online: MakeMessage | undefined
  readonly #faults: readonly FaultTimes[]
  readonly #garbage: Random
  readonly #named: Owner['named']

  /** `index` counts the devices of a kind from 1. */
  constructor(kind: DeviceKind, index: number, setting: Setting) {
    this.#kind = kind
    this.#setting = setting
    this.#state = new Map(kind.state)
    const fixed = new Map<string, Scalar>([
      ['index', index],
      ['name', kind.name],
    ])
    const values = new Map<string, Generator>()
    const random = (purpose: string): Random =>
      seeded(`${setting.seed}/${fixed.get('id')}/${purpose}`)
    const named = (name: string, moment: Moment): Json =>
      fixed.get(name) ?? values.get(name)?.(moment) ?? this.#state.get(name) ?? null
    const owner: Owner = { random, index, named }
    const begin = { at: 0, date: setting.began, fault: undefined }
    const id = kind.id(owner)(begin)
    fixed.set('id', id)
    this.id = `${setting.prefix}${id}`
    for (const [name, maker] of kind.values) values.set(name, once(maker(owner)))
    this.#topics = kind.topics.map((plan, at) => {
      const phase = random(`phase/${at}`)()
      const first = Number.isFinite(plan.every) ? phase * plan.every : plan.every
      return { plan, make: this.#bind(plan, owner), first, count: 0, next: first }
    })
    this.#faults = kind.faults.map((plan, at) => new FaultTimes(plan, random(`fault/${at}`)))
    this.losesConnection = kind.faults.some((plan) => plan.kind === 'offline')
    this.#garbage = random('garbage')
    this.#online = kind.online && this.#bind(kind.online, owner)
    this.will = kind.will && this.#bind(kind.will, owner)(begin)
    this.commands = new Map(
      kind.commands.map((plan) => [
        `${setting.prefix}${plan.topic(owner)(begin)}`,
        { plan, reply: plan.reply?.(owner) },
      ]),
    )
    this.#named = named
  }

  /** When the next message may be due. */
  get due(): number {
    return this.#topics.reduce((least, { next }) => Math.min(least, next), Number.POSITIVE_INFINITY)
  }

  /** The next message that is due by then. */
  poll(now: number): DeviceMessage | undefined {
    for (;;) {
      const due = this.due
      if (due > now) return undefined
      const run = this.#topics.find(({ next }) => next === due) as TopicRun
      run.count += 1
      run.next = run.first + run.count * run.plan.every
      const message = this.#published(run, due)
      if (message !== undefined) return message
    }
  }

  /** True while a fault keeps the device from its connection. All due messages were polled before. */
  isOffline(now: number): boolean {
    return this.#isActive('offline', now)
  }

  /** What it publishes once it has connected. */
  connected(now: number): readonly DeviceMessage[] {
    const greeting = this.#online?.(this.#moment(now))
    return [...(greeting === undefined ? [] : [greeting]), ...this.#changed(now)]
  }

  /** A message has come; undefined when its topic is no command. */
  handle(topic: string, payload: string, now: number): CommandResult | undefined {
    const command = this.commands.get(topic)
    if (command === undefined) return undefined
    const found = this.#read(command.plan, payload)
    if (typeof found === 'string')
      return { reply: JSON.stringify({ error: found }), problem: found, messages: [] }
    const isNew = [...found].some(([key, value]) => this.#state.get(key) !== value)
    for (const [key, value] of found) this.#state.set(key, value)
    const made = command.reply?.(this.#moment(now))
    return {
      reply: plain(made ?? Object.fromEntries(this.#state)),
      problem: undefined,
      messages: isNew ? this.#changed(now) : [],
    }
  }

  /** The values that a command sets, or what is wrong with it. */
  #read(plan: CommandPlan, payload: string): ReadonlyMap<string, Scalar> | string {
    const given = parsed(payload)
    const found = new Map<string, Scalar>()
    for (const [key, source] of plan.set) {
      let value: unknown
      if ('value' in source) value = source.value
      else if (typeof given === 'object' && given !== null) {
        if (!Object.hasOwn(given, source.field)) continue
        value = (given as Readonly<Record<string, unknown>>)[source.field]
      } else if (plan.takesText) {
        const isText = typeof this.#kind.state.get(key) === 'string' && typeof given !== 'string'
        value = isText ? payload : given
      } else continue
      const problem = this.#problemOf(key, value, plan)
      if (problem !== undefined) return problem
      found.set(key, value as Scalar)
    }
    if (found.size > 0) return found
    return `nothing to set; write JSON with ${[...plan.set.keys()].join(', ')}`
  }

  #problemOf(key: string, value: unknown, { values }: CommandPlan): string | undefined {
    const initial = this.#kind.state.get(key) ?? null
    if (typeof value === 'object' && value !== null) return `${key} must not be an object`
    if (initial !== null && typeof value !== typeof initial)
      return `${key} must be a ${typeof initial}`
    if (values !== undefined && !values.includes(value as Scalar))
      return `${key} must be one of ${values.map(shown).join(', ')}`
    return String(value).length > longestState ? `${key} is too long` : undefined
  }

  #changed(now: number): DeviceMessage[] {
    return this.#topics
      .filter(({ plan }) => plan.onChange)
      .flatMap((run) => this.#published(run, now) ?? [])
  }

  #published({ plan, make }: TopicRun, at: number): DeviceMessage | undefined {
    if (this.#isActive('offline', at) || this.#isActive('silent', at)) return undefined
    const moment = this.#moment(at)
    if (plan.when !== undefined) {
      const { value: name, above, below, is } = plan.when
      const value = this.#named(name, moment)
      if (above !== undefined && !(Number(value) > above)) return undefined
      if (below !== undefined && !(Number(value) < below)) return undefined
      if (is !== undefined && value !== is) return undefined
    }
    const message = make(moment)
    if (!this.#isActive('garbage', at)) return message
    const bytes = Uint8Array.from({ length: message.payload.length }, () => this.#garbage() * 256)
    return { ...message, payload: bytes }
  }

  #bind(plan: MessagePlan, owner: Owner): MakeMessage {
    const { qos, retain, contentType } = plan
    const [topic, body] = [plan.topic(owner), plan.payload(owner)]
    return (moment) => ({
      at: moment.at,
      topic: `${this.#setting.prefix}${topic(moment)}`,
      payload: plain(body(moment)),
      qos,
      retain,
      contentType,
    })
  }

  #moment(at: number): Moment {
    const fault = (['stuck', 'spike'] as const).find((kind) => this.#isActive(kind, at))
    return { at, date: this.#setting.began + at, fault }
  }

  #isActive(kind: FaultPlan['kind'], at: number): boolean {
    return this.#faults.some((fault) => fault.plan.kind === kind && fault.isActive(at))
  }
}

/** One value for each moment, so that all messages of a moment agree. */
function once(next: Generator): Generator {
  let last: Json = null
  let time: number | undefined
  return (moment) => {
    if (moment.at !== time) last = next(moment)
    time = moment.at
    return last
  }
}

function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch {
    return payload
  }
}

/**
 * The devices of a description; with `total`, the counts are scaled to it.
 * @throws DescriptionError for an identifier that two devices have
 */
export function devicesOf(
  { devices }: Description,
  setting: Setting,
  total?: number,
): SimulatedDevice[] {
  const counts = scaled(devices, total)
  const owners = new Map<string, number>()
  return devices.flatMap((kind, at) =>
    Array.from({ length: counts[at] ?? 0 }, (_none, index) => {
      const device = new SimulatedDevice(kind, index + 1, setting)
      const other = owners.get(device.id)
      if (other !== undefined)
        throw new DescriptionError(
          `devices[${at}].id`,
          `devices[${other}] has ${shown(device.id)} as well; give each device its own`,
        )
      owners.set(device.id, at)
      return device
    }),
  )
}

/** Counts whose sum is the total, as far as a kind can have several devices. */
function scaled(kinds: readonly DeviceKind[], total: number | undefined): readonly number[] {
  if (total === undefined) return kinds.map(({ count }) => count)
  const single = kinds.filter(({ isNumbered }) => !isNumbered).length
  const many = kinds.reduce((sum, kind) => sum + (kind.isNumbered ? kind.count : 0), 0)
  const factor = Math.max(0, Math.min(total, mostDevices) - single) / Math.max(1, many)
  let before = 0
  return kinds.map((kind) => {
    if (!kind.isNumbered) return kind.count
    const from = Math.round(before * factor)
    before += kind.count
    return Math.round(before * factor) - from
  })
}
