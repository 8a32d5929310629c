/**
 * All that the form does with MQTT: a store in IndexedDB, a client whose session is kept in it, and a queue in the same store.
 *
 * As both share it, an entry and its publish end in one write to the store, and QoS 2 is exactly once: also when the page is reloaded, closed or killed in
 * the middle. Only one tab can have the store; nothing here knows of the page.
 *
 * Why the page does this, and not a service worker: a browser stops a service worker after half a minute without events, whenever it likes, and the
 * WebSocket with it; and a worker that was stopped is not started again because a network is there. The page lives as long as somebody looks at it.
 */
import { Client, exponential } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { levelStore } from 'mqwire/store/level'

/** Opens the store. `waits()` is called when another tab has it; then it is opened as soon as that tab is gone. */
async function openStore(name, waits) {
  try {
    return await levelStore(name)
  } catch (error) {
    if (error.code !== 'ERR_STORE_LOCKED') throw error
    waits()
    return levelStore(name, { lock: 'wait' })
  }
}

/**
 * Opens the outbox of this browser, and delivers what is in it whenever the broker at `url` can be reached. `waits()` is called when another tab has it,
 * `stateChanged(state)` with the state of the client, `failed(error)` when the store has failed.
 */
export async function openOutbox(name, url, { waits, stateChanged, failed }) {
  const store = await openStore(name, waits)
  // No client identifier: the broker gives one, and the store remembers it.
  const client = new Client(url, {
    store,
    firstConnect: 'wait',
    reconnect: { backoff: exponential({ min: 500, max: 5000 }) },
  })
  const queue = await openQueue(client, {
    store,
    qos: 2,
    overflow: 'reject',
    deadLetterStore: store,
  })
  client.on('state', ({ state }) => stateChanged(state))
  for (const source of [client, queue])
    source.on('error', ({ error }) => error.code === 'ERR_STORE' && failed(error))
  // Not awaited: entries are taken before there is a broker. How the connection ends, `closed` says.
  client.connect().catch(() => undefined)
  return { store, client, queue }
}

/** What waits, the oldest first: as many as asked for. */
export async function firstOf(entries, most) {
  const found = []
  for await (const { id, payload, topic } of entries) {
    if (found.length === most) break
    found.push({ id, topic, text: new TextDecoder().decode(payload) })
  }
  return found
}
