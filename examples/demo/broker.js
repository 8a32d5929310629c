/**
 * The broker of the demo: aedes in this process, over TCP and WebSocket on free ports, or the one that MQTT_URL names.
 *
 * The embedded one can be told to lose or repeat messages, to show that the check at the other end notices.
 */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { Duplex } from 'node:stream'
import { Aedes } from 'aedes'
import { WebSocketServer } from 'ws'

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
  sockets.on('connection', (socket, request) => broker.handle(streamOf(socket), request))
  const urls = [`mqtt://127.0.0.1:${await listen(tcp)}`, `ws://127.0.0.1:${await listen(http)}`]
  const stop = async () => {
    // Nobody comes in any more, not even those who try again as soon as they are thrown out.
    const closed = Promise.all([tcp, http].map((server) => new Promise((resolve) => server.close(resolve))))
    await new Promise((resolve) => broker.close(resolve))
    http.closeAllConnections()
    for (const socket of sockets.clients) socket.terminate()
    await closed
  }
  return { urls, name: 'aedes, in this process', foreign: false, stop }
}

/** Bytes that may wait for a page to read them. */
const unread = 8 * 1024 * 1024

/**
 * The stream of a WebSocket, as aedes wants it. It takes at once what is written: aedes would wait for a page that a debugger has stopped, and everybody
 * else with it. A page for which too much waits is thrown out; it comes back by itself.
 */
function streamOf(socket) {
  const stream = new Duplex({
    read: () => socket.resume(),
    write(bytes, _encoding, done) {
      if (socket.bufferedAmount > unread) socket.terminate()
      else if (socket.readyState === socket.OPEN) socket.send(bytes)
      done()
    },
    destroy(error, done) {
      socket.close()
      done(error)
    },
  })
  socket.on('message', (bytes) => {
    if (!stream.push(bytes)) socket.pause()
  })
  socket.once('close', () => stream.destroy())
  socket.on('error', () => stream.destroy())
  return stream
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
