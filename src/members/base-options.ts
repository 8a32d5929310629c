/**
 * Options of several clients, as far as they are read before each of them has its own; the clients check the rest.
 */
import type { ClientOptions } from '../client/options/index.js'
import { anyObject, optional, type Parser, text } from '../common/schema.js'

/** Checks what client identifiers are made of. @throws MqttError ERR_INVALID_OPTION */
export const baseOptions: Parser<ClientOptions> = (value, path) => {
  const given = anyObject(value, path) as ClientOptions
  optional(text)(given.clientId, `${path}.clientId`)
  return given
}
