/**
 * Checks the arguments of group methods. Options of clients are checked by the clients.
 */
import type { ClientOptions, Endpoint } from '../client/options/index.js'
import { plainName } from '../common/plain-name.js'
import {
  anyObject,
  callable,
  integer,
  invalid,
  longestTimer,
  object,
  oneOf,
  optional,
  type Parser,
  signal,
  withDefault,
} from '../common/schema.js'
import type { MemberClient } from '../members/member.js'
import { baseOptions } from '../members/members.js'
import type {
  Deduplication,
  GivenMember,
  GroupConnectOptions,
  GroupOptions,
  GroupReading,
  GroupRouting,
} from './types.js'

/** A member to create, or an existing client. */
export type CheckedMember =
  | { readonly client: MemberClient }
  | {
      readonly client: undefined
      readonly endpoints: Endpoint | readonly Endpoint[]
      readonly options: ClientOptions
    }

const names: Parser<readonly string[]> = (value, path) => {
  if (!Array.isArray(value) || value.length === 0) invalid(path, 'an array of names of members')
  return [
    ...new Set((value as unknown[]).map((name, index) => plainName(name, `${path}[${index}]`))),
  ]
}

const isClient = (value: object): value is MemberClient =>
  'publish' in value && 'connect' in value && 'on' in value

/** Checks a member. @throws MqttError ERR_INVALID_OPTION */
export function checkedMember(given: GivenMember, path: string): CheckedMember {
  if (typeof given === 'string' || given instanceof URL || Array.isArray(given))
    return { client: undefined, endpoints: given as Endpoint, options: {} }
  const value = anyObject(given, path)
  if (isClient(value)) return { client: value }
  const { options = {}, ...endpoint } = value as { options?: ClientOptions; url?: unknown }
  anyObject(options, `${path}.options`)
  const { url, ...others } = endpoint
  if (!Array.isArray(url))
    return { client: undefined, endpoints: endpoint as unknown as Endpoint, options }
  const [other] = Object.keys(others)
  if (other !== undefined)
    invalid(`${path}.${other}`, 'with the endpoint that it is for, where url is a list')
  return { client: undefined, endpoints: url as Endpoint[], options }
}

const members: Parser<ReadonlyMap<string, CheckedMember>> = (value, path) => {
  const entries = Object.entries(anyObject(value, path) as Record<string, GivenMember>)
  if (entries.length === 0) invalid(path, 'an object with at least one member')
  return new Map(
    entries.map(([name, given]) => [
      plainName(name, `${path}: a name`),
      checkedMember(given, `${path}.${name}`),
    ]),
  )
}

const routing = oneOf('broadcast', 'round-robin', 'hash')

const schema = {
  members,
  shared: withDefault(baseOptions, {}),
  routing: withDefault(routing, 'broadcast'),
  offline: withDefault(oneOf('reject', 'queue'), 'reject'),
  onLost: withDefault(oneOf('wait', 'move'), 'wait'),
  stalledAfter: withDefault(integer(1, longestTimer, ' milliseconds'), 1000),
}

const parse =
  object<{ -readonly [K in keyof typeof schema]: ReturnType<(typeof schema)[K]> }>(schema)

/** Options of a group, checked. */
export type GroupConfig = ReturnType<typeof parse>

/** Checks the options of a group. @throws MqttError ERR_INVALID_OPTION */
export function groupConfig(given: GroupOptions): GroupConfig {
  return parse(anyObject(given, 'options'))
}

/** Checks how a group connects. @throws MqttError ERR_INVALID_OPTION */
export const connectCall = object<
  Required<Omit<GroupConnectOptions, 'signal'>> & Pick<GroupConnectOptions, 'signal'>
>({
  mode: withDefault(oneOf('parallel', 'sequential'), 'parallel'),
  require: withDefault(oneOf('any', 'all'), 'any'),
  signal: optional(signal),
})

const deduplication = object<{
  -readonly [K in keyof Deduplication]-?: Exclude<Deduplication[K], undefined>
}>({
  key: callable as Parser<Deduplication['key']>,
  window: integer(1, longestTimer, ' milliseconds'),
  limit: withDefault(integer(1, 10_000_000), 10_000),
})

/** Checked options of deduplication. */
export type CheckedDeduplication = ReturnType<typeof deduplication>

/** The group's part of the options of a subscription, and the rest for the clients. */
export interface CheckedReading<Options> {
  readonly members: readonly string[] | undefined
  readonly deduplicate: CheckedDeduplication | undefined
  readonly require: 'any' | 'all'
  readonly options: Options
}

/**
 * Checks the options of `subscribe`, `subscription` and `listen`.
 * @throws MqttError ERR_INVALID_OPTION
 */
export function readingCall<Options extends object>(
  given: (Options & GroupReading) | undefined,
): CheckedReading<Options> {
  const {
    members: chosen,
    deduplicate,
    require,
    ...options
  } = anyObject(given ?? {}, 'options') as Options & GroupReading
  return {
    members: optional(names)(chosen, 'members'),
    deduplicate: optional<CheckedDeduplication>(deduplication)(deduplicate, 'deduplicate'),
    require: withDefault(oneOf('any', 'all'), 'any')(require, 'require'),
    options: options as unknown as Options,
  }
}

/** Checks the options of a publish about members. @throws MqttError ERR_INVALID_OPTION */
export function publishingCall<Options extends object>(
  given: (Options & { members?: unknown; routing?: unknown }) | undefined,
  usual: GroupRouting,
): {
  readonly members: readonly string[] | undefined
  readonly routing: GroupRouting
  readonly options: Options | undefined
} {
  if (given === undefined) return { members: undefined, routing: usual, options: undefined }
  const { members: chosen, routing: way, ...options } = anyObject(given, 'options') as typeof given
  return {
    members: optional(names)(chosen, 'members'),
    routing: withDefault(routing, usual)(way, 'routing'),
    options: options as unknown as Options,
  }
}
