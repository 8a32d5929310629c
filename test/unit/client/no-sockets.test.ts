/** The client for platforms without sockets, over a transport of the application that reads into what it is lent, as sockets do. */
import { afterEach, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/browser.js'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { encode } from '../../../src/wire/index.js'
import { agreeable } from './harness.js'
import { bytesOf, publish, takenTexts } from './incoming.js'
import { Windowed } from './windowed.js'

it.each(['owned', 'borrowed'] as const)('messages of any size are whole: %s', async (lifetime) => {
  const [near, far] = memoryPair()
  const link = new Windowed(near)
  const peer = new ScriptedPeer(far, 5, agreeable)
  const endpoint = { url: 'mqtt://memory', transport: () => link }
  const client = new Client(endpoint, { reconnect: false, keepAlive: false })
  await client.connect()
  const seen: string[] = []
  await client.listen('a', (message) => void seen.push(message.text()), { lifetime })
  const subscription = await client.subscribe('a')
  const texts = ['one', 'b'.repeat(100_000), 'two', 'c'.repeat(300_000), 'end']
  const packets = texts.map((text) => publish('a', text))
  peer.sendBytes(bytesOf(packets.slice(0, 4)))
  peer.sendBytes(bytesOf(packets.slice(4)))
  await vi.waitFor(() => expect(seen).toHaveLength(5))
  expect([seen, takenTexts(subscription)]).toEqual([texts, texts])
  // All of it came through one array.
  expect(new Set(link.windows.map(({ buffer }) => buffer)).size).toBe(1)
  client.destroy()
})

afterEach(() => vi.unstubAllGlobals())

// It goes on in a message of a channel, or in a timer where there is none, as in React Native.
it.each([
  ['with', globalThis.MessageChannel],
  ['without', undefined],
])('walks a flood %s a MessageChannel', async (_how, channel) => {
  vi.stubGlobal('MessageChannel', channel)
  const [near, far] = memoryPair()
  const peer = new ScriptedPeer(far, 5, agreeable)
  const client = new Client({ url: 'mqtt://memory', transport: () => near }, { reconnect: false })
  await client.connect()
  const subscription = await client.subscribe('a', {
    buffer: 2 * sliceLength,
    bufferBytes: 2 ** 24,
  })
  const one = encode({ type: 'publish', topic: 'a', payload: Uint8Array.of(1) })
  const count = 1.5 * sliceLength
  const flood = new Uint8Array(count * one.length)
  for (let at = 0; at < flood.length; at += one.length) flood.set(one, at)
  peer.sendBytes(flood)
  await vi.waitFor(() => expect(subscription.size).toBe(count), 10_000)
  client.destroy()
})
