/** Clients on a broker in memory, in real time: typed topics are tried as programs use them. */
import { expect, onTestFinished } from 'vitest'
import { Client } from '../../../src/client/node.js'
import type { ClientOptions, Message } from '../../../src/client/options/index.js'
import { deferred } from '../../../src/common/abort.js'
import { MemoryBroker, type MemoryBrokerOptions } from '../../../src/testing/broker/index.js'
import * as mq from '../../../src/typed/index.js'
import { pause } from '../../support/pausing.js'

/** A broker of this test's own, closed with it. */
export function brokerOf(options: MemoryBrokerOptions = {}): MemoryBroker {
  const broker = new MemoryBroker(options)
  onTestFinished(() => broker.close())
  return broker
}

/** A client that is connected until the test ends. */
export async function clientOn(broker: MemoryBroker, options: ClientOptions = {}): Promise<Client> {
  const client = new Client(
    { url: 'memory://broker', transport: broker.dial },
    { reconnect: { backoff: () => 20 }, ...options },
  )
  onTestFinished(() => client.destroy())
  await client.connect()
  return client
}

/** Two clients on a broker: the second one publishes, calls or serves. */
export async function pair(options: ClientOptions = {}, brokerOptions: MemoryBrokerOptions = {}) {
  const broker = brokerOf(brokerOptions)
  const [client, other] = [await clientOn(broker, options), await clientOn(broker)]
  return { broker, client, other, caller: client, server: other }
}

/** A channel of readings. */
export const level = mq.channel('tank/{id}/level', mq.json<number>(), { qos: 1 })

/** A schema that does this with each value. */
export function schemaOf<In, Out = In>(
  validate: (value: unknown) => unknown,
): mq.StandardSchema<In, Out> {
  return { '~standard': { version: 1, vendor: 'test', validate: validate as never } }
}

/** An error of this code, with these fields. */
export const coded = (code: string, fields: object = {}) =>
  expect.objectContaining({ code, ...fields })

/** What a promise comes to: its value, its error, or that it waits still. */
export const outcomeOf = (promise: PromiseLike<unknown> | undefined): Promise<unknown> =>
  Promise.race([promise, pause(3000).then(() => 'it waits')]).catch((error: unknown) => error)

/** The values of a stream up to its end. @param got where they are kept, if it fails */
export async function all<T>(stream: AsyncIterable<T>, got: T[] = []): Promise<T[]> {
  for await (const value of stream) got.push(value)
  return got
}

/** Numbers from 0. */
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** A subscriber that hands out what it is given, and connects when `connect` is called. */
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
      if (refusals-- > 0) throw new Error('refused')
      handler = handle
      const { promise: done, resolve, reject } = deferred<void>()
      const mine: typeof end = (error) => (error === undefined ? resolve() : reject(error))
      end = mine
      return {
        done,
        granted: [],
        unsubscribe: async () => mine(),
        detach: () => mine(),
        [Symbol.asyncDispose]: async () => undefined,
      }
    },
  }
  return {
    client: client as unknown as mq.Subscriber,
    give(id: number | string, value: unknown): unknown {
      const text = value === undefined ? '' : String(value)
      const payload = new TextEncoder().encode(text)
      const content = {
        payload,
        payloadLength: payload.length,
        properties: {},
        retain: false,
        text: () => text,
      }
      const message = {
        topic: `tank/${id}/level`,
        ...content,
        ack: () => true,
        detach: () => message,
      }
      return handler(message as unknown as Message)
    },
    connect: () => connected(),
    end: (error?: Error) => end(error),
    refuse(count: number) {
      refusals = count
    },
    get listens() {
      return listens
    },
  }
}
