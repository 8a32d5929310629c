/** A broker and a client of it over TCP, for suites whose subject is another client: a page, or a program. */
import { beforeAll } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import type { Broker } from './brokers.js'

/** What there is once `beforeAll` has run. */
export interface BrokerAndClient {
  broker: Broker
  client: Client
}

/** Starts both before the tests of a suite, and ends them behind. */
export function brokerAndClient(start: () => Promise<Broker>): BrokerAndClient {
  const both = {} as BrokerAndClient
  beforeAll(async () => {
    both.broker = await start()
    both.client = await connect(both.broker.urls.TCP ?? '')
    return async () => {
      await both.client.disconnect({ timeout: 0 })
      await both.broker.stop()
    }
  })
  return both
}
