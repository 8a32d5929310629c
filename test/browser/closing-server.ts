/**
 * A WebSocket server that ends connections with a code of its own: at the first packet, or at the first PUBLISH after it said CONNACK.
 */
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'
import { listening } from '../support/servers.js'

const connack = Uint8Array.of(0x20, 3, 0, 0, 0)

/** Starts one; gives its URL, to which `/before` and `/after` (CONNACK) belong, and what stops it. */
export async function startClosing(
  code: number,
  reason: string,
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, { url }) => {
    socket.once('message', () => {
      if (url === '/before') return socket.close(code, reason)
      socket.send(connack)
      socket.once('message', () => socket.close(code, reason))
    })
  })
  const port = await listening(server)
  return {
    url: `ws://127.0.0.1:${port}`,
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
