/** The broker of a program: fresh with each run, because each run has a worker of its own. */
import { MemoryBroker, scramServer } from 'mqwire/testing'

/** Called with each filter that a client subscribes to, and whenever the number of clients changes. */
export const watching = { subscribed: (_filter) => {}, changed: () => {} }

export const broker = new MemoryBroker({
  // The user of the guide to connecting.
  auth: { 'SCRAM-SHA-256': scramServer((user) => (user === 'dash' ? 'secret' : undefined)) },
  authorizeSubscribe(_client, { filter }) {
    watching.subscribed(filter)
    return true
  },
})

let clients = 0

/** Clients that have not ended. */
export const openClients = () => clients

/** Counts a client; the returned function ends that. */
export function attend() {
  clients += 1
  return () => {
    clients -= 1
    watching.changed()
  }
}
