/**
 * The arguments of calls on bound channels and operations.
 */
import type { Checked } from './template.js'
import { TopicTemplate } from './template.js'

/** A template as it is, or made of a text. */
export function templateOf<Template extends string>(given: Checked<Template> | TopicTemplate<Template>): TopicTemplate<Template> {
  return given instanceof TopicTemplate ? given : new TopicTemplate<Template>(given)
}

/** Parameters first: a topic without any has no argument for them. */
export function argumentsOf(topic: Pick<TopicTemplate, 'parameters'>, call: readonly unknown[]): unknown[] {
  return topic.parameters.length === 0 ? [{}, ...call] : [...call]
}

/** The name with these parameters. @throws MqttError ERR_INVALID_TOPIC */
export function nameOf<Template extends string>(topic: TopicTemplate<Template>, params: object): string {
  return (topic as unknown as TopicTemplate<'{any}'>).name((params ?? {}) as never)
}
