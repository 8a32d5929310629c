/**
 * The broker of the demo: aedes in this process, over TCP and WebSocket on free ports, or the one that MQTT_URL names.
 *
 * The embedded one can be told to lose or repeat messages, to show that the check at the other end notices.
 */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { Aedes } from 'aedes'
import { createWebSocketStream, WebSocketServer } from 'ws'

/** A broker that is there already. */
export function foreignBroker(url) {
  const { host, protocol } = new URL(url)
  return { urls: [url], name: `${protocol}//${host}`, foreign: true, stop: async () => {} }
}

/** Starts a broker in this process; `faults.lose(qos)` and `faults.repeat(qos)` decide for each message whether that happens to it. */
export async function startBroker(faults) {
  const broker = await Aedes.createBroker(faultyHooks(faults))
  // Small packets are to leave at once.
  const tcp = createServer({ noDelay: true }, broker.handle)
  const http = createHttpServer()
  const sockets = new WebSocketServer({ server: http })
  const watch = dropIdle(sockets)
  sockets.on('connection', (socket, request) => broker.handle(createWebSocketStream(socket), request))
  const urls = [`mqtt://127.0.0.1:${await listen(tcp)}`, `ws://127.0.0.1:${await listen(http)}`]
  const stop = async () => {
    clearInterval(watch)
    // Nobody comes in any more, not even those who try again as soon as they are thrown out.
    const closed = Promise.all([tcp, http].map((server) => new Promise((resolve) => server.close(resolve))))
    await new Promise((resolve) => broker.close(resolve))
    http.closeAllConnections()
    for (const socket of sockets.clients) socket.terminate()
    await closed
  }
  return { urls, name: 'aedes, in this process', foreign: false, stop }
}

/** Milliseconds between two looks at what is under way to pages. */
const look = 1000

/**
 * Ends connections over which nothing has moved from one look to the next but one, though something waits: aedes would wait for them, and with it
 * everybody else. A page that is stopped in a debugger or frozen reads nothing; it comes back by itself.
 */
function dropIdle(sockets) {
  const seen = new WeakMap()
  sockets.on('connection', (socket, { socket: tcp }) => seen.set(socket, { tcp, sent: -1, looks: 0 }))
  const watch = setInterval(() => {
    for (const socket of sockets.clients) {
      const state = seen.get(socket)
      const sent = state.tcp.bytesWritten - state.tcp.writableLength
      state.looks = state.tcp.writableLength > 0 && sent === state.sent ? state.looks + 1 : 0
      state.sent = sent
      if (state.looks >= 2) socket.terminate()
    }
  }, look)
  return watch.unref()
}

async function listen(server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

function faultyHooks({ lose, repeat }) {
  return {
    // Asked for each message and receiver; null keeps the message from that receiver.
    authorizeForward: (_receiver, packet) => (lose(packet.qos) ? null : packet),
    // Called when a message was published; one that the broker publishes itself has no client.
    published(packet, client, done) {
      const { topic, payload, qos } = packet
      if (client !== null && repeat(qos)) this.publish({ topic, payload, qos }, done)
      else done()
    },
  }
}
