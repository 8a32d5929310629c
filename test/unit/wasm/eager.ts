/** A scanner that is asked for every chunk, however small: for suites that are to run through WebAssembly as a whole. */
import { WasmFrames } from '../../../src/wasm/frames.js'
import type { FrameScanner } from '../../../src/wire/frames.js'
import { always, instantiate } from './scanner.js'

/** What to pass as the option `scanner`. */
export function eagerScanner(): FrameScanner {
  const memory = instantiate()
  return { window: memory.window, frames: (options) => new WasmFrames(memory, options, always) }
}
