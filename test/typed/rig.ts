/** Clients on a broker in memory, in real time: typed topics are tried as programs use them. */
import { onTestFinished } from 'vitest'
import type { ClientOptions } from '../../src/client/api/index.js'
import { Client } from '../../src/client/node.js'
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/broker/index.js'

/** A broker of this test's own, closed with it. */
export function brokerOf(options: MemoryBrokerOptions = {}): MemoryBroker {
  const broker = new MemoryBroker(options)
  onTestFinished(() => broker.close())
  return broker
}

/** A client that is connected until the test ends. */
export async function clientOn(broker: MemoryBroker, options: ClientOptions = {}): Promise<Client> {
  const client = new Client({ url: 'memory://broker', transport: broker.dial }, { reconnect: { backoff: () => 20 }, ...options })
  onTestFinished(() => client.destroy())
  await client.connect()
  return client
}
