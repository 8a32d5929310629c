/**
 * One value in a message, and one message as a value: what channels and operations share.
 */
import type { Message, PublishProperties } from '../client/api/index.js'
import { type Inside, inside } from '../client/common/inside.js'
import { asInvalid, type Codec, invalid, isPromise, type ReadingCodec } from './codec.js'

/** What a client tells of itself, where it does; of others the best is thought. */
export function insideOf(client: object): Inside {
  return (client as { [inside]?(): Inside })[inside]?.() ?? { modern: true, tell: () => undefined }
}

/** The payload of a value, or the promise of one. @throws MqttError ERR_INVALID_PAYLOAD; such a promise rejects with it */
export function encoded<In>({ encode }: Codec<In, unknown>, value: In): string | Uint8Array | Promise<string | Uint8Array> {
  try {
    const payload = encode(value) as ReturnType<typeof encode> | PromiseLike<string>
    if (isPromise(payload)) return Promise.resolve(payload).catch(rethrow)
    return typeof payload === 'string' || ArrayBuffer.isView(payload)
      ? payload
      : rethrow(invalid([{ message: 'encode() gave neither text nor bytes' }]))
  } catch (error) {
    return rethrow(error)
  }
}

function rethrow(error: unknown): never {
  throw asInvalid(error)
}

/** Properties with what the codec says of its payloads; 3.1.1 has none. */
export function propertiesOf(
  { contentType, payloadFormatIndicator }: Codec<never, unknown>,
  modern: boolean,
  given?: PublishProperties,
): PublishProperties | undefined {
  if (!modern || (contentType ?? payloadFormatIndicator) === undefined) return given
  return { contentType, payloadFormatIndicator, ...given }
}

/** The value of a message, or the promise of one. @throws MqttError ERR_INVALID_PAYLOAD; such a promise rejects with it */
export function decoded<Out>(codec: Codec<never, Out>, message: Message): Out | Promise<Out> {
  try {
    const { contentType } = message.properties
    if (contentType !== undefined && !accepts(codec.contentType, contentType))
      throw invalid([{ message: `content type is '${contentType.slice(0, 99)}', not '${codec.contentType}'` }])
    const { read } = codec as Partial<ReadingCodec<never, Out>>
    const value: Out | PromiseLike<Out> = read === undefined ? codec.decode(bytesOf(codec, message), message) : read(message)
    return isPromise(value) ? (Promise.resolve(value).catch(refuse) as Promise<Out>) : value
  } catch (error) {
    return refuse(error)
  }
}

function refuse(error: unknown): never {
  throw asInvalid(error, true)
}

// Libraries hand out views of what they read, and what a borrowed message holds is used again.
function bytesOf({ inPlace }: Codec<never, unknown>, message: Message): Uint8Array {
  const { payload } = message
  return inPlace === true ? payload : payload.slice()
}

// Without parameters, and whatever the case. JSON is also what says that it is built on it.
function accepts(own: string | undefined, given: string): boolean {
  if (own === undefined) return true
  const wanted = essence(own)
  const found = essence(given)
  return found === wanted || (wanted === jsonType && found.endsWith('+json'))
}

const jsonType = 'application/json'

function essence(type: string): string {
  const end = type.indexOf(';')
  return (end < 0 ? type : type.slice(0, end)).trim().toLowerCase()
}
