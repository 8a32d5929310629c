/**
 * Proofs of the server role, sections 4.2 and 6: the broker in memory behind TCP and WebSocket, with a client that speaks bytes.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { MemoryBroker } from '../../../src/testing/index.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import type { Listener } from '../../../src/transport/transport.js'
import { listenWebSocket } from '../../../src/transport/websocket-node.js'
import { bytesOf, hexOf, packetOf, textOf } from './wire.js'

const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

/** CONNECT, SUBSCRIBE, PUBLISH of QoS 1 to itself, PINGREQ: and what must come back. */
const conversation = [
  packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a')),
  packetOf('82', '00 01 00', textOf('t'), '00'),
  packetOf('32', textOf('t'), '00 02 00 78'),
  'c0 00',
].join(' ')

const expected = ['20 08 00 00 05 27 00 10 00 00', '90 04 00 01 00 00', '30 05 00 01 74 00 78', '40 02 00 02', 'd0 00'].join(' ')

async function broker(listen: (accept: MemoryBroker['accept']) => Promise<Listener>): Promise<URL> {
  const memory = new MemoryBroker({ topicAliasMaximum: 0 })
  const listener = await listen(memory.accept)
  opened.push(listener, memory)
  return new URL(listener.url)
}

describe('TCP', () => {
  it.each([
    ['in one segment', Infinity],
    ['byte by byte', 1],
  ])('carries both directions in order and without loss, %s [MQTT-4.2.0-1]', async (_what, step) => {
    const url = await broker((accept) => listenTcp({}, accept))
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    opened.push({ close: () => socket.destroy() })
    const seen: number[] = []
    const done = new Promise<void>((resolve) => {
      socket.on('data', (chunk: Uint8Array) => {
        seen.push(...chunk)
        if (hexOf(seen).length >= expected.length) resolve()
      })
    })
    const bytes = Uint8Array.from(bytesOf(conversation))
    for (let at = 0; at < bytes.length; at += step) {
      socket.write(bytes.subarray(at, at + step))
      // A turn of the event loop, so that the next byte goes by itself.
      await new Promise((resolve) => setImmediate(resolve))
    }
    await done
    expect(hexOf(seen)).toBe(expected)
  })
})

describe('WebSocket', () => {
  async function dial(protocols: string[]): Promise<{ socket: WebSocket; frames: [Uint8Array, boolean][] }> {
    const url = await broker((accept) => listenWebSocket({}, accept))
    const socket = new WebSocket(url, protocols)
    const frames: [Uint8Array, boolean][] = []
    socket.on('message', (data: Uint8Array, isBinary) => frames.push([data, isBinary]))
    socket.on('error', () => undefined)
    opened.push({ close: () => socket.terminate() })
    await once(socket, 'open')
    return { socket, frames }
  }

  it.each([[['mqtt']], [['other', 'mqtt']], [['mqtt', 'mqttv3.1']]])('of %j the sub-protocol is mqtt [MQTT-6.0.0-4]', async (protocols) => {
    const { socket } = await dial(protocols)
    expect(socket.protocol).toBe('mqtt')
  })

  it.each([
    ['all packets in one frame', [conversation]],
    ['one byte a frame', bytesOf(conversation).map((byte) => hexOf([byte]))],
    ['frames that end inside packets', conversation.match(/(?:.. ?){1,7}/g) ?? []],
  ])('%s: all is handled, and what comes back is binary [MQTT-6.0.0-1] [MQTT-6.0.0-2]', async (_what, parts) => {
    const { socket, frames } = await dial(['mqtt'])
    const all = () => hexOf(frames.flatMap(([data]) => [...data]))
    const done = new Promise<void>((resolve) => {
      socket.on('message', () => {
        if (all().length >= expected.length) resolve()
      })
    })
    for (const part of parts) socket.send(Uint8Array.from(bytesOf(part)))
    await done
    expect([all(), frames.every(([, isBinary]) => isBinary)]).toEqual([expected, true])
  })

  it('a text frame ends the connection, whatever it says [MQTT-6.0.0-1]', async () => {
    for (const text of ['', 'hello', '\u00c0\u0000']) {
      const { socket, frames } = await dial(['mqtt'])
      socket.send(Uint8Array.from(bytesOf(conversation)))
      socket.send(text)
      await once(socket, 'close')
      socket.removeAllListeners('message')
      expect(frames.every(([, isBinary]) => isBinary)).toBe(true)
    }
  })
})
