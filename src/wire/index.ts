/**
 * `mqwire/wire`: the MQTT 5.0 and 3.1.1 codec, both directions, with topics. Pure: no platform, no clock, no state but what a caller holds.
 */
export type { MqttErrorCode } from '../errors.js'
export { MqttError } from '../errors.js'
export * from './constants.js'
export type { DecodeOptions } from './decode.js'
export { Decoder, decode } from './decode.js'
export type { AckInput, AuthInput, DisconnectInput, PacketInput } from './encode.js'
export { encode } from './encode.js'
export type { ConnectInput, PublishInput, SubscribeInput, SubscriptionInput, UnsubscribeInput, WillInput } from './encode-client.js'
export type { ConnackInput, SubackInput } from './encode-server.js'
export type { WireErrorKind } from './error.js'
export { WireError } from './error.js'
export type * from './packets.js'
export { isReasonCode, reasonName } from './reason-codes.js'
export { hasWildcard, isShared, matches, parseShare, validateTopicFilter, validateTopicName } from './topics.js'
export { TopicTrie } from './trie.js'
