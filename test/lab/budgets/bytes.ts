/** MQTT control packets written by hand, as Buffers: nothing of the package's codec is used, so that no error stands on both sides. */
import * as build from '../../fuzz/build.js'

export { two as uint16, variable as varint } from '../../fuzz/build.js'

export type Part = build.Part

/** Everything in a row. */
export const join = (...parts: Part[]): Buffer => Buffer.from(build.join(...parts).buffer)

/** A string or binary data with its length before it. */
export const text = (value: string | Uint8Array): Buffer => join(build.field(value))

/** A whole packet: first byte, Remaining Length, the rest. */
export const packet = (first: number, ...parts: Part[]): Buffer =>
  join(build.packet(first, ...parts))

/** A property block with its length. */
export function properties(...parts: Part[]): Buffer {
  const body = join(...parts)
  return join(build.variable(body.length), body)
}

/** User properties: `count` times the same pair. */
export function pairs(count: number, name = '', value = ''): Buffer {
  const one = join(0x26, text(name), text(value))
  const all = Buffer.alloc(one.length * count)
  for (let at = 0; at < all.length; at += one.length) all.set(one, at)
  return all
}

/** What a PUBLISH is made of. */
export interface PublishParts {
  readonly topic?: string
  readonly qos?: 0 | 1 | 2
  readonly id?: number
  readonly retain?: boolean
  readonly dup?: boolean
  /** The property block with its length; on 3.1.1 there is none. Default: an empty one. */
  readonly properties?: Uint8Array | undefined
  readonly payload?: string | Uint8Array
  readonly version?: 4 | 5
}

/** A PUBLISH. */
export function publish({
  topic = 'a',
  qos = 0,
  id = 1,
  retain = false,
  dup = false,
  properties: block,
  payload = '',
  version = 5,
}: PublishParts): Buffer {
  const first = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  return packet(
    first,
    text(topic),
    qos === 0 ? '' : build.two(id),
    version === 4 ? '' : (block ?? [0]),
    payload,
  )
}

/** A CONNACK. */
export function connack(
  reasonCode = 0,
  block: Uint8Array | readonly number[] = [0],
  sessionPresent = false,
  version: 4 | 5 = 5,
): Buffer {
  return packet(0x20, sessionPresent ? 1 : 0, reasonCode, version === 4 ? '' : (block as Part))
}

/** The same bytes, again and again, up to about `size` bytes, and how many times that is. */
export function repeated(
  bytes: Uint8Array,
  size: number,
): { readonly bytes: Buffer; readonly count: number } {
  const count = Math.max(1, Math.floor(size / bytes.length))
  const all = Buffer.alloc(count * bytes.length)
  for (let at = 0; at < all.length; at += bytes.length) all.set(bytes, at)
  return { bytes: all, count }
}
