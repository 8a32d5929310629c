/** SCRAM-SHA-256 through the whole client, against the in-memory broker: at CONNECT, and again. */
import { expect, it } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { Client } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import { scramServer } from '../../../src/testing/scram-server.js'

it('logs in, and authenticates again on the open connection', async () => {
  const auth = { 'SCRAM-SHA-256': scramServer((name) => (name === 'user' ? 'pencil' : undefined)) }
  const broker = new MemoryBroker({ auth })
  const client = new Client(
    { url: 'memory://broker', transport: () => broker.connect() },
    { auth: scramSha256({ username: 'user', password: 'pencil' }), reconnect: false },
  )
  await client.connect()
  expect(broker.clients.size).toBe(1)
  for (let count = 0; count < 3; count += 1) await client.reauthenticate()
  const subscription = await client.subscribe('a')
  await client.publish('a', 'x')
  expect((await subscription.next())?.text()).toBe('x')
  expect(broker.violations).toEqual([])
  client.destroy()
})
