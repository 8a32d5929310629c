/** The world in a dedicated worker: asked `[name, ...arguments]`, answers `{ result }` or `{ failure }`. */
import * as known from './world.ts'

globalThis.onmessage = async ({ data: [name, ...given] }) => {
  try {
    postMessage({ result: await known[name](...given) })
  } catch (error) {
    postMessage({ failure: String(error?.stack ?? error) })
  }
}
