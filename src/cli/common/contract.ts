/**
 * Payloads decoded by the channels of a module (`--contract`).
 */
import type { Message } from 'mqwire'
import type { Channel } from 'mqwire/typed'
import { misuse, reasonOf } from './ending.js'
import { moduleAt } from './module.js'

/** What a channel made of a payload. */
export interface Decoded {
  /** The name of the channel in its module. */
  readonly channel: string
  /** The value as JSON. */
  readonly json?: string
  /** Why the payload does not fit the channel. */
  readonly problem?: string
}

/** Decodes a message; undefined when no channel has its topic. */
export type Decode = (message: Message) => Promise<Decoded | undefined>

/** Loads the channels that a module exports, also within contracts and groups. */
export async function decoderOf(file: string): Promise<Decode> {
  const channels = [...channelsIn(await moduleAt(file), '', new Set())]
  if (channels.length === 0) throw misuse(`${file} exports no channel and no contract`)
  return async (message) => {
    const [name, channel] =
      channels.find(([, { topic }]) => topic.match(message.topic) !== undefined) ?? []
    if (name === undefined || channel === undefined) return undefined
    try {
      return { channel: name, json: jsonOf(await channel.codec.decode(message.payload, message)) }
    } catch (error) {
      return { channel: name, problem: reasonOf(error) }
    }
  }
}

/** A value as JSON, with what JSON lacks: bytes as base64, maps as objects. @throws TypeError for circles */
function jsonOf(value: unknown): string {
  const text = JSON.stringify(value, function (this: object, key, found: unknown) {
    // A Buffer has its own idea of JSON, which has been applied already.
    const part: unknown =
      Reflect.get(this, key) instanceof Uint8Array ? Reflect.get(this, key) : found
    if (typeof part === 'bigint') return String(part)
    if (ArrayBuffer.isView(part))
      return Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString('base64')
    if (part instanceof ArrayBuffer) return Buffer.from(part).toString('base64')
    if (part instanceof Map) return Object.fromEntries(part)
    return part instanceof Set ? [...part] : part
  })
  return text ?? 'null'
}

type AnyChannel = Channel<string, unknown>

function* channelsIn(
  group: object,
  path: string,
  seen: Set<object>,
): Generator<[name: string, channel: AnyChannel]> {
  if (seen.has(group)) return
  seen.add(group)
  for (const [name, part] of Object.entries(group)) {
    const full = path === '' ? name : `${path}.${name}`
    if (isChannel(part)) yield [full, part]
    else if (typeof part === 'object' && part !== null) yield* channelsIn(part, full, seen)
  }
}

// By its kind, because the module may have a copy of the package of its own.
function isChannel(part: unknown): part is AnyChannel {
  return typeof part === 'object' && part !== null && 'kind' in part && part.kind === 'channel'
}
