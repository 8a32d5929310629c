/**
 * The arguments of calls on bound channels and operations.
 */
import { assertOptions, refuse } from './refuse.js'
import type { Checked } from './template.js'
import { TopicTemplate } from './template.js'

/** The template itself, or a new one from text. */
export function templateOf<Template extends string>(
  given: Checked<Template> | TopicTemplate<Template>,
): TopicTemplate<Template> {
  return given instanceof TopicTemplate ? given : new TopicTemplate<Template>(given)
}

/** Arguments with the parameters first; adds undefined for a topic without parameters. */
export function argumentsOf(
  topic: Pick<TopicTemplate, 'parameters'>,
  call: readonly unknown[],
): unknown[] {
  return topic.parameters.length === 0 ? [{}, ...call] : [...call]
}

/**
 * Checked arguments of a call that takes `most` of them besides the parameters, options last.
 * @throws MqttError ERR_INVALID_OPTION
 */
export function checkedArguments(
  topic: Pick<TopicTemplate, 'parameters'>,
  call: readonly unknown[],
  most: number,
): unknown[] {
  const all = argumentsOf(topic, call)
  assertOptions(all[most])
  if (all.slice(most + 1).some((more) => more !== undefined))
    refuse('options', 'must be the last argument: await the promise')
  return all
}

/** Merges options: later ones win, and undefined values count as absent. */
export function merged<T extends object>(...given: (Partial<T> | undefined)[]): T {
  const all: Record<string, unknown> = {}
  for (const options of given)
    for (const [name, value] of Object.entries(options ?? {}))
      if (value !== undefined) all[name] = value
  return all as T
}

/**
 * Creates the bound object once for each client, so that counters and order are shared wherever it
 * is used.
 */
export function oncePerClient<Client extends object, Bound>(
  bind: (client: Client) => Bound,
): (client: Client) => Bound {
  const made = new WeakMap<Client, Bound>()
  return (client) => {
    const bound = made.get(client) ?? bind(client)
    made.set(client, bound)
    return bound
  }
}

/** The Topic Name with these parameters. @throws MqttError ERR_INVALID_TOPIC */
export function nameOf<Template extends string>(
  topic: TopicTemplate<Template>,
  params: object,
): string {
  return (topic as unknown as TopicTemplate<'{any}'>).name((params ?? {}) as never)
}
