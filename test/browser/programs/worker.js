/** The program in a dedicated worker: asked with a message, answered with one. */
import { outcome } from './everything.js'

globalThis.onmessage = async ({ data }) =>
  globalThis.postMessage(await outcome(data.url, data.name))
