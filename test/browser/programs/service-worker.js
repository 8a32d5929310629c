/** The program in a service worker, asked over the port that comes with the question. */
import { outcome } from './everything.js'

globalThis.onmessage = (event) => {
  const { data, ports } = event
  event.waitUntil(outcome(data.url, data.name).then((result) => ports[0].postMessage(result)))
}
