/**
 * The description of simulated devices: JSON in, checked plans out.
 *
 * Pure: files that a description names are read by the caller.
 */
import type { QoS } from 'mqwire'
import { validateTopicName } from 'mqwire/wire'
import {
  assertState,
  generator,
  type Maker,
  type Moment,
  type Owner,
  type Surroundings,
} from './generators.js'
import {
  type Check,
  type Checked,
  DescriptionError,
  duration,
  flag,
  type Json,
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

/** Makes a text for one device. */
export type TextMaker = (owner: Owner) => (moment: Moment) => string

/** A value as a payload, or as a part of a text. */
export function plain(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Text with names in braces; braces around anything else are text. */
function template(
  names: readonly string[],
  most = 65_536,
  safe = (inserted: string) => inserted,
): Check<TextMaker> {
  return (value, path) => {
    // Every second part is a name.
    const parts = text(0, most)(value, path).split(/\{([A-Za-z_][\w-]*)\}/)
    const strange = parts.find((part, at) => at % 2 === 1 && !names.includes(part))
    if (strange !== undefined)
      throw new DescriptionError(
        path,
        `no name {${strange}} in ${shown(value)}; allowed: ${names.join(', ')}`,
      )
    return (owner) => (moment) =>
      parts
        .map((part, at) => (at % 2 === 0 ? part : safe(plain(owner.named(part, moment)))))
        .join('')
  }
}

function topicTemplate(names: readonly string[]): Check<TextMaker> {
  const check = template(names, 1000, (inserted) => inserted.replaceAll(/[+#/\0]/g, '_'))
  return (value, path) => {
    const made = check(value, path)
    const problem = validateTopicName(String(value).replaceAll(/\{[A-Za-z_][\w-]*\}/g, 'x'))
    if (problem !== undefined) throw new DescriptionError(path, `the topic ${problem}`)
    return made
  }
}

/** Levels of lists and objects in a payload. */
const mostLevels = 16

function body(names: readonly string[], around: Surroundings, level = 0): Check<Maker> {
  return (value, path) => {
    if (value === undefined) throw new DescriptionError(path, 'is missing; a text or an object')
    if (level > mostLevels)
      throw new DescriptionError(path, `deeper than ${mostLevels} levels; make it flatter`)
    const below = body(names, around, level + 1)
    if (typeof value === 'string') {
      const made = template(names)(value, path)
      // A name alone keeps the type of its value.
      const [, alone] = /^\{([\w-]+)\}$/.exec(value) ?? []
      if (alone === undefined || !names.includes(alone)) return made
      return (owner) => (moment) => owner.named(alone, moment)
    }
    if (Array.isArray(value)) {
      const makers = list(below, 0)(value, path)
      return (owner) => {
        const items = makers.map((maker) => maker(owner))
        return (moment) => items.map((item) => item(moment))
      }
    }
    if (typeof value !== 'object' || value === null) {
      const constant = scalar(value, path)
      return () => () => constant
    }
    if (Object.hasOwn(value, '$')) return generator(value, path, around)
    const makers = Object.entries(value).map(
      ([name, each]) => [name, below(each, `${path}.${name}`)] as const,
    )
    return (owner) => {
      const entries = makers.map(([name, maker]) => [name, maker(owner)] as const)
      return (moment) => Object.fromEntries(entries.map(([name, make]) => [name, make(moment)]))
    }
  }
}

function message(names: readonly string[], around: Surroundings) {
  return {
    topic: topicTemplate(names),
    payload: body(names, around),
    qos: optional(oneOf<QoS>(0, 1, 2), 0),
    retain: optional(flag, false),
  }
}

/** A message that is not published by the clock. */
export type MessagePlan = Checked<ReturnType<typeof messagePlan>> & {
  readonly contentType?: string | undefined
}
const messagePlan = (names: readonly string[], around: Surroundings) =>
  shape(message(names, around))

/** What a device publishes to one topic: `every` so many milliseconds, and at a change of the state. */
export type TopicPlan = Checked<ReturnType<typeof topicPlan>>
function topicPlan(names: readonly string[], around: Surroundings) {
  const check = shape({
    ...message(names, around),
    contentType: optional(text()),
    every: optional(duration),
    rate: optional(number(1e-5, 1000)),
    on: optional(oneOf('change')),
    when: optional(
      shape({
        value: oneOf(...names),
        above: optional(number()),
        below: optional(number()),
        is: optional(scalar),
      }),
    ),
  })
  return (value: unknown, path: string) => {
    const { every, rate, on, ...rest } = check(value, path)
    if (every !== undefined && rate !== undefined)
      throw new DescriptionError(`${path}.rate`, 'excludes "every"; remove one of them')
    if (every === undefined && rate === undefined && on === undefined)
      throw new DescriptionError(path, 'needs "every": "1s", "rate": 1 or "on": "change"')
    return { ...rest, every: every ?? 1000 / (rate ?? 0), onChange: on !== undefined }
  }
}

const fixedNames = ['id', 'index', 'name']
const fromPayload = shape({ $: oneOf('payload'), field: optional(text()) })

/** By key of the state: a value, or a field of the payload. */
type Sources = ReadonlyMap<string, { readonly value: Scalar } | { readonly field: string }>

/** What a message to a device does. */
export type CommandPlan = Checked<ReturnType<typeof commandPlan>>
function commandPlan(
  names: readonly string[],
  around: Surroundings,
  state: ReadonlyMap<string, Scalar>,
) {
  const typed: (name: string) => Check<Scalar> = (name) => (value, path) => {
    const initial = state.get(name) ?? null
    if (initial === null || typeof value === typeof initial) return scalar(value, path)
    throw new DescriptionError(path, `must be a ${typeof initial}, as ${name} is in the state`)
  }
  const source = (name: string, each: unknown, path: string) => {
    assertState(name, path, around)
    if (typeof each !== 'object' || each === null) return { value: typed(name)(each, path) }
    return { field: fromPayload(each, path).field ?? name }
  }
  const check = shape<{
    topic: TextMaker
    set: Sources
    values: readonly Scalar[] | undefined
    reply: Maker | undefined
  }>({
    // Other names change, and the broker would keep the subscription to the topic before.
    topic: topicTemplate(fixedNames),
    set: (value, path) => {
      const isKey = typeof value === 'string'
      const given = isKey ? { [value]: { $: 'payload' } } : object(value, path)
      const entries = Object.entries(given)
      if (entries.length === 0) throw new DescriptionError(path, 'sets nothing; name a key')
      return new Map(
        entries.map(([name, each]) => [name, source(name, each, isKey ? path : `${path}.${name}`)]),
      )
    },
    values: optional(list(scalar)),
    reply: optional(body(names, around)),
  })
  return (value: unknown, path: string) => {
    const plan = check(value, path)
    for (const name of plan.set.keys())
      if (plan.values !== undefined) list(typed(name))(plan.values, `${path}.values`)
    // `name` is to find the same topic twice. With one key, a payload that is no object is its value.
    const { topic: name, set } = object(value, path)
    return { ...plan, name, takesText: typeof set === 'string' }
  }
}

/** Something that goes wrong again and again: `every` so many milliseconds on average, `for` so many. */
export type FaultPlan = Checked<typeof faultPlan>
const faultPlan = shape({
  every: (value, path) => {
    const every = duration(value, path)
    if (every >= 1000) return every
    throw new DescriptionError(path, 'must be at least "1s"')
  },
  for: duration,
  kind: oneOf('offline', 'silent', 'stuck', 'spike', 'garbage'),
})

/** Devices that are alike. */
export type DeviceKind = Checked<ReturnType<typeof deviceKind>>
function deviceKind(rowsOf: Surroundings['rowsOf']) {
  return (value: unknown, path: string) => {
    const given = object(value, path)
    const state = optional(named(scalar), new Map())(given['state'], `${path}.state`)
    const around: Surroundings = { rowsOf, stateNames: new Set(state.keys()) }
    const makers: Check<Maker> = (each, at) => generator(each, at, around)
    const values = optional(named(makers), new Map())(given['values'], `${path}.values`)
    const names = [...fixedNames, ...state.keys(), ...values.keys()]
    const twice = names.find((name, index) => names.indexOf(name) < index)
    if (twice !== undefined) {
      const where = `${path}.${values.has(twice) ? 'values' : 'state'}.${twice}`
      throw new DescriptionError(where, 'the name has another meaning already; choose another')
    }
    const kind = shape({
      name: word,
      count: optional(whole(1, mostDevices), 1),
      id: optional(text(1, 200), '{name}-{index}'),
      state: () => state,
      values: () => values,
      topics: optional(list(topicPlan(names, around), 0, 100), []),
      commands: optional(list(commandPlan(names, around, state), 0, 100), []),
      will: optional(messagePlan(names, around)),
      online: optional(messagePlan(names, around)),
      faults: optional(list(faultPlan, 0, 100), []),
    })(value, path)
    const topics = kind.commands.map(({ name }) => name)
    const again = topics.findIndex((topic, at) => topics.indexOf(topic) < at)
    if (again >= 0)
      throw new DescriptionError(
        `${path}.commands[${again}].topic`,
        'another command has it; give each command its own',
      )
    const isNumbered = kind.id.includes('{index}')
    if (kind.count > 1 && !isNumbered)
      throw new DescriptionError(`${path}.id`, 'must have {index}, because count is above 1')
    return { ...kind, isNumbered, id: template(['index', 'name'])(kind.id, `${path}.id`) }
  }
}

/** What a description says. */
export type Description = ReturnType<typeof parseDescription>

/**
 * Reads a description; `rowsOf` reads a CSV file.
 * @throws DescriptionError that names the path, the rule, and what is allowed
 */
export function parseDescription(
  value: unknown,
  rowsOf: Surroundings['rowsOf'] = () => {
    throw new Error('files cannot be read here; use "rows"')
  },
) {
  const description = shape({
    name: text(),
    about: optional(text(0), ''),
    devices: list(deviceKind(rowsOf), 1, 100),
  })(value, '')
  const all = description.devices.reduce((sum, { count }) => sum + count, 0)
  if (all <= mostDevices) return description
  throw new DescriptionError('devices', `${all} devices; at most ${mostDevices} in all`)
}
