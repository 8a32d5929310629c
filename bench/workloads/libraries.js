/**
 * mqwire as it is built, with the parts that a build may lack: Scanner and Encoder of the codec, and the WebAssembly scanner.
 */
import * as wire from 'mqwire/wire'

/** The WebAssembly scanner; undefined where the build or the platform has none. */
async function webAssembly() {
  try {
    const { loadScanner } = await import('mqwire/wasm')
    return await loadScanner()
  } catch {
    return undefined
  }
}

/** `{ wire, wasm }`. */
export async function ours() {
  return { wire, wasm: await webAssembly() }
}
