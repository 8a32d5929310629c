/**
 * `mqwire/typed`: topics, payloads and contracts, checked by the compiler and at run time.
 *
 * Everything here takes the client as an argument, so unused parts are not bundled.
 *
 * @module
 */
export type { Poster, Publisher, Requester, Subscriber } from '../client/options/index.js'
export type { StreamOptions } from './answers.js'
export {
  type BoundChannel,
  Channel,
  type ChannelDefaults,
  type ChannelListenOptions,
  type ChannelPoster,
  type ChannelPublisher,
  type ChannelSubscribeOptions,
  type ChannelSubscriber,
  type ChannelWill,
  channel,
  type FiltersFirst,
  type TypedHandling,
} from './channel.js'
export {
  type BytesCodec,
  bytes,
  type Codec,
  codec,
  type FromJson,
  type JsonData,
  json,
  number,
  type SchemaOptions,
  text,
} from './codec.js'
export {
  type Bindable,
  type BoundContract,
  type CheckedParts,
  type Contract,
  contract,
} from './contract.js'
export type { Delivered, Invalid, InvalidVerdict, OnInvalid, Received } from './incoming.js'
export type {
  LatestChange,
  LatestEntry,
  LatestOptions,
  LatestSnapshot,
  LatestValues,
} from './latest.js'
export {
  type Answers,
  type BoundOperation,
  type CallOptions,
  type DeclaredError,
  type ErrorArguments,
  type ErrorsByCode,
  Operation,
  type OperationClient,
  type OperationDefaults,
  type OperationErrors,
  operation,
  type ServeOptions,
  type TypedResponder,
  type ValueFirst,
} from './operation.js'
export { type RetainedOptions, retained } from './retained.js'
export type { SchemaInput, SchemaOutput, SchemaResult, StandardSchema } from './standard-schema.js'
export type { TypedSubscription } from './subscription.js'
export {
  type Checked,
  type FilterOptions,
  type GivenParams,
  type IsPlain,
  type Params,
  type ParamsFirst,
  type SomeFirst,
  TopicTemplate,
  topic,
} from './template.js'
export { writableStream } from './writable-stream.js'
