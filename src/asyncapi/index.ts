/**
 * `mqwire/asyncapi`: a contract as an AsyncAPI 3.0 document.
 *
 * It reads the contract and nothing else: no client, no clock. What a schema looks like as JSON Schema is the caller's to say, as each library has its own way.
 */
import { MqttError } from '../errors.js'
import type { Channel, Codec, Operation, StandardSchema } from '../typed/index.js'

/** What the document is about. */
export interface AsyncApiInfo {
  /** Of the application. */
  readonly title: string
  /** Of the document. */
  readonly version: string
  /** In CommonMark. Default: none. */
  readonly description?: string | undefined
}

/** A server: a URL, or an object as the specification has it. */
export type AsyncApiServer = string | AsyncApiServerObject

/** A server as the specification has it. */
export interface AsyncApiServerObject extends Readonly<Record<string, unknown>> {
  /** Name and, where it is not the usual one, port. */
  readonly host: string
  /** For example `mqtts`. */
  readonly protocol: string
}

/** Which parts an application sends, and which it receives: names with dots between levels, or the parts themselves. */
export interface AsyncApiRole {
  /** What it publishes; of operations, what it calls. */
  readonly send?: readonly (string | object)[] | undefined
  /** What it subscribes to; of operations, what it serves. */
  readonly receive?: readonly (string | object)[] | undefined
}

/** Options of {@link asyncapi}. */
export interface AsyncApiOptions {
  /** What the document is about. */
  readonly info: AsyncApiInfo
  /** By name. Default: none. */
  readonly servers?: Readonly<Record<string, AsyncApiServer>> | undefined
  /** Which application the document describes. Default: none, so that there are channels and no operations. */
  readonly role?: AsyncApiRole | undefined
  /** Gives the JSON Schema of a schema, for example `z.toJSONSchema`. Default: payloads are not described. */
  readonly toJsonSchema?: ((schema: never) => object) | undefined
}

type Part = Channel<string, unknown, unknown> | Operation<string, unknown, unknown, unknown, unknown>
/** A part of a document. */
export type AsyncApiNode = Record<string, unknown>

const json = 'application/json'

/** The document. @throws MqttError ERR_INVALID_OPTION for a role that names no part, or a server that is none */
export function asyncapi(contract: object, options: AsyncApiOptions): AsyncApiNode {
  const { info, servers = {}, role = {}, toJsonSchema } = options
  const parts = [...partsOf(contract, '')]
  const channels: AsyncApiNode = {}
  const operations: AsyncApiNode = {}
  const message = (
    name: string,
    { contentType = 'application/octet-stream', schema }: Codec<never> & { schema?: StandardSchema },
    more: AsyncApiNode = {},
  ): AsyncApiNode => ({
    name,
    contentType,
    ...(schema === undefined || toJsonSchema === undefined ? {} : { payload: schemaOf(toJsonSchema(schema as never)) }),
    ...more,
  })
  for (const [name, part] of parts) {
    const { template, parameters } = part.topic
    const own = {
      address: template.replaceAll(':number}', '}').replaceAll('...}', '}'),
      ...(parameters.length === 0 ? {} : { parameters: Object.fromEntries(parameters.map((parameter) => [parameter, {}])) }),
    }
    if (part.kind === 'channel') {
      channels[name] = { ...own, messages: { message: message(name, part.codec as never) } }
      continue
    }
    const headers = { type: 'object', properties: { responseTopic: { type: 'string' }, correlationData: { type: 'string' } } }
    const correlationId = { location: '$message.header#/correlationData' }
    channels[name] = { ...own, messages: { message: message(name, part.request as never, { headers, correlationId }) } }
    channels[`${name}.reply`] = { address: null, messages: { message: message(`${name}.reply`, part.answer as never) } }
  }
  for (const action of ['send', 'receive'] as const)
    for (const wanted of role[action] ?? []) {
      const [name, part] = parts.find((each) => each.includes(wanted as never)) ?? refuse(`role.${action}`, 'must name parts of the contract')
      operations[`${action}.${name}`] = {
        action,
        ...reference(name),
        ...(part.kind === 'channel'
          ? bindingsOf(part)
          : { reply: { address: { location: '$message.header#/responseTopic' }, ...reference(`${name}.reply`) } }),
      }
    }
  return {
    asyncapi: '3.0.0',
    info,
    defaultContentType: json,
    servers: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, serverOf(server)])),
    channels,
    operations,
  }
}

function* partsOf(contract: object, prefix: string): Generator<readonly [string, Part]> {
  for (const [name, part] of Object.entries(contract)) {
    if (part?.kind === 'channel' || part?.kind === 'operation') yield [`${prefix}${name}`, part as Part]
    else if (typeof part === 'object' && part !== null) yield* partsOf(part, `${prefix}${name}.`)
  }
}

// Draft 7 is what documents are in: the name of another one is left out.
function schemaOf(schema: object): object {
  const { $schema: _, ...rest } = schema as { $schema?: string }
  return rest
}

function reference(name: string): AsyncApiNode {
  // Names in a JSON Pointer (RFC 6901), which is part of a URL.
  const channel = `#/channels/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`
  return { channel: { $ref: channel }, messages: [{ $ref: `${channel}/messages/message` }] }
}

function bindingsOf({ defaults: { publish, qos = publish?.qos, retain = publish?.retain } }: Channel<string, unknown, unknown>): AsyncApiNode {
  return { bindings: { mqtt: { qos: qos ?? 0, retain: retain ?? false, bindingVersion: '0.2.0' } } }
}

function serverOf(server: AsyncApiServer): AsyncApiNode {
  if (typeof server !== 'string') return { ...server }
  try {
    const { host, protocol, pathname } = new URL(server)
    const path = pathname === '' || pathname === '/' ? {} : { pathname }
    return { host, protocol: protocol.slice(0, -1), ...path }
  } catch {
    return refuse('servers', 'must be URLs, or objects with host and protocol')
  }
}

function refuse(option: string, what: string): never {
  throw new MqttError('ERR_INVALID_OPTION', `${option} ${what}`, { option })
}
