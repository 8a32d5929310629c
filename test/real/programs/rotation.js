/**
 * Publishes without pause with tokens that live for a second or two, to whichever of two brokers is there.
 *
 * BROKERS are their URLs, TOKENS is where a new token is to be had. SIGTERM lets what was published arrive, and ends it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, constant } from 'mqwire'
import { print } from './print.js'

async function credentials({ signal }) {
  const response = await fetch(process.env.TOKENS, { signal })
  const { token, expiresAt } = await response.json()
  return { username: 'rotation', password: token, expiresAt }
}

const client = await connect(process.env.BROKERS.split(' '), {
  credentials,
  refreshBefore: 500,
  reconnect: { backoff: constant(20) },
})
let published = 0
let failed = 0
let stopping = false

client.on('connect', ({ endpoint }) => print({ connected: endpoint }))
client.on('disconnect', ({ error }) => print({ disconnected: error?.message }))
print({ connected: 'first' })
process.once('SIGTERM', () => {
  stopping = true
})

while (!stopping) {
  client.publish('rotation', String(published), { qos: 1 }).catch(() => {
    failed += 1
  })
  published += 1
  await sleep(5)
}
await client.drain()
print({ state: 'closed', published, failed })
