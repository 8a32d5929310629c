/**
 * `mqwire/wasm`: a scanner of incoming packets in WebAssembly with SIMD. Pass it as the option
 * `scanner`; in Node it is loaded automatically.
 *
 * It accepts and refuses exactly what the parser in TypeScript does, but faster, above all for
 * properties, non-ASCII text and small packets. Importing this has no side effect. Without
 * WebAssembly or SIMD, or if the page's Content Security Policy forbids it (without
 * `'wasm-unsafe-eval'`), there is no scanner and no error.
 *
 * @module
 */
import type { FrameOptions, FrameScanner, FrameSource, ReadWindow } from '../wire/frames.js'
import { binary } from './binary.js'
import { WasmFrames } from './frames.js'
import { Memory } from './memory.js'

export type { FrameOptions, FrameScanner, FrameSource, ReadWindow }

let loading: Promise<FrameScanner | undefined> | undefined

/**
 * The scanner of this thread, compiled on the first call; undefined if the platform does not
 * support it. Never rejects.
 */
export function loadScanner(): Promise<FrameScanner | undefined> {
  loading ??= load()
  return loading
}

async function load(): Promise<FrameScanner | undefined> {
  try {
    const text = atob(binary)
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0))
    // Also fails without SIMD, which the binary uses.
    if (!WebAssembly.validate(bytes)) return undefined
    const { instance } = await WebAssembly.instantiate(bytes)
    const memory = new Memory(instance.exports)
    const frames = (options: FrameOptions): FrameSource => new WasmFrames(memory, options)
    // Engines discard the code compiled for a kind of object when none is left, as between two
    // connections.
    const kept: FrameScanner & { example: FrameSource } = {
      window: memory.window,
      frames,
      example: frames({ protocolVersion: 5, maximumPacketSize: 0 }),
    }
    return kept
  } catch {
    return undefined
  }
}
