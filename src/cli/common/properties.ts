/**
 * The options of a message that is sent: the properties of PUBLISH.
 */
import type { Command } from 'commander'
import type { PublishOptions } from 'mqwire'
import { option } from './connection.js'
import { pair, whole } from './values.js'

/** What the options of this file become. */
export interface MessageValues {
  readonly contentType?: string
  readonly text?: boolean
  readonly expiry?: number
  readonly responseTopic?: string
  readonly correlationData?: string
  readonly property?: readonly (readonly [string, string])[]
}

/** Adds the options; those of a request leave out what the client sets. */
export function withProperties(command: Command, request = false): Command {
  command
    .addOption(option('--content-type <type>', 'what the payload is, for example application/json'))
    .addOption(option('--text', 'the payload is UTF-8 text (Payload Format Indicator 1)'))
    .addOption(
      option('--expiry <seconds>', 'seconds until the broker drops it', whole(0, 0xffff_ffff)),
    )
    .addOption(
      option('-D, --property <pair>', 'user property, NAME=VALUE; may repeat', pair as never),
    )
  if (request) return command
  return command
    .addOption(option('--response-topic <topic>', 'topic for an answer'))
    .addOption(option('--correlation-data <text>', 'data that an answer must carry'))
}

/** The properties of a message; none at all when no option was given, so that 3.1.1 takes it. */
export function propertiesOf(
  values: MessageValues,
  contentType?: string,
): Pick<PublishOptions, 'properties'> {
  const properties = {
    contentType: values.contentType ?? contentType,
    payloadFormatIndicator: values.text ? 1 : undefined,
    messageExpiryInterval: values.expiry,
    responseTopic: values.responseTopic,
    correlationData: values.correlationData,
    userProperties: values.property as never,
  }
  const given = Object.fromEntries(
    Object.entries(properties).filter(([, value]) => value !== undefined),
  )
  return Object.keys(given).length === 0 ? {} : { properties: given }
}
