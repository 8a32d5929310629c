/** What a page may run into that the browser or the server forbids, told as plain data. */
import { connect } from 'mqwire'
import { loadScanner } from 'mqwire/wasm'
import { outcome } from './everything.js'

function told(error) {
  const { cause } = error
  return {
    code: error.code,
    outcome: error.outcome,
    message: error.message,
    cause: cause && { code: cause.code, reason: cause.reason },
  }
}

const violations = []
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  violations.push({ violatedDirective, blockedURI }),
)

globalThis.policies = {
  violations,
  everything: ({ url, name }) => outcome(url, name),
  /** Is there a scanner, and does a client do without? */
  async scanner({ url, name }) {
    const scanner = loadScanner()
    const client = await connect(url, { clientId: name, scanner })
    const subscription = await client.subscribe(name, { qos: 1 })
    await client.publish(name, 'read', { qos: 1 })
    const text = (await subscription.next()).text()
    await client.disconnect({ timeout: 0 })
    return { scanner: typeof (await scanner)?.frames, text }
  },
  /** What connecting rejects with. */
  refused: ({ url }) => connect(url).then(() => undefined, told),
  /** What ends a connection that is up. */
  async ended({ url }) {
    const client = await connect(url, { reconnect: false })
    const lost = new Promise((resolve) =>
      client.on('disconnect', ({ cause }) => resolve(told(cause))),
    )
    // The server takes it for the sign to end the connection.
    client.publish('now', 'please', { qos: 1 }).catch(() => undefined)
    return { lost: await lost, closed: told(await client.closed) }
  },
}
