/** The program in a shared worker: asked over the port of whoever connects, and answered over it. */
import { outcome } from './everything.js'

globalThis.onconnect = ({ ports: [port] }) => {
  port.onmessage = async ({ data }) => port.postMessage(await outcome(data.url, data.name))
}
