/**
 * Converts between values and messages, for channels and operations.
 */

import { access, type ClientAccess } from '../client/access.js'
import type { Message, PublishProperties } from '../client/options/index.js'
import { after, asInvalid, type Codec, invalid, isPromise, type Reading } from './codec.js'

/** The internals of a client, if available; for other clients, every feature is assumed. */
export function accessOf(client: object): ClientAccess {
  return (
    (client as { [access]?(): ClientAccess })[access]?.() ?? {
      modern: true,
      reportInvalid: () => undefined,
    }
  )
}

/**
 * The payload of a value, or a promise of it.
 * @throws MqttError ERR_INVALID_PAYLOAD; such a promise rejects with it
 */
export function encoded<In>(
  codec: Codec<In, unknown>,
  value: In,
): string | Uint8Array | Promise<string | Uint8Array> {
  return checked(
    () =>
      after<string | Uint8Array, string | Uint8Array>(codec.encode(value), (given) =>
        payloadOf(codec, given),
      ),
    false,
  )
}

// Copied, because it may be sent much later and libraries reuse their memory.
function payloadOf(
  { inPlace }: Codec<never, unknown>,
  given: string | Uint8Array,
): string | Uint8Array {
  if (typeof given === 'string' || (inPlace === true && ArrayBuffer.isView(given))) return given
  if (ArrayBuffer.isView(given))
    return new Uint8Array(given.buffer, given.byteOffset, given.byteLength).slice()
  throw invalid([{ message: 'encode() gave neither text nor bytes' }])
}

/** Converts errors of codecs, thrown or rejected, to payload errors. */
function checked<T>(make: () => T | PromiseLike<T>, remote: boolean): T | Promise<T> {
  const refuse = (error: unknown): never => {
    throw asInvalid(error, remote)
  }
  try {
    const made = make()
    return isPromise(made) ? Promise.resolve(made).catch(refuse) : made
  } catch (error) {
    return refuse(error)
  }
}

/** Properties with content type and format of the codec; none on 3.1.1. */
export function propertiesOf(
  { contentType, payloadFormatIndicator }: Codec<never, unknown>,
  modern: boolean,
  given?: PublishProperties,
): PublishProperties | undefined {
  if (!modern || (contentType ?? payloadFormatIndicator) === undefined) return given
  return { contentType, payloadFormatIndicator, ...given }
}

/**
 * The value of a message, or a promise of it.
 * @throws MqttError ERR_INVALID_PAYLOAD; such a promise rejects with it
 */
export function decoded<Out>(codec: Codec<never, Out>, message: Message): Out | Promise<Out> {
  return checked(() => readBy(codec, message), true)
}

function readBy<Out>(codec: Codec<never, Out>, message: Message): Out | Promise<Out> {
  const { contentType } = message.properties
  if (contentType !== undefined && !accepts(codec.contentType, contentType))
    throw invalid(
      [{ message: `content type is '${contentType}', not '${codec.contentType}'` }],
      undefined,
      true,
    )
  const { read } = codec.decode as Reading<Out>
  return read === undefined ? codec.decode(bytesOf(codec, message), message) : read(message)
}

// Copied, because libraries return views of their input, and a borrowed message's memory is reused.
function bytesOf({ inPlace }: Codec<never, unknown>, { payload }: Message): Uint8Array {
  return inPlace === true ? payload : new Uint8Array(payload)
}

// Compares without parameters and case. For JSON, types with the suffix `+json` are accepted too.
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
