/** A process that ends while publishes are on their way says so, once for all clients of Node; nothing listens once these are over. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Client as BrowserClient } from '../../../src/client/browser.js'
import { Client, type ClientOptions } from '../../../src/client/node.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { turn } from '../../support/pausing.js'
import { agreeable } from './harness.js'
import { quiet } from './incoming.js'

const before = process.listeners('exit')
const listeners = () => process.listeners('exit').filter((listener) => !before.includes(listener))

let warnings: (Error & { readonly code?: string })[] = []
const note = (warning: Error): void => void warnings.push(warning)
// Node prints them.
const others = process.listeners('warning')
const clients: (Client | BrowserClient)[] = []

beforeEach(() => {
  warnings = []
  for (const other of others) process.off('warning', other)
  process.on('warning', note)
})

afterEach(async () => {
  process.off('warning', note)
  for (const other of others) process.on('warning', other)
  for (const client of clients.splice(0)) client.destroy()
  await turn()
  expect(listeners()).toEqual([])
})

/** What is said when the process ends now: publishes, bytes and clients, where the rest is as it should be. */
function saidAtTheEnd(): string[] {
  warnings = []
  for (const listener of listeners()) listener.call(process, 0)
  const words =
    /^The process ends before mqwire is done \(publishes queued or in flight: (\d+), bytes perhaps not written: (\d+), clients: (.+)\): await client\.(\w+)\(\) first$/
  return warnings.map(({ name, code, message }) => {
    expect([name, code, message]).toEqual([
      'Warning',
      'MQWIRE_UNSENT',
      expect.stringMatching(words),
    ])
    return message.replace(words, '$1 $2 $3 $4')
  })
}

/** A client of a server that takes connections and publishes, and acknowledges or not. */
function made(
  clientId: string,
  acknowledges = false,
  Made: typeof Client | typeof BrowserClient = Client,
  options: ClientOptions = {},
) {
  const transport = () => {
    const [near, far] = memoryPair()
    new ScriptedPeer(far, 5, (packet) =>
      packet.type === 'connect' || acknowledges ? agreeable(packet) : undefined,
    )
    return near
  }
  const client = new Made(
    { url: 'memory://test', transport },
    { clientId, keepAlive: false, ...options },
  )
  clients.push(client)
  return client
}

it('publishes in flight and in the queue are counted over all clients, in one warning that names these', async () => {
  const one = made('one')
  const two = made('two\n')
  const three = made('three')
  await Promise.all([one.connect(), three.connect()])
  quiet(one.publish('a', 'x', { qos: 1 }))
  quiet(one.publish('a', 'x', { qos: 2 }))
  // It never connects.
  quiet(two.publish('a', 'x', { qos: 1 }))
  await turn()
  await turn()
  expect(listeners()).toHaveLength(1)
  expect(saidAtTheEnd()).toEqual(['3 0 one, two\\u{a} drain'])
})

it('what was posted and not written counts in bytes; once it is written nothing is said', async () => {
  const client = made('one')
  await client.connect()
  expect(saidAtTheEnd()).toEqual([])
  client.post('abc', 'xyz')
  expect(saidAtTheEnd()).toEqual(['0 11 one drain'])
  await client.flush()
  expect(saidAtTheEnd()).toEqual([])
  quiet(client.publish('abc', 'x', { qos: 1 }))
  client.post('abc', 'xyz')
  expect(saidAtTheEnd()).toEqual(['1 22 one drain'])
})

it('of many clients a few are named', async () => {
  for (let number = 1; number <= 20; number++)
    quiet(made(`${number}`).publish('a', 'x', { qos: 1 }))
  expect(listeners()).toHaveLength(1)
  expect(saidAtTheEnd()).toEqual(['20 0 1, 2, 3, 4, … connect'])
})

it('nothing is said of what was acknowledged, nor of clients that were ended, at once', async () => {
  const done = made('done', true)
  const destroyed = made('destroyed')
  const drained = made('drained', true)
  await Promise.all([done.connect(), destroyed.connect(), drained.connect()])
  await done.publish('a', 'x', { qos: 1 })
  quiet(drained.publish('a', 'x', { qos: 1 }))
  quiet(destroyed.publish('a', 'x', { qos: 1 }))
  destroyed.post('a', 'x')
  await drained.drain()
  expect(saidAtTheEnd()).toEqual([expect.stringMatching(/ destroyed drain$/)])
  destroyed.destroy()
  expect(saidAtTheEnd()).toEqual([])
  expect(listeners()).toHaveLength(1)
  await done.disconnect()
  await turn()
  expect(listeners()).toEqual([])
})

it('clients for browsers put no listener there', async () => {
  const client = made('page', true, BrowserClient)
  await client.connect()
  quiet(client.publish('a', 'x', { qos: 1 }))
  expect(listeners()).toEqual([])
})
