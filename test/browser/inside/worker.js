/** The world in a dedicated worker: asked `[name, ...arguments]`, answers `{ result }` or `{ failure }`. */
import { histories, historyOf } from './world.ts'

const known = { histories, historyOf }

globalThis.onmessage = async ({ data: [name, ...given] }) => {
  try {
    postMessage({ result: await known[name](...given) })
  } catch (error) {
    postMessage({ failure: String(error?.stack ?? error) })
  }
}
