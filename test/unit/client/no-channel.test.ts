/** A flood in the client for browsers: it goes on in a message of a channel, or in a timer where there is no MessageChannel, as in React Native. */
import { afterEach, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/browser.js'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { encode } from '../../../src/wire/index.js'

afterEach(() => vi.unstubAllGlobals())

it.each([
  ['with', globalThis.MessageChannel],
  ['without', undefined],
])('walks a flood %s MessageChannel', async (_how, channel) => {
  vi.stubGlobal('MessageChannel', channel)
  const [near, far] = memoryPair()
  const peer = new ScriptedPeer(far, 5, ({ type }) => {
    if (type === 'connect') return { type: 'connack' }
    return type === 'subscribe' ? { type: 'suback', packetId: 1, reasonCodes: [0] } : undefined
  })
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
