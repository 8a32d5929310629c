/** The client for platforms without sockets, over a transport of the application that reads into what it is lent, as sockets do. */
import { expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/browser.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { bytesOf, publish } from './incoming.js'
import { Windowed } from './windowed.js'

it.each(['owned', 'borrowed'] as const)('messages of any size come whole and stay what they are: %s', async (lifetime) => {
  const [near, far] = memoryPair()
  const link = new Windowed(near)
  const peer = new ScriptedPeer(far, 5, (packet) => {
    if (packet.type === 'connect') return { type: 'connack' }
    return packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0] } : undefined
  })
  const client = new Client({ url: 'mqtt://memory', transport: () => link }, { reconnect: false, keepAlive: false })
  await client.connect()
  const seen: string[] = []
  await client.listen('a', (message) => void seen.push(`${message.payloadLength} ${message.text().slice(-3)}`), { lifetime })
  const subscription = await client.subscribe('a')
  peer.sendBytes(bytesOf([publish('a', 'one'), publish('a', 'b'.repeat(100_000)), publish('a', 'two'), publish('a', 'c'.repeat(300_000))]))
  peer.sendBytes(bytesOf([publish('a', 'end')]))
  await vi.waitFor(() => expect(seen).toHaveLength(5))
  expect(seen).toEqual(['3 one', '100000 bbb', '3 two', '300000 ccc', '3 end'])
  const kept = Array.from({ length: 5 }, () => subscription.read()?.text().slice(-3))
  expect(kept).toEqual(['one', 'bbb', 'two', 'ccc', 'end'])
  // All of it came through one array.
  expect(new Set(link.windows.map(({ buffer }) => buffer)).size).toBe(1)
  client.destroy()
})
