/** Clients on a broker in memory, in real time: typed topics are tried as programs use them. */
import { afterEach } from 'vitest'
import type { ClientOptions } from '../../src/client/api/index.js'
import { Client } from '../../src/client/node.js'
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/broker/index.js'

const open: (() => unknown)[] = []

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

/** A broker of this test's own. */
export function brokerOf(options: MemoryBrokerOptions = {}): MemoryBroker {
  const broker = new MemoryBroker(options)
  open.push(() => broker.close())
  return broker
}

/** A client that is connected. */
export async function clientOn(broker: MemoryBroker, options: ClientOptions = {}): Promise<Client> {
  const client = new Client({ url: 'memory://broker', transport: broker.dial }, { reconnect: { backoff: () => 20 }, ...options })
  open.push(() => client.destroy())
  await client.connect()
  return client
}
