/**
 * The description of simulated devices: JSON in, checked plans out.
 *
 * Pure: files that a description names are read by the caller.
 */
import type { QoS } from 'mqwire'
import { validateTopicName } from 'mqwire/wire'
import { generator, type Maker, type Row, type Surroundings } from './generators.js'
import {
  type Check,
  DescriptionError,
  duration,
  flag,
  list,
  named,
  number,
  object,
  oneOf,
  optional,
  type Scalar,
  scalar,
  shape,
  shown,
  text,
  whole,
  word,
} from './reading.js'

/** Most devices of one description. */
export const mostDevices = 100_000

/** Texts, and names whose values are put between them. */
export type Template = readonly (string | { readonly name: string })[]

/** A payload, or a part of it. */
export type Body =
  | { readonly is: 'value'; readonly value: Scalar }
  | { readonly is: 'text'; readonly template: Template }
  | { readonly is: 'made'; readonly maker: Maker; readonly path: string }
  | { readonly is: 'list'; readonly items: readonly Body[] }
  | { readonly is: 'object'; readonly entries: readonly (readonly [string, Body])[] }

/** A message that is not published by the clock. */
export interface MessagePlan {
  readonly topic: Template
  readonly payload: Body
  readonly qos: QoS
  readonly retain: boolean
  readonly contentType: string | undefined
}

/** A condition on a named value. */
export interface Condition {
  readonly value: string
  readonly above: number | undefined
  readonly below: number | undefined
  readonly is: Scalar | undefined
}

/** What a device publishes to one topic. */
export interface TopicPlan extends MessagePlan {
  /** Milliseconds between two messages. */
  readonly every: number | undefined
  /** Publishes after each connect, and when the state has changed. */
  readonly onChange: boolean
  readonly when: Condition | undefined
}

/** What a message to a device does. */
export interface CommandPlan {
  readonly topic: Template
  /** By key of the state: a value, or a field of the payload. */
  readonly set: ReadonlyMap<string, { readonly value: Scalar } | { readonly field: string }>
  /** A payload that is no object is the value itself. */
  readonly takesText: boolean
  readonly values: readonly Scalar[] | undefined
  /** Absent: the state. */
  readonly reply: Body | undefined
}

/** Something that goes wrong again and again. */
export interface FaultPlan {
  /** Average milliseconds between two of them. */
  readonly every: number
  readonly for: number
  readonly kind: 'offline' | 'silent' | 'stuck' | 'spike' | 'garbage'
}

/** Devices that are alike. */
export interface DeviceKind {
  readonly name: string
  readonly count: number
  readonly id: Template
  readonly state: ReadonlyMap<string, Scalar>
  readonly values: ReadonlyMap<string, { readonly maker: Maker; readonly path: string }>
  readonly topics: readonly TopicPlan[]
  readonly commands: readonly CommandPlan[]
  readonly will: MessagePlan | undefined
  readonly online: MessagePlan | undefined
  readonly faults: readonly FaultPlan[]
}

/** What a description says. */
export interface Description {
  readonly name: string
  readonly about: string
  readonly devices: readonly DeviceKind[]
}

/** Text with names in braces; braces around anything else are text. */
function template(names: readonly string[], most = 65_536): Check<Template> {
  return (value, path) =>
    text(0, most)(value, path)
      .split(/(\{[A-Za-z_][\w-]*\})/)
      .filter((part) => part !== '')
      .map((part, _index, parts) => {
        if (!/^\{[\w-]+\}$/.test(part)) return part
        const name = part.slice(1, -1)
        if (names.includes(name)) return { name }
        const where = parts.length > 1 ? ` in ${shown(value)}` : ''
        throw new DescriptionError(path, `no name ${part}${where}; allowed: ${names.join(', ')}`)
      })
}

function topicTemplate(names: readonly string[]): Check<Template> {
  const check = template(names, 1000)
  return (value, path) => {
    const parts = check(value, path)
    const sample = parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
    const problem = validateTopicName(sample)
    if (problem !== undefined) throw new DescriptionError(path, `the topic ${problem}`)
    return parts
  }
}

/** Levels of lists and objects in a payload. */
const mostLevels = 16

function body(names: readonly string[], around: Surroundings, level = 0): Check<Body> {
  return (value, path) => {
    if (value === undefined) throw new DescriptionError(path, 'is missing; a text or an object')
    if (level > mostLevels)
      throw new DescriptionError(path, `deeper than ${mostLevels} levels; make it flatter`)
    if (typeof value === 'string') return { is: 'text', template: template(names)(value, path) }
    if (typeof value !== 'object' || value === null)
      return { is: 'value', value: scalar(value, path) }
    const below = body(names, around, level + 1)
    if (Array.isArray(value)) return { is: 'list', items: list(below, 0)(value, path) }
    if (Object.hasOwn(value, '$'))
      return { is: 'made', maker: generator(value, path, around), path }
    const entries = Object.entries(value)
    return {
      is: 'object',
      entries: entries.map(([name, each]) => [name, below(each, `${path}.${name}`)]),
    }
  }
}

const qos = optional<QoS, QoS>(oneOf<QoS>(0, 1, 2), 0)
const retain = optional(flag, false)
const contentType = optional(text(), undefined)

function message(names: readonly string[], around: Surroundings): Check<MessagePlan> {
  const topic = topicTemplate(names)
  return shape({ topic, payload: body(names, around), qos, retain, contentType })
}

function topicPlan(names: readonly string[], around: Surroundings): Check<TopicPlan> {
  const when = shape<Condition>({
    value: oneOf(...names),
    above: optional(number(), undefined),
    below: optional(number(), undefined),
    is: optional(scalar, undefined),
  })
  const check = shape({
    topic: topicTemplate(names),
    every: optional(duration, undefined),
    rate: optional(number(1e-5, 1000), undefined),
    on: optional(oneOf('change'), undefined),
    when: optional(when, undefined),
    payload: body(names, around),
    qos,
    retain,
    contentType,
  })
  return (value, path) => {
    const { every, rate, on, ...rest } = check(value, path)
    if (every !== undefined && rate !== undefined)
      throw new DescriptionError(`${path}.rate`, 'excludes "every"; remove one of them')
    if (every === undefined && rate === undefined && on === undefined)
      throw new DescriptionError(path, 'needs "every": "1s", "rate": 1 or "on": "change"')
    return {
      ...rest,
      every: every ?? (rate === undefined ? undefined : 1000 / rate),
      onChange: on !== undefined,
    }
  }
}

const fromPayload = shape({ $: oneOf('payload'), field: optional(text(), undefined) })

function commandPlan(
  names: readonly string[],
  around: Surroundings,
  state: DeviceKind['state'],
): Check<CommandPlan> {
  const key: Check<string> = (value, path) => {
    if (state.has(String(value))) return String(value)
    const keys = [...state.keys()].join(', ')
    throw new DescriptionError(
      path,
      keys === '' ? 'the device has no state; add "state"' : `unknown; the state has ${keys}`,
    )
  }
  const typed =
    (name: string): Check<Scalar> =>
    (value, path) => {
      const initial = state.get(name) ?? null
      if (initial === null || typeof value === typeof initial) return scalar(value, path)
      throw new DescriptionError(path, `must be a ${typeof initial}, as ${name} is in the state`)
    }
  const source = (each: unknown, path: string, name: string) => {
    if (typeof each !== 'object' || each === null) return { value: typed(name)(each, path) }
    return { field: fromPayload(each, path).field ?? name }
  }
  const set: Check<CommandPlan['set']> = (value, path) => {
    if (typeof value !== 'object') return new Map([[key(value, path), { field: String(value) }]])
    const entries = Object.entries(object(value, path))
    if (entries.length === 0) throw new DescriptionError(path, 'sets nothing; name a key')
    return new Map(
      entries.map(([name, each]) => {
        const at = `${path}.${name}`
        return [key(name, at), source(each, at, name)]
      }),
    )
  }
  const check = shape({
    // Other names change, and the broker would keep the subscription to the topic before.
    topic: topicTemplate(fixedNames),
    set,
    values: optional(list(scalar), undefined),
    reply: optional(body(names, around), undefined),
  })
  return (value, path) => {
    const plan = check(value, path)
    for (const name of plan.set.keys())
      plan.values?.forEach((each, index) => {
        typed(name)(each, `${path}.values[${index}]`)
      })
    return { ...plan, takesText: typeof object(value, path)['set'] === 'string' }
  }
}

const seconds: Check<number> = (value, path) => {
  const every = duration(value, path)
  if (every < 1000) throw new DescriptionError(path, 'must be at least "1s"')
  return every
}

const fault = shape<FaultPlan>({
  every: seconds,
  for: duration,
  kind: oneOf('offline', 'silent', 'stuck', 'spike', 'garbage'),
})

const fixedNames = ['id', 'index', 'name']

function deviceKind(rowsOf: Surroundings['rowsOf']): Check<DeviceKind> {
  return (value, path) => {
    const given = object(value, path)
    const state = optional(named(scalar), new Map<string, Scalar>())(
      given['state'],
      `${path}.state`,
    )
    const around: Surroundings = { rowsOf, stateNames: new Set(state.keys()) }
    const made = (each: unknown, at: string) => ({ maker: generator(each, at, around), path: at })
    const noValues: DeviceKind['values'] = new Map()
    const values = optional(named(made), noValues)(given['values'], `${path}.values`)
    const names = [...fixedNames, ...state.keys(), ...values.keys()]
    const twice = names.find((name, index) => names.indexOf(name) < index)
    if (twice !== undefined)
      throw new DescriptionError(
        `${path}.${values.has(twice) ? 'values' : 'state'}.${twice}`,
        `the name has another meaning already; choose one besides ${fixedNames.join(', ')} and those of the state`,
      )
    const kind = shape<DeviceKind>({
      name: word,
      count: optional(whole(1, mostDevices), 1),
      id: optional(template(['index', 'name'], 200), [{ name: 'name' }, '-', { name: 'index' }]),
      state: () => state,
      values: () => values,
      topics: optional(list(topicPlan(names, around), 0, 100), []),
      commands: optional(list(commandPlan(names, around, state), 0, 100), []),
      will: optional(message(names, around), undefined),
      online: optional(message(names, around), undefined),
      faults: optional(list(fault, 0, 100), []),
    })(value, path)
    if (kind.id.length === 0) throw new DescriptionError(`${path}.id`, 'must not be empty')
    if (kind.count > 1 && !numbered(kind))
      throw new DescriptionError(`${path}.id`, 'must have {index}, because count is above 1')
    return kind
  }
}

/** True when there can be several of a kind. */
export function numbered({ id }: DeviceKind): boolean {
  return id.some((part) => typeof part !== 'string' && part.name === 'index')
}

/**
 * Reads a description.
 * @throws DescriptionError that names the path, the rule, and what is allowed
 */
export function parseDescription(
  value: unknown,
  rowsOf: (file: string) => readonly Row[] = () => {
    throw new Error('files cannot be read here; use "rows"')
  },
): Description {
  const description = shape<Description>({
    name: text(),
    about: optional(text(0), ''),
    devices: list(deviceKind(rowsOf), 1, 100),
  })(value, '')
  const all = description.devices.reduce((sum, { count }) => sum + count, 0)
  if (all > mostDevices)
    throw new DescriptionError('devices', `${all} devices; at most ${mostDevices} in all`)
  return description
}
