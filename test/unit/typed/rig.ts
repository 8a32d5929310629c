/** Clients on a broker in memory, in real time: typed topics are tried as programs use them. */
import { onTestFinished } from 'vitest'
import type { ClientOptions, Message } from '../../../src/client/api/index.js'
import { Client } from '../../../src/client/node.js'
import { MemoryBroker, type MemoryBrokerOptions } from '../../../src/testing/broker/index.js'
import * as mq from '../../../src/typed/index.js'

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

/** A channel of readings. */
export const level = mq.channel('tank/{id}/level', mq.json<number>(), { qos: 1 })

/** A subscriber that hands out what it is given, and connects when it is told to. */
export function subscriber() {
  let handler: (message: Message) => unknown = () => undefined
  let connected: () => void = () => undefined
  let end: (error?: Error) => void = () => undefined
  let refusals = 0
  let listens = 0
  const client = {
    subscribe: () => Promise.reject(new Error('not here')),
    subscription: () => undefined,
    on: (_type: string, listener: () => void) => {
      connected = listener
      return () => undefined
    },
    listen: async (_filter: string, handle: typeof handler) => {
      listens += 1
      if (refusals > 0) {
        refusals -= 1
        throw new Error('refused')
      }
      handler = handle
      let mine: typeof end = () => undefined
      const done = new Promise<void>((resolve, reject) => {
        mine = (error) => (error === undefined ? resolve() : reject(error))
      })
      end = mine
      return { done, granted: [], unsubscribe: async () => mine(), detach: () => mine(), [Symbol.asyncDispose]: async () => undefined }
    },
  }
  return {
    client: client as unknown as mq.Subscriber,
    give(id: number | string, value: unknown): unknown {
      const payload = value === undefined ? new Uint8Array(0) : new TextEncoder().encode(String(value))
      const message = {
        topic: `tank/${id}/level`,
        payload,
        payloadLength: payload.length,
        properties: {},
        retain: false,
        text: () => String(value),
        ack: () => true,
        detach: () => message,
      }
      return handler(message as unknown as Message)
    },
    connect: () => connected(),
    end: (error?: Error) => end(error),
    refuse: (count: number) => {
      refusals = count
    },
    get listens() {
      return listens
    },
  }
}
