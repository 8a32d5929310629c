/**
 * `mqwire/wire`: the MQTT 5.0 and 3.1.1 codec, both directions, with topics. Pure: no platform, no
 * clock, no state but what a caller holds and caches.
 *
 * @module
 */
export type { MqttErrorCode, MqttErrorDetails, Outcome } from '../errors.js'
export { MqttError } from '../errors.js'
export * from './constants.js'
export type { DecodeOptions } from './decode.js'
export { Decoder, decode } from './decode.js'
export type { AckInput, AuthInput, DisconnectInput, PacketInput } from './encode.js'
export { Encoder, encode } from './encode.js'
export type {
  ConnectInput,
  SubscribeInput,
  SubscriptionInput,
  UnsubscribeInput,
  WillInput,
} from './encode-client.js'
export type { PublishInput } from './encode-publish.js'
export type { ConnackInput, SubackInput } from './encode-server.js'
export type { WireErrorKind } from './error.js'
export { WireError } from './error.js'
export type { FrameOptions, FrameScanner, FrameSource, ReadWindow } from './frames.js'
export type * from './packets.js'
export type { PublishView } from './publish.js'
export { isReasonCode, reasonName } from './reason-codes.js'
export type { ScanOptions } from './scanner.js'
export { Scanner } from './scanner.js'
export type { TopicRecord } from './topic-table.js'
export type { Share } from './topics.js'
export {
  hasWildcard,
  isShared,
  matches,
  parseShare,
  TopicTrie,
  validateTopicFilter,
  validateTopicName,
} from './topics.js'
