// A tab whose session and queue lie in IndexedDB: what the tests call stands on the global object. `?url=…&name=…` say which broker and which store.

import { Client } from '/dist/client/browser.js'
import { openQueue } from '/dist/queue/index.js'
import { levelStore } from '/dist/store/level-browser.js'

const parameters = new URLSearchParams(location.search)
const name = parameters.get('name')
const diary = []
const note = (type, more = {}) => diary.push({ type, ...more })
const tell = (error) => ({ code: error.code, cause: error.cause?.name, outcome: error.outcome })

let store
let client
let queue

globalThis.tab = {
  diary,
  /** Opens the store, and connects, unless it is to stay offline; with a queue on request. Says when the store is open. */
  async open({ lock = 'fail', queued = false, handle = 'done', offline = false } = {}) {
    store = await levelStore(`durable-${name}`, { lock })
    note('open')
    client = new Client(parameters.get('url'), {
      clientId: name,
      store,
      firstConnect: 'wait',
      reconnect: { backoff: () => 100 },
    })
    client.on('connect', ({ recovered, sessionPresent }) =>
      note('connect', { recovered, sessionPresent }),
    )
    client.on('recovered', ({ topic, qos, receipt, error }) =>
      note('recovered', { topic, qos, code: receipt?.reasonCode, error: error?.code }),
    )
    client.on('error', ({ error }) => note('error', tell(error)))
    if (queued) {
      queue = await openQueue(client, { store })
      queue.on('error', ({ error }) => note('error', tell(error)))
    }
    if (handle !== 'nothing')
      client
        .listen(
          `${name}/in`,
          async (message) => {
            note('message', {
              id: message.id,
              text: message.text(),
              redelivered: message.redelivered,
            })
            if (handle === 'never') await new Promise(() => undefined)
          },
          { qos: 2 },
        )
        .catch((error) => note('failed', tell(error)))
    if (!offline) this.connect()
    return 'open'
  },
  connect() {
    client.connect().catch((error) => note('failed', tell(error)))
  },
  /** Publishes and waits for nothing. */
  publish(texts, qos) {
    for (const text of texts)
      client.publish(`${name}/out`, text, { qos }).then(
        () => note('published', { text }),
        (error) => note('failed', tell(error)),
      )
  },
  /** Fulfils when all of them are in the store. */
  async enqueue(texts, qos) {
    const kept = await Promise.all(texts.map((text) => queue.publish(`${name}/out`, text, { qos })))
    return kept.length
  },
  /** Stores messages of so many bytes, one after the other, until one is refused: how many there are, and why that is all. */
  async fill(bytes, qos) {
    for (let count = 0; ; count++) {
      // The database compresses what repeats itself.
      const noise = String.fromCharCode(
        ...crypto.getRandomValues(new Uint8Array(bytes)).map((byte) => 48 + (byte & 63)),
      )
      const error = await queue
        .publish(`${name}/out`, `text ${count} ${noise}`, { qos })
        .then(() => undefined, tell)
      if (error !== undefined) return { count, error }
    }
  },
  size: () => queue.size,
  bytes: () => queue.bytes,
  /** What came of it, as text or as the fields of the error. */
  tryEnqueue: (text) => queue.publish(`${name}/out`, text, { qos: 2 }).then(() => 'stored', tell),
  remove() {
    return new Promise((resolve) => {
      const request = indexedDB.deleteDatabase(`mqwire:durable-${name}`)
      request.onblocked = () => resolve('blocked')
      request.onsuccess = () => resolve('deleted')
    })
  },
  async close() {
    await queue?.close({ timeout: 500 })
    await client.disconnect({ timeout: 500 })
    await store.close()
    return 'closed'
  },
}
