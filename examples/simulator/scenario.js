/**
 * Scenarios: devices from the JSON descriptions of `mqwire simulate`, read by the same modules. Knows no page.
 *
 * With the same seed, the devices publish here what the command line publishes. A description comes from the user: what is wrong with it is said by
 * path and rule, and nothing in it is ever run.
 */
import { parseDescription } from '../../src/cli/simulate/description.ts'
import { devicesOf } from '../../src/cli/simulate/device.ts'
import factory from '../../src/cli/simulate/scenarios/factory.json' with { type: 'json' }
import home from '../../src/cli/simulate/scenarios/home.json' with { type: 'json' }
import trucks from '../../src/cli/simulate/scenarios/trucks.json' with { type: 'json' }

/** Messages a second that a page keeps up with: as many as 1,000 devices at the highest rate of the form. */
const mostPerSecond = 20_000
/** Filters of the consumer; beyond, all topics with as many levels share one. */
const mostFilters = 50
/** Characters of a description, times its devices, that a page has the time to make devices of. */
const mostWork = 20_000_000
/** Simulated milliseconds within which the first message is looked for. */
const exampleWithin = 120_000
/** Characters of a line, where a value has to be broken. */
const lineWidth = 92

/** The descriptions that ship, by name. */
export const scenarios = new Map([trucks, factory, home].map((each) => [each.name, each]))

/** JSON as a person writes it: what fits stands on one line. */
export function formatted(value, indent = '') {
  const line = flat(value)
  if (!isNested(value) || indent.length + line.length <= lineWidth) return line
  const deeper = `${indent}  `
  const entries = entriesOf(value, (each) => formatted(each, deeper))
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${deeper}${entries.join(`,\n${deeper}`)}\n${indent}${close}`
}

function flat(value) {
  if (!isNested(value)) return JSON.stringify(value)
  const entries = entriesOf(value, flat).join(', ')
  if (Array.isArray(value)) return `[${entries}]`
  return entries === '' ? '{}' : `{ ${entries} }`
}

const isNested = (value) => typeof value === 'object' && value !== null

const entriesOf = (value, text) =>
  Array.isArray(value)
    ? value.map(text)
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${text(each)}`)

/**
 * Reads the text of a description, for `most` devices. Gives `{ problem }`, or what it says: `name`, `about`, its own `count` of devices, `kinds` by name with their
 * counts, messages `perSecond`, and `example`, the first message of the first device that has one.
 */
export function read(text, options, most) {
  try {
    const value = JSON.parse(text)
    const description = parseDescription(value)
    const { name, about, devices: kinds } = description
    const count = kinds.reduce((sum, kind) => sum + kind.count, 0)
    const wanted = options.devices ?? Math.min(count, most)
    // Before any device is made.
    const problem = problemOf(value, options, wanted, most) ?? workProblem(text, wanted)
    if (problem !== undefined) return { count, problem }
    const devices = devicesOf(description, { ...options, began: Date.now() }, wanted)
    if (devices.some(({ id }) => id.startsWith('$')))
      return {
        count,
        problem: 'devices: an id that begins with $; the consumer would see no such topic',
      }
    const perSecond = rateOf(description, devices.length)
    if (perSecond > mostPerSecond)
      return {
        problem: `devices: ${Math.round(perSecond).toLocaleString('en')} messages a second; a page keeps up with ${mostPerSecond.toLocaleString('en')}: fewer devices, or longer times`,
      }
    return {
      name,
      about,
      count,
      devices: devices.length,
      kinds: kinds.map((kind) => `${kind.count} × ${kind.name}`),
      perSecond,
      example: exampleOf(devices),
    }
  } catch (error) {
    const where = error instanceof SyntaxError ? 'not JSON: ' : ''
    return { problem: `${where}${error.message}` }
  }
}

function problemOf({ devices: kinds }, { prefix }, wanted, most) {
  if (wanted > most) return `devices: ${wanted}; up to ${most} have a connection each`
  const topics = kinds.flatMap(({ topics = [] }) => topics.map(({ topic }) => topic))
  // Wildcards at the beginning do not match them (section 4.7.2), and $share is no topic.
  const isServers = prefix.startsWith('$') || topics.some((topic) => topic.startsWith('$'))
  return isServers ? 'topics and prefix must not begin with $: those are of the broker' : undefined
}

const workProblem = (text, wanted) =>
  text.length * wanted > mostWork
    ? `devices: ${wanted} with a description of ${text.length.toLocaleString('en')} characters; fewer, or a shorter one`
    : undefined

/** The devices of a description that was read before; `options` has `seed`, `prefix`, `began` (milliseconds since 1970) and how many `devices`. */
export function scenarioOf(text, options) {
  const value = JSON.parse(text)
  const description = parseDescription(value)
  return {
    name: description.name,
    seed: options.seed,
    prefix: options.prefix,
    devices: devicesOf(description, options, options.devices),
    filters: filtersOf(value, options.prefix),
  }
}

// Of the description's own count, then scaled as that is.
function rateOf({ devices: kinds }, devices) {
  const of = ({ topics }) => topics.reduce((sum, { every }) => sum + 1000 / every, 0)
  const [own, count] = kinds.reduce(
    ([rate, all], kind) => [rate + kind.count * of(kind), all + kind.count],
    [0, 0],
  )
  return (own * devices) / count
}

function exampleOf(devices) {
  for (const device of devices.slice(0, 20)) {
    const message = device.poll(exampleWithin)
    if (message !== undefined) return { topic: message.topic, payload: String(message.payload) }
  }
  return undefined
}

/**
 * Filters on which everything comes that the devices publish. No two of them match the same topic, for a broker may send a message once for each
 * filter.
 */
export function filtersOf({ devices }, prefix) {
  const topics = devices.flatMap(({ topics = [], online }) =>
    [...topics, ...(online === undefined ? [] : [online])].map(({ topic }) => topic),
  )
  let filters = [...new Set(topics.map((topic) => `${prefix}${topic}`))].map((topic) =>
    topic.split('/').map((level) => (/\{[A-Za-z_][\w-]*\}/.test(level) ? '+' : level)),
  )
  const isFew = filters.length <= mostFilters
  for (;;) {
    const before = filters.length
    filters = filters.reduce((kept, levels) => joined(kept, levels, isFew), [])
    if (filters.length === before) return filters.map((levels) => levels.join('/'))
  }
}

// With the first filter that may match the same topics it becomes one; of many, with any that has as many levels.
function joined(filters, levels, isFew) {
  const at = filters.findIndex(
    (other) =>
      other.length === levels.length &&
      (!isFew ||
        other.every(
          (level, index) => [level, levels[index]].includes('+') || level === levels[index],
        )),
  )
  if (at < 0) return [...filters, levels]
  const both = filters[at].map((level, index) => (level === levels[index] ? level : '+'))
  return filters.with(at, both)
}
