/**
 * WebSockets in front of a TCP peer: bytes pass through as they come, a read of the peer is one message. For clients that speak nothing else.
 */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { WebSocketServer } from 'ws'

const most = 4 << 20
const least = 1 << 20

function relay(socket, port) {
  const far = connect({ port, host: '127.0.0.1', noDelay: true })
  far.on('data', (chunk) => {
    socket.send(chunk, { binary: true })
    if (socket.bufferedAmount <= most) return
    far.pause()
    const wait = setInterval(() => {
      if (socket.bufferedAmount > least && socket.readyState === 1) return
      clearInterval(wait)
      far.resume()
    }, 1)
  })
  socket.on('message', (bytes) => far.write(bytes))
  socket.on('close', () => far.destroy())
  far.on('close', () => socket.close())
  far.on('error', () => socket.close())
  socket.on('error', () => far.destroy())
}

/** Relays the WebSockets of an HTTP server to the peer at this port. */
export function relayTo(port, server) {
  const sockets = new WebSocketServer({
    server,
    handleProtocols: (offered) => [...offered][0] ?? false,
    perMessageDeflate: false,
  })
  sockets.on('connection', (socket) => relay(socket, port))
}

/** The same with a server of its own. */
export async function startRelay(port) {
  const server = createServer()
  relayTo(port, server)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `ws://127.0.0.1:${server.address().port}/mqtt`,
    stop: () => server.close().closeAllConnections(),
  }
}
