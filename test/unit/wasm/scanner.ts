/**
 * The scanner as the tests drive it: an instance of their own, of the committed binary or of another source, and the comparison with the Framer.
 */
import { isDeepStrictEqual } from 'node:util'
import { binary } from '../../../src/wasm/binary.js'
import { WasmFrames, type Worth } from '../../../src/wasm/frames.js'
import { Memory } from '../../../src/wasm/memory.js'
import { Framer } from '../../../src/wire/framer.js'
import type { FrameScanner } from '../../../src/wire/frames.js'
import type { ProtocolVersion, PublishPacket } from '../../../src/wire/packets.js'
import { type Defect, instead } from '../../support/defective.js'
import { type Delivery, type Story, tell } from './story.js'

/** An instance of these bytes, by default of the committed ones. */
export function instantiate(
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array(Buffer.from(binary, 'base64')),
): Memory {
  return new Memory(new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports)
}

/** Everything goes through the scanner. */
export const always: Worth = {
  rich: 0,
  plain: 0,
  copied: 0,
  largestCopied: Number.POSITIVE_INFINITY,
}

/** A scanner that is asked for every chunk, however small: for suites that run through WebAssembly as a whole. */
export function eagerScanner(): FrameScanner {
  const memory = instantiate()
  return { window: memory.window, frames: (options) => new WasmFrames(memory, options, always) }
}

export interface Setting {
  readonly protocolVersion: ProtocolVersion
  readonly maximumPacketSize: number
  readonly splits?: boolean
  readonly skips?: boolean
}

/** Most bytes of packets other than PUBLISH. */
export const sizeLimit = (type: number): number => (type === 4 || type === 13 ? 40 : 100)

export function tellFramer(setting: Setting, deliveries: Iterable<Delivery>): Story {
  return tell(new Framer({ ...setting, from: 'server', sizeLimit }), deliveries)
}

export function tellScanner(
  memory: Memory,
  setting: Setting,
  given: Iterable<Delivery>,
  worth?: Worth,
  defect?: Defect,
): Story {
  const frames = new WasmFrames(memory, { ...setting, sizeLimit }, worth)
  return tell(defect === undefined ? frames : framesWith(defect, frames), given, memory.window)
}

function framesWith(defect: Defect, frames: WasmFrames): WasmFrames {
  const { decoded = (packet) => packet } = defect.make()
  const read: WasmFrames['read'] = (view, topics) => {
    frames.read(view, topics)
    view.retain = (decoded(view.packet()) as PublishPacket).retain
  }
  return instead(frames, { read })
}

/** Where two stories differ; undefined when they do not. */
export function differs(
  one: Story,
  other: Story,
): { at: number; one: unknown; other: unknown } | undefined {
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    if (!isDeepStrictEqual(one[at], other[at])) return { at, one: one[at], other: other[at] }
  }
  return undefined
}
