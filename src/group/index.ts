/**
 * `mqwire/group`: several brokers behind one interface, each with its own session.
 *
 * @module
 */
import { Client } from 'mqwire'
import { groupOf } from './broker-group.js'
import type { Group, GroupOptions } from './types.js'

export type { MembersError } from '../members/failure.js'
export type { MemberEvents } from '../members/listeners.js'
export type { MemberClient } from '../members/member.js'
export type { OnLost } from '../members/router.js'
export type {
  Deduplication,
  GivenMember,
  Group,
  GroupConnectOptions,
  GroupGrant,
  GroupHandling,
  GroupListenOptions,
  GroupMember,
  GroupMessage,
  GroupOptions,
  GroupPublishOptions,
  GroupReading,
  GroupReceipt,
  GroupRouting,
  GroupStats,
  GroupSubscribeOptions,
  GroupSubscription,
  MemberEndpoint,
  MemberResult,
} from './types.js'

/**
 * Creates a group; `connect()` connects it.
 * @throws MqttError ERR_INVALID_OPTION; as `new Client()` for the endpoints and options of the
 * members
 */
export function createGroup(options: GroupOptions): Group {
  return groupOf((endpoints, given) => new Client(endpoints, given), options)
}
