/**
 * Servers for the WebSocket tests that misbehave on purpose: they speak HTTP and WebSocket frames by hand, so that nothing of the code under test
 * stands on both sides.
 */

import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { listening } from '../../support/servers.js'

export interface RawServer {
  readonly url: string
  readonly requests: IncomingMessage[]
  close(): Promise<void>
}

/** Answers upgrade requests by `upgrade`, and plain ones with 404, until the test ends. */
export async function rawServer(
  upgrade: (socket: Socket, request: IncomingMessage) => void,
): Promise<RawServer> {
  const requests: IncomingMessage[] = []
  const sockets = new Set<Socket>()
  const server = createServer((_request, response) => response.writeHead(404).end())
  server.on('connection', (socket) => {
    sockets.add(socket)
    // HTTP servers leave their side open.
    socket.on('end', () => socket.end())
    socket.on('error', () => {})
  })
  server.on('upgrade', (request, socket) => {
    requests.push(request)
    upgrade(socket as Socket, request)
  })
  const port = await listening(server)
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(close)
  return { url: `ws://127.0.0.1:${port}/mqtt`, requests, close }
}

/** The 101 answer. `changes` replaces headers; undefined leaves one out. */
export function answer(
  request: IncomingMessage,
  changes: Record<string, string | undefined> = {},
): string {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const headers: Record<string, string | undefined> = {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Accept': createHash('sha1').update(key).digest('base64'),
    'Sec-WebSocket-Protocol': 'mqtt',
    ...changes,
  }
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  )
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`
}

/** A server's frame: 1 text, 2 binary, 0 continuation, 8 close. */
export function frame(opcode: number, payload: Uint8Array, final = true): Buffer {
  const first = (final ? 0x80 : 0) | opcode
  const { length } = payload
  const header =
    length < 126
      ? [first, length]
      : length < 65536
        ? [first, 126, length >> 8, length & 255]
        : [first, 127, 0, 0, 0, 0, ...bytesOf(length)]
  return Buffer.concat([Buffer.from(header), payload])
}

function bytesOf(length: number): number[] {
  return [length >>> 24, (length >>> 16) & 255, (length >>> 8) & 255, length & 255]
}

export function closeFrame(code: number, reason: string): Buffer {
  return frame(8, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]))
}
