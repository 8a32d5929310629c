/** SCRAM-SHA-256 through the whole client, against the in-memory broker: at CONNECT, at re-authentication, after a lost link, and refused. */
import { afterEach, expect, it } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { Client, type ClientOptions } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import { type ScramServerOptions, scramServer } from '../../../src/testing/scram-server.js'
import { thrown } from './exchange.js'

const clients: Client[] = []

function scene(
  options: ClientOptions = {},
  server: ScramServerOptions = {},
  password = 'pencil',
): { broker: MemoryBroker; client: Client } {
  const auth = {
    'SCRAM-SHA-256': scramServer((name) => (name === 'user' ? 'pencil' : undefined), server),
  }
  const broker = new MemoryBroker({ auth })
  const client = new Client(
    { url: 'memory://broker', transport: () => broker.connect() },
    {
      clientId: 'c',
      auth: scramSha256({ username: 'user', password }),
      reconnect: false,
      ...options,
    },
  )
  clients.push(client)
  return { broker, client }
}

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
})

it('logs in, and authenticates again on the open connection', async () => {
  const { broker, client } = scene()
  await client.connect()
  expect(broker.clients.size).toBe(1)
  for (let count = 0; count < 3; count += 1) await client.reauthenticate()
  const subscription = await client.subscribe('a')
  await client.publish('a', 'x')
  expect((await subscription.next())?.text()).toBe('x')
  expect(broker.violations).toEqual([])
})

it('a wrong password: refused with 0x87, and nothing was told', async () => {
  const { broker, client } = scene({}, {}, 'pencils')
  expect(await thrown(() => client.connect())).toMatchObject({
    code: 'ERR_CONNECT_REFUSED',
    reasonCode: 0x87,
  })
  expect([broker.clients.size, broker.sessions.size]).toEqual([0, 0])
})

it('a server that asks for too few rounds: nothing more is sent', async () => {
  const { broker, client } = scene({}, { iterations: 1000 })
  const sent: string[] = []
  client.on('packet', ({ direction, packet }) => direction === 'out' && sent.push(packet.type))
  expect(await thrown(() => client.connect())).toMatchObject({
    code: 'ERR_AUTH_FAILED',
    fault: 'remote',
  })
  expect(sent).toEqual(['connect'])
  expect(broker.clients.size).toBe(0)
})
