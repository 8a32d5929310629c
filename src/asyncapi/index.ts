/**
 * `mqwire/asyncapi`: a contract as an AsyncAPI 3.0 document.
 *
 * It reads only the contract: no client, no clock. Callers may pass the conversion to JSON Schema,
 * because it differs between schema libraries.
 *
 * @module
 */
import { MqttError, printable } from '../errors.js'
import type { Channel, CheckedParts, Codec, Operation, StandardSchema } from '../typed/index.js'

/** General information of the document. */
export interface AsyncApiInfo {
  /** Title of the application. */
  readonly title: string
  /** Version of the document. */
  readonly version: string
  /** In CommonMark. Default: none. */
  readonly description?: string | undefined
}

/** A server: a URL, or an object as in the specification. */
export type AsyncApiServer = string | AsyncApiServerObject

/** A server object, as in the specification. */
export interface AsyncApiServerObject extends Readonly<Record<string, unknown>> {
  /** Host name and, unless it is the default, port. */
  readonly host: string
  /** For example `mqtts`. */
  readonly protocol: string
}

/**
 * The parts that an application sends and receives: names with dots between levels, or the parts
 * themselves.
 */
export interface AsyncApiRole {
  /** The channels that it publishes to, and the operations that it calls. */
  readonly send?: readonly (string | object)[] | undefined
  /** The channels that it subscribes to, and the operations that it serves. */
  readonly receive?: readonly (string | object)[] | undefined
}

/** Additional descriptions of one part, for readers. */
export interface AsyncApiDetails {
  /** A readable name. Default: none. */
  readonly title?: string | undefined
  /** The meaning of its messages, in CommonMark. Default: none. */
  readonly description?: string | undefined
  /** Examples of payloads. Default: none. */
  readonly examples?: readonly unknown[] | undefined
  /** The meaning of each parameter of the topic. Default: none. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
}

/** The form in which to describe a schema, as options of both zod and valibot. */
export interface JsonSchemaTarget {
  /** The JSON Schema version of the document. */
  readonly target: 'draft-07'
  /** Describes values as they are sent (zod). */
  readonly io: 'input'
  /** Describes values as they are sent (valibot). */
  readonly typeMode: 'input'
}

/** Options of {@link asyncapi}. */
export interface AsyncApiOptions {
  /** General information of the document. */
  readonly info: AsyncApiInfo
  /** Servers by name. Default: none. */
  readonly servers?: Readonly<Record<string, AsyncApiServer>> | undefined
  /**
   * The application that the document describes. Default: none; the document then has channels but
   * no operations.
   */
  readonly role?: AsyncApiRole | undefined
  /**
   * Descriptions and examples by the name of a part. For the answers of an operation: its name and
   * `.reply`; for an error: these and its code. Default: none.
   */
  readonly details?: Readonly<Record<string, AsyncApiDetails>> | undefined
  /**
   * Returns the JSON Schema (draft 7) of values as they are sent. May be `z.toJSONSchema`, or
   * `toJsonSchema` of `@valibot/to-json-schema`. Default: the schema's own conversion, which those
   * of zod and arktype have (Standard JSON Schema); payloads of other schemas are not described.
   */
  readonly toJsonSchema?: ((schema: never, target: JsonSchemaTarget) => object) | undefined
}

type Part =
  | Channel<string, unknown, unknown>
  | Operation<string, unknown, unknown, unknown, unknown>
/** A part of a document. */
export type AsyncApiNode = Record<string, unknown>

const json = 'application/json'
const target: JsonSchemaTarget = { target: 'draft-07', io: 'input', typeMode: 'input' }

/**
 * Creates the document.
 * @throws MqttError ERR_INVALID_OPTION for an option of another type, or that JSON cannot hold, a
 * role or details that name no part, a server address that cannot be parsed, two parts with one
 * name, a contract that contains itself, or a schema without JSON Schema (see `cause`)
 */
export function asyncapi<const Parts extends object>(
  contract: Parts & CheckedParts<Parts>,
  options: AsyncApiOptions,
): AsyncApiNode
export function asyncapi(contract: object, options: AsyncApiOptions): AsyncApiNode {
  const { info, servers = {}, role = {}, details = {}, toJsonSchema } = options ?? {}
  if (typeof info?.title !== 'string' || typeof info.version !== 'string')
    refuse('info', 'must have title and version')
  assertText('info', info)
  assertRecord('servers', servers, 'servers by name')
  assertRecord('role', role, 'send and receive', 'with')
  assertRecord('details', details, 'details by the name of a part')
  if (toJsonSchema !== undefined && typeof toJsonSchema !== 'function')
    refuse('toJsonSchema', 'must be a function, such as z.toJSONSchema')
  const lists = {
    send: listOf('role.send', role.send, named),
    receive: listOf('role.receive', role.receive, named),
  }
  for (const [name, server] of Object.entries(servers)) assertJson(`servers.${name}`, server)
  assertJson('info', info)
  const parts = [...partsOf(contract, '', [])]
  const channels = new Map<string, AsyncApiNode>()
  const operations = new Map<string, AsyncApiNode>()
  const described = new Set<string>()
  // `at`: the channel, and the name of the message in it.
  const messageOf = (
    name: string,
    at: readonly [string, string],
    codec: Described,
    more: AsyncApiNode = {},
  ): AsyncApiNode => {
    if (described.has(name)) refuse('contract', `has two parts of the name '${name}'`)
    const unfit = at.find((each) => misread.includes(each))
    if (unfit !== undefined)
      refuse(
        'contract',
        `has the name '${unfit}', which readers of documents take for another thing`,
      )
    described.add(name)
    const { title, description, examples } = detailsOf(name, details)
    const { contentType = 'application/octet-stream', schema } = codec
    const payload = schema && payloadOf(name, `${pointerTo(...at)}/payload`, schema, toJsonSchema)
    return {
      name,
      contentType,
      ...present({
        payload,
        title,
        description,
        examples: examples?.map((example) => ({ payload: example })),
      }),
      ...more,
    }
  }
  const add = (
    name: string,
    given: Part['topic'] | undefined,
    codec: Described,
    more: AsyncApiNode = {},
    others: AsyncApiNode = {},
  ): void => {
    const { parameters: texts = {} } = detailsOf(name, details)
    // The topic of `'#'` is chosen at the call, so it is not known here.
    const topic = given?.template === '#' ? undefined : given
    const parameters =
      topic?.parameters.map((parameter) => [
        parameter,
        Object.hasOwn(texts, parameter) ? { description: texts[parameter] } : {},
      ]) ?? []
    channels.set(name, {
      address:
        topic === undefined
          ? null
          : topic.template.replaceAll(':number}', '}').replaceAll('...}', '}'),
      ...(parameters.length === 0 ? {} : { parameters: Object.fromEntries(parameters) }),
      messages: { message: messageOf(name, [name, 'message'], codec, more), ...others },
    })
  }
  for (const [name, part] of parts) {
    if (part.kind === 'channel') {
      add(name, part.topic, part.codec)
      continue
    }
    const headers = {
      type: 'object',
      properties: { responseTopic: { type: 'string' }, correlationData: { type: 'string' } },
    }
    add(name, part.topic, part.request, {
      headers,
      correlationId: { location: '$message.header#/correlationData' },
    })
    const reply = `${name}.reply`
    const errors = Object.entries(part.errors).map(([code, codec = inWords]) => {
      if (code === 'message')
        refuse(
          'contract',
          `has an error of the code 'message', as the answers of '${name}' are named`,
        )
      const headers = {
        type: 'object',
        properties: { error: { const: code } },
        required: ['error'],
      }
      return [code, messageOf(`${reply}.${code}`, [reply, code], codec, { headers })]
    })
    add(reply, undefined, part.answer, {}, Object.fromEntries(errors))
  }
  for (const name of Object.keys(details))
    if (!described.has(name)) refuse(`details.${name}`, 'must be the name of a part')
  for (const action of ['send', 'receive'] as const)
    for (const wanted of lists[action]) {
      const [name, part] =
        parts.find((each) => each.includes(wanted as never)) ??
        refuse(`role.${action}`, 'must name parts of the contract')
      operations.set(`${action}.${name}`, {
        action,
        ...reference(name),
        ...(part.kind === 'channel'
          ? { bindings: { mqtt: { ...bindingOf(part, action), bindingVersion: '0.2.0' } } }
          : {
              reply: {
                address: { location: '$message.header#/responseTopic' },
                ...reference(`${name}.reply`, ['message', ...Object.keys(part.errors)]),
              },
            }),
      })
    }
  return {
    asyncapi: '3.0.0',
    info,
    defaultContentType: json,
    servers: Object.fromEntries(
      Object.entries(servers).map(([name, server]) => [name, serverOf(name, server)]),
    ),
    channels: Object.fromEntries(channels),
    operations: Object.fromEntries(operations),
  }
}

/** Names that readers of documents would interpret as a reference or a prototype. */
const misread = ['$ref', '__proto__']

type Described = Codec<never, unknown> & { readonly schema?: StandardSchema }

/** The payload of an error without data is text. */
const inWords = { contentType: 'text/plain' } as Described

function detailsOf(name: string, all: Readonly<Record<string, AsyncApiDetails>>): AsyncApiDetails {
  const option = `details.${name}`
  const given = all[name] ?? {}
  const { examples, parameters = {} } = given
  assertRecord(option, given, 'title, description, examples and parameters', 'with')
  assertText(option, given)
  assertRecord(`${option}.parameters`, parameters, 'texts by the name of a parameter')
  assertText(`${option}.parameters`, parameters, Object.keys(parameters))
  if (examples !== undefined)
    assertJson(`${option}.examples`, listOf(`${option}.examples`, examples, 'payloads'))
  return given
}

// `around`: the contracts that contain this one.
function* partsOf(
  contract: object,
  prefix: string,
  around: readonly object[],
): Generator<readonly [string, Part]> {
  if (isPart(contract)) refuse('contract', 'must be a contract, and not one part of it')
  const where = prefix.slice(0, -1)
  if (around.includes(contract)) refuse('contract', `must not hold itself, as it does in ${where}`)
  if (typeof contract !== 'object' || contract === null)
    refuse(
      'contract',
      prefix === ''
        ? 'must be a contract'
        : `must hold channels, operations and contracts; ${where} is not one of them`,
    )
  for (const [name, part] of Object.entries(contract)) {
    if (isPart(part)) yield [`${prefix}${name}`, part]
    else yield* partsOf(part, `${prefix}${name}.`, [...around, contract])
  }
}

const named = 'parts of the contract, or of their names'

function assertRecord(option: string, given: unknown, of: string, word = 'of'): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    refuse(option, `must be an object ${word} ${of}`)
}

/** Throws unless a descriptive field is text. */
function assertText(
  option: string,
  given: object,
  names: readonly string[] = ['title', 'description'],
): void {
  for (const name of names) {
    const text: unknown = given[name as keyof typeof given]
    if (text !== undefined && typeof text !== 'string') refuse(`${option}.${name}`, 'must be text')
  }
}

function listOf<T>(option: string, given: readonly T[] | undefined, of: string): readonly T[] {
  if (given === undefined) return []
  return Array.isArray(given) ? given : refuse(option, `must be a list of ${of}`)
}

/** Throws unless a value can be written as JSON. */
function assertJson(option: string, given: unknown): void {
  try {
    JSON.stringify(given)
  } catch (cause) {
    refuse(
      option,
      `must be what JSON can hold: ${cause instanceof Error ? cause.message.split('\n')[0] : cause}`,
      cause,
    )
  }
}

function isPart(given: unknown): given is Part {
  const { kind } = Object(given)
  return kind === 'channel' || kind === 'operation'
}

function payloadOf(
  name: string,
  at: string,
  schema: StandardSchema,
  toJsonSchema: AsyncApiOptions['toJsonSchema'],
): unknown {
  const { jsonSchema } = schema['~standard']
  if (toJsonSchema === undefined && jsonSchema === undefined) return undefined
  try {
    const made: unknown =
      toJsonSchema === undefined
        ? jsonSchema?.input({ target: target.target })
        : toJsonSchema(schema as never, target)
    if (typeof made !== 'object' || made === null) throw new TypeError('it gave no object')
    JSON.stringify(made)
    return placed(made, at, made)
  } catch (cause) {
    return refuse(
      'toJsonSchema',
      `gives no JSON Schema of '${name}': ${cause instanceof Error ? cause.message : cause}`,
      cause,
    )
  }
}

/** Keywords whose values are data, and keywords whose values are schemas by name. */
const data = ['const', 'default', 'enum', 'examples']
const maps = [
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
]

// Adapts a schema to its place in the document: references to itself point there. Draft 7 has other
// keywords for tuples than later versions, and ignores keywords beside `$ref`.
function placed(schema: unknown, at: string, whole: object): unknown {
  if (Array.isArray(schema)) return schema.map((each) => placed(each, at, whole))
  if (typeof schema !== 'object' || schema === null) return schema
  const { $schema: _, $id: __, $ref, prefixItems, ...rest } = schema as AsyncApiNode
  const { items, ...others } = rest
  const own = Object.entries(
    prefixItems === undefined
      ? rest
      : { ...others, items: prefixItems, ...present({ additionalItems: items }) },
  )
  const made = own.map(([key, value]) => {
    if (data.includes(key)) return [key, value]
    const isMap = maps.includes(key) && typeof value === 'object' && value !== null
    return [
      key,
      isMap
        ? Object.fromEntries(
            Object.entries(value).map(([name, each]) => [name, placed(each, at, whole)]),
          )
        : placed(value, at, whole),
    ]
  })
  if (typeof $ref !== 'string') return Object.fromEntries(made)
  if ($ref.startsWith('#') && !leadsTo($ref, whole))
    throw new TypeError(
      `$ref "${printable($ref)}" must be '#' or a JSON Pointer to a part of the schema`,
    )
  const refers = { $ref: $ref.startsWith('#') ? at + $ref.slice(1) : $ref }
  if (made.length === 0) return refers
  const { allOf = [], ...all } = Object.fromEntries(made)
  return { ...all, allOf: [refers, ...allOf] }
}

/** True if a JSON Pointer in a URL (RFC 6901, section 6) has a target. */
function leadsTo(pointer: string, whole: object): boolean {
  const [first, ...names] = pointer.split('/')
  let at: unknown = whole
  for (const name of names) {
    const key = decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false
    at = at[key as keyof typeof at]
  }
  return first === '#'
}

function pointerTo(channel: string, message?: string): string {
  const at = `#/channels/${escaped(channel)}`
  return message === undefined ? at : `${at}/messages/${escaped(message)}`
}

// A name in a JSON Pointer (RFC 6901), which is part of a URL.
function escaped(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
}

function reference(channel: string, messages: readonly string[] = ['message']): AsyncApiNode {
  return {
    channel: { $ref: pointerTo(channel) },
    messages: messages.map((name) => ({ $ref: pointerTo(channel, name) })),
  }
}

// Retain and expiry are set by the publisher, so only the sending side has them.
function bindingOf(
  { defaults }: Channel<string, unknown, unknown>,
  action: 'send' | 'receive',
): AsyncApiNode {
  const { publish, subscribe } = defaults
  if (action === 'receive') return { qos: subscribe?.qos ?? defaults.qos ?? 0 }
  const messageExpiryInterval = publish?.properties?.messageExpiryInterval
  return {
    qos: publish?.qos ?? defaults.qos ?? 0,
    retain: publish?.retain ?? defaults.retain ?? false,
    ...present({ messageExpiryInterval }),
  }
}

function serverOf(name: string, server: AsyncApiServer): AsyncApiNode {
  const { host, protocol, ...more } = typeof server === 'string' ? fromUrl(server) : (server ?? {})
  if (typeof host === 'string' && host !== '' && typeof protocol === 'string' && protocol !== '')
    return { host, protocol, ...more }
  return refuse(
    `servers.${name}`,
    'must be a URL such as mqtts://broker.example, or an object with host and protocol',
  )
}

function fromUrl(server: string): Partial<AsyncApiServerObject> {
  if (!URL.canParse(server)) return {}
  const { host, protocol, pathname } = new URL(server)
  return {
    host,
    protocol: protocol.slice(0, -1),
    ...(pathname === '' || pathname === '/' ? {} : { pathname }),
  }
}

/** The fields that have a value. */
function present(fields: AsyncApiNode): AsyncApiNode {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function refuse(option: string, what: string, cause?: unknown): never {
  throw new MqttError('ERR_INVALID_OPTION', `${option} ${what}`, { option, cause })
}
